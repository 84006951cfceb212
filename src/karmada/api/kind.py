"""`@kind`: what makes a Struct a kind of the API.

The decorator writes down everything about a kind that is not in its fields (names, scope, columns, subresources) and
keeps it in one registry. Nothing else happens at import: schemas and manifests are made from the registry when they are
requested (karmada.api.crds).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeVar

import msgspec

from karmada.api.common import Struct
from karmada.kube.objects.gvk import GVK, GVR
from karmada.kube.objects.types import Obj

CATEGORY = "karmada-io"


class OwnerReference(Struct):
    """An object that this one goes with when it is deleted."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool = False
    block_owner_deletion: bool = False


class ObjectMeta(Struct):
    """Standard object metadata."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str = ""
    deletion_timestamp: str | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: list[str] = []
    owner_references: list[OwnerReference] = []


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `kubectl get`."""

    name: str
    path: str
    type: str = "string"
    priority: int = 0

    def to_obj(self) -> Obj:
        column: Obj = {"name": self.name, "type": self.type, "jsonPath": self.path}
        return {**column, "priority": self.priority} if self.priority else column


AGE = Column("AGE", ".metadata.creationTimestamp", "date")


@dataclass(frozen=True, slots=True, kw_only=True)
class KindInfo:
    """One version of a kind."""

    gvk: GVK
    plural: str
    type: type[Resource]
    namespaced: bool
    short: tuple[str, ...]
    categories: tuple[str, ...]
    columns: tuple[Column, ...]
    subresources: tuple[str, ...] | None
    """None: the manifest does not mention subresources at all, which means the same as an empty tuple."""
    storage: bool
    """Whether this is the version that is stored."""
    aggregated: bool
    """Whether Karmada serves it from an API server of its own, so that a real kube-apiserver gets no CRD of it."""

    @property
    def gvr(self) -> GVR:
        return GVR(self.gvk.group, self.gvk.version, self.plural)

    @property
    def singular(self) -> str:
        return self.gvk.kind.lower()

    @property
    def list_kind(self) -> str:
        return self.gvk.kind + "List"

    @property
    def has_status(self) -> bool:
        return "status" in (self.subresources or ())


class Resource(Struct):
    """The base of all kinds."""

    info: ClassVar[KindInfo]
    gvk: ClassVar[GVK]
    gvr: ClassVar[GVR]

    api_version: str = ""
    """The group and version of this object's schema."""
    kind: str = ""
    """The type of this object, in CamelCase."""
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    """Standard object metadata."""

    def to_obj(self) -> Obj:
        """Plain data with apiVersion and kind; other fields that have their default are left out."""
        return {**msgspec.to_builtins(self), "apiVersion": self.gvk.api_version, "kind": self.gvk.kind}


R = TypeVar("R", bound=type[Resource])
_registry: dict[GVK, KindInfo] = {}


def kind(
    api_version: str,
    *,
    plural: str,
    scope: Literal["Namespaced", "Cluster"],
    short: Sequence[str] = (),
    categories: Sequence[str] = (CATEGORY,),
    columns: Iterable[Column] = (),
    subresources: Sequence[str] | None = None,
    storage: bool = True,
    aggregated: bool = False,
    name: str = "",
) -> Callable[[R], R]:
    """Register a Struct as a version of a kind; the kind is named as its class unless `name` says otherwise."""

    def register(cls: R) -> R:
        gvk = GVK.parse(api_version, name or cls.__name__)
        if gvk in _registry:
            raise ValueError(f"{gvk} is defined twice")
        info = KindInfo(
            gvk=gvk,
            plural=plural,
            type=cls,
            namespaced=scope == "Namespaced",
            short=tuple(short),
            categories=tuple(categories),
            columns=tuple(columns),
            subresources=None if subresources is None else tuple(subresources),
            storage=storage,
            aggregated=aggregated,
        )
        _registry[gvk] = info
        described: Any = cls
        described.info, described.gvk, described.gvr = info, gvk, info.gvr
        return cls

    return register


def registered() -> list[KindInfo]:
    """The kinds of the modules that were imported so far; karmada.api.crds imports all."""
    return list(_registry.values())
