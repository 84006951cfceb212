"""A served resource: its names, its schema and its strategy. One generic handler chain serves them all.

A built-in kind is a row of kinds/inventory.py, a custom resource is made from its CRD (kube/server/crds); both become a
`Resource`. What differs between kinds is data and small functions in its `Strategy`; no handler knows a kind by name.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from karmada.kube.objects.errors import FieldError
from karmada.kube.objects.gvk import GVK, GVR, GroupResource
from karmada.kube.objects.types import Obj
from karmada.kube.patch.managedfields import CUSTOM_STATUS, MAIN, SYSTEM, Reset, status_reset
from karmada.kube.schema.node import Node

if TYPE_CHECKING:
    from karmada.kube.kinds.tables.columns import Printer

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
STATUS_VERBS = ("get", "patch", "update")


class Reader(Protocol):
    """Current state, straight from the watch cache: shared, read-only objects in their storage version."""

    def get(self, resource: GroupResource, namespace: str, name: str) -> Obj | None: ...

    def list(self, resource: GroupResource, namespace: str = "") -> list[Obj]:
        """Return all objects of a resource, of one namespace or (with "") of all."""

    def scan(self, resource: GroupResource, namespace: str = "") -> AsyncIterator[Obj]:
        """Yield what `list` returns, with pauses for others: where a request decides how many there are."""


class Reservation(Protocol):
    """Something taken for an object while it is being written (an address, a port)."""

    def finish(self, stored: bool | None) -> None:
        """Keep or release it: the write was stored, was not, or (None: keep it) the outcome is unknown."""


Reserve: TypeAlias = Callable[[Obj, Obj | None], Awaitable[Reservation | None]]


class Scale(Protocol):
    """How a kind exposes its replicas through the scale subresource."""

    def get(self, obj: Obj) -> Obj:
        """Return the autoscaling/v1 Scale of an object; InternalError when it has none to show."""

    def view(self, obj: Obj) -> Obj:
        """Return the Scale a write starts from: like `get`, but replicas that are not there count as 0."""

    def set(self, obj: Obj, replicas: int) -> None:
        """In place."""


def _nothing(obj: Obj) -> None:
    """Fill in nothing."""


def _keep(obj: Obj, old: Obj) -> None:
    """Carry nothing over."""


def _no_errors(_obj: Obj) -> list[FieldError]:
    return []


def _no_update_errors(_obj: Obj, _old: Obj) -> list[FieldError]:
    return []


def _no_warnings(_obj: Obj, _old: Obj | None) -> list[str]:
    return []


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """The rules of a kind. Functions get plain objects; those marked "in place" mutate `obj`."""

    default: Callable[[Obj], None] = _nothing
    """Fill in the kind's defaults, in place; runs after decoding and again after mutating admission."""
    default_status: Callable[[Obj], None] | None = None
    """Fill in defaults of a write to /status, in place, touching nothing but the status; None: `default`."""
    prepare_create: Callable[[Obj], None] = _nothing
    """In place, after defaults and mutating admission, once uid and name are set (e.g. Job selectors)."""
    prepare_update: Callable[[Obj, Obj], None] = _keep
    """In place (obj, old): carry over what a PUT leaves out (e.g. a Service's clusterIP)."""
    validate: Callable[[Obj], list[FieldError]] = _no_errors
    validate_update: Callable[[Obj, Obj], list[FieldError]] = _no_update_errors
    """(obj, old): immutability; `validate` runs on updates too."""
    validate_ratcheting: Callable[[Obj, Obj], list[FieldError]] | None = None
    """(obj, old): takes the place of `validate` on updates where what was wrong before may stay (custom resources)."""
    validate_status: Callable[[Obj, Obj], list[FieldError]] = _no_update_errors
    canonicalize: Callable[[Obj], None] = _nothing
    """In place, after validation, also of writes to /status: the canonical form that is stored."""
    warnings: Callable[[Obj, Obj | None], list[str]] = _no_warnings
    """(obj, old): what is accepted and should not be written so."""
    reserve: Reserve | None = None
    """(obj, old): allocate what must be unique (cluster IPs, node ports), set it in `obj`; raises ApiError."""
    generation: Callable[[Obj], Any] | None = None
    """The part of the object whose change raises metadata.generation; None: the kind has no generation."""
    counts_from_creation: bool = True
    """A new object has generation 1; else it has none before its first change (CSIDriver)."""
    name_errors: Callable[[str], list[str]] | None = None
    """The errors of a name; None: it must be a DNS-1123 subdomain."""
    keeps_status_on_create: bool = False
    """A create may bring a status (Namespace, Node and others that Kubernetes does not wipe)."""
    status_keeps: tuple[str, ...] = ()
    """The metadata that writes to /status do not change (a Deployment's labels, a Pod's ownerReferences)."""
    status_only: bool = False
    """/status writes take nothing but .status (custom resources)."""
    graceful: Callable[[Obj, int | None], int] | None = None
    """(obj, requested seconds or None) → grace period of a deletion; None: deletion is immediate."""
    deleting: Callable[[Obj], bool] | None = None
    """True if something besides metadata.finalizers blocks a deletion (a Namespace's spec.finalizers)."""
    mark_deleting: Callable[[Obj], None] | None = None
    """In place: what else the start of a deletion sets (a Namespace's phase)."""
    orphan_by_default: bool = False
    delete_warning: str = ""
    """The warning for a deletion without a propagation policy."""
    create_on_update: bool = False
    unconditional_update: bool = True
    returns_deleted: bool = False
    """DELETE returns the object instead of a Status."""
    scale: Scale | None = None
    """For kinds with a scale subresource."""
    seldom_read: bool = False
    """They are many and hardly ever listed (Events): on a local store they are in memory only while they are."""
    fields: Mapping[str, Callable[[Obj], str]] = field(default_factory=dict)
    """Field selectors besides metadata.name and metadata.namespace."""
    indexed: frozenset[str] = frozenset()
    """Fields, of those in `fields`, by which objects are found without a look at all of them."""


@dataclass(frozen=True, slots=True)
class Subresource:
    name: str
    verbs: tuple[str, ...] = STATUS_VERBS
    kind: GVK | None = None
    """The kind of its request and response; None: the parent's."""
    project: Callable[[Obj, Obj], Obj] | None = None
    """(live copy, body) → what is stored when the body is written here; only this part of the object changes."""
    validate: Callable[[Obj, Obj], list[FieldError]] | None = None
    """(obj, old): validates a write here, in place of the main endpoint's rules."""


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
    convert: Callable[[list[Obj], str], Awaitable[list[Obj]]] | None = None
    """(objects, apiVersion): conversion that must be awaited (a webhook); runs before the two above on reads."""
    custom: bool = False
    """It has a structural schema and is read, written and shown as custom resources are."""
    native: bool = False
    """It is custom, but the server's own: no CRD can take its place, and strategic merge patches are taken."""
    deprecation: str = ""
    """The warning for every request to a deprecated version or kind."""
    closed: str = ""
    """Why no object can be created now (its CRD is being deleted); empty: objects can be created."""
    raw_schema: Obj | None = None
    """A custom resource's openAPIV3Schema as its CRD has it, for OpenAPI documents."""
    columns: tuple[Mapping[str, Any], ...] = ()
    """A CRD's additionalPrinterColumns; built-in kinds have theirs in kinds/tables."""
    printer: Printer | None = None
    """How the kind looks in a table, if neither columns nor kinds/tables define it."""
    group_resource: GroupResource = field(init=False)
    api_version: str = field(init=False)

    def __post_init__(self) -> None:
        self.api_version = self.gvk.api_version
        self.group_resource = GroupResource(self.gvk.group, self.plural)
        self.singular = self.singular or self.gvk.kind.lower()
        self.list_kind = self.list_kind or self.gvk.kind + "List"

    @property
    def gvr(self) -> GVR:
        return GVR(self.gvk.group, self.gvk.version, self.plural)

    @property
    def has_status(self) -> bool:
        return "status" in self.subresources

    def reset_of(self, subresource: str) -> Reset:
        """Return the fields that a write to this endpoint does not own: main ignores the status, /status the rest."""
        if not subresource:
            return MAIN if "status" in self.subresources else SYSTEM
        if subresource != "status":
            return SYSTEM
        return CUSTOM_STATUS if self.custom else status_reset(self.strategy.status_keeps)

    @property
    def builtin(self) -> bool:
        """Served whether or not there is a CRD."""
        return self.native or not self.custom
