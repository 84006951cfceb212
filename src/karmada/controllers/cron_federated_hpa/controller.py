"""CronFederatedHPA: scales workloads, or the bounds of FederatedHPAs, by schedules.

Each rule has a timer: when it runs next, counted from the moment at which the rule, as it is now, was seen first. A
reconcile restarts the timers of changed rules, runs the rules that are due, writes the status once and requeues for the
earliest timer. Timers are in memory: what was due while no controller ran is not made up for. A run whose record could
not be written is recorded with the next attempt.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import tzinfo
from typing import Final
from zoneinfo import ZoneInfoNotFoundError

from karmada.api.autoscaling import CronFederatedHPA
from karmada.controllers.context import Context
from karmada.controllers.cron_federated_hpa.history import Run, status_after
from karmada.controllers.cron_federated_hpa.metrics import CronMetrics
from karmada.controllers.cron_federated_hpa.scaling import scale
from karmada.kube.client.discovery import NoMatch
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.kinds.cron import local_zone, next_time, zone_of
from karmada.kube.kinds.schedule import parse_schedule
from karmada.kube.objects import meta
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Reconciler, Result, Watch, requeue
from karmada.kube.runtime.converge import converge
from karmada.kube.runtime.event_filter import SPEC_OR_DELETION
from karmada.kube.runtime.events import WARNING
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.writes import get_if_exists

CRON_FEDERATED_HPA: Final = "cronfederatedhpa-controller"
_LONGEST_PAUSE: Final = 60.0
_FAILURES = (ApiError, ConnectionFailed, NoMatch, TimeoutError)


@dataclass(slots=True)
class _Timer:
    """`due` is None while the rule is suspended or has no next time; `broken`: the schedule cannot start."""

    rule: Obj
    due: float | None = None
    broken: bool = False


@dataclass(slots=True)
class _Timers:
    """The timers of one CronFederatedHPA by rule, and its runs that are not in its status yet."""

    uid: str
    target: Obj
    by_rule: dict[str, _Timer] = field(default_factory=dict)
    unrecorded: list[Run] = field(default_factory=list)
    looked_at: float = 0.0

    def next_runs(self) -> dict[str, float | None]:
        return {name: timer.due for name, timer in self.by_rule.items() if not timer.broken}

    def due(self, now: float) -> list[_Timer]:
        return [timer for timer in self.by_rule.values() if timer.due is not None and timer.due <= now]

    def pause(self, now: float) -> float | None:
        """Return the seconds until the next rule runs, or until the time of day is looked at again: it may be set."""
        times = [timer.due for timer in self.by_rule.values() if timer.due is not None]
        return min(max(0.0, min(times) - now), _LONGEST_PAUSE) if times else None


class CronFederatedHPAs(Reconciler):
    name = CRON_FEDERATED_HPA
    watches = (Watch(CronFederatedHPA.gvr, changed=SPEC_OR_DELETION),)
    workers = 5

    def __init__(self, context: Context, *, zone: tzinfo | None = None) -> None:
        self.metrics: CronMetrics = CronMetrics()
        self._client = context.client
        self._clock = context.clock
        self._recorder = context.recorder(self.name)
        self._autoscalers = context.informers.of(CronFederatedHPA.gvr)
        self._zone = zone or local_zone()
        self._timers: dict[Key, _Timers] = {}

    async def reconcile(self, key: Key) -> Result:
        began, error = self._clock.monotonic(), True
        try:
            result = await self._reconcile(key)
            error = False
        finally:
            self.metrics.reconciled(self._clock.monotonic() - began, error=error)
        return result

    async def _reconcile(self, key: Key) -> Result:
        autoscaler = self._autoscalers.get(key)
        if autoscaler is None or meta.is_deleting(autoscaler):
            self._timers.pop(key, None)
            return Done
        timers = self._restart_changed(key, autoscaler)
        for timer in timers.due(self._clock.now()):
            await self._run(autoscaler, timers, timer)
        if self._clock.now() < timers.looked_at:
            self._start_again(timers)
        timers.looked_at = self._clock.now()
        await self._record(key, autoscaler, timers)
        pause = timers.pause(self._clock.now())
        return Done if pause is None else requeue(pause)

    # timers

    def _restart_changed(self, key: Key, autoscaler: Obj) -> _Timers:
        uid, target = meta.uid(autoscaler), autoscaler["spec"]["scaleTargetRef"]
        old = self._timers.get(key)
        if old is None or old.uid != uid:
            old = _Timers(uid, target)
        running = old.by_rule if old.target == target else {}
        timers = self._timers[key] = _Timers(uid, target, unrecorded=old.unrecorded, looked_at=old.looked_at)
        for rule in autoscaler["spec"].get("rules") or ():
            timer = running.get(rule["name"])
            if timer is None or timer.rule != rule:
                timer = self._started(autoscaler, rule)
            timers.by_rule[rule["name"]] = timer
        return timers

    def _started(self, autoscaler: Obj, rule: Obj) -> _Timer:
        if rule.get("suspend"):
            return _Timer(rule)
        try:
            return _Timer(rule, self._next(rule))
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            self._recorder.event(autoscaler, WARNING, "StartRuleFailed", f"rule {rule['name']}: {error}")
            return _Timer(rule, broken=True)

    def _start_again(self, timers: _Timers) -> None:
        """Count from now, since the time of day was set back: what is due has moved away by as much."""
        for timer in timers.by_rule.values():
            if timer.due is not None:
                timer.due = self._next(timer.rule)

    def _next(self, rule: Obj) -> float | None:
        named = rule.get("timeZone")
        return next_time(parse_schedule(rule["schedule"]), self._clock.now(), zone_of(named) if named else self._zone)

    # runs

    async def _run(self, autoscaler: Obj, timers: _Timers, timer: _Timer) -> None:
        assert timer.due is not None
        due, began = timer.due, self._clock.monotonic()
        timer.due = self._next(timer.rule)
        failure = await self._scale(autoscaler, timer.rule)
        if failure:
            self._recorder.event(autoscaler, WARNING, "ScaleFailed", failure)
        timers.unrecorded.append(Run(timer.rule, due, self._clock.now(), failure))
        self.metrics.ran(self._clock.monotonic() - began, error=bool(failure))

    async def _scale(self, autoscaler: Obj, rule: Obj) -> str:
        """Why it failed; empty when it did not."""
        try:
            await scale(self._client, self._clock, autoscaler, rule)
        except _FAILURES as error:
            return str(error)
        return ""

    # status

    async def _record(self, key: Key, autoscaler: Obj, timers: _Timers) -> None:
        async def make(current: Obj | None) -> Obj | None:
            if current is None or meta.uid(current) != meta.uid(autoscaler):
                return None
            status = status_after(current.get("status") or {}, timers.next_runs(), timers.unrecorded)
            return current if status == (current.get("status") or {}) else {**current, "status": status}

        async def put(_current: Obj | None, wanted: Obj) -> Obj:
            return await self._client.update_status(CronFederatedHPA.gvr, wanted)

        async def live() -> Obj | None:
            return await get_if_exists(self._client, CronFederatedHPA.gvr, key.name, key.namespace)

        try:
            written = await converge(make, autoscaler, put, live)
        except _FAILURES as error:
            reason = "UpdateStatusFailed" if timers.unrecorded else "UpdateCronFederatedHPAFailed"
            self._recorder.event(autoscaler, WARNING, reason, str(error))
            raise
        timers.unrecorded.clear()
        if written is not None and written.outcome != "unchanged":
            self._autoscalers.wrote(written.object)
