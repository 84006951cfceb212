"""The schedulers of ResourceBindings and ClusterResourceBindings: from a key to a written decision.

Decisions are made one after the other; their writes overlap, so that many wait for the disk together. A write counts at
once, before the informer has it, and its own event triggers nothing. A failure that a retry may fix is requeued after a
pause; a binding that no cluster fits waits until something changes. One that a quota refused is also tried as soon as
a quota of its namespace has more left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from karmada.api.cluster import Cluster
from karmada.api.policy import FederatedResourceQuota
from karmada.api.work import ClusterResourceBinding, ResourceBinding
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects import meta
from karmada.kube.objects.errors import ApiError, NotFound
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import ControllerOptions, Done, Enqueue, Reconciler, Result, Watch, requeue
from karmada.kube.runtime.events import NORMAL, WARNING
from karmada.kube.runtime.handled import Generation, Handled, generation_of
from karmada.kube.runtime.keys import Key, key_of
from karmada.kube.runtime.logging import get_logger
from karmada.kube.runtime.queue import WorkQueue
from karmada.kube.runtime.time_slice import in_slices
from karmada.scheduler.decision import Decision, Reason, Verdict, verdict
from karmada.scheduler.estimators.protocol import Estimator
from karmada.scheduler.request import Request
from karmada.scheduler.service import writing
from karmada.scheduler.service.at_creation import AtCreation, Decided
from karmada.scheduler.service.context import Context
from karmada.scheduler.service.core import Options, SchedulingEngine
from karmada.scheduler.service.metrics import SchedulerMetrics
from karmada.scheduler.service.schedule_type import ScheduleType, schedule_type_of
from karmada.scheduler.service.triggers import (
    BY_GROUP,
    BY_KIND,
    BY_PLACEMENT,
    SchedulerSelector,
    bindings_for,
    bindings_of_kinds,
    concerns_bindings,
    frees_quota,
    index_by_group,
    index_by_kind,
    index_by_placement,
    is_known,
    is_pending,
    served_kinds,
)

COMPONENT = "karmada-scheduler"
QUEUE = "scheduler-queue"
SUCCEEDED, FAILED = "ScheduleBindingSucceed", "ScheduleBindingFailed"
_WORKERS = 64
_FREED_SECONDS = 1.0
"""Quotas become free bit by bit: what they refused is tried again at most so often."""

Kind = type[ResourceBinding] | type[ClusterResourceBinding]
log = get_logger("scheduler")


def scheduler_parts(
    context: Context, options: Options | None = None, estimators: Sequence[Estimator] = ()
) -> Sequence[BindingScheduler]:
    metrics = SchedulerMetrics(context.clock)
    core = SchedulingEngine(context, options or Options(), estimators, metrics)
    kinds: tuple[Kind, ...] = (ResourceBinding, ClusterResourceBinding)
    parts = [BindingScheduler(context, kind, core, metrics) for kind in kinds]

    def pending() -> dict[str, int]:
        backoff, unschedulable = core.pauses.counts()
        return {"active": sum(part.waiting for part in parts), "backoff": backoff, "unschedulable": unschedulable}

    metrics.pending = pending
    return parts


class BindingScheduler(Reconciler):
    workers = _WORKERS
    options = ControllerOptions(queue_name=QUEUE)

    def __init__(self, context: Context, kind: Kind, core: SchedulingEngine, metrics: SchedulerMetrics) -> None:
        self._core = core
        self._kind = kind
        self._clock = context.clock
        self._client = context.connect(COMPONENT)
        self._recorder = context.recorder(core.options.name)
        self.metrics: SchedulerMetrics = metrics
        self.name = f"{core.options.name}-{kind.info.plural}"
        self._ours = SchedulerSelector(core.options.name)
        self._decided: Handled[Key, Generation] = Handled()
        """Bindings as the last decision made them: their events need no other decision.

        Set before the write, whose event may come before its response.
        """
        self._touched: set[Key] = set()
        """Bindings that a changed cluster may concern."""
        self._refused: dict[str, set[Key]] = {}
        """Bindings that a quota refused, by namespace."""
        self._add: Callable[[Key, int], None] = lambda _key, _priority: None
        self._queue: WorkQueue[Key] | None = None
        self._follow_ups = context.follow_ups
        self._at_creation = AtCreation(core, self._ours, context.clock, COMPONENT, self._is_running)
        indexes = {BY_PLACEMENT: index_by_placement, BY_GROUP: index_by_group, BY_KIND: index_by_kind}
        self._bindings = context.informers.of(kind.gvr, indexes=indexes)
        self._bindings.add_handler(self._binding_changed)
        self._clusters = context.informers.of(Cluster.gvr)
        self.watches = (
            Watch(
                self._kind.gvr,
                when=self._counted,
                priority=self._priority if core.by_priority else 0,
                pending=is_pending,
            ),
            Watch(Cluster.gvr, walk=self._requeue_of_cluster),
        )
        if kind is ResourceBinding and context.gates.enabled("FederatedQuotaEnforcement"):
            quotas = FederatedResourceQuota.gvr
            self.watches = (
                *self.watches,
                Watch(quotas, when=frees_quota, map_to=self._refused_by, after=_FREED_SECONDS),
            )

    def attach(self, add: Callable[[Key, int], None]) -> None:
        self._add = add

    def follow_queue(self, queue: WorkQueue[Key]) -> None:
        self._queue = queue
        self._follow_ups.register(self._kind.gvk, self._at_creation)

    def _is_running(self) -> bool:
        return self._queue is not None and self._queue.takes_keys

    async def stop(self) -> None:
        self._follow_ups.unregister(self._kind.gvk, self._at_creation)

    @property
    def core(self) -> SchedulingEngine:
        """Return the engine, shared with the scheduler of the other kind of bindings."""
        return self._core

    @property
    def waiting(self) -> int:
        """Return how many bindings are ready to be scheduled."""
        return 0 if self._queue is None else len(self._queue)

    # triggers

    def _counted(self, old: Obj | None, new: Obj | None) -> bool:
        if new is None or not self._ours.should_schedule(old, new):
            return False
        key = key_of(new)
        if self._decided.is_done(key, generation_of(new)):
            return False
        decided = self._at_creation.take(new)
        if decided is not None and self._was_decided(new, decided):
            return False
        self._core.pauses.triggered(key)
        self.metrics.incoming("BindingAdd" if old is None or not self._ours(old) else "BindingUpdate")
        return True

    def _was_decided(self, binding: Obj, decided: Decided) -> bool:
        """Announce a decision that was stored with its binding; whether it still holds."""
        self.metrics.incoming("BindingAdd")
        self.metrics.attempted("scheduled", ScheduleType.RECONCILE.value, self._clock.monotonic() - decided.began)
        self._emit_success(binding, decided.decision, decided.report)
        holds = self._at_creation.holds(decided, binding)
        if holds:
            self._decided.done(key_of(binding), generation_of(binding))
        return holds

    def _priority(self, binding: Obj) -> int:
        if not self._core.by_priority:
            return 0
        return int(((binding.get("spec") or {}).get("schedulePriority") or {}).get("priority") or 0)

    def _binding_changed(self, old: Obj | None, new: Obj | None) -> None:
        if new is not None and self._core.follows_reports:
            self._core.reported(old, new)
        if new is not None and (is_known(old, new) or self._ours(new)):
            if self._core.assumptions is not None and self._kind is ResourceBinding:
                self._core.assumptions.observe(old, new)
            return
        binding = new or old
        assert binding is not None
        key = key_of(binding)
        self._decided.forget(key)
        self._touched.discard(key)
        self._forget_refusal(key)
        self._core.pauses.forget(key)
        if self._kind is ResourceBinding:
            self._core.forget(key)

    def _refused_by(self, quota: Obj) -> Iterable[Key]:
        return sorted(self._refused.get(meta.namespace(quota), ()))

    async def _requeue_of_cluster(self, old: Obj | None, new: Obj | None, add: Enqueue) -> None:
        async for key in bindings_for(concerns_bindings(old, new), self._bindings, self._ours):
            self._touch(key, add)
        if new is not None:
            async for key in bindings_of_kinds(new, served_kinds(old, new), self._bindings, self._ours):
                self._touch(key, add)

    def _touch(self, key: Key, add: Enqueue) -> None:
        """Enqueue a binding that a changed cluster may concern."""
        binding = self._bindings.get(key) if self._core.by_priority else None
        self._touched.add(key)
        self._core.pauses.triggered(key)
        add(key, 0 if binding is None else self._priority(binding))
        self.metrics.incoming("ClusterChanged")

    # the work

    async def reconcile(self, key: Key) -> Result:
        binding = self._bindings.get(key)
        if binding is None or not self._ours.served(binding) or self._is_decided(key, binding):
            return self._settled(key)
        self._touched.discard(key)
        self._decided.forget(key)
        self._core.pauses.over(key)
        self._forget_refusal(key)
        try:
            report = await self._schedule(key, binding)
        except NotFound:
            return self._settled(key)
        except (ApiError, ConnectionFailed, TimeoutError) as error:
            if isinstance(error, ApiError) and writing.is_namespace_ending(error):
                return self._settled(key)
            log.error("A decision could not be written", error, kind=self._kind.gvk.kind, key=str(key))
            return self._again(key, binding)
        if report is None or not report.retry:
            return self._settled(key)
        if report.reason == Reason.QUOTA_EXCEEDED:
            self._refused.setdefault(key.namespace, set()).add(key)
        return self._again(key, binding, no_room=report.reason == Reason.UNSCHEDULABLE)

    def _is_decided(self, key: Key, binding: Obj) -> bool:
        return self._decided.is_done(key, generation_of(binding)) and key not in self._touched

    async def _schedule(self, key: Key, binding: Obj) -> Verdict | None:
        """Return the outcome of a decision; None when there was nothing to decide."""
        if meta.is_deleting(binding):
            return None
        if binding["spec"].get("placement") is None:
            text = f"failed to get placement from {self._called}({key})"
            log.error(text)
            return Verdict("False", Reason.SCHEDULER_ERROR, text, True)
        request = self._core.request(binding)
        need = schedule_type_of(binding, request, self._core.fleet.leaving, components=self._core.components)
        if need is ScheduleType.NONE:
            self._wrote(binding, await writing.write_observed(self._client, self._kind.gvr, binding, self._clock.now()))
            return None
        began = self._clock.monotonic()
        report = await self._run(key, binding, request)
        self.metrics.attempted("error" if report.retry else "scheduled", need.value, self._clock.monotonic() - began)
        return report

    async def _run(self, key: Key, binding: Obj, request: Request) -> Verdict:
        """Decide and write the result; what failed on the way is decided again."""
        try:
            return await self._decide(key, binding, request)
        except BaseException:
            self._decided.forget(key)
            raise

    async def _decide(self, key: Key, binding: Obj, request: Request) -> Verdict:
        decision = await self._core.decide(binding, request)
        await self._emit_failed_groups(key, binding, request, decision)
        written, wrong = await self._write_result(key, binding, request, decision)
        report = verdict(decision.failure, wrong)
        current = writing.is_about(binding, written)
        after = written
        try:
            after = await writing.write_status(
                self._client,
                self._kind.gvr,
                written,
                report,
                self._clock.now(),
                observed=meta.generation(written if current else binding),
                affinity_name="" if wrong else decision.affinity_name,
                again=request.fresh,
            )
        finally:
            self._wrote(binding, after)
        self._report(binding, after, request, decision, report)
        if current and not report.retry:
            self._decided.done(key, generation_of(written))
        else:
            self._decided.forget(key)
        if not current:
            self._add(key, self._priority(written))
        return report

    async def _write_result(
        self, key: Key, binding: Obj, request: Request, decision: Decision
    ) -> tuple[Obj, list[Exception]]:
        """Return the binding afterwards, and what went wrong. Without a cluster that fits, placements are withdrawn."""
        if decision.failure is not None and decision.failure.reason is not Reason.NO_CLUSTER_FIT:
            return binding, []
        patch = writing.result_patch(binding, request.plan, decision.targets)
        if not patch:
            return binding, []
        if "spec" in patch:
            self._decided.done(key, (meta.uid(binding), meta.generation(binding) + 1))
        written: Obj | None = None
        try:
            written = await writing.write(self._client, self._kind.gvr, binding, patch)
        except NotFound:
            raise
        except ApiError as error:
            if writing.is_namespace_ending(error):
                raise
            return binding, [error]
        finally:
            self._placed(key, written)
        return written, []

    def _placed(self, key: Key, written: Obj | None) -> None:
        """Note that a decision is written, or (None) is not."""
        if self._kind is ResourceBinding:
            if written is None:
                self._core.forget(key)
            else:
                self._core.written(written)

    def _wrote(self, before: Obj, after: Obj) -> None:
        if after is not before:
            self._bindings.wrote(after)

    # events

    async def _emit_failed_groups(self, key: Key, binding: Obj, request: Request, decision: Decision) -> None:
        async for attempt in in_slices(decision.failed_attempts if request.plan.terms else ()):
            assert attempt.failure is not None
            where = f"{self._kind.gvk.kind}({key})"
            text = f"failed to schedule {where} with clusterAffiliates index({attempt.index}): {attempt.failure.text}"
            self._emit(binding, WARNING, FAILED, text)

    def _report(self, binding: Obj, after: Obj, request: Request, decision: Decision, report: Verdict) -> None:
        """Emit events: success only when something was written; groups that failed have had theirs already."""
        if report.status == "True":
            if after is not binding:
                self._emit_success(binding, decision, report)
        elif not request.plan.terms or decision.failure is None or decision.failure.reason is Reason.NO_CLUSTER_FIT:
            self._emit(binding, WARNING, FAILED, report.message)

    def _emit_success(self, binding: Obj, decision: Decision, report: Verdict) -> None:
        colon = ":" if self._kind is ResourceBinding else ""
        targets = decision.targets
        self._emit(
            binding,
            NORMAL,
            SUCCEEDED,
            lambda: f"{report.message} Result{colon} {writing.result_text(targets)}",
        )

    def _emit(self, binding: Obj, sort: str, reason: str, text: str | Callable[[], str]) -> None:
        """Emit an event on the binding, and on its resource."""
        self._recorder.event(binding, sort, reason, text)
        resource = binding["spec"].get("resource") or {}
        parts = {key: resource[key] for key in ("name", "namespace", "uid", "resourceVersion") if resource.get(key)}
        about = {"apiVersion": resource.get("apiVersion"), "kind": resource.get("kind"), "metadata": parts}
        self._recorder.event(about, sort, reason, text)

    @property
    def _called(self) -> str:
        kind = self._kind.gvk.kind
        return kind[0].lower() + kind[1:]

    # retries

    def _forget_refusal(self, key: Key) -> None:
        refused = self._refused.get(key.namespace)
        if refused is not None:
            refused.discard(key)
            if not refused:
                del self._refused[key.namespace]

    def _settled(self, key: Key) -> Result:
        self._core.pauses.forget(key)
        return Done

    def _again(self, key: Key, binding: Obj, *, no_room: bool = False) -> Result:
        self.metrics.incoming("ScheduleAttemptFailure")
        return requeue(self._core.pauses.failed(key, no_room=no_room), self._priority(binding))
