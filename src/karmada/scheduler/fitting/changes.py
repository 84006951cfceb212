"""The changes that can make a resource fit: each a value that can be applied to a situation, and put into words.

`text` completes the sentence "it would fit if …". `data` is the same for programs: the sort of change, the object it
is made in, and what to set there. None of them is written to the control plane here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import ClassVar, Protocol, runtime_checkable

from karmada.api.taints import taint_text
from karmada.estimator.amounts import PODS, quantity
from karmada.estimator.room import PODS_PER_NODE
from karmada.kube.objects import meta
from karmada.kube.objects.quantity import ZERO, Quantity
from karmada.kube.objects.types import Obj
from karmada.scheduler.fitting.situation import MovedPeers, Situation


class Sort(IntEnum):
    """Sorts of changes, the cheapest first: what is written in a policy, then facts of clusters, then capacity."""

    TOLERATION = 0
    SPREAD = 1
    AFFINITY = 2
    EVICTION = 3
    RESCHEDULING = 4
    LOCATION = 5
    API = 6
    PEER = 7
    QUOTA = 8
    RESOURCES = 9
    NODES = 10
    ESTIMATE = 11
    REPLICAS = 12
    REQUEST = 13


POLICY: Obj = {"kind": "policy"}
WORKLOAD: Obj = {"kind": "workload"}
BINDING: Obj = {"kind": "binding"}


def cluster_object(name: str) -> Obj:
    return {"kind": "Cluster", "name": name}


class Change(Protocol):
    @property
    def sort(self) -> Sort: ...

    def apply(self, situation: Situation) -> Situation: ...

    @property
    def text(self) -> str: ...

    @property
    def data(self) -> Obj: ...


@runtime_checkable
class Listed(Protocol):
    """A change whose text ends with what may be a list: those with the same beginning are put into one sentence."""

    @property
    def phrase(self) -> tuple[str, str]: ...


# of the policy


@dataclass(frozen=True, slots=True)
class Tolerate:
    sort: ClassVar[Sort] = Sort.TOLERATION
    key: str
    value: str
    effect: str

    def apply(self, situation: Situation) -> Situation:
        tolerations = situation.placement.get("clusterTolerations") or ()
        return situation.with_placement(clusterTolerations=[*tolerations, self.toleration])

    @property
    def toleration(self) -> Obj:
        """Of exactly this taint."""
        value = {"value": self.value} if self.value else {}
        return {"key": self.key, "operator": "Equal", **value, "effect": self.effect}

    @property
    def text(self) -> str:
        taint = taint_text({"key": self.key, "value": self.value, "effect": self.effect})
        return f"the taint {taint} were tolerated"

    @property
    def data(self) -> Obj:
        return {"object": POLICY, "field": "placement.clusterTolerations", "add": self.toleration}


@dataclass(frozen=True, slots=True)
class Groups:
    """Another bound of a spread constraint."""

    sort: ClassVar[Sort] = Sort.SPREAD
    place: int
    """In the list of constraints."""
    by: str
    bound: str
    """minGroups or maxGroups."""
    value: int

    def apply(self, situation: Situation) -> Situation:
        constraints = list(situation.placement["spreadConstraints"])
        constraints[self.place] = {**constraints[self.place], self.bound: self.value}
        return situation.with_placement(spreadConstraints=constraints)

    @property
    def text(self) -> str:
        return f"{self.bound} of the spread constraint by {self.by} were {self.value}"

    @property
    def data(self) -> Obj:
        return {
            "object": POLICY,
            "field": f"placement.spreadConstraints[{self.place}].{self.bound}",
            "value": self.value,
        }


# of a cluster


@dataclass(frozen=True, slots=True)
class Locate:
    """A cluster has the property by which clusters are spread."""

    sort: ClassVar[Sort] = Sort.LOCATION
    cluster: str
    field: str
    """region, provider or zones."""
    value: str

    def apply(self, situation: Situation) -> Situation:
        cluster = situation.cluster(self.cluster)
        return situation.with_cluster(self.cluster, {**cluster, "spec": {**cluster["spec"], self.field: self._set}})

    @property
    def _set(self) -> str | list[str]:
        return [self.value] if self.field == "zones" else self.value

    @property
    def text(self) -> str:
        article = "" if self.field == "zones" else "a "
        return f"{self.cluster} had {article}{self.field}, such as {self.value}"

    @property
    def data(self) -> Obj:
        return {"object": cluster_object(self.cluster), "field": f"spec.{self.field}", "value": self._set}


@dataclass(frozen=True, slots=True)
class EnableApi:
    sort: ClassVar[Sort] = Sort.API
    cluster: str
    api_version: str
    kind: str

    def apply(self, situation: Situation) -> Situation:
        served = {"groupVersion": self.api_version, "resources": [{"kind": self.kind, "name": self.kind.lower()}]}
        cluster = situation.cluster(self.cluster)
        status = cluster.get("status") or {}
        enablements = [*(status.get("apiEnablements") or ()), served]
        return situation.with_cluster(self.cluster, {**cluster, "status": {**status, "apiEnablements": enablements}})

    @property
    def phrase(self) -> tuple[str, str]:
        return f"the API {self.api_version} {self.kind} were enabled in", self.cluster

    @property
    def text(self) -> str:
        return " ".join(self.phrase)

    @property
    def data(self) -> Obj:
        return {"object": cluster_object(self.cluster), "apiVersion": self.api_version, "kind": self.kind}


@dataclass(frozen=True, slots=True)
class MoreResources:
    sort: ClassVar[Sort] = Sort.RESOURCES
    cluster: str
    resource: str
    amount: Quantity

    def apply(self, situation: Situation) -> Situation:
        cluster = situation.cluster(self.cluster)
        return situation.with_cluster(self.cluster, with_allocatable(cluster, {self.resource: self.amount}))

    @property
    def phrase(self) -> tuple[str, str]:
        return f"{self.cluster} had", f"{self.amount} more {self.resource}"

    @property
    def text(self) -> str:
        return " ".join(self.phrase)

    @property
    def data(self) -> Obj:
        return {"object": cluster_object(self.cluster), "resource": self.resource, "more": str(self.amount)}


@dataclass(frozen=True, slots=True)
class MoreNodes:
    """Nodes of a grade, in a cluster that models its nodes."""

    sort: ClassVar[Sort] = Sort.NODES
    cluster: str
    grade: int
    least: tuple[tuple[str, str], ...]
    """What a node of the grade has at least."""
    count: int

    def apply(self, situation: Situation) -> Situation:
        cluster = situation.cluster(self.cluster)
        more = {name: quantity(value) * self.count for name, value in self.least}
        cluster = with_allocatable(cluster, {**more, PODS: Quantity.of(PODS_PER_NODE * self.count)})
        summary = cluster["status"]["resourceSummary"]
        modelings = [*summary["allocatableModelings"], {"grade": self.grade, "count": self.count}]
        status = {**cluster["status"], "resourceSummary": {**summary, "allocatableModelings": modelings}}
        return situation.with_cluster(self.cluster, {**cluster, "status": status})

    @property
    def text(self) -> str:
        least = ", ".join(f"{name} {value}" for name, value in self.least)
        return f"{self.cluster} had {self.count} more free node(s) with at least {least}"

    @property
    def data(self) -> Obj:
        return {"object": cluster_object(self.cluster), "grade": self.grade, "nodes": self.count}


@dataclass(frozen=True, slots=True)
class MoreEstimated:
    """Capacity as an estimator reports it that looks at nodes and Pods, which are not known here."""

    sort: ClassVar[Sort] = Sort.ESTIMATE
    cluster: str
    estimator: str
    reported: int
    more: int

    def apply(self, situation: Situation) -> Situation:
        count = self.reported + self.more
        return replace(
            situation,
            answers=[
                one.with_replicas(self.cluster, count) if one.name == self.estimator else one
                for one in situation.answers
            ],
        )

    @property
    def text(self) -> str:
        return (
            f"{self.cluster} had capacity for {self.reported + self.more} more replicas on its nodes "
            f"({self.estimator} reports {self.reported})"
        )

    @property
    def data(self) -> Obj:
        return {
            "object": cluster_object(self.cluster),
            "estimator": self.estimator,
            "reported": self.reported,
            "wanted": self.reported + self.more,
        }


def with_allocatable(cluster: Obj, more: dict[str, Quantity]) -> Obj:
    """A cluster that reports so much more."""
    status = cluster.get("status") or {}
    summary = status.get("resourceSummary") or {}
    had = summary.get("allocatable") or {}
    grown = {name: str(quantity(had.get(name, ZERO)) + amount) for name, amount in more.items()}
    summary = {**summary, "allocatable": {**had, **grown}}
    return {**cluster, "status": {**status, "resourceSummary": summary}}


# of the binding and of others


@dataclass(frozen=True, slots=True)
class EndEviction:
    sort: ClassVar[Sort] = Sort.EVICTION
    cluster: str

    def apply(self, situation: Situation) -> Situation:
        tasks = situation.request.spec.get("gracefulEvictionTasks") or ()
        return situation.with_request(
            gracefulEvictionTasks=[task for task in tasks if task["fromCluster"] != self.cluster]
        )

    @property
    def text(self) -> str:
        return f"its eviction from {self.cluster} had ended"

    @property
    def data(self) -> Obj:
        return {"object": BINDING, "field": "gracefulEvictionTasks", "remove": self.cluster}


@dataclass(frozen=True, slots=True)
class Reschedule:
    sort: ClassVar[Sort] = Sort.RESCHEDULING

    def apply(self, situation: Situation) -> Situation:
        return situation.from_scratch()

    @property
    def text(self) -> str:
        return "all its replicas were placed anew (a WorkloadRebalancer does that)"

    @property
    def data(self) -> Obj:
        return {"object": {"kind": "WorkloadRebalancer"}}


@dataclass(frozen=True, slots=True)
class MovePeers:
    """Other members of its group leave a cluster (anti-affinity), or come to it (affinity)."""

    sort: ClassVar[Sort] = Sort.PEER
    cluster: str
    bindings: tuple[str, ...]
    there: bool

    def apply(self, situation: Situation) -> Situation:
        peers = situation.request.peers
        assert peers is not None
        return situation.with_peers(MovedPeers(peers, self.bindings, self.cluster, there=self.there))

    @property
    def text(self) -> str:
        names, move = _listed(self.bindings), "were also in" if self.there else "left"
        group = "its affinity group" if self.there else "its anti-affinity group"
        return f"{names} of {group} {move} {self.cluster}"

    @property
    def data(self) -> Obj:
        objects = [{"kind": "ResourceBinding", "name": name} for name in self.bindings]
        return {"objects": objects, ("to" if self.there else "from"): self.cluster}


@dataclass(frozen=True, slots=True)
class MoreQuota:
    sort: ClassVar[Sort] = Sort.QUOTA
    name: str
    resource: str
    amount: Quantity

    def apply(self, situation: Situation) -> Situation:
        return replace(situation, quotas=[self._raised(quota) for quota in situation.quotas])

    def _raised(self, quota: Obj) -> Obj:
        if meta.name(quota) != self.name:
            return quota
        overall = quota["spec"]["overall"]
        raised = {**overall, self.resource: str(quantity(overall[self.resource]) + self.amount)}
        return {**quota, "spec": {**quota["spec"], "overall": raised}}

    @property
    def text(self) -> str:
        return f"the FederatedResourceQuota {self.name} had {self.amount} more {self.resource}"

    @property
    def data(self) -> Obj:
        quota = {"kind": "FederatedResourceQuota", "name": self.name}
        return {"object": quota, "field": f"spec.overall.{self.resource}", "more": str(self.amount)}


@dataclass(frozen=True, slots=True)
class MoreMemberQuota:
    """A ResourceQuota in a member allows more."""

    sort: ClassVar[Sort] = Sort.QUOTA
    estimator: str
    cluster: str
    name: str
    key: str
    """In status.hard: cpu or requests.cpu."""
    amount: Quantity

    def apply(self, situation: Situation) -> Situation:
        return replace(
            situation,
            answers=[
                one.with_quotas(self.cluster, [self._raised(quota) for quota in one.quotas[self.cluster]])
                if one.name == self.estimator
                else one
                for one in situation.answers
            ],
        )

    def _raised(self, quota: Obj) -> Obj:
        if meta.name(quota) != self.name:
            return quota
        hard = quota["status"]["hard"]
        raised = {**hard, self.key: str(quantity(hard[self.key]) + self.amount)}
        return {**quota, "status": {**quota["status"], "hard": raised}}

    @property
    def phrase(self) -> tuple[str, str]:
        return f"the ResourceQuota {self.name} in {self.cluster} had", f"{self.amount} more {self.key}"

    @property
    def text(self) -> str:
        return " ".join(self.phrase)

    @property
    def data(self) -> Obj:
        quota = {"kind": "ResourceQuota", "name": self.name, "cluster": self.cluster}
        return {"object": quota, "field": f"spec.hard[{self.key}]", "more": str(self.amount)}


# of the workload


@dataclass(frozen=True, slots=True)
class Replicas:
    sort: ClassVar[Sort] = Sort.REPLICAS
    value: int

    def apply(self, situation: Situation) -> Situation:
        return situation.with_request(replicas=self.value)

    @property
    def text(self) -> str:
        return f"replicas were {self.value}"

    @property
    def data(self) -> Obj:
        return {"object": WORKLOAD, "field": "replicas", "value": self.value}


@dataclass(frozen=True, slots=True)
class LessRequested:
    sort: ClassVar[Sort] = Sort.REQUEST
    resource: str
    amount: Quantity

    def apply(self, situation: Situation) -> Situation:
        requirements = situation.request.requirements or {}
        request = {**requirements["resourceRequest"], self.resource: str(self.amount)}
        return situation.with_request(replicaRequirements={**requirements, "resourceRequest": request})

    @property
    def text(self) -> str:
        return f"a replica requested {self.amount} {self.resource}"

    @property
    def data(self) -> Obj:
        return {"object": WORKLOAD, "resource": self.resource, "request": str(self.amount)}


def in_words(changes: Sequence[Change]) -> str:
    """Several changes as one condition."""
    parts: dict[str, list[str]] = {}
    for change in changes:
        begins, ends = change.phrase if isinstance(change, Listed) else (change.text, "")
        parts.setdefault(begins, []).extend([ends] if ends else [])
    return " and ".join(f"{begins} {_listed(ends)}" if ends else begins for begins, ends in parts.items())


def _listed(texts: Sequence[str]) -> str:
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"
