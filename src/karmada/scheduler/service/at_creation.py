"""Decisions at creation: a new binding is stored with its clusters and its first status.

Where scheduler and API server are in one process, and a decision is a computation: nothing is awaited, and it depends
on no other decision under way. Only success is decided so. A binding that finds no cluster, or only in a later group
of clusters, is created without a decision, and its reconcile reports and retries.

Its event and metrics wait for the watch event of the create, which proves that it is stored. A cluster that changed in
between could not trigger a reconcile of a binding that was not there yet: then the event does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from karmada.api import well_known
from karmada.kube.objects import meta
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.follow_ups import FollowUp
from karmada.kube.runtime.handled import Handled
from karmada.scheduler.decision import Decision, Verdict, verdict
from karmada.scheduler.fleet import Fleet
from karmada.scheduler.request import Request
from karmada.scheduler.service import writing
from karmada.scheduler.service.core import SchedulingEngine
from karmada.scheduler.service.triggers import SchedulerSelector

_MOST_TERMS = 8
"""Groups of clusters that are tried within a write; with more of them, the decision is made in slices afterwards."""


class Decided(NamedTuple):
    """A decision that is on its way into the store with its binding."""

    generation: int
    fleet: Fleet
    request: Request
    decision: Decision
    report: Verdict
    began: float


class AtCreation:
    def __init__(
        self, core: SchedulingEngine, ours: SchedulerSelector, clock: Clock, manager: str, running: Callable[[], bool]
    ) -> None:
        """Make it; `manager`: who writes the decision, `running`: whether this scheduler decides now."""
        self._core = core
        self._ours = ours
        self._clock = clock
        self._manager = manager
        self._running = running
        self._decided: Handled[str, Decided] = Handled()
        """Decisions by the uid of the binding, until its event has come."""

    def follow_up(self, binding: Obj) -> FollowUp | None:
        if not self._running() or not self._core.decides_at_once or not self._is_open(binding):
            return None
        began, generation = self._clock.monotonic(), meta.generation(binding)
        request = self._core.request(binding)
        if len(request.plan.terms) > _MOST_TERMS:
            return None
        decision = self._core.decide_at_once(request)
        if decision.failed_attempts:
            return None
        report = verdict(None)
        decided = Decided(generation, self._core.fleet, request, decision, report, began)
        self._decided.done(meta.uid(binding), decided)
        status = writing.reported_status(
            {}, report, self._clock.now(), observed=generation, affinity_name=decision.affinity_name
        )
        return FollowUp(self._manager, writing.result_patch(binding, request.plan, decision.targets), status)

    def _is_open(self, binding: Obj) -> bool:
        """Return whether the binding is this scheduler's to decide on, and nobody has."""
        spec = binding["spec"]
        decided = spec.get("clusters") or meta.annotations(binding).get(well_known.APPLIED_PLACEMENT)
        return self._ours(binding) and bool(spec.get("placement")) and not decided

    def abandoned(self, binding: Obj) -> None:
        self._decided.forget(meta.uid(binding))

    def take(self, binding: Obj) -> Decided | None:
        """Return, once, what was decided when this binding was created."""
        return self._decided.take(meta.uid(binding))

    def holds(self, decided: Decided, binding: Obj) -> bool:
        """Return whether the decision is on this state of the binding and on the clusters as they are."""
        return decided.generation == meta.generation(binding) and decided.fleet is self._core.fleet
