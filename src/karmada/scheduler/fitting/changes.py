"""The changes that can make a resource fit: each is data, which can be applied to a situation, and put into words.

A change says what it edits, where, and to what. The functions here are the table of those that are worth trying. None
of them is written to the control plane.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from karmada.api.taints import taint_text
from karmada.estimator.amounts import PODS, quantity
from karmada.estimator.room import PODS_PER_NODE
from karmada.kube.objects.quantity import Quantity
from karmada.kube.objects.types import Obj
from karmada.scheduler.fitting.situation import MovedPeers, New, Path, Situation, edited_named


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


Apply = Callable[[Situation], Situation]


@dataclass(frozen=True, slots=True)
class Change:
    sort: Sort
    begins: str
    """The text, which completes the sentence "it would fit if …", up to what may be a list."""
    ends: str
    """The item of the list: changes that begin alike are put into one sentence. Empty where there is none."""
    data: Obj
    """For programs: the object that is edited, and what to set there."""
    applications: tuple[Apply, ...]

    @property
    def text(self) -> str:
        return f"{self.begins} {self.ends}" if self.ends else self.begins

    def apply(self, situation: Situation) -> Situation:
        for application in self.applications:
            situation = application(situation)
        return situation


def in_words(changes: Sequence[Change]) -> str:
    """Return several changes as one condition."""
    parts: dict[str, list[str]] = {}
    for change in changes:
        parts.setdefault(change.begins, []).extend([change.ends] if change.ends else [])
    return " and ".join(f"{begins} {_listed(ends)}" if ends else begins for begins, ends in parts.items())


def _listed(texts: Sequence[str]) -> str:
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


# edits: what becomes of a value, given what it was


def to(value: Any) -> New:
    """Return an edit that sets a value; None removes it."""
    return lambda _old: value


def with_item(item: Any) -> New:
    """Return an edit that appends to a list."""
    return lambda old: [*(old or ()), item]


def without_item(item: Any) -> New:
    """Return an edit that takes an item out of a list."""
    return lambda old: [one for one in old or () if one != item]


def more(amount: Quantity) -> New:
    """Return an edit that adds to a quantity."""
    return lambda old: str(quantity(old or 0) + amount)


def edit_cluster(name: str, path: Path, new: New) -> Apply:
    return lambda situation: situation.with_cluster(name, path, new)


def edit_binding(path: Path, new: New) -> Apply:
    """Return the edit of a field of the binding's spec."""
    return lambda situation: situation.with_request(path, new)


POLICY: Obj = {"kind": "policy"}
_WORKLOAD: Obj = {"kind": "workload"}


def cluster_object(name: str) -> Obj:
    return {"kind": "Cluster", "name": name}


# of the policy


def tolerate(taint: Mapping[str, Any]) -> Change:
    """Tolerate exactly this taint."""
    key, value, effect = taint.get("key") or "", taint.get("value") or "", taint["effect"]
    toleration = {"key": key, "operator": "Equal", **({"value": value} if value else {}), "effect": effect}
    return Change(
        Sort.TOLERATION,
        f"the taint {taint_text({'key': key, 'value': value, 'effect': effect})} were tolerated",
        "",
        {"object": POLICY, "field": "placement.clusterTolerations", "add": toleration},
        (edit_binding(("placement", "clusterTolerations"), with_item(toleration)),),
    )


def spread(place: int, by: str, bound: str, value: int) -> Change:
    """Set minGroups or maxGroups of a spread constraint, by its place in the list."""
    return Change(
        Sort.SPREAD,
        f"{bound} of the spread constraint by {by} were {value}",
        "",
        {"object": POLICY, "field": f"placement.spreadConstraints[{place}].{bound}", "value": value},
        (edit_binding(("placement", "spreadConstraints", place, bound), to(value)),),
    )


# of a cluster


def locate(cluster: str, field: str, value: str) -> Change:
    """Give a cluster the property by which clusters are spread: region, provider or zones."""
    several = field == "zones"
    held = [value] if several else value
    return Change(
        Sort.LOCATION,
        f"{cluster} had {'' if several else 'a '}{field}, such as {value}",
        "",
        {"object": cluster_object(cluster), "field": f"spec.{field}", "value": held},
        (edit_cluster(cluster, ("spec", field), to(held)),),
    )


def enable_api(cluster: str, api_version: str, kind: str) -> Change:
    served = {"groupVersion": api_version, "resources": [{"kind": kind, "name": kind.lower()}]}
    return Change(
        Sort.API,
        f"the API {api_version} {kind} were enabled in",
        cluster,
        {"object": cluster_object(cluster), "apiVersion": api_version, "kind": kind},
        (edit_cluster(cluster, ("status", "apiEnablements"), with_item(served)),),
    )


_SUMMARY: Path = ("status", "resourceSummary")


def more_resources(cluster: str, resource: str, amount: Quantity) -> Change:
    return Change(
        Sort.RESOURCES,
        f"{cluster} had",
        f"{amount} more {resource}",
        {"object": cluster_object(cluster), "resource": resource, "more": str(amount)},
        (edit_cluster(cluster, (*_SUMMARY, "allocatable", resource), more(amount)),),
    )


def more_nodes(cluster: str, grade: int, least: Mapping[str, str], count: int) -> Change:
    """Add nodes of a grade, which have at least so much, to a cluster that models its nodes."""
    held = {
        **{name: quantity(value) * count for name, value in least.items()},
        PODS: Quantity.of(PODS_PER_NODE * count),
    }
    nodes = edit_cluster(cluster, (*_SUMMARY, "allocatableModelings"), with_item({"grade": grade, "count": count}))
    each = ", ".join(f"{name} {value}" for name, value in least.items())
    return Change(
        Sort.NODES,
        f"{cluster} had {count} more free node(s) with at least {each}",
        "",
        {"object": cluster_object(cluster), "grade": grade, "nodes": count},
        (*(edit_cluster(cluster, (*_SUMMARY, "allocatable", name), more(one)) for name, one in held.items()), nodes),
    )


def more_estimated(cluster: str, estimator: str, reported: int, size: int) -> Change:
    """Raise what an estimator reports that looks at nodes and Pods, which are not known here."""
    wanted = reported + size
    return Change(
        Sort.ESTIMATE,
        f"{cluster} had capacity for {wanted} more replicas on its nodes ({estimator} reports {reported})",
        "",
        {"object": cluster_object(cluster), "estimator": estimator, "reported": reported, "wanted": wanted},
        (lambda situation: situation.with_answer(estimator, lambda one: one.with_replicas(cluster, wanted)),),
    )


# of the binding and of others


def end_eviction(cluster: str) -> Change:
    def without(tasks: Sequence[Obj]) -> list[Obj]:
        return [task for task in tasks or () if task["fromCluster"] != cluster]

    return Change(
        Sort.EVICTION,
        f"its eviction from {cluster} had ended",
        "",
        {"object": {"kind": "binding"}, "field": "gracefulEvictionTasks", "remove": cluster},
        (edit_binding(("gracefulEvictionTasks",), without),),
    )


def reschedule() -> Change:
    return Change(
        Sort.RESCHEDULING,
        "all its replicas were placed anew (a WorkloadRebalancer does that)",
        "",
        {"object": {"kind": "WorkloadRebalancer"}},
        (Situation.from_scratch,),
    )


def move_peers(cluster: str, bindings: Sequence[str], *, there: bool) -> Change:
    """Have other members of its group leave a cluster (anti-affinity), or come to it (affinity)."""

    def moved(situation: Situation) -> Situation:
        peers = situation.request.peers
        assert peers is not None
        return situation.with_peers(MovedPeers(peers, bindings, cluster, there=there))

    group, move = ("affinity", "were also in") if there else ("anti-affinity", "left")
    objects = [{"kind": "ResourceBinding", "name": name} for name in bindings]
    return Change(
        Sort.PEER,
        f"{_listed(bindings)} of its {group} group {move} {cluster}",
        "",
        {"objects": objects, ("to" if there else "from"): cluster},
        (moved,),
    )


def more_quota(name: str, resource: str, amount: Quantity) -> Change:
    """Raise a FederatedResourceQuota."""
    return Change(
        Sort.QUOTA,
        f"the FederatedResourceQuota {name} had {amount} more {resource}",
        "",
        {
            "object": {"kind": "FederatedResourceQuota", "name": name},
            "field": f"spec.overall.{resource}",
            "more": str(amount),
        },
        (lambda situation: situation.with_quota(name, ("spec", "overall", resource), more(amount)),),
    )


def more_member_quota(estimator: str, cluster: str, name: str, key: str, amount: Quantity) -> Change:
    """Raise a ResourceQuota in a member; `key` is that in status.hard: cpu or requests.cpu."""
    path: Path = ("status", "hard", key)

    def raised(situation: Situation) -> Situation:
        return situation.with_answer(
            estimator,
            lambda one: one.with_quotas(cluster, edited_named(one.quotas[cluster], name, path, more(amount))),
        )

    return Change(
        Sort.QUOTA,
        f"the ResourceQuota {name} in {cluster} had",
        f"{amount} more {key}",
        {
            "object": {"kind": "ResourceQuota", "name": name, "cluster": cluster},
            "field": f"spec.hard[{key}]",
            "more": str(amount),
        },
        (raised,),
    )


# of the workload


def fewer_replicas(value: int) -> Change:
    return Change(
        Sort.REPLICAS,
        f"replicas were {value}",
        "",
        {"object": _WORKLOAD, "field": "replicas", "value": value},
        (edit_binding(("replicas",), to(value)),),
    )


def request_less(resource: str, amount: Quantity) -> Change:
    return Change(
        Sort.REQUEST,
        f"a replica requested {amount} {resource}",
        "",
        {"object": _WORKLOAD, "resource": resource, "request": str(amount)},
        (edit_binding(("replicaRequirements", "resourceRequest", resource), to(str(amount))),),
    )
