"""Pod garbage collection: pods that no kubelet or controller deletes.

 - Pods on a node that does not exist: once it has been missing for 40 seconds, and the server says so, too.
 - Pods that are being deleted and were never given to a node: no kubelet will finish them.
 - Pods that are being deleted on a node that is down and marked out of service.
 - The oldest finished pods, evicted ones first, when there are more than 12500.

Pods that have not finished are marked Failed first, so that controllers that count pods see the result.
"""

from __future__ import annotations

from collections.abc import Iterable

from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.gvrs import NODES, PODS
from karmada.kube.objects.meta import creation_time, has_condition, is_deleting
from karmada.kube.objects.podstate import is_terminal, node_name
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Reconciler, Result, Watch, requeue
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.keys import Key, key_of
from karmada.kube.runtime.logging import get_logger
from karmada.kube.runtime.writes import delete_if_exists
from karmada.kube.sim.context import Context
from karmada.kube.sim.controllers.podcontrol import BY_NODE, index_by_node, pods_on

MISSING_SECONDS = 40.0
KEPT = 12500
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
_TERMINATED = "finished"
_SWEEP = Key("", "finished pods")
"""Stands for all finished pods together; pods themselves are in namespaces."""

log = get_logger("podgc")


def index_finished(pod: Obj) -> Iterable[str]:
    return ("",) if is_terminal(pod) else ()


def out_of_service(node: Obj) -> bool:
    """Return whether the node is tainted out-of-service and is not ready."""
    tainted = any(taint.get("key") == OUT_OF_SERVICE for taint in (node.get("spec") or {}).get("taints") or ())
    return tainted and not has_condition((node.get("status") or {}).get("conditions"), "Ready")


def _concerns_pods(old: Obj | None, new: Obj | None) -> bool:
    if new is None:
        return True
    return out_of_service(new) and (old is None or not out_of_service(old))


def _may_be_garbage(old: Obj | None, new: Obj | None) -> bool:
    if new is None:
        return False
    return old is None or _seen(old) != _seen(new)


def _seen(pod: Obj) -> tuple[object, ...]:
    return node_name(pod), is_deleting(pod), is_terminal(pod)


class PodGarbage(Reconciler):
    name = "pod-garbage-collector"

    def __init__(self, context: Context, *, kept: int = KEPT) -> None:
        self._client = context.client()
        self._clock = context.clock
        self._kept = kept
        self._nodes: Informer = context.informers.of(NODES)
        indexes = {BY_NODE: index_by_node, _TERMINATED: index_finished}
        self._pods: Informer = context.informers.of(PODS, indexes=indexes)
        self._missing_since: dict[str, float] = {}
        self.watches = (
            Watch(PODS, when=_may_be_garbage, map_to=self._keys_of),
            Watch(NODES, when=_concerns_pods, map_to=pods_on(self._pods)),
        )

    def _keys_of(self, pod: Obj) -> Iterable[Key]:
        """Only pods that look like garbage, so that a healthy cluster costs nothing."""
        node = node_name(pod)
        unplaced = is_deleting(pod) and not node
        if unplaced or (node and (is_deleting(pod) or self._nodes.get(Key("", node)) is None)):
            yield key_of(pod)
        if is_terminal(pod):
            yield _SWEEP

    async def reconcile(self, key: Key) -> Result:
        if key == _SWEEP:
            await self._sweep()
            return Done
        pod = self._pods.get(key)
        if pod is None:
            return Done
        node = node_name(pod)
        if not node:
            if is_deleting(pod):
                await self._remove(pod)
            return Done
        found = self._nodes.get(Key("", node))
        if found is None:
            return await self._on_missing_node(pod, node)
        self._missing_since.pop(node, None)
        if is_deleting(pod) and out_of_service(found):
            await self._remove(pod)
        return Done

    async def _on_missing_node(self, pod: Obj, node: str) -> Result:
        since = self._missing_since.setdefault(node, self._clock.monotonic())
        left = since + MISSING_SECONDS - self._clock.monotonic()
        if left > 0:
            return requeue(left)
        try:
            await self._client.get(NODES, node)
        except NotFound:
            await self._remove(pod, "PodGC: node no longer exists")
            if len(self._pods.by_index(BY_NODE, node)) <= 1:
                self._missing_since.pop(node, None)
            return Done
        self._missing_since.pop(node, None)
        return Done

    async def _sweep(self) -> None:
        finished = [pod for pod in self._pods.by_index(_TERMINATED, "") if not is_deleting(pod)]
        if len(finished) <= self._kept:
            return
        finished.sort(key=lambda pod: ((pod.get("status") or {}).get("reason") != "Evicted", creation_time(pod)))
        surplus = finished[: len(finished) - self._kept]
        log.info("Removing finished pods", count=len(surplus), kept=self._kept)
        for pod in surplus:
            await self._delete(pod)

    async def _remove(self, pod: Obj, disruption: str = "") -> None:
        meta = pod["metadata"]
        if not is_terminal(pod):
            status: Obj = {"phase": "Failed"}
            if disruption:
                condition = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC"}
                now = rfc3339(self._clock.now())
                status["conditions"] = [{**condition, "message": disruption, "lastTransitionTime": now}]
            patch = {"metadata": {"uid": meta["uid"]}, "status": status}
            try:
                await self._client.patch(
                    PODS, meta["name"], meta["namespace"], patch, type="strategic", subresource="status"
                )
            except NotFound:
                return
        if not is_deleting(pod) or meta.get("deletionGracePeriodSeconds"):
            await self._delete(pod)

    async def _delete(self, pod: Obj) -> None:
        meta = pod["metadata"]
        await delete_if_exists(self._client, PODS, meta["name"], meta["namespace"], grace_period=0, uid=meta["uid"])
