"""The changes by which an affinity selects a cluster: edits of the affinity's lists, and of the cluster's labels.

An affinity refuses by any one of its parts, so every part that does gets an edit. Names are added to the policy.
Labels are set on the cluster, as another selector would change what else is selected.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from karmada.api.matching import cluster_matches
from karmada.kube.objects import meta
from karmada.kube.objects.types import Obj
from karmada.scheduler.filters.builtin import PROPERTIES
from karmada.scheduler.fitting.changes import (
    POLICY,
    Change,
    Sort,
    cluster_object,
    edit_binding,
    edit_cluster,
    to,
    with_item,
    without_item,
)
from karmada.scheduler.fitting.situation import New, Path, edited
from karmada.scheduler.placement import ZONE

_ANY_VALUE = "true"


@dataclass(frozen=True, slots=True)
class Edit:
    """An edit of the affinity, or of the cluster."""

    cause: str
    """Why the affinity refuses the cluster."""
    of_cluster: bool
    path: Path
    new: New
    data: Obj

    def affinity(self, affinity: Obj) -> Obj:
        found: Obj = affinity if self.of_cluster else edited(affinity, self.path, self.new)
        return found

    def cluster(self, cluster: Obj) -> Obj:
        found: Obj = edited(cluster, self.path, self.new) if self.of_cluster else cluster
        return found


def _in_list(cause: str, path: Path, verb: str, value: str) -> Edit:
    """Return the edit that adds a value to a list of the affinity, or removes it."""
    new = with_item(value) if verb == "add" else without_item(value)
    return Edit(cause, False, path, new, {"object": POLICY, "field": _dotted(path), verb: value})


def _dotted(path: Path) -> str:
    return "".join(f".{step}" if isinstance(step, str) else f"[{step}]" for step in path).removeprefix(".")


def _label(cluster: str, key: str, value: str | None, had: str | None) -> Edit:
    """Return the edit of a label of the cluster; None removes it."""
    cause = f"its label {key}={had} is refused" if value is None else f"label {key}={value} is missing"
    data = {"object": cluster_object(cluster), "field": f"metadata.labels[{key}]", "value": value}
    return Edit(cause, True, ("metadata", "labels", key), to(value), data)


def _property(cluster: str, key: str, value: str) -> Edit:
    """Return the edit that gives the cluster a region, provider or zone, where it had none."""
    held = [value] if key == ZONE else value
    data = {"object": cluster_object(cluster), "field": f"spec.{PROPERTIES[key]}", "value": held}
    return Edit(f"it has no {key}, such as {value}", True, ("spec", PROPERTIES[key]), to(held), data)


def admit(placement: Obj, cluster: Obj, term: int) -> Change | None:
    """Return the fewest edits by which an affinity of a group (`term`) selects the cluster; None if there are none."""
    found = [
        (path, _titled(placement, path, affinity), edits)
        for path, affinity in _affinities(placement, term)
        if (edits := edits_for(affinity, cluster)) is not None
    ]
    return _change(meta.name(cluster), *min(found, key=lambda one: len(one[2]))) if found else None


def _change(cluster: str, path: Path, group: str, edits: Sequence[Edit]) -> Change:
    """Return the edits as a change; `group`: which affinity, in words; empty when there is only one."""
    path = ("placement", *path)
    return Change(
        Sort.AFFINITY,
        f"the affinity{group} admitted",
        f"{cluster} ({', '.join(edit.cause for edit in edits)})",
        {"object": POLICY, "cluster": cluster, "field": _dotted(path), "edits": [edit.data for edit in edits]},
        tuple(
            edit_cluster(cluster, one.path, one.new) if one.of_cluster else edit_binding((*path, *one.path), one.new)
            for one in edits
        ),
    )


def _affinities(placement: Obj, term: int) -> Iterator[tuple[Path, Obj]]:
    if placement.get("clusterAffinity") is not None:
        yield ("clusterAffinity",), placement["clusterAffinity"]
        return
    group = placement["clusterAffinities"][term]
    yield ("clusterAffinities", term), group
    for place, overflow in enumerate(group.get("overflowAffinities") or ()):
        yield ("clusterAffinities", term, "overflowAffinities", place), overflow


def _titled(placement: Obj, path: Path, affinity: Obj) -> str:
    return f" {affinity.get('affinityName')}" if len(path) > 1 and placement.get("clusterAffinities") else ""


def edits_for(affinity: Obj, cluster: Obj) -> tuple[Edit, ...] | None:
    """Return an edit for each part of the affinity that refuses the cluster; None if edits do not help."""
    edits = (*_names(affinity, cluster), *_labels(affinity, cluster), *_values(affinity, cluster))
    for edit in edits:
        affinity, cluster = edit.affinity(affinity), edit.cluster(cluster)
    return edits if edits and cluster_matches(affinity, cluster) else None


def _names(affinity: Obj, cluster: Obj) -> Iterator[Edit]:
    name = meta.name(cluster)
    if name in (affinity.get("exclude") or ()):
        yield _in_list("exclude lists it", ("exclude",), "remove", name)
    if affinity.get("clusterNames") and name not in affinity["clusterNames"]:
        yield _in_list("clusterNames does not list it", ("clusterNames",), "add", name)


def _labels(affinity: Obj, cluster: Obj) -> Iterator[Edit]:
    selector, labels, name = affinity.get("labelSelector") or {}, meta.labels(cluster), meta.name(cluster)
    exact: Sequence[Obj] = [
        {"key": key, "operator": "In", "values": [value]} for key, value in (selector.get("matchLabels") or {}).items()
    ]
    for expression in (*exact, *(selector.get("matchExpressions") or ())):
        if cluster_matches({"labelSelector": {"matchExpressions": [expression]}}, cluster):
            continue
        key, values = expression.get("key") or "", expression.get("values") or [_ANY_VALUE]
        wanted = values[0] if expression.get("operator") in ("In", "Exists") else None
        yield _label(name, key, wanted, labels.get(key))


def _values(affinity: Obj, cluster: Obj) -> Iterator[Edit]:
    expressions = (affinity.get("fieldSelector") or {}).get("matchExpressions") or ()
    for place, expression in enumerate(expressions):
        if cluster_matches({"fieldSelector": {"matchExpressions": [expression]}}, cluster):
            continue
        key, refused = expression.get("key") or "", expression.get("operator") == "NotIn"
        listed = expression.get("values") or [_ANY_VALUE]
        here = (cluster.get("spec") or {}).get(PROPERTIES.get(key, ""))
        own = list(here) if isinstance(here, list) else [here] if here else []
        if not own and key in PROPERTIES:
            yield _property(meta.name(cluster), key, listed[0])
        for value in [value for value in own if value in listed] if refused else own[:1]:
            cause = f"its {key} {value} is {'refused' if refused else 'not listed'} by the fieldSelector"
            path: Path = ("fieldSelector", "matchExpressions", place, "values")
            yield _in_list(cause, path, "remove" if refused else "add", value)
