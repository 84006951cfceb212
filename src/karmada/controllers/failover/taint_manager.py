"""Taint manager: evicts bindings from clusters with NoExecute taints that their placement does not tolerate.

A binding is reconciled when a taint of one of its clusters, its targets or its applied placement change, and when a
limited toleration ends; so the removal of a taint needs no cancelling, and a fleet without such taints costs nothing.
All clusters that a binding has to leave go in one write. Evictions are paced.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from karmada.api.cluster import Cluster
from karmada.api.taints import FOREVER, no_execute_taints
from karmada.controllers.binding.kinds import CLUSTER_WIDE, BindingKind
from karmada.controllers.context import Context
from karmada.controllers.failover import tasks
from karmada.controllers.failover.applied import applied_placement, evicted_at
from karmada.controllers.failover.bindings import EvictionBindings
from karmada.controllers.failover.metrics import EvictionMetrics
from karmada.controllers.failover.pace import Pace
from karmada.controllers.failover.reports import report
from karmada.controllers.failover.state import preserved_state, rules_of
from karmada.controllers.indexes import BY_CLUSTER, target_clusters
from karmada.kube.objects import meta
from karmada.kube.objects.errors import ApiError, Conflict
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Reconciler, Result, Watch, requeue, walk_index
from karmada.kube.runtime.events import WARNING
from karmada.kube.runtime.keys import Key, key_of

COMPONENT: Final = "taint-manager"
_WORKERS = 3
_WITH_TAINTS = "no-execute"
_YES = "yes"


class TaintManager(Reconciler):
    workers = _WORKERS

    def __init__(self, context: Context, kind: BindingKind, metrics: EvictionMetrics) -> None:
        self.name = f"{COMPONENT}-{kind.kind.lower()}"
        self._kind = kind
        self._clock = context.clock
        self._purge_mode = context.settings.no_execute_taint_eviction_purge_mode
        self._carries_state = context.gates.enabled("StatefulFailoverInjection")
        self._recorder = context.recorder(COMPONENT)
        self._clusters = context.informers.of(Cluster.gvr, indexes={_WITH_TAINTS: _tainted})
        self._bindings = EvictionBindings(context, kind)
        self._bindings.informer.add_index(BY_CLUSTER, target_clusters)
        self._pace: Pace[Key] = Pace(context.settings.resource_eviction_rate, _WORKERS)
        self.metrics = self._metrics = metrics
        self._queue = "cluster-binding-eviction" if kind is CLUSTER_WIDE else "binding-eviction"
        metrics.follow(self._queue, self._pace.__len__)
        self.watches = (
            Watch(Cluster.gvr, when=_taints_changed, walk=walk_index(self._bindings.informer, BY_CLUSTER, meta.name)),
            Watch(kind.gvr, when=self._concerned),
        )

    def _concerned(self, old: Obj | None, new: Obj | None) -> bool:
        """Return whether there are new targets or another placement, while some cluster has a NoExecute taint."""
        if new is None:
            return old is not None and key_of(old) in self._pace
        if self._clusters.synced and not self._clusters.has(_WITH_TAINTS, _YES):
            return False
        return old is None or _decision(old) != _decision(new)

    async def reconcile(self, key: Key) -> Result:
        binding = self._bindings.get(key)
        due = {} if binding is None else self._due(binding)
        now = self._clock.now()
        leaving = [cluster for cluster, until in due.items() if until <= now]
        if binding is None or not leaving:
            self._pace.forget(key)
            return requeue(min(due.values()) - now) if due else Done
        wait = self._pace.wait(key, self._clock.monotonic())
        if wait > 0:
            return requeue(wait)
        await self._evict(binding, leaving)
        later = [until for cluster, until in due.items() if cluster not in leaving]
        return requeue(min(later) - now) if later else Done

    def _due(self, binding: Obj) -> dict[str, float]:
        """Return the targets a binding has to leave, and when; those tolerated for good are left out."""
        if not applied_placement(binding):
            return {}  # the scheduler has not finished; its annotation triggers the next reconcile
        times = {name: evicted_at(binding, self._clusters.get(Key("", name))) for name in target_clusters(binding)}
        return {name: time for name, time in times.items() if time < FOREVER}

    async def _evict(self, binding: Obj, clusters: list[str]) -> None:
        started = self._clock.monotonic()

        def make(current: Obj) -> Obj:
            spec: Obj = current["spec"]
            for cluster in clusters:
                spec = tasks.evict(spec, cluster, self._task(current, cluster))
            return spec

        try:
            await self._bindings.change(binding, make)
        except Conflict:
            raise
        except ApiError:
            self._metrics.processed(self._queue, self._clock.monotonic() - started, error=True)
            for cluster in clusters:
                report(self._recorder, binding, WARNING, tasks.FAILED, f"Evict from cluster {cluster} failed.")
            raise
        self._metrics.processed(self._queue, self._clock.monotonic() - started, error=False)
        for cluster in clusters:
            self._metrics.evicted(cluster, binding["spec"]["resource"]["kind"])

    def _task(self, binding: Obj, cluster: str) -> Obj:
        policy = (binding["spec"].get("failover") or {}).get("cluster")
        mode = self._purge_mode if policy is None else policy.get("purgeMode") or tasks.GRACEFULLY
        task: Obj = {"purgeMode": mode, "reason": tasks.TAINT_UNTOLERATED, "producer": tasks.TAINT_MANAGER}
        rules = rules_of(policy) if self._carries_state else []
        if rules:
            task["preservedLabelState"] = preserved_state(binding, cluster, rules)
        return task


def _tainted(cluster: Obj) -> Iterable[str]:
    return (_YES,) if no_execute_taints(cluster) else ()


def _decision(binding: Obj) -> object:
    return target_clusters(binding), applied_placement(binding)


def _taints_changed(old: Obj | None, new: Obj | None) -> bool:
    return new is not None and no_execute_taints(new) != ([] if old is None else no_execute_taints(old))
