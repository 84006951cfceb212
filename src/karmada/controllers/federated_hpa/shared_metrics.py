"""Answers of the metrics APIs, shared by the autoscalers that need them in the same moment.

A request that is under way, or was answered a few seconds ago, is not made again: FederatedHPAs of one namespace that
run together cause one request. A request that takes too long fails for those that wait for it and for nobody else.
Answers are kept for those few seconds only, failures not at all.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Coroutine, Hashable
from typing import Any, Final, NamedTuple, TypeVar

from karmada.controllers.federated_hpa.figures import Figures
from karmada.controllers.federated_hpa.samples import Samples, by_name, by_pod
from karmada.kube.autoscaling.metrics import MetricsError, MetricsSource
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.waiting import cancel_and_wait, with_timeout

_SHARED_SECONDS: Final = 5.0
T = TypeVar("T")


class _Answer(NamedTuple):
    at: float
    task: asyncio.Task[Any]


class SharedMetrics:
    def __init__(self, source: MetricsSource, clock: Clock, figures: Figures, *, timeout: float) -> None:
        """`timeout` is that of one request."""
        self._source = source
        self._clock = clock
        self._figures = figures
        self._timeout = timeout
        self._fresh = min(_SHARED_SECONDS, timeout / 3)
        self._answers: dict[Hashable, _Answer] = {}

    def __len__(self) -> int:
        """Answers that are kept."""
        return len(self._answers)

    async def pod_metrics(self, namespace: str, selector: str, *, newer_than: float = -math.inf) -> Samples:
        """With `newer_than`, a moment of the clock, an answer to a request from before is not used."""

        async def request() -> Samples:
            return by_pod(await self._source.pod_metrics(namespace, selector))

        return await self._once(("resource", namespace, selector), "ResourceMetric", request, newer_than)

    async def pod_values(
        self, namespace: str, selector: str, metric: str, metric_selector: str, *, newer_than: float = -math.inf
    ) -> Samples:
        async def request() -> Samples:
            return by_name(await self._source.pod_values(namespace, selector, metric, metric_selector))

        key = ("custom", namespace, selector, metric, metric_selector)
        return await self._once(key, "RawMetric", request, newer_than)

    async def object_value(self, namespace: str, described: Obj, metric: str, metric_selector: str) -> int:
        async def request() -> int:
            return await self._source.object_value(namespace, described, metric, metric_selector)

        what = tuple(described.get(field) or "" for field in ("apiVersion", "kind", "name"))
        return await self._once(("custom", namespace, what, metric, metric_selector), "ObjectMetric", request)

    async def stop(self) -> None:
        answers, self._answers = list(self._answers.values()), {}
        await cancel_and_wait(*(answer.task for answer in answers))

    async def _once(
        self,
        key: tuple[Hashable, ...],
        kind: str,
        request: Callable[[], Coroutine[Any, Any, T]],
        newer_than: float = -math.inf,
    ) -> T:
        now = self._clock.monotonic()
        answer = self._answers.get(key)
        if answer is None or (answer.task.done() and not max(now - self._fresh, newer_than) < answer.at):
            self._forget_old(now)
            task = asyncio.create_task(self._request(str(key[0]), kind, request), name=f"metrics {kind}")
            answer = self._answers[key] = _Answer(now, task)
            task.add_done_callback(lambda done: self._ended(key, done))
        waiting: Awaitable[T] = asyncio.shield(answer.task)
        return await waiting

    async def _request(self, api: str, kind: str, request: Callable[[], Coroutine[Any, Any, T]]) -> T:
        started, failed = self._clock.monotonic(), True
        try:
            found = await with_timeout(self._clock, request(), self._timeout)
            failed = False
            return found
        except TimeoutError as error:
            raise MetricsError(f"unable to fetch metrics from {api} metrics API: {error}") from error
        finally:
            self._figures.pulled(kind, self._clock.monotonic() - started, failed=failed)

    def _ended(self, key: Hashable, task: asyncio.Task[Any]) -> None:
        """Who waits for a failed request gets its error; the next one requests anew."""
        failed = task.cancelled() or task.exception() is not None
        answer = self._answers.get(key)
        if failed and answer is not None and answer.task is task:
            del self._answers[key]

    def _forget_old(self, now: float) -> None:
        old = [key for key, answer in self._answers.items() if answer.task.done() and answer.at <= now - self._fresh]
        for key in old:
            del self._answers[key]
