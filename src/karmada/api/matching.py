"""Which clusters an affinity selects, which resources a selector selects, and what a cluster serves.

Pure functions of plain objects. An affinity says no by any one of its parts; a part that is absent says nothing. A
selector that cannot be read selects nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Literal

import orjson

from karmada.kube.objects import meta
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.selectors import EVERYTHING, NOTHING, LabelSelector, labels_from
from karmada.kube.objects.types import Obj

MISMATCH, MATCH_ALL, MATCH_LABELS, MATCH_NAME = 0, 1, 2, 3
"""How precisely a resource is selected: the higher, the more precisely."""

Enablement = Literal["APIEnabled", "APIDisabled", "APIUnknown"]


def cluster_matches(affinity: Obj, cluster: Obj) -> bool:
    """Whether a ClusterAffinity selects a cluster."""
    name = cluster["metadata"]["name"]
    if name in (affinity.get("exclude") or ()):
        return False
    names = affinity.get("clusterNames")
    if names and name not in names:
        return False
    selector = affinity.get("labelSelector")
    if selector is not None and not _labels_match(selector, meta.labels(cluster)):
        return False
    fields = affinity.get("fieldSelector")
    return fields is None or _fields_match(fields.get("matchExpressions") or (), cluster.get("spec") or {})


def _labels_match(selector: Obj, labels: dict[str, str]) -> bool:
    found = _read(orjson.dumps(selector))
    return found is not None and found.matches(labels)


@lru_cache(maxsize=1024)
def _read(selector: bytes) -> LabelSelector | None:
    """None if it cannot be read. There are few of them, and each is compared with many objects."""
    try:
        return labels_from(orjson.loads(selector))
    except ValueError:
        return None


def _fields_match(expressions: Iterable[Obj], spec: Obj) -> bool:
    others = []
    for expression in expressions:
        if expression.get("key") != "zone":
            others.append(expression)
        elif not _zones_match(expression, set(spec.get("zones") or ())):
            return False
    if not others:
        return True
    fields = {key: spec[key] for key in ("provider", "region") if spec.get(key)}
    return _labels_match({"matchExpressions": others}, fields)


def _zones_match(expression: Obj, zones: set[str]) -> bool:
    """A cluster can be in several zones: one of them is enough to be in, all must be elsewhere not to be."""
    operator = expression.get("operator")
    if operator in ("In", "NotIn"):
        overlap = not zones.isdisjoint(expression.get("values") or ())
        return overlap if operator == "In" else not overlap
    if operator in ("Exists", "DoesNotExist"):
        return bool(zones) is (operator == "Exists")
    return False


def selector_priority(selector: Obj, obj: Obj) -> int:
    """How precisely a ResourceSelector selects an object: MISMATCH, MATCH_ALL, MATCH_LABELS or MATCH_NAME."""
    if (selector.get("apiVersion"), selector.get("kind")) != (obj.get("apiVersion"), obj.get("kind")):
        return MISMATCH
    namespace = selector.get("namespace")
    if namespace and namespace != meta.namespace(obj):
        return MISMATCH
    name = selector.get("name")
    if name:
        return MATCH_NAME if name == meta.name(obj) else MISMATCH
    labels = selector.get("labelSelector")
    if labels is None:
        return MATCH_ALL
    return MATCH_LABELS if _labels_match(labels, meta.labels(obj)) else MISMATCH


def selectors_priority(selectors: Iterable[Obj], obj: Obj) -> int:
    """The highest of several selectors; MISMATCH when there are none."""
    return max((selector_priority(selector, obj) for selector in selectors), default=MISMATCH)


class ResourceSelector:
    """A ResourceSelector made ready for many objects: its label selector is read once, when it is first needed."""

    __slots__ = ("_kind", "_labels", "_name", "_namespace", "source")

    def __init__(self, source: Obj) -> None:
        self.source = source
        self._kind = (source.get("apiVersion"), source.get("kind"))
        self._namespace: str = source.get("namespace") or ""
        self._name: str = source.get("name") or ""
        self._labels: LabelSelector | None = None

    def read(self) -> LabelSelector:
        """Return its label selector; one that cannot be read selects nothing."""
        if self._labels is None:
            selector = self.source.get("labelSelector")
            try:
                self._labels = EVERYTHING if selector is None else labels_from(selector)
            except ValueError:
                self._labels = NOTHING
        return self._labels

    def priority(self, obj: Obj) -> int:
        """Return how precisely it selects an object, as `selector_priority` does."""
        if self._kind != (obj.get("apiVersion"), obj.get("kind")):
            return MISMATCH
        if self._namespace and self._namespace != meta.namespace(obj):
            return MISMATCH
        if self._name:
            return MATCH_NAME if self._name == meta.name(obj) else MISMATCH
        if not self.read().matches(meta.labels(obj)):
            return MISMATCH
        return MATCH_ALL if self.source.get("labelSelector") is None else MATCH_LABELS


class ResourceSelectors(tuple[ResourceSelector, ...]):
    """The selectors of one version of a policy."""

    __slots__ = ()

    @classmethod
    def of(cls, selectors: Iterable[Obj]) -> ResourceSelectors:
        return cls(map(ResourceSelector, selectors))

    def priority(self, obj: Obj) -> int:
        """Return the highest of them; MISMATCH when there are none."""
        return max([selector.priority(obj) for selector in self], default=MISMATCH)


def api_enablement(cluster: Obj, gvk: GVK) -> Enablement:
    """Whether a cluster serves a kind; unknown while its API enablements are incomplete."""
    status = cluster.get("status") or {}
    for enablement in status.get("apiEnablements") or ():
        if enablement["groupVersion"] == gvk.api_version and any(
            resource["kind"] == gvk.kind for resource in enablement.get("resources") or ()
        ):
            return "APIEnabled"
    complete = meta.has_condition(status.get("conditions"), "CompleteAPIEnablements")
    return "APIDisabled" if complete else "APIUnknown"
