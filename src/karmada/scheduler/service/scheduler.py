"""The schedulers of ResourceBindings and ClusterResourceBindings: from a key to a written decision.

Decisions are made one after the other, so that each sees what the one before has placed; writing them down overlaps
where several workers have something to write. A failure that trying again may mend comes back after a pause; a binding
that no cluster fits waits until something changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from karmada.api.cluster import Cluster
from karmada.api.work import ClusterResourceBinding, ResourceBinding
from karmada.controllers.context import Context
from karmada.kube.objects import meta
from karmada.kube.objects.errors import ApiError, NotFound
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Reconciler, Result, Retry, Watch, requeue
from karmada.kube.runtime.events import NORMAL, WARNING
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.waiting import with_timeout
from karmada.scheduler.decision import Decision
from karmada.scheduler.estimators.protocol import RemoteEstimator
from karmada.scheduler.failures import Reason, Verdict, verdict
from karmada.scheduler.service import writing
from karmada.scheduler.service.core import Core, Options
from karmada.scheduler.service.metrics import SchedulerMetrics
from karmada.scheduler.service.need import Need, need_of
from karmada.scheduler.service.triggers import BY_PLACEMENT, Ours, bindings_for, concerns_bindings, index_by_placement

SUCCEEDED, FAILED = "ScheduleBindingSucceed", "ScheduleBindingFailed"
_UNSCHEDULABLE_SECONDS = 300.0
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 10.0
_WORKERS = 8
_SEEN_SECONDS = 30.0

Kind = type[ResourceBinding] | type[ClusterResourceBinding]


def scheduler_parts(
    context: Context, options: Options | None = None, remote: Sequence[RemoteEstimator] = ()
) -> list[Reconciler]:
    options = options or Options()
    core = Core(context, options, remote)
    metrics = SchedulerMetrics()
    return [BindingScheduler(context, kind, core, metrics) for kind in (ResourceBinding, ClusterResourceBinding)]


class BindingScheduler:
    workers = _WORKERS

    def __init__(self, context: Context, kind: Kind, core: Core, metrics: SchedulerMetrics) -> None:
        self._core = core
        self._kind = kind
        self._clock = context.clock
        self._client = context.connect("karmada-scheduler")
        self._recorder = context.recorder(core.options.name)
        self.metrics = metrics
        self.name = f"{core.options.name}-{kind.info.plural}"
        self._ours = Ours(core.options.name)
        self._by_priority = context.gates.enabled("PriorityBasedScheduling")
        self._attempts: dict[Key, int] = {}
        self._decided: dict[Key, int] = {}
        """The generation that a decision made: seeing it is no reason to decide again."""
        self._touched: set[Key] = set()
        """Those that a changed cluster may concern."""
        self._add: Callable[[Key, int], None] = lambda _key, _priority: None
        self._bindings = context.informers.of(kind.gvr, indexes={BY_PLACEMENT: index_by_placement})
        self._bindings.add_handler(self._binding_changed)
        context.informers.of(Cluster.gvr).add_handler(self._cluster_changed)

    @property
    def watches(self) -> Sequence[Watch]:
        priority = self._priority if self._by_priority else 0
        return (Watch(self._kind.gvr, when=self._counted, priority=priority), Watch(Cluster.gvr, map_to=_nobody))

    def attach(self, add: Callable[[Key, int], None]) -> None:
        self._add = add

    # what wakes it

    def _counted(self, old: Obj | None, new: Obj | None) -> bool:
        if not self._ours.worth_a_look(old, new):
            return False
        self.metrics.incoming("BindingAdd" if old is None or not self._ours(old) else "BindingUpdate")
        return True

    def _priority(self, binding: Obj) -> int:
        return int(((binding.get("spec") or {}).get("schedulePriority") or {}).get("priority") or 0)

    def _binding_changed(self, _old: Obj | None, new: Obj | None) -> None:
        held = self._core.assumptions
        if held is not None and new is not None:
            held.observe(new)
        if new is None and _old is not None:
            key = Key(_old["metadata"].get("namespace", ""), _old["metadata"]["name"])
            self._attempts.pop(key, None)
            self._decided.pop(key, None)
            self._touched.discard(key)
            if held is not None:
                held.forget(key)

    def _cluster_changed(self, old: Obj | None, new: Obj | None) -> None:
        found: set[Key] = set()
        for cluster in concerns_bindings(old, new):
            found.update(bindings_for(cluster, self._bindings, self._ours))
        for key in sorted(found):
            binding = self._bindings.get(key)
            self._touched.add(key)
            self._add(key, self._priority(binding) if self._by_priority and binding is not None else 0)
            self.metrics.incoming("ClusterChanged")

    # the work

    async def reconcile(self, key: Key) -> Result:
        binding = self._bindings.get(key)
        if binding is None:
            return Done
        if self._decided.get(key) == meta.generation(binding) and key not in self._touched:
            return self._settled(key)
        self._touched.discard(key)
        if meta.is_deleting(binding):
            self._tell(binding, WARNING, FAILED, f"skip schedule deleting {self._called}: {_named(key)}")
            return Done
        if binding["spec"].get("placement") is None:
            self.metrics.incoming("ScheduleAttemptFailure")
            raise ApiError(f"failed to get placement from {self._called}({_named(key)})", code=500, reason="")
        request = self._core.request(binding)
        need = need_of(binding, request, self._core.deleting(), components=self._core.components)
        if need is Need.NONE:
            await self._still_there(writing.write_observed(self._client, self._kind.gvr, binding))
            return self._settled(key)
        began = self._clock.monotonic()
        told = await self._still_there(self._run(binding, key))
        if told is None:
            return self._settled(key)
        retried = told.retry
        self.metrics.attempted("error" if retried else "scheduled", need, self._clock.monotonic() - began)
        return self._again(key, told) if retried else self._settled(key)

    async def _run(self, binding: Obj, key: Key) -> Verdict | None:
        """Decide and write; what is reported. None: the namespace is going, nothing is to be done."""
        request = self._core.request(binding)
        decision = await self._core.decide(request)
        for attempt in decision.failed_attempts if request.plan.terms else ():
            assert attempt.failure is not None
            where = f"{self._kind.gvk.kind}({_named(key)})"
            text = f"failed to schedule {where} with clusterAffiliates index({attempt.index}): {attempt.failure.text}"
            self._tell(binding, WARNING, FAILED, text)
        written, wrong = binding, []
        if decision.failure is None or decision.failure.reason is Reason.NO_CLUSTER_FIT:
            try:
                written = await writing.write_result(self._client, self._kind.gvr, binding, decision.targets)
            except NotFound:
                raise
            except ApiError as error:
                if writing.is_namespace_ending(error):
                    return None
                wrong.append(error)
        report = verdict(decision.failure, wrong)
        if not wrong and decision.failure is None and written is not binding:
            self._note(written, decision, request.is_workload)
        now = self._clock.now()
        after = await writing.write_status(
            self._client,
            self._kind.gvr,
            written,
            report,
            now,
            affinity_name="" if wrong else decision.affinity_name,
            again=request.fresh,
        )
        if after is not binding or report.status != "True":
            self._report(binding, decision, report)
        if not report.retry:
            self._decided[key] = meta.generation(after)
        await self._seen(after)
        return report

    async def _seen(self, written: Obj) -> None:
        """Wait until the informer shows what was written, so that the next look does not write it again."""
        version = int(meta.resource_version(written))
        seen = self._bindings.until(lambda: int(self._bindings.resource_version or 0) >= version)
        await with_timeout(self._clock, seen, _SEEN_SECONDS)

    def _note(self, written: Obj, decision: Decision, is_workload: bool) -> None:
        if self._kind is ResourceBinding:
            if self._core.peers is not None:
                self._core.peers.note(written)
            if self._core.assumptions is not None and is_workload:
                self._core.assumptions.note(written, decision.targets)

    def _report(self, binding: Obj, decision: Decision, report: Verdict) -> None:
        if report.status == "True":
            colon = ":" if self._kind is ResourceBinding else ""
            text = f"{report.message} Result{colon} {writing.result_text(decision.targets)}"
            self._tell(binding, NORMAL, SUCCEEDED, text)
        else:
            self._tell(binding, WARNING, FAILED, report.message)

    def _tell(self, binding: Obj, sort: str, reason: str, text: str) -> None:
        """To the binding, and to the resource it is about."""
        self._recorder.event(binding, sort, reason, text)
        resource = binding["spec"].get("resource") or {}
        parts = {key: resource[key] for key in ("name", "namespace", "uid", "resourceVersion") if resource.get(key)}
        about = {"apiVersion": resource.get("apiVersion"), "kind": resource.get("kind"), "metadata": parts}
        self._recorder.event(about, sort, reason, text)

    @property
    def _called(self) -> str:
        kind = self._kind.gvk.kind
        return kind[0].lower() + kind[1:]

    async def _still_there(self, work: object) -> Verdict | None:
        """A binding that went meanwhile needs nothing any more."""
        try:
            found: Verdict | None = await work  # type: ignore[misc]
        except NotFound:
            return None
        return found

    # when to look again

    def _settled(self, key: Key) -> Result:
        self._attempts.pop(key, None)
        return Done

    def _again(self, key: Key, report: Verdict) -> Result:
        self.metrics.incoming("ScheduleAttemptFailure")
        if not self._by_priority:
            return Retry
        attempts = self._attempts[key] = self._attempts.get(key, 0) + 1
        if report.reason == Reason.UNSCHEDULABLE:
            return requeue(_UNSCHEDULABLE_SECONDS)
        return requeue(min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** (attempts - 1)))


def _nobody(_cluster: Obj) -> Iterable[Key]:
    return ()


def _named(key: Key) -> str:
    return f"{key.namespace}/{key.name}" if key.namespace else key.name
