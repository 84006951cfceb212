"""Nodes and pods for tests of the scheduler, and a scheduler's view of a cluster without a server."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

from karmada.kube.objects.types import Obj
from karmada.kube.sim.scheduler.algorithm import Algorithm, Choice, Diagnosis
from karmada.kube.sim.scheduler.messages import Texts
from karmada.kube.sim.scheduler.nodes import Node
from karmada.kube.sim.scheduler.pods import Interned, PodInfo
from karmada.kube.sim.scheduler.state import ClusterState
from tests.support.objects import kube_object

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def node(
    name: str,
    *,
    cpu: str = "4",
    memory: str = "16Gi",
    pods: str = "110",
    labels: dict[str, str] | None = None,
    taints: list[Obj] | None = None,
    unschedulable: bool = False,
    extended: dict[str, str] | None = None,
) -> Obj:
    allocatable = {"cpu": cpu, "memory": memory, "pods": pods, "ephemeral-storage": "100Gi", **(extended or {})}
    spec: Obj = {"taints": taints or []}
    if unschedulable:
        spec["unschedulable"] = True
    return kube_object(
        "v1", "Node", name, labels={HOSTNAME: name, **(labels or {})}, spec=spec, status={"allocatable": allocatable}
    )


def pod(
    name: str,
    *,
    cpu: str = "",
    memory: str = "",
    labels: dict[str, str] | None = None,
    owner: str = "",
    namespace: str = "default",
    resources: dict[str, str] | None = None,
    **spec: Any,
) -> Obj:
    requests = {k: v for k, v in (("cpu", cpu), ("memory", memory)) if v} | (resources or {})
    container: Obj = {"name": "c", "image": "nginx"}
    if requests:
        container["resources"] = {"requests": requests}
    if "ports" in spec:
        container["ports"] = spec.pop("ports")
    metadata: Obj = {"name": name, "namespace": namespace}
    if labels:
        metadata["labels"] = labels
    if owner:
        reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": owner, "controller": True}
        metadata["ownerReferences"] = [reference]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], **spec}}


def term(topology_key: str = HOSTNAME, **labels: str) -> Obj:
    return {"topologyKey": topology_key, "labelSelector": {"matchLabels": labels}}


def anti_affinity(*terms: Obj) -> Obj:
    return {"podAntiAffinity": {REQUIRED: list(terms)}}


def pod_affinity(*terms: Obj) -> Obj:
    return {"podAffinity": {REQUIRED: list(terms)}}


def node_affinity(*terms: Obj) -> Obj:
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}


def spread(topology_key: str, *, skew: int = 1, when: str = "DoNotSchedule", **labels: str) -> Obj:
    return {
        "topologyKey": topology_key,
        "maxSkew": skew,
        "whenUnsatisfiable": when,
        "labelSelector": {"matchLabels": labels},
    }


class View:
    """What a scheduler would decide, given these nodes."""

    def __init__(self, nodes: Iterable[Obj], *, minor: int = 36, seed: int = 0) -> None:
        self.state = ClusterState(lambda _: {})
        self.algorithm = Algorithm(self.state, None, Texts(minor), Random(seed))  # type: ignore[arg-type]
        self._interned = Interned()
        self._serial = 0
        for each in nodes:
            self.state.set_node(each)

    def info(self, obj: Obj, on: str = "") -> PodInfo:
        self._serial += 1
        metadata = {"creationTimestamp": "2023-11-14T22:13:20Z", "uid": f"uid-{self._serial}", **obj["metadata"]}
        info = PodInfo({**obj, "metadata": metadata}, self._interned.of(obj["spec"]), self._serial)
        info.node = on
        return info

    def run(self, obj: Obj, on: str) -> PodInfo:
        """A pod that is on a node already."""
        info = self.info(obj, on)
        self.state.assign(info)
        return info

    def decide(self, obj: Obj) -> Choice | Diagnosis:
        return self.algorithm.decide(self.info(obj))

    def place(self, obj: Obj) -> str:
        """Decide, and have it so; the node's name or the reasons why not."""
        outcome = self.decide(obj)
        if isinstance(outcome, Diagnosis):
            return outcome.message
        self.run(obj, outcome.node.name)
        return outcome.node.name

    def node(self, name: str) -> Node:
        found = self.state.nodes.get(name)
        assert found is not None
        return found
