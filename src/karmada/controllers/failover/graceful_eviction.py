"""Graceful eviction: ends the eviction tasks of bindings, and with them the copies in the clusters they name.

A binding with tasks is reconciled when it changes, when the grace period of a task is over, and when a cluster that it
is leaving changes. What becomes of a task is decided in `fate`.
"""

from __future__ import annotations

from typing import Final

from karmada.api.cluster import Cluster
from karmada.api.taints import FOREVER, no_execute_taints
from karmada.controllers.binding.kinds import CLUSTER_WIDE, BindingKind
from karmada.controllers.cluster_state import is_ready
from karmada.controllers.context import Context
from karmada.controllers.failover import tasks
from karmada.controllers.failover.applied import evicted_at
from karmada.controllers.failover.bindings import EvictionBindings
from karmada.controllers.failover.fate import Fate, Rules, Source, deadline, fate_of, source_of
from karmada.controllers.failover.reports import report
from karmada.controllers.indexes import traits_of_binding
from karmada.kube.objects import meta
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Reconciler, Result, Watch, requeue, walk_index
from karmada.kube.runtime.events import NORMAL, WARNING
from karmada.kube.runtime.keys import Key

_LEAVING = "evicted-cluster"
HELD: Final = "EvictionHeld"
RETURNED: Final = "EvictionCancelled"


class GracefulEviction(Reconciler):
    def __init__(self, context: Context, kind: BindingKind) -> None:
        scope = "cluster-resource-binding" if kind is CLUSTER_WIDE else "resource-binding"
        self.name = f"{scope}-graceful-eviction-controller"
        self.workers = kind.syncs(context.settings)
        settings = context.settings
        self._rules = Rules(settings.graceful_eviction_timeout, settings.evict_last_copy)
        self._clock = context.clock
        self._recorder = context.recorder(self.name)
        self._clusters = context.informers.of(Cluster.gvr)
        self._bindings = EvictionBindings(context, kind)
        self._bindings.informer.add_index(_LEAVING, tasks.from_clusters)
        self._held: dict[Key, frozenset[str]] = {}
        """Clusters whose copy is held back, as far as an event says so already."""
        self.watches = (
            Watch(kind.gvr, having=(traits_of_binding, "gracefulEvictionTasks")),
            Watch(Cluster.gvr, when=_may_decide, walk=walk_index(self._bindings.informer, _LEAVING, meta.name)),
        )

    async def reconcile(self, key: Key) -> Result:
        binding = self._bindings.get(key)
        if binding is None or not _has_tasks(binding):
            self._held.pop(key, None)
            return Done
        now = self._clock.now()
        fates = self._fates(binding, now)
        self._report_held(key, binding, fates)
        if set(fates.values()) - {Fate.WAIT, Fate.HOLD}:
            await self._end(binding, now)
        return self._again(binding, fates, now)

    def _fates(self, binding: Obj, now: float) -> dict[str, Fate]:
        """Return the fates by cluster; there is one task for each."""
        return {
            task["fromCluster"]: fate_of(task, binding, self._source(binding, task), self._rules, now)
            for task in tasks.tasks_of(binding["spec"])
        }

    def _source(self, binding: Obj, task: Obj) -> Source:
        cluster = self._clusters.get(Key("", task["fromCluster"]))
        return source_of(cluster, eligible=evicted_at(binding, cluster) == FOREVER)

    async def _end(self, binding: Obj, now: float) -> None:
        """Write what becomes of the tasks, and emit how they ended."""
        ended: list[str] = []
        returned: list[str] = []

        def make(current: Obj) -> Obj:
            ended.clear()
            returned.clear()
            spec, kept = current["spec"], []
            fates = self._fates(current, now)
            for task in tasks.tasks_of(spec):
                match fates[task["fromCluster"]]:
                    case Fate.STAMP:
                        kept.append({**task, "creationTimestamp": rfc3339(now)})
                    case Fate.END:
                        ended.append(task["fromCluster"])
                    case Fate.RETURN:
                        spec = tasks.restore(spec, task)
                        returned.append(task["fromCluster"])
                    case _:
                        kept.append(task)
            return {**spec, "gracefulEvictionTasks": kept}

        await self._bindings.change(binding, make)
        for cluster in ended:
            report(self._recorder, binding, NORMAL, tasks.SUCCEEDED, f"Evict from cluster {cluster} succeed.")
        for cluster in returned:
            text = f"Cluster {cluster} is back before another one took over: the resource stays there."
            report(self._recorder, binding, NORMAL, RETURNED, text)

    def _report_held(self, key: Key, binding: Obj, fates: dict[str, Fate]) -> None:
        held = frozenset(cluster for cluster, fate in fates.items() if fate is Fate.HOLD)
        for cluster in sorted(held - self._held.get(key, frozenset())):
            report(self._recorder, binding, WARNING, HELD, held_text(binding, cluster))
        if held:
            self._held[key] = held
        else:
            self._held.pop(key, None)

    def _again(self, binding: Obj, fates: dict[str, Fate], now: float) -> Result:
        """When the grace of a task that waits is over; a task that was just stamped triggers a reconcile itself."""
        waiting = [
            deadline(task, self._rules)
            for task in tasks.tasks_of(binding["spec"])
            if fates[task["fromCluster"]] is Fate.WAIT and task.get("suppressDeletion") is None
        ]
        return requeue(max(min(waiting) - now, 0) + _AFTER) if waiting else Done


_AFTER = 0.001
"""A task ends after its time, not at it."""


def held_text(binding: Obj, cluster: str) -> str:
    """Why a copy stays past its grace period, for events and `why`."""
    targets = [target["name"] for target in binding["spec"].get("clusters") or ()]
    awaited = f"healthy in {', '.join(targets)}" if targets else "placed in another cluster"
    return f"The copy in cluster {cluster} stays past its grace period until the resource is {awaited}."


def _has_tasks(binding: Obj) -> bool:
    return bool(tasks.tasks_of(binding.get("spec") or {}))


def _state(cluster: Obj) -> object:
    return is_ready(cluster), no_execute_taints(cluster), meta.is_deleting(cluster)


def _may_decide(old: Obj | None, new: Obj | None) -> bool:
    return old is None or new is None or _state(old) != _state(new)
