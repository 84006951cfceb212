"""Node lifecycle: taints and conditions of nodes without heartbeat, not ready or cordoned.

A node without a heartbeat for the grace period has all its conditions set to Unknown. Conditions (and
spec.unschedulable) become taints: NoSchedule for each bad one, and NoExecute for a node that is not ready or
unreachable. The pods of an unreachable node are marked not ready, so that they get no traffic. Pods are evicted by
tainteviction.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.gvrs import NODES, PODS
from karmada.kube.objects.meta import get_condition
from karmada.kube.objects.podstate import is_ready, is_terminal
from karmada.kube.objects.times import parse_time, rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Reconciler, Result, Watch, requeue
from karmada.kube.runtime.events import NORMAL, WARNING
from karmada.kube.runtime.keys import Key
from karmada.kube.sim.context import Context
from karmada.kube.sim.controllers.podcontrol import BY_NODE, index_by_node
from karmada.kube.sim.controllers.tainteviction import TaintEviction
from karmada.kube.sim.kubelet.heartbeats import Liveness

__all__ = ["NodeLifecycle", "TaintEviction"]

NO_SCHEDULE, NO_EXECUTE = "NoSchedule", "NoExecute"
NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
PRESSURE_TAINTS = {
    "MemoryPressure": "node.kubernetes.io/memory-pressure",
    "DiskPressure": "node.kubernetes.io/disk-pressure",
    "PIDPressure": "node.kubernetes.io/pid-pressure",
    "NetworkUnavailable": "node.kubernetes.io/network-unavailable",
}
_OURS = frozenset(
    [
        *((key, NO_SCHEDULE) for key in (NOT_READY, UNREACHABLE, UNSCHEDULABLE, *PRESSURE_TAINTS.values())),
        *((key, NO_EXECUTE) for key in (NOT_READY, UNREACHABLE)),
    ]
)
_WATCHED_CONDITIONS = ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
_GRACE, _GRACE_BEFORE_32, _STARTUP_GRACE = 50.0, 40.0, 60.0
_SETTLING_SECONDS = 5.0
"""A new node has this long to become ready before it gets NoExecute taints."""
_STOPPED = ("NodeStatusUnknown", "Kubelet stopped posting node status.")
_NEVER_POSTED = ("NodeStatusNeverUpdated", "Kubelet never posted node status.")


class NodeLifecycle(Reconciler):
    name = "node-lifecycle-controller"
    workers = 4

    def __init__(self, context: Context, liveness: Liveness) -> None:
        self._clock = context.clock
        self._client = context.client()
        self._recorder = context.recorder("node-controller")
        self._liveness = liveness
        self._grace = _GRACE if context.profile.minor >= 32 else _GRACE_BEFORE_32
        self._nodes = context.informers.of(NODES)
        self._pods = context.informers.of(PODS, indexes={BY_NODE: index_by_node})
        self._ready: dict[str, str] = {}
        """The Ready status each node was last seen with."""
        self._add: Callable[[Key], None] = lambda _: None
        self.watches = (Watch(NODES, when=_matters),)
        liveness.on_change(lambda name: self._add(Key("", name)))

    def attach(self, add: Callable[[Key], None]) -> None:
        self._add = add

    async def reconcile(self, key: Key) -> Result:
        node = self._nodes.get(key)
        if node is None:
            self._ready.pop(key.name, None)
            return Done
        self._emit_registered(node)
        try:
            node, silent_in = await self._monitor(node)
            settled_in = await self._taint(node)
            await self._follow_readiness(node)
        except NotFound:
            return Done  # deleted meanwhile
        waits = [seconds for seconds in (silent_in, settled_in) if seconds is not None]
        return requeue(min(waits)) if waits else Done

    def _emit_registered(self, node: Obj) -> None:
        name = node["metadata"]["name"]
        if name not in self._ready and self._age(node) < _STARTUP_GRACE:
            message = f"Node {name} event: Registered Node {name} in Controller"
            self._recorder.event(node, NORMAL, "RegisteredNode", message)

    def _age(self, node: Obj) -> float:
        return self._clock.now() - parse_time(node["metadata"]["creationTimestamp"])

    # heartbeats

    async def _monitor(self, node: Obj) -> tuple[Obj, float | None]:
        """Return the node as it is now, and in how many seconds it becomes Unknown without a heartbeat."""
        name = node["metadata"]["name"]
        if self._liveness.beats(name):
            return node, None
        conditions = (node.get("status") or {}).get("conditions")
        ready = get_condition(conditions, "Ready")
        posted = parse_time(ready["lastHeartbeatTime"]) if ready is not None and ready.get("lastHeartbeatTime") else 0.0
        last = max(self._liveness.renewed(name), posted, parse_time(node["metadata"]["creationTimestamp"]))
        left = last + (self._grace if ready is not None else _STARTUP_GRACE) - self._clock.now()
        if left > 0:
            return node, left
        lost = lost_conditions(conditions, self._clock.now())
        if not lost:
            return node, None
        patch = {"status": {"conditions": lost}}
        return await self._client.patch(NODES, name, "", patch, type="strategic", subresource="status"), None

    # taints

    async def _taint(self, node: Obj) -> float | None:
        """Sync the taints with the conditions; returns the seconds until a new node gets its NoExecute taints."""
        settling = _SETTLING_SECONDS - self._age(node) if _ready_status(node) == "False" else 0.0
        wanted = wanted_taints(node, evicting=settling <= 0)
        taints = (node.get("spec") or {}).get("taints") or []
        changed = retainted(taints, wanted, self._clock.now())
        if changed != taints:
            metadata = node["metadata"]
            patch = {"metadata": {"resourceVersion": metadata["resourceVersion"]}, "spec": {"taints": changed or None}}
            await self._client.patch(NODES, metadata["name"], "", patch, type="merge")
        return settling if settling > 0 else None

    # readiness

    async def _follow_readiness(self, node: Obj) -> None:
        name, ready = node["metadata"]["name"], _ready_status(node)
        before = self._ready.get(name)
        self._ready[name] = ready
        if before == "True" and ready != "True":
            self._recorder.event(node, NORMAL, "NodeNotReady", f"Node {name} status is now: NodeNotReady")
        if ready == "Unknown" or (ready == "False" and before == "True"):
            for pod in self._pods.by_index(BY_NODE, name):
                if is_ready(pod) and not is_terminal(pod):
                    await self._mark_unready(pod)

    async def _mark_unready(self, pod: Obj) -> None:
        metadata = pod["metadata"]
        condition = {"type": "Ready", "status": "False", "lastTransitionTime": rfc3339(self._clock.now())}
        patch = {"metadata": {"uid": metadata["uid"]}, "status": {"conditions": [condition]}}
        try:
            await self._client.patch(
                PODS, metadata["name"], metadata["namespace"], patch, type="strategic", subresource="status"
            )
        except NotFound:
            return
        self._recorder.event(pod, WARNING, "NodeNotReady", "Node is not ready")


def _ready_status(node: Obj) -> str:
    ready = get_condition((node.get("status") or {}).get("conditions"), "Ready")
    return str(ready["status"]) if ready is not None else "Unknown"


def lost_conditions(conditions: Sequence[Obj] | None, now: float) -> list[Obj]:
    """Return the conditions that change to Unknown for a node without heartbeat."""
    changed = []
    for kind in _WATCHED_CONDITIONS:
        old = get_condition(conditions, kind)
        if old is not None and old.get("status") == "Unknown":
            continue
        reason, message = _NEVER_POSTED if old is None else _STOPPED
        changed.append(
            {
                "type": kind,
                "status": "Unknown",
                "reason": reason,
                "message": message,
                "lastHeartbeatTime": (old or {}).get("lastHeartbeatTime") or rfc3339(now),
                "lastTransitionTime": rfc3339(now),
            }
        )
    return changed


def wanted_taints(node: Obj, *, evicting: bool = True) -> list[tuple[str, str]]:
    """Key and effect of the taints that follow from a node's state; `evicting`: also NoExecute."""
    conditions = (node.get("status") or {}).get("conditions")
    wanted = []
    ready = get_condition(conditions, "Ready")
    if ready is None or ready["status"] != "True":
        key = NOT_READY if ready is None or ready["status"] == "False" else UNREACHABLE
        wanted.append((key, NO_SCHEDULE))
        if evicting and ready is not None:
            wanted.append((key, NO_EXECUTE))
    for kind, key in PRESSURE_TAINTS.items():
        condition = get_condition(conditions, kind)
        if condition is not None and condition["status"] == "True":
            wanted.append((key, NO_SCHEDULE))
    if (node.get("spec") or {}).get("unschedulable"):
        wanted.append((UNSCHEDULABLE, NO_SCHEDULE))
    return wanted


def retainted(taints: Sequence[Obj], wanted: Sequence[tuple[str, str]], now: float) -> list[Obj]:
    """Foreign taints unchanged, ours as wanted; one that stays keeps its timeAdded."""
    kept = [taint for taint in taints if (pair := (taint["key"], taint["effect"])) not in _OURS or pair in wanted]
    present = {(taint["key"], taint["effect"]) for taint in kept}
    new = [{"key": key, "effect": effect} for key, effect in wanted if (key, effect) not in present]
    return [*kept, *({**taint, "timeAdded": rfc3339(now)} for taint in new)]


def _matters(old: Obj | None, new: Obj | None) -> bool:
    return old is None or new is None or _relevant(old) != _relevant(new)


def _relevant(node: Obj) -> object:
    """Return the taints and the states of the conditions: they change with a status, not with a heartbeat."""
    spec = node.get("spec") or {}
    states = [(c["type"], c["status"]) for c in (node.get("status") or {}).get("conditions") or ()]
    return states, spec.get("taints"), spec.get("unschedulable")
