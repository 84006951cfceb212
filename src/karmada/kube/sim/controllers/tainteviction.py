"""Taint eviction: deletes pods on nodes with NoExecute taints that they do not tolerate, or no longer.

A toleration may hold for a limited time, counted from the moment the taint was added. Only pods on nodes with such
taints are reconciled; whether one is evicted is decided again when its time is over, so the removal of a taint needs
no cancelling.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.gvrs import NODES, PODS
from karmada.kube.objects.meta import has_condition, is_deleting
from karmada.kube.objects.podstate import node_name
from karmada.kube.objects.times import parse_time, rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Reconciler, Result, Watch, requeue
from karmada.kube.runtime.events import NORMAL
from karmada.kube.runtime.keys import Key, key_of
from karmada.kube.sim.context import Context
from karmada.kube.sim.controllers.nodefit import NO_EXECUTE, tolerates
from karmada.kube.sim.controllers.podcontrol import BY_NODE, index_by_node, pods_on

_OWN_CONTROLLER_SINCE = 29
_CONDITION = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "DeletionByTaintManager",
    "message": "Taint manager: deleting due to NoExecute taint",
}


class TaintEviction(Reconciler):
    name = "taint-eviction-controller"
    workers = 4

    def __init__(self, context: Context) -> None:
        self._clock = context.clock
        self._client = context.client()
        own = context.profile.minor >= _OWN_CONTROLLER_SINCE
        self._recorder = context.recorder(self.name if own else "node-controller")
        self._pods = context.informers.of(PODS, indexes={BY_NODE: index_by_node})
        self._nodes = context.informers.of(NODES)
        self._leaving: dict[Key, float] = {}
        """Pods that will be evicted, and since when that is known."""
        self.watches = (
            Watch(PODS, when=self._may_be_evicted),
            Watch(NODES, changed=("spec.taints",), when=_no_execute_changed, map_to=pods_on(self._pods)),
        )

    def _may_be_evicted(self, old: Obj | None, new: Obj | None) -> bool:
        if new is None:
            return old is not None and key_of(old) in self._leaving
        if not node_name(new) or (old is not None and not _moved(old, new)):
            return False
        return bool(no_execute_taints(self._nodes.get(Key("", node_name(new)))))

    async def reconcile(self, key: Key) -> Result:
        pod = self._pods.get(key)
        if pod is None or is_deleting(pod):
            self._leaving.pop(key, None)
            return Done
        taints = no_execute_taints(self._nodes.get(Key("", node_name(pod))))
        now = self._clock.now()
        since = self._leaving.get(key, now)
        due = evicted_at(taints, pod["spec"].get("tolerations") or (), since)
        if due == math.inf:
            if self._leaving.pop(key, None) is not None:
                self._emit(pod, "Cancelling deletion of Pod")
            return Done
        if due > now:
            self._leaving[key] = since
            return requeue(due - now)
        await self._evict(pod)
        self._leaving.pop(key, None)
        return Done

    async def _evict(self, pod: Obj) -> None:
        metadata = pod["metadata"]
        name, namespace = metadata["name"], metadata["namespace"]
        self._emit(pod, "Marking for deletion Pod")
        try:
            if not has_condition((pod.get("status") or {}).get("conditions"), _CONDITION["type"]):
                condition = {**_CONDITION, "lastTransitionTime": rfc3339(self._clock.now())}
                patch = {"metadata": {"uid": metadata["uid"]}, "status": {"conditions": [condition]}}
                await self._client.patch(PODS, name, namespace, patch, type="strategic", subresource="status")
            await self._client.delete(PODS, name, namespace, uid=metadata["uid"])
        except NotFound:
            return

    def _emit(self, pod: Obj, what: str) -> None:
        metadata = pod["metadata"]
        message = f"{what} {metadata['namespace']}/{metadata['name']}"
        self._recorder.event(pod, NORMAL, "TaintManagerEviction", message)


def no_execute_taints(node: Obj | None) -> list[Obj]:
    taints = ((node or {}).get("spec") or {}).get("taints") or ()
    return [taint for taint in taints if taint["effect"] == NO_EXECUTE]


def evicted_at(taints: Iterable[Obj], tolerations: Sequence[Obj], since: float) -> float:
    """When a pod is evicted for these taints; never (inf) when it tolerates them all without limit.

    `since` is when a taint that does not say it itself came up.
    """
    due = math.inf
    for taint in taints:
        matching = [toleration for toleration in tolerations if tolerates(toleration, taint)]
        if not matching:
            return 0.0
        limits = [t["tolerationSeconds"] for t in matching if t.get("tolerationSeconds") is not None]
        if limits:
            added = parse_time(taint["timeAdded"]) if taint.get("timeAdded") else since
            due = min(due, added + max(0, min(limits)))
    return due


def _moved(old: Obj, new: Obj) -> bool:
    """Return whether the pod came to a node, or tolerates something else."""
    return node_name(old) != node_name(new) or old["spec"].get("tolerations") != new["spec"].get("tolerations")


def _no_execute_changed(old: Obj | None, new: Obj | None) -> bool:
    return new is not None and no_execute_taints(old) != no_execute_taints(new)
