"""The descheduler's rounds, and what it does for each binding.

Every round queues the bindings of which a cluster is short; an index keeps them, so that a round costs nothing for all
others. For each of them the estimators of those clusters are called; what could not be scheduled there for too long is
taken away in one update, and the scheduler, which finds replicas missing, places them elsewhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from karmada.api.work import ResourceBinding
from karmada.controllers.context import Context
from karmada.controllers.failover.reports import report
from karmada.controllers.templates import resource_of_binding
from karmada.descheduler.rules import concerns, descheduled, targets_of
from karmada.estimator.terms import EstimateError
from karmada.kube.objects import meta
from karmada.kube.objects.errors import ApiError, Conflict, NotFound
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Enqueue, Reconciler, Result
from karmada.kube.runtime.events import NORMAL, WARNING
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.logging import get_logger
from karmada.kube.runtime.manager import Component
from karmada.kube.runtime.periodic import Periodic

COMPONENT: Final = "karmada-descheduler"
SUCCEEDED, FAILED = "DescheduleBindingSucceed", "DescheduleBindingFailed"
_SHORT: Final = "descheduler/short"
_YES: Final = "yes"
_SHORTEST_PAUSE: Final = 1.0
_AT_ONCE: Final = 256
"""Keys are queued in portions, and others have their turn in between."""
log = get_logger("descheduler")


class Estimators(Protocol):
    """The estimators of member clusters."""

    async def unschedulable_replicas(
        self, clusters: Iterable[str], resource: Obj, threshold: float
    ) -> Mapping[str, int]:
        """Return how many replicas of a workload each cluster could not schedule for longer than so many seconds.

        EstimateError when one of them fails.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Times in seconds."""

    interval: float = 120.0
    """From the end of one round to the next."""
    threshold: float = 300.0
    """How long a replica may be unschedulable before it is descheduled."""


def descheduler_parts(
    context: Context,
    estimators: Estimators,
    options: Options | None = None,
    before: Callable[[], Awaitable[None]] | None = None,
) -> list[Reconciler | Component]:
    """`before` is awaited ahead of the first round, and holds up nothing else."""
    options = options or Options()
    descheduler = Descheduler(context, estimators, options.threshold)
    pause = max(options.interval, _SHORTEST_PAUSE)
    rounds = Periodic("descheduling rounds", descheduler.enqueue, pause, context.clock, at_once=True, before=before)
    return [descheduler, rounds]


class Descheduler(Reconciler):
    name = queue_name = "descheduler"

    def __init__(self, context: Context, estimators: Estimators, threshold: float) -> None:
        self._client = context.connect(COMPONENT)
        self._recorder = context.recorder(COMPONENT)
        self._estimators = estimators
        self._threshold = threshold
        self._bindings = context.informers.of(ResourceBinding.gvr, indexes={_SHORT: _short})
        self._add: Enqueue = lambda _key, _priority=0: None

    def attach(self, add: Enqueue) -> None:
        self._add = add

    async def enqueue(self) -> None:
        """Queue the bindings of which a cluster is short."""
        for number, key in enumerate(self._bindings.keys_by_index(_SHORT, _YES), 1):
            self._add(key)
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)

    async def reconcile(self, key: Key) -> Result:
        binding = self._bindings.get(key)
        if binding is None or meta.is_deleting(binding):
            return Done
        short = [target.cluster for target in targets_of(binding) if target.is_short]
        change = descheduled(binding, await self._unschedulable(binding, short)) if short else None
        if change is None:
            return Done
        try:
            self._bindings.wrote(await self._client.update(ResourceBinding.gvr, change.binding))
        except NotFound:
            return Done
        except Conflict:  # it is decided again, on the binding as it is then
            raise
        except ApiError as error:
            report(self._recorder, binding, WARNING, FAILED, str(error))
            raise
        report(self._recorder, binding, NORMAL, SUCCEEDED, change.message)
        return Done

    async def _unschedulable(self, binding: Obj, clusters: Sequence[str]) -> Mapping[str, int]:
        """Return the answer, or nothing when an estimator fails: the next round tries again."""
        try:
            return await self._estimators.unschedulable_replicas(
                clusters, resource_of_binding(binding), self._threshold
            )
        except EstimateError as error:
            log.info("Unschedulable replicas are not known", binding=str(meta.key(binding)), err=str(error))
            return {}


def _short(binding: Obj) -> Iterable[str]:
    return (_YES,) if concerns(binding) else ()
