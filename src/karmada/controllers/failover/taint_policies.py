"""ClusterTaintPolicy: taints that clusters get and lose by their conditions.

Policies apply in the order of their creation; what one adds, the next may remove. Taints stay when a policy is deleted
or selects a cluster no longer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from karmada.api.cluster import Cluster
from karmada.api.matching import cluster_matches
from karmada.api.policy import ClusterTaintPolicy
from karmada.controllers.cluster.taints import describe
from karmada.controllers.context import Context
from karmada.kube.objects import meta
from karmada.kube.objects.errors import ApiError, Conflict
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Enqueue, Reconciler, Result, Watch
from karmada.kube.runtime.event_filter import EventType
from karmada.kube.runtime.events import NORMAL, WARNING
from karmada.kube.runtime.keys import Key, key_of
from karmada.kube.runtime.writes import patch_if_changed

CONTROLLER = "cluster-taint-policy-controller"
_KEPT: Final[tuple[EventType, ...]] = ("ADDED", "MODIFIED")


class ClusterTaintPolicies(Reconciler):
    name = CONTROLLER

    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._clock = context.clock
        self._recorder = context.recorder(CONTROLLER)
        self._clusters = context.informers.of(Cluster.gvr)
        self._policies = context.informers.of(ClusterTaintPolicy.gvr)
        self.watches = (
            Watch(Cluster.gvr, on=_KEPT, changed=("status.conditions",)),
            Watch(ClusterTaintPolicy.gvr, on=_KEPT, changed=("spec",), walk=self._requeue_selected),
        )

    async def _requeue_selected(self, old: Obj | None, new: Obj | None, add: Enqueue) -> None:
        policies = [policy for policy in (old, new) if policy is not None]
        async for cluster in self._clusters.scan():
            if any(selects(policy, cluster) for policy in policies):
                add(key_of(cluster))

    async def reconcile(self, key: Key) -> Result:
        cluster = self._clusters.get(key)
        if cluster is None:
            return Done
        policies = [policy async for policy in self._policies.scan() if selects(policy, cluster)]
        policies.sort(key=lambda policy: (meta.creation_time(policy), meta.name(policy)))
        before = cluster["spec"].get("taints") or []
        taints = taints_by(policies, cluster, self._clock.now())
        if taints == before:
            return Done
        wanted = {**cluster, "spec": {**cluster["spec"], "taints": taints}}
        text = f"Update Cluster({key.name}) with taints({describe(taints)})"
        try:
            await patch_if_changed(self._client, Cluster.gvr, cluster, wanted, locked=True)
        except Conflict:
            raise
        except ApiError as error:
            self._recorder.event(cluster, WARNING, "TaintClusterFailed", f"{text} failed: {error}")
            raise
        self._recorder.event(cluster, NORMAL, "TaintClusterSucceed", f"{text} succeed")
        return Done


def selects(policy: Obj, cluster: Obj) -> bool:
    affinity = policy["spec"].get("targetClusters")
    return affinity is None or cluster_matches(affinity, cluster)


def taints_by(policies: Sequence[Obj], cluster: Obj, now: float) -> list[Obj]:
    """Return the taints of a cluster once all policies that select it have been applied."""
    conditions = (cluster.get("status") or {}).get("conditions")
    taints: list[Obj] = list(cluster["spec"].get("taints") or ())
    for policy in policies:
        if not selects(policy, cluster):
            continue
        spec = policy["spec"]
        if holds(spec.get("addOnConditions"), conditions):
            there = {_identity(taint) for taint in taints}
            taints += [_added(taint, now) for taint in spec["taints"] if _identity(taint) not in there]
        if holds(spec.get("removeOnConditions"), conditions):
            gone = {_identity(taint) for taint in spec["taints"]}
            taints = [taint for taint in taints if _identity(taint) not in gone]
    return taints


def holds(matches: Sequence[Obj] | None, conditions: Sequence[Obj] | None) -> bool:
    """Return whether all of at least one hold; a condition that the cluster does not have matches nothing."""
    return bool(matches) and all(_matches(match, conditions) for match in matches or ())


def _matches(match: Obj, conditions: Sequence[Obj] | None) -> bool:
    condition = meta.get_condition(conditions, match["conditionType"])
    if condition is None:
        return False
    listed = condition.get("status") in (match.get("statusValues") or ())
    return {"In": listed, "NotIn": not listed}.get(match.get("operator") or "", False)


def _identity(taint: Obj) -> tuple[str, str]:
    return taint.get("key") or "", taint.get("effect") or ""


def _added(taint: Obj, now: float) -> Obj:
    value = {"value": taint["value"]} if taint.get("value") else {}
    return {"key": taint["key"], **value, "effect": taint["effect"], "timeAdded": rfc3339(now)}
