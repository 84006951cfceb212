"""Remedy: what is to be done about a cluster by its conditions, published in its status for those who do it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from karmada.api.cluster import Cluster
from karmada.api.remedy import Remedy
from karmada.controllers.context import Context
from karmada.kube.objects import meta
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Enqueue, Reconciler, Result, Watch
from karmada.kube.runtime.keys import Key, key_of
from karmada.kube.runtime.writes import set_status


class Remedies(Reconciler):
    name = "remedy-controller"

    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._clusters = context.informers.of(Cluster.gvr)
        self._remedies = context.informers.of(Remedy.gvr)
        self.watches = (
            Watch(Cluster.gvr, changed=("status.conditions", "status.remedyActions")),
            Watch(Remedy.gvr, changed=("spec",), walk=self._requeue_selected),
        )

    async def _requeue_selected(self, old: Obj | None, new: Obj | None, add: Enqueue) -> None:
        remedies = [remedy for remedy in (old, new) if remedy is not None]
        async for cluster in self._clusters.scan():
            if any(selects(remedy, cluster) for remedy in remedies):
                add(key_of(cluster))

    async def reconcile(self, key: Key) -> Result:
        cluster = self._clusters.get(key)
        if cluster is None or meta.is_deleting(cluster):
            return Done
        status = cluster.get("status") or {}
        actions = actions_by([remedy async for remedy in self._remedies.scan() if selects(remedy, cluster)], cluster)
        if sorted(status.get("remedyActions") or ()) != actions:
            await set_status(self._client, Cluster.gvr, cluster, {**status, "remedyActions": actions})
        return Done


def actions_by(remedies: Iterable[Obj], cluster: Obj) -> list[str]:
    """Return the actions of all remedies that select the cluster and match its conditions, sorted."""
    conditions = (cluster.get("status") or {}).get("conditions") or []
    found = {
        action
        for remedy in remedies
        if selects(remedy, cluster) and matches(remedy["spec"].get("decisionMatches"), conditions)
        for action in remedy["spec"].get("actions") or ()
    }
    return sorted(found)


def selects(remedy: Obj, cluster: Obj) -> bool:
    affinity = remedy["spec"].get("clusterAffinity")
    return affinity is None or meta.name(cluster) in (affinity.get("clusterNames") or ())


def matches(decisions: Sequence[Obj] | None, conditions: Sequence[Obj]) -> bool:
    """Without decisions always; otherwise one that holds is enough."""
    return decisions is None or any(_holds(decision.get("clusterConditionMatch"), conditions) for decision in decisions)


def _holds(match: Obj | None, conditions: Sequence[Obj]) -> bool:
    condition = meta.get_condition(conditions, match["conditionType"]) if match else None
    if match is None or condition is None:
        return False
    same = condition.get("status") == match.get("conditionStatus")
    return {"Equal": same, "NotEqual": not same}.get(match.get("operator") or "", False)
