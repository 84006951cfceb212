"""What the scheduler keeps of a pod.

`Needs` is everything in a pod's spec that decides where it may go, computed once and shared by all pods with the same
spec (the pods of a workload); it also caches the results for kinds of nodes. `PodInfo` is what is specific to a pod.
Neither keeps the pod object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import orjson

from karmada.kube.objects.memo import Memo
from karmada.kube.objects.meta import controller_of, get_condition, is_deleting
from karmada.kube.objects.node_selection import preferences_of, selection_of
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key, key_of
from karmada.kube.sim.scheduler.messages import Refusal
from karmada.kube.sim.scheduler.resources import request_of

if TYPE_CHECKING:
    from karmada.kube.sim.scheduler.nodes import Kind

DEFAULT_SCHEDULER = "default-scheduler"
_REMEMBERED_NEEDS = 2048
_REMEMBERED_KINDS = 1024
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_NO_LABELS: dict[str, str] = {}


class Port(NamedTuple):
    address: str
    protocol: str
    number: int

    def clashes(self, other: Port) -> bool:
        if self.number != other.number or self.protocol != other.protocol:
            return False
        return self.address == other.address or _ANY_ADDRESS in (self.address, other.address)


_ANY_ADDRESS = "0.0.0.0"


class Needs:
    """Read-only but for `verdicts`, the cached result of the filters for each kind of node."""

    __slots__ = (
        "affinity", "anti_affinity", "ports", "preempts", "preferred_nodes", "preferred_pods", "priority", "request",
        "selection", "spread", "tolerations", "verdicts",
    )  # fmt: skip

    def __init__(self, spec: Obj) -> None:
        affinity = spec.get("affinity") or {}
        with_pods, without_pods = affinity.get("podAffinity") or {}, affinity.get("podAntiAffinity") or {}
        self.request = request_of(spec)
        self.tolerations: tuple[Obj, ...] = tuple(spec.get("tolerations") or ())
        self.selection = selection_of(spec)
        self.preferred_nodes = preferences_of(spec)
        self.ports = host_ports(spec)
        self.affinity: tuple[Obj, ...] = tuple(with_pods.get(_REQUIRED) or ())
        self.anti_affinity: tuple[Obj, ...] = tuple(without_pods.get(_REQUIRED) or ())
        self.preferred_pods: tuple[tuple[int, Obj], ...] = tuple(
            (sign * (wish.get("weight") or 0), wish.get("podAffinityTerm") or {})
            for sign, kind in ((1, with_pods), (-1, without_pods))
            for wish in kind.get(_PREFERRED) or ()
        )
        self.spread: tuple[Obj, ...] = tuple(spec.get("topologySpreadConstraints") or ())
        self.priority: int = spec.get("priority") or 0
        self.preempts: bool = spec.get("preemptionPolicy") != "Never"
        self.verdicts: dict[Kind, Refusal | None] = {}

    def remember(self, kind: Kind, verdict: Refusal | None) -> None:
        if len(self.verdicts) >= _REMEMBERED_KINDS:
            self.verdicts.clear()
        self.verdicts[kind] = verdict


def host_ports(spec: Obj) -> tuple[Port, ...]:
    sidecars = (c for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always")
    return tuple(
        Port(port.get("hostIP") or _ANY_ADDRESS, port.get("protocol") or "TCP", port["hostPort"])
        for container in (*(spec.get("containers") or ()), *sidecars)
        for port in container.get("ports") or ()
        if port.get("hostPort")
    )


_CONSTRAINTS = (
    "nodeSelector", "affinity", "tolerations", "topologySpreadConstraints", "priority", "preemptionPolicy", "overhead",
    "resources",
)  # fmt: skip


def _fingerprint(spec: Obj) -> bytes:
    """Equal for specs with equal needs."""
    containers = [(c.get("resources"), c.get("ports")) for c in spec.get("containers") or ()]
    initial = [(c.get("resources"), c.get("restartPolicy"), c.get("ports")) for c in spec.get("initContainers") or ()]
    return orjson.dumps([containers, initial, [spec.get(name) for name in _CONSTRAINTS]], option=orjson.OPT_SORT_KEYS)


class Interned:
    """The needs of recent specs, so that pods alike share them."""

    def __init__(self) -> None:
        self._needs: Memo[bytes, Needs] = Memo(_REMEMBERED_NEEDS)

    def of(self, spec: Obj) -> Needs:
        key = _fingerprint(spec)
        needs = self._needs.get(key)
        return self._needs.put(key, Needs(spec)) if needs is None else needs


class PodInfo:
    """`node` is where it is, or where it was decided to go; `nominated` where room is being made for it."""

    __slots__ = (
        "attempts", "claims", "condition", "created", "deleting", "failed_at", "generation", "key", "labels", "needs",
        "node", "nominated", "order", "owner", "plugins", "stored_nominated", "uid",
    )  # fmt: skip

    def __init__(self, pod: Obj, needs: Needs, order: int) -> None:
        metadata, spec, status = pod["metadata"], pod["spec"], pod.get("status") or {}
        owner = controller_of(pod)
        self.key: Key = key_of(pod)
        self.uid: str = metadata["uid"]
        self.labels: dict[str, str] = metadata.get("labels") or _NO_LABELS
        self.generation: int = metadata.get("generation") or 0
        self.needs = needs
        self.owner: str = owner["uid"] if owner is not None else ""
        self.claims = claims_of(pod)
        self.created: str = metadata.get("creationTimestamp") or ""
        self.order = order
        self.node: str = spec.get("nodeName") or ""
        self.nominated: str = status.get("nominatedNodeName") or ""
        self.stored_nominated = self.nominated
        """The nominatedNodeName in the pod's status."""
        self.deleting = is_deleting(pod)
        self.condition = get_condition(status.get("conditions"), "PodScheduled")
        self.attempts = 0
        self.failed_at = 0.0
        self.plugins: frozenset[str] = frozenset()
        """Which filters refused it at the last attempt."""

    def take_over(self, old: PodInfo) -> None:
        """Take over the queue state of an earlier version of the same pod."""
        self.order, self.attempts, self.failed_at = old.order, old.attempts, old.failed_at
        self.condition, self.stored_nominated = old.condition, old.stored_nominated


class Claim(NamedTuple):
    """A claim a pod uses; `generic`: made for this pod alone, from a template in it."""

    name: str
    generic: bool


def claims_of(pod: Obj) -> tuple[Claim, ...]:
    found = []
    for volume in pod["spec"].get("volumes") or ():
        if volume.get("persistentVolumeClaim"):
            found.append(Claim(volume["persistentVolumeClaim"].get("claimName") or "", False))
        elif volume.get("ephemeral"):
            found.append(Claim(f"{pod['metadata']['name']}-{volume['name']}", True))
    return tuple(found)


def is_ours(pod: Obj) -> bool:
    return (pod["spec"].get("schedulerName") or DEFAULT_SCHEDULER) == DEFAULT_SCHEDULER


def is_gated(pod: Obj) -> bool:
    return bool(pod["spec"].get("schedulingGates"))
