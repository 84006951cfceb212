"""Requests an estimate for all clusters at once, under one deadline; if one fails, there is no estimate at all.

Half an answer would be worse than none: clusters that are known exactly would look smaller than those that are not, and
replicas would go to clusters without an estimate. How one cluster is requested is given from outside.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from karmada.estimator.terms import EstimateError
from karmada.kube.objects.clock import Clock
from karmada.kube.runtime.waiting import with_timeout
from karmada.scheduler.estimators.protocol import EstimateRequest

EstimateOne = Callable[[str, EstimateRequest], Awaitable[int]]
"""For one cluster by name: how many; raises EstimateError."""


class FanOut:
    def __init__(
        self, estimate_one: EstimateOne, clock: Clock, *, timeout: float = 3.0, name: str = "scheduler-estimator"
    ) -> None:
        """A time-out of 0 means no time-out."""
        self.name = name
        self._estimate_one = estimate_one
        self._clock = clock
        self._timeout = timeout

    async def estimate(self, request: EstimateRequest) -> Mapping[str, int]:
        work = self._estimate_all(request)
        try:
            return await (with_timeout(self._clock, work, self._timeout) if self._timeout else work)
        except TimeoutError as late:
            raise EstimateError(str(late)) from None

    async def _estimate_all(self, request: EstimateRequest) -> Mapping[str, int]:
        names = request.names()
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._one(name, request)) for name in names]
        except* EstimateError as wrong:
            texts = sorted({str(error) for error in _leaves(wrong)})
            raise EstimateError(texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]") from None
        return dict(zip(names, (task.result() for task in tasks), strict=True))

    async def _one(self, name: str, request: EstimateRequest) -> int:
        return await self._estimate_one(name, request)


def _leaves(group: BaseExceptionGroup[EstimateError]) -> list[BaseException]:
    found: list[BaseException] = []
    for error in group.exceptions:
        found += _leaves(error) if isinstance(error, BaseExceptionGroup) else [error]
    return found
