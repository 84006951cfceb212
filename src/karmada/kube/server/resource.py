"""A served resource: its names, its schema and its strategy. One generic handler chain serves them all.

A built-in kind is a row of server.kinds, a custom resource is made from its CRD (server.crd); both become a
`Resource`. What differs between kinds is data and small functions in its `Strategy`; no handler knows a kind by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from karmada.kube.objects.errors import FieldError
from karmada.kube.objects.gvk import GVK, GVR, GroupResource
from karmada.kube.objects.types import Obj
from karmada.kube.schema.node import Node

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
STATUS_VERBS = ("get", "patch", "update")


class Reader(Protocol):
    """Current state, straight from the watch cache: shared, read-only objects in their storage version."""

    def get(self, resource: GroupResource, namespace: str, name: str) -> Obj | None: ...

    def list(self, resource: GroupResource, namespace: str = "") -> list[Obj]:
        """All objects of a resource, of one namespace or (with "") of all."""


class Reservation(Protocol):
    """Something taken for an object while it is being written (an address, a port)."""

    def finish(self, stored: bool) -> None:
        """The write went through (keep it) or did not (give it back)."""


def _nothing(obj: Obj) -> None:
    """No defaults."""


def _keep(obj: Obj, old: Obj) -> None:
    """Nothing to carry over."""


def _no_errors(obj: Obj) -> list[FieldError]:
    return []


def _no_update_errors(obj: Obj, old: Obj) -> list[FieldError]:
    return []


def _no_warnings(obj: Obj, old: Obj | None) -> list[str]:
    return []


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """What one kind does differently. Functions get plain objects; those that say so change `obj` in place."""

    default: Callable[[Obj], None] = _nothing
    """Fill in the kind's defaults, in place; runs after decoding and again after mutating admission."""
    prepare_create: Callable[[Obj], None] = _nothing
    """In place, after defaults and mutating admission, once uid and name are set (e.g. Job selectors)."""
    prepare_update: Callable[[Obj, Obj], None] = _keep
    """In place (obj, old): carry over what a PUT leaves out (e.g. a Service's clusterIP)."""
    validate: Callable[[Obj], list[FieldError]] = _no_errors
    validate_update: Callable[[Obj, Obj], list[FieldError]] = _no_update_errors
    """(obj, old): immutability; `validate` runs on updates too."""
    validate_status: Callable[[Obj, Obj], list[FieldError]] = _no_update_errors
    warnings: Callable[[Obj, Obj | None], list[str]] = _no_warnings
    reserve: Callable[[Obj, Obj | None, Reader], Reservation | None] | None = None
    """(obj, old, reader): allocate what must be unique (cluster IPs, node ports), set it in `obj`; raises ApiError."""
    generation: Callable[[Obj], Any] | None = None
    """The part of the object whose change raises metadata.generation; None: the kind has no generation."""
    name_errors: Callable[[str], list[str]] | None = None
    """What is wrong with a name; None: a DNS-1123 subdomain."""
    status_keeps_labels: bool = False
    """/status writes keep the stored labels (Deployment)."""
    status_only: bool = False
    """/status writes take nothing but .status (custom resources)."""
    graceful: Callable[[Obj, int | None], int] | None = None
    """(obj, requested seconds or None) → grace period of a deletion; None: deletion is immediate."""
    orphan_by_default: bool = False
    create_on_update: bool = False
    unconditional_update: bool = True
    returns_deleted: bool = False
    """DELETE answers the object instead of a Status."""
    fields: Mapping[str, Callable[[Obj], str]] = field(default_factory=dict)
    """Field selectors besides metadata.name and metadata.namespace."""


@dataclass(frozen=True, slots=True)
class Subresource:
    name: str
    verbs: tuple[str, ...] = STATUS_VERBS
    kind: GVK | None = None
    """The kind it takes and answers; None: the parent's."""


@dataclass(slots=True, eq=False, kw_only=True)
class Resource:
    gvk: GVK
    plural: str
    namespaced: bool
    singular: str = ""
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    subresources: dict[str, Subresource] = field(default_factory=dict)
    schema: Callable[[], Node]
    """The compiled schema, made on first use."""
    strategy: Strategy = field(default_factory=Strategy)
    storage: GVK
    """The version that is stored; all versions of a kind share it."""
    storage_resource: GroupResource
    """Where it is stored; differs from `group_resource` when two groups serve one storage (Events)."""
    to_storage: Callable[[Obj], Obj] | None = None
    """This version → the stored one (a new object, or the same with another apiVersion); None: they are equal."""
    from_storage: Callable[[Obj], Obj] | None = None
    custom: bool = False
    columns: tuple[Mapping[str, Any], ...] = ()
    """A CRD's additionalPrinterColumns; built-in kinds have theirs in server.tables."""

    def __post_init__(self) -> None:
        self.singular = self.singular or self.gvk.kind.lower()
        self.list_kind = self.list_kind or self.gvk.kind + "List"

    @property
    def gvr(self) -> GVR:
        return GVR(self.gvk.group, self.gvk.version, self.plural)

    @property
    def group_resource(self) -> GroupResource:
        return GroupResource(self.gvk.group, self.plural)

    @property
    def has_status(self) -> bool:
        return "status" in self.subresources
