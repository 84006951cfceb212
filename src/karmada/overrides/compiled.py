"""A policy made ready to be applied: selectors parsed, overriders turned into functions, its records written.

That happens once for every version of a policy. Within a rule the overriders have a fixed order whatever order they are
written in: images, commands, arguments, labels, annotations, documents in fields, then the two older forms, and last
plain patches, which so have the final word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from karmada.api.matching import MATCH_ALL, MATCH_LABELS, MATCH_NAME, MISMATCH, cluster_matches
from karmada.api.policy import ClusterOverridePolicy, OverridePolicy
from karmada.kube.objects import meta
from karmada.kube.objects.selectors import NOTHING, LabelSelector, labels_from
from karmada.kube.objects.types import Obj
from karmada.overrides.command_args import args_change, command_change
from karmada.overrides.containers import Change
from karmada.overrides.field_overrider import field_change
from karmada.overrides.image import image_change
from karmada.overrides.labels_annotations import annotations_change, labels_change
from karmada.overrides.plaintext import plaintext_change
from karmada.overrides.recording import record
from karmada.overrides.replicas_resources import replicas_change, resources_change

_EACH: Final[tuple[tuple[str, Callable[[Obj], Change]], ...]] = (
    ("imageOverrider", image_change),
    ("commandOverrider", command_change),
    ("argsOverrider", args_change),
    ("labelsOverrider", labels_change),
    ("annotationsOverrider", annotations_change),
    ("fieldOverrider", field_change),
)
_NO_LABELS: Final[Mapping[str, str]] = {}


class Step(NamedTuple):
    """One overrider; `field` is its place among those of its rule."""

    field: str
    change: Change


Subject = tuple[str, str, str, str, Mapping[str, str]]
"""The parts of an object that selectors match on: apiVersion, kind, namespace, name and labels."""


def subject_of(obj: Obj) -> Subject:
    metadata = obj["metadata"]
    return (
        obj.get("apiVersion") or "",
        obj["kind"],
        metadata.get("namespace") or "",
        metadata.get("name") or "",
        metadata.get("labels") or _NO_LABELS,
    )


class Selector(NamedTuple):
    """A resource selector; `labels` is None where it has none."""

    api_version: str
    kind: str
    namespace: str
    name: str
    labels: LabelSelector | None

    def priority(self, subject: Subject) -> int:
        """Return how precisely it selects an object."""
        api_version, kind, namespace, name, labels = subject
        if self.kind != kind or self.api_version != api_version or (self.namespace and self.namespace != namespace):
            return MISMATCH
        if self.name:
            return MATCH_NAME if self.name == name else MISMATCH
        if self.labels is None:
            return MATCH_ALL
        return MATCH_LABELS if self.labels.matches(labels) else MISMATCH


class Target:
    """The clusters of a rule. Names and labels are precompiled; the rest is left to the matching module."""

    __slots__ = ("_exclude", "_fields", "_labels", "_names")

    def __init__(self, affinity: Obj) -> None:
        self._names = frozenset(affinity.get("clusterNames") or ())
        self._exclude = frozenset(affinity.get("exclude") or ())
        self._labels = _parsed(affinity.get("labelSelector"))
        fields = affinity.get("fieldSelector")
        self._fields: Obj | None = None if fields is None else {"fieldSelector": fields}

    def matches(self, cluster: Obj) -> bool:
        name = cluster["metadata"]["name"]
        if name in self._exclude or (self._names and name not in self._names):
            return False
        if self._labels is not None and not self._labels.matches(meta.labels(cluster)):
            return False
        return self._fields is None or cluster_matches(self._fields, cluster)


def _parsed(selector: Obj | None) -> LabelSelector | None:
    """Return the selector; one that cannot be read selects nothing."""
    if selector is None:
        return None
    try:
        return labels_from(selector)
    except ValueError:
        return NOTHING


class Rule:
    """The effect of one rule of a policy, and the clusters it is for."""

    __slots__ = ("affinity", "field", "overriders", "policy", "record", "steps", "target")

    def __init__(self, policy: Policy, field: str, spec: Obj) -> None:
        self.policy = policy
        self.field = field
        self.overriders: Obj = spec.get("overriders") or {}
        self.affinity: Obj | None = spec.get("targetCluster")
        self.target = None if self.affinity is None else Target(self.affinity)
        self.steps = tuple(_steps(self.overriders))
        self.record = record(policy.name, self.overriders)

    def matches(self, cluster: Obj) -> bool:
        return self.target is None or self.target.matches(cluster)

    def says_the_same(self, other: Rule) -> bool:
        return self.overriders == other.overriders and self.affinity == other.affinity

    @property
    def changes_labels(self) -> bool:
        if self.overriders.get("labelsOverrider"):
            return True
        paths = [item.get("path") or "" for item in self.overriders.get("plaintext") or ()]
        return any(path in ("", "/metadata") or path.startswith("/metadata/labels") for path in paths)

    def place(self, step: str) -> str:
        """Return the field of the policy where an overrider stands."""
        return f"{self.field}.{step}"


def _steps(overriders: Obj) -> Iterable[Step]:
    for name, of_item in _EACH:
        for index, item in enumerate(overriders.get(name) or ()):
            yield Step(f"{name}[{index}]", of_item(item))
    if overriders.get("replicasOverrider"):
        yield Step("replicasOverrider", replicas_change(overriders["replicasOverrider"]))
    for index, item in enumerate(overriders.get("resourcesOverrider") or ()):
        yield Step(f"resourcesOverrider[{index}]", resources_change(item))
    if overriders.get("plaintext"):
        yield Step("plaintext", plaintext_change(overriders["plaintext"]))


class Policy:
    """An OverridePolicy or ClusterOverridePolicy; its text is what events call it."""

    __slots__ = ("kind", "name", "namespace", "rules", "selectors", "source")

    def __init__(self, source: Obj) -> None:
        self.source = source
        self.namespace, self.name = meta.key(source)
        self.kind = (OverridePolicy if self.namespace else ClusterOverridePolicy).gvk.kind
        spec = source.get("spec") or {}
        self.selectors = tuple(map(_selector, spec.get("resourceSelectors") or ()))
        self.rules = tuple(self._rules(spec))

    def _rules(self, spec: Obj) -> Iterable[Rule]:
        rules = spec.get("overrideRules")
        if not rules:
            yield Rule(self, "spec.overriders", spec)
            return
        for index, rule in enumerate(rules):
            yield Rule(self, f"spec.overrideRules[{index}].overriders", rule)

    def __str__(self) -> str:
        if self.namespace:
            return f"override policy({self.namespace}/{self.name})"
        return f"cluster override policy({self.name})"

    def priority(self, subject: Subject) -> int:
        """Return how precisely it selects an object; without selectors it selects everything."""
        selectors = self.selectors
        if len(selectors) == 1:
            return selectors[0].priority(subject)
        return max([selector.priority(subject) for selector in selectors], default=MATCH_ALL)


def _selector(selector: Obj) -> Selector:
    return Selector(
        selector.get("apiVersion") or "",
        selector.get("kind") or "",
        selector.get("namespace") or "",
        selector.get("name") or "",
        _parsed(selector.get("labelSelector")),
    )
