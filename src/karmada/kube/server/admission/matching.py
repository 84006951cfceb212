"""Which writes a webhook or a policy matches: rules, selectors and equivalent versions.

Rules depend on nothing but the operation, the resource and whether there is a namespace, so the matches are computed
once for each such combination and cached by the caller. Selectors depend on the objects and are evaluated every time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from karmada.kube.kinds.resource import Reader, Resource
from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.gvk import GVK, GroupResource
from karmada.kube.objects.selectors import LabelSelector, labels_from
from karmada.kube.objects.types import Obj
from karmada.kube.server.admission.interface import CREATE, UPDATE, Attributes
from karmada.kube.server.registry import Registry

GROUP = "admissionregistration.k8s.io"
NAMESPACES = GroupResource("", "namespaces")


class Request(NamedTuple):
    """The attributes of a request that rules match."""

    operation: str
    resource: Resource
    subresource: str
    in_namespace: bool
    name: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    operations: frozenset[str]
    groups: frozenset[str]
    versions: frozenset[str]
    resources: tuple[tuple[str, str], ...]
    scope: str
    names: frozenset[str]

    @classmethod
    def of(cls, raw: Obj) -> Rule:
        return cls(
            frozenset(raw.get("operations") or ()),
            frozenset(raw.get("apiGroups") or ()),
            frozenset(raw.get("apiVersions") or ()),
            tuple(_split(resource) for resource in raw.get("resources") or ()),
            raw.get("scope") or "*",
            frozenset(raw.get("resourceNames") or ()),
        )

    def matches(self, request: Request) -> bool:
        group, version, plural = request.resource.gvr
        return (
            _has(self.operations, request.operation)
            and _has(self.groups, group)
            and _has(self.versions, version)
            and any(r in ("*", plural) and s in ("*", request.subresource) for r, s in self.resources)
            and self._in_scope(request)
            and (not self.names or request.name in self.names)
        )

    def _in_scope(self, request: Request) -> bool:
        if self.scope == "*":
            return True
        namespaced = request.in_namespace and request.resource.group_resource != NAMESPACES
        return namespaced == (self.scope == "Namespaced")


def _has(values: frozenset[str], value: str) -> bool:
    return "*" in values or value in values


def _split(resource: str) -> tuple[str, str]:
    name, _, sub = resource.partition("/")
    return name, sub


@dataclass(frozen=True, slots=True, eq=False)
class Criteria:
    """The match constraints of a webhook or policy."""

    rules: tuple[Rule, ...]
    excluded: tuple[Rule, ...]
    equivalent: bool
    namespaces: LabelSelector | None
    objects: LabelSelector | None
    open: bool
    """Without rules it matches everything that is not excluded."""

    @classmethod
    def of(cls, raw: Obj, rules: str = "rules", *, open_without_rules: bool = False) -> Criteria:
        return cls(
            tuple(Rule.of(rule) for rule in raw.get(rules) or ()),
            tuple(Rule.of(rule) for rule in raw.get("excludeResourceRules") or ()),
            (raw.get("matchPolicy") or "Equivalent") == "Equivalent",
            _selector(raw.get("namespaceSelector")),
            _selector(raw.get("objectSelector")),
            open_without_rules and not raw.get(rules),
        )

    @property
    def by_name(self) -> bool:
        """Return whether the match depends on the object's name, too."""
        return any(rule.names for rule in (*self.rules, *self.excluded))

    def resource_for(self, request: Request, registry: Registry) -> Resource | None:
        """Return the resource (the request's own, or another version of it) that the rules match; None: no match."""
        candidates = [request.resource, *(equivalents(request.resource, registry) if self.equivalent else ())]
        seen_as = [request._replace(resource=resource) for resource in candidates]
        if any(rule.matches(form) for form in seen_as for rule in self.excluded):
            return None
        if self.open:
            return request.resource
        for form in seen_as:
            if any(rule.matches(form) for rule in self.rules):
                return form.resource
        return None

    def selects(self, attributes: Attributes, reader: Reader) -> bool:
        return self._selects_namespace(attributes, reader) and self._selects_object(attributes)

    def _selects_namespace(self, attributes: Attributes, reader: Reader) -> bool:
        if self.namespaces is None:
            return True
        if attributes.group_resource == NAMESPACES and not attributes.subresource:
            if attributes.operation in (CREATE, UPDATE):
                return self.namespaces.matches(_labels(attributes.obj))
            return self.namespaces.matches(_labels(attributes.old))
        name = attributes.name if attributes.group_resource == NAMESPACES else attributes.namespace
        if not name:
            return True
        namespace = reader.get(NAMESPACES, "", name)
        if namespace is None:
            raise NotFound.of(NAMESPACES, name)
        return self.namespaces.matches(_labels(namespace))

    def _selects_object(self, attributes: Attributes) -> bool:
        if self.objects is None:
            return True
        found = (attributes.obj, attributes.old)
        return any(self.objects.matches(_labels(obj)) for obj in found if obj is not None)


def _selector(raw: Mapping[str, Any] | None) -> LabelSelector | None:
    """Return None for a selector that selects everything."""
    if not raw or not (raw.get("matchLabels") or raw.get("matchExpressions")):
        return None
    return labels_from(raw)


def _labels(obj: Obj | None) -> Mapping[str, str] | None:
    return (obj.get("metadata") or {}).get("labels") if obj is not None else None


def equivalents(resource: Resource, registry: Registry) -> Iterable[Resource]:
    """Return the other versions through which the same objects are served."""
    return [
        other for other in registry if other.storage_resource == resource.storage_resource and other.gvr != resource.gvr
    ]


def kind_of(resource: Resource, subresource: str) -> GVK:
    """Return the kind that is written at a resource or subresource."""
    sub = resource.subresources.get(subresource)
    return sub.kind if sub is not None and sub.kind is not None else resource.gvk


def exempt(attributes: Attributes) -> bool:
    """Webhook and policy configurations are never matched: a broken one could otherwise not be repaired."""
    return attributes.resource.gvk.group == GROUP
