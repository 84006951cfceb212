"""What it takes for an affinity to select a cluster: edits of the affinity's lists, and of the cluster's labels.

An affinity refuses by any one of its parts, so every part that does gets an edit. Names are added to the policy.
Labels are set on the cluster, as another selector would change what else is selected.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from karmada.api.matching import cluster_matches
from karmada.kube.objects import meta
from karmada.kube.objects.types import Obj
from karmada.scheduler.filters.builtin import PROPERTIES
from karmada.scheduler.fitting.changes import POLICY, Sort, cluster_object
from karmada.scheduler.fitting.situation import Situation
from karmada.scheduler.placement import ZONE

Path = tuple[str | int, ...]
"""Where an affinity is in a placement."""
_ANY_VALUE = "true"


class Edit(Protocol):
    @property
    def cause(self) -> str:
        """Why the affinity refuses the cluster."""
        ...

    def affinity(self, affinity: Obj) -> Obj: ...

    def cluster(self, cluster: Obj) -> Obj: ...

    @property
    def data(self) -> Obj: ...


@dataclass(frozen=True, slots=True)
class NameEdit:
    """The name is added to clusterNames or taken out of exclude."""

    name: str
    excluded: bool

    @property
    def cause(self) -> str:
        return "exclude lists it" if self.excluded else "clusterNames does not list it"

    def affinity(self, affinity: Obj) -> Obj:
        if self.excluded:
            return {**affinity, "exclude": [name for name in affinity["exclude"] if name != self.name]}
        return {**affinity, "clusterNames": [*affinity["clusterNames"], self.name]}

    def cluster(self, cluster: Obj) -> Obj:
        return cluster

    @property
    def data(self) -> Obj:
        if self.excluded:
            return {"object": POLICY, "field": "exclude", "remove": self.name}
        return {"object": POLICY, "field": "clusterNames", "add": self.name}


@dataclass(frozen=True, slots=True)
class LabelEdit:
    """A label of the cluster; None removes it."""

    name: str
    key: str
    value: str | None
    had: str | None

    @property
    def cause(self) -> str:
        if self.value is None:
            return f"its label {self.key}={self.had} is refused"
        return f"label {self.key}={self.value} is missing"

    def affinity(self, affinity: Obj) -> Obj:
        return affinity

    def cluster(self, cluster: Obj) -> Obj:
        labels = {key: value for key, value in meta.labels(cluster).items() if key != self.key}
        if self.value is not None:
            labels[self.key] = self.value
        return {**cluster, "metadata": {**cluster["metadata"], "labels": labels}}

    @property
    def data(self) -> Obj:
        return {"object": cluster_object(self.name), "field": f"metadata.labels[{self.key}]", "value": self.value}


@dataclass(frozen=True, slots=True)
class ValueEdit:
    """The cluster's region, provider or zone is added to the values of an expression, or taken out of them."""

    place: int
    key: str
    value: str
    refused: bool
    """Whether it is among values that are not to be."""

    @property
    def cause(self) -> str:
        return f"its {self.key} {self.value} is {'refused' if self.refused else 'not listed'} by the fieldSelector"

    def affinity(self, affinity: Obj) -> Obj:
        expressions = list(affinity["fieldSelector"]["matchExpressions"])
        values: list[str] = expressions[self.place]["values"]
        values = [value for value in values if value != self.value] if self.refused else [*values, self.value]
        expressions[self.place] = {**expressions[self.place], "values": values}
        return {**affinity, "fieldSelector": {**affinity["fieldSelector"], "matchExpressions": expressions}}

    def cluster(self, cluster: Obj) -> Obj:
        return cluster

    @property
    def data(self) -> Obj:
        field = f"fieldSelector.matchExpressions[{self.place}].values"
        return {"object": POLICY, "field": field, ("remove" if self.refused else "add"): self.value}


@dataclass(frozen=True, slots=True)
class PropertyEdit:
    """The cluster has a region, provider or zone, where it had none."""

    name: str
    key: str
    value: str

    @property
    def cause(self) -> str:
        return f"it has no {self.key}, such as {self.value}"

    def affinity(self, affinity: Obj) -> Obj:
        return affinity

    def cluster(self, cluster: Obj) -> Obj:
        return {**cluster, "spec": {**cluster["spec"], PROPERTIES[self.key]: self._set}}

    @property
    def _set(self) -> str | list[str]:
        return [self.value] if self.key == ZONE else self.value

    @property
    def data(self) -> Obj:
        return {"object": cluster_object(self.name), "field": f"spec.{PROPERTIES[self.key]}", "value": self._set}


@dataclass(frozen=True, slots=True)
class Admit:
    """An affinity of the placement selects a cluster."""

    sort: ClassVar[Sort] = Sort.AFFINITY
    cluster: str
    group: str
    """Which affinity, in words; empty when there is only one."""
    path: Path
    edits: tuple[Edit, ...]

    def apply(self, situation: Situation) -> Situation:
        placement, cluster = situation.placement, situation.cluster(self.cluster)
        for edit in self.edits:
            placement = _edited(placement, self.path, edit)
            cluster = edit.cluster(cluster)
        return situation.with_placement(**placement).with_cluster(self.cluster, cluster)

    @property
    def phrase(self) -> tuple[str, str]:
        causes = ", ".join(edit.cause for edit in self.edits)
        return f"the affinity{self.group} admitted", f"{self.cluster} ({causes})"

    @property
    def text(self) -> str:
        return " ".join(self.phrase)

    @property
    def data(self) -> Obj:
        path = "placement" + "".join(f".{step}" if isinstance(step, str) else f"[{step}]" for step in self.path)
        return {"object": POLICY, "cluster": self.cluster, "field": path, "edits": [edit.data for edit in self.edits]}


def _edited(at: Any, path: Path, edit: Edit) -> Any:
    if not path:
        return edit.affinity(at)
    first, rest = path[0], path[1:]
    if isinstance(first, int):
        return [*at[:first], _edited(at[first], rest, edit), *at[first + 1 :]]
    return {**at, first: _edited(at[first], rest, edit)}


# finding the edits


def admit(placement: Obj, cluster: Obj, term: int) -> Admit | None:
    """The fewest edits by which an affinity of a group (`term`) selects the cluster; None if there are none."""
    found = [
        Admit(meta.name(cluster), _titled(placement, path, affinity), path, edits)
        for path, affinity in _affinities(placement, term)
        if (edits := edits_for(affinity, cluster)) is not None
    ]
    return min(found, key=lambda one: len(one.edits), default=None)


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
    """One for each part of the affinity that refuses the cluster; None if edits do not help."""
    edits = (*_names(affinity, cluster), *_labels(affinity, cluster), *_values(affinity, cluster))
    for edit in edits:
        affinity, cluster = edit.affinity(affinity), edit.cluster(cluster)
    return edits if edits and cluster_matches(affinity, cluster) else None


def _names(affinity: Obj, cluster: Obj) -> Iterator[Edit]:
    name = meta.name(cluster)
    if name in (affinity.get("exclude") or ()):
        yield NameEdit(name, excluded=True)
    if affinity.get("clusterNames") and name not in affinity["clusterNames"]:
        yield NameEdit(name, excluded=False)


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
        yield LabelEdit(name, key, wanted, labels.get(key))


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
            yield PropertyEdit(meta.name(cluster), key, listed[0])
        for value in [value for value in own if value in listed] if refused else own[:1]:
            yield ValueEdit(place, key, value, refused)
