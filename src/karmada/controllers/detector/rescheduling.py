"""Rescheduling by ReplicaSchedulingPolicies: workloads of clusters that are too full are placed anew.

At every interval a policy looks for clusters in which more than its thresholds of the CPU or memory is requested. From
each of them one selected workload, that with the most replicas there, is scheduled from scratch; the next round sees
what that changed. A workload is tried once while the same clusters are too full: one that stays where it is has no
better place. Only replicas that are placed by free capacity can move: given weights and duplicates leave no choice.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from karmada.api.cluster import Cluster
from karmada.api.matching import MISMATCH
from karmada.controllers.binding.kinds import KINDS as BINDINGS
from karmada.controllers.context import Context
from karmada.controllers.detector.bindings import binding_resource
from karmada.controllers.detector.kinds import Kinds
from karmada.controllers.detector.policies import read
from karmada.controllers.detector.replica_policies import precision
from karmada.controllers.indexes import BY_CLUSTER, target_clusters
from karmada.controllers.templates import ref_of_binding
from karmada.estimator.amounts import quantity
from karmada.kube.objects import meta
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.times import parse_duration, rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Reconciler, Result, Watch, requeue
from karmada.kube.runtime.event_filter import SPEC_OR_DELETION
from karmada.kube.runtime.events import NORMAL
from karmada.kube.runtime.keys import Key, key_of
from karmada.scheduler.capacity import left_over, summary_of
from karmada.scheduler.placement import BY_AGGREGATION, BY_DYNAMIC_WEIGHT, plan_of

COMPONENT: Final = "replica-rescheduling"
RESCHEDULED: Final = "ReplicasRescheduled"
_INTERVAL: Final = 60.0
_THRESHOLDS: Final = {"cpuUtilization": "cpu", "memoryUtilization": "memory"}
_BY_CAPACITY: Final = frozenset({BY_DYNAMIC_WEIGHT, BY_AGGREGATION})


class Rescheduling(Reconciler):
    """The reconciler of one of the two kinds of ReplicaSchedulingPolicies."""

    def __init__(self, context: Context, templates: Kinds, kind: GVR) -> None:
        self.name = f"{COMPONENT}-{kind.group.partition('.')[0]}"
        self.watches = (Watch(kind, changed=SPEC_OR_DELETION),)
        self._client = context.client
        self._clock = context.clock
        self._templates = templates
        self._recorder = context.recorder(COMPONENT)
        self._policies = context.informers.of(kind)
        self._clusters = context.informers.of(Cluster.gvr)
        self._bindings = [
            context.informers.of(binding.gvr, indexes={BY_CLUSTER: target_clusters}) for binding in BINDINGS
        ]
        self._tried: dict[Key, dict[str, set[str]]] = {}
        """Clusters that were too full when a workload, by its binding's uid, was placed anew; by policy."""

    async def reconcile(self, key: Key) -> Result:
        policy = self._policies.get(key)
        rules = {} if policy is None else policy["spec"].get("reschedulePolicy") or {}
        if policy is None or meta.is_deleting(policy) or not rules.get("enabled"):
            self._tried.pop(key, None)
            return Done
        full = {meta.name(cluster) async for cluster in self._clusters.scan() if is_too_full(cluster, rules)}
        tried = self._tried.setdefault(key, {})
        for uid in [uid for uid, clusters in tried.items() if not clusters & full]:
            del tried[uid]
        for cluster in sorted(full):
            await self._place_one_anew(policy, cluster, full, tried)
        return requeue(parse_duration(rules["interval"]) if rules.get("interval") else _INTERVAL)

    async def _place_one_anew(self, policy: Obj, cluster: str, full: set[str], tried: dict[str, set[str]]) -> None:
        movable = [
            binding for binding in self._movable(policy, cluster) if cluster not in tried.get(meta.uid(binding), ())
        ]
        if not movable:
            return
        chosen = min(movable, key=lambda binding: (-_replicas(binding, cluster), key_of(binding)))
        tried[meta.uid(chosen)] = full & set(target_clusters(chosen))
        now = {"spec": {"rescheduleTriggeredAt": rfc3339(self._clock.now())}}
        await self._client.patch(binding_resource(chosen), meta.name(chosen), meta.namespace(chosen), now)
        text = f"Cluster {cluster} is above a threshold of ReplicaSchedulingPolicy {key_of(policy)}: it is placed anew."
        self._recorder.event(chosen, NORMAL, RESCHEDULED, text)

    def _movable(self, policy: Obj, cluster: str) -> Iterator[Obj]:
        selectors = read(policy)
        for informer in self._bindings:
            for binding in informer.by_index(BY_CLUSTER, cluster):
                template = self._templates.known(ref_of_binding(binding))
                if template is None or precision(policy, template, selectors) == MISMATCH or meta.is_deleting(binding):
                    continue
                if _replicas(binding, cluster) and plan_of(binding["spec"].get("placement")).strategy in _BY_CAPACITY:
                    yield binding


def is_too_full(cluster: Obj, rules: Obj) -> bool:
    """Return whether more than a threshold of its CPU or memory is requested; unknown amounts are not."""
    summary = summary_of(cluster)
    thresholds = rules.get("threshold") or {}
    return summary is not None and any(
        _is_above(summary, name, thresholds[field]) for field, name in _THRESHOLDS.items() if thresholds.get(field)
    )


def _is_above(summary: Obj, name: str, percent: int) -> bool:
    if name not in (summary.get("allocatable") or {}):
        return False
    total = quantity(summary["allocatable"][name]).milli()
    return total > 0 and (total - left_over(summary, name).milli()) * 100 > percent * total


def _replicas(binding: Obj, cluster: str) -> int:
    targets = binding["spec"].get("clusters") or ()
    return next((target.get("replicas") or 0 for target in targets if target["name"] == cluster), 0)
