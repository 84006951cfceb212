"""What the kinds are built from: the Struct base, and the scalar and Kubernetes types that many of them share.

A Struct is a typed view of a part of an object: snake_case here, camelCase on the wire. Field types carry what the
schema needs and Python does not (formats, list keys, bounds) as `msgspec.Meta` inside `Annotated`; karmada.api.schema
reads it. A string below a field is its description. A field without a default is required; a default other than the
empty value of its type is filled in by the server.

Kubernetes' own types stay plain dicts here, because the code below karmada.kube takes them so; their schema is looked
up by name among the built-in definitions when a schema is made.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self, TypeAlias

import msgspec
from msgspec import Meta

from karmada.kube.objects.types import Obj


class Struct(msgspec.Struct, rename="camel", omit_defaults=True):
    """The base of all types. Unknown fields are ignored in reading, so that newer objects can be read."""

    @classmethod
    def of(cls, obj: Obj) -> Self:
        """The typed view of plain data; raises msgspec.ValidationError when it does not fit."""
        return msgspec.convert(obj, cls)

    def to_obj(self) -> Obj:
        """Plain data; fields that have their default are left out."""
        plain: Obj = msgspec.to_builtins(self)
        return plain


def keywords(**schema: Any) -> Meta:
    """Schema keywords for the place they annotate."""
    return Meta(extra_json_schema=schema)


def default(value: Any) -> Meta:
    """A default that is filled in although it is the empty value of its type."""
    return Meta(extra_json_schema={"default": value})


def keyed_by(*keys: str) -> Meta:
    """A list that is merged by these fields of its items."""
    return Meta(extra_json_schema={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)})


def builtin(definition: str) -> Meta:
    """The schema of a built-in Kubernetes type, named as its OpenAPI definition."""
    return Meta(extra={"definition": definition})


ATOMIC = keywords(**{"x-kubernetes-list-type": "atomic"})
"""A list that is replaced as a whole."""

Int32: TypeAlias = Annotated[int, keywords(format="int32")]
Int64: TypeAlias = Annotated[int, keywords(format="int64")]
Time: TypeAlias = Annotated[str, keywords(format="date-time")]
"""RFC 3339, in UTC, to the second."""
IntOrString: TypeAlias = int | str
Quantity: TypeAlias = Annotated[
    int | str,
    keywords(
        pattern=r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
        r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
    ),
]
ResourceList: TypeAlias = dict[str, Quantity]
"""Amounts by the name of the resource."""
Raw: TypeAlias = dict[str, Any]
"""Any JSON object."""

LabelSelector: TypeAlias = Annotated[Obj, builtin("io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector")]
NodeSelector: TypeAlias = Annotated[Obj, builtin("io.k8s.api.core.v1.NodeSelector")]
NodeSelectorRequirement: TypeAlias = Annotated[Obj, builtin("io.k8s.api.core.v1.NodeSelectorRequirement")]
Taint: TypeAlias = Annotated[Obj, builtin("io.k8s.api.core.v1.Taint")]
Toleration: TypeAlias = Annotated[Obj, builtin("io.k8s.api.core.v1.Toleration")]

QUALIFIED_NAME = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
)
REASON = r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"


class Condition(Struct):
    """One aspect of an object's state, as its controller last observed it."""

    type: Annotated[str, Meta(max_length=316, pattern=QUALIFIED_NAME)]
    """Which aspect this is; an object has at most one condition of each type."""
    status: Literal["True", "False", "Unknown"]
    """Whether the aspect holds."""
    last_transition_time: Time
    """When the status last changed."""
    reason: Annotated[str, Meta(min_length=1, max_length=1024, pattern=REASON)]
    """Why, in one CamelCase word for programs."""
    message: Annotated[str, Meta(max_length=32768)]
    """Why, in a sentence for people."""
    observed_generation: Annotated[Int64, Meta(ge=0)] = 0
    """The metadata.generation this was said about; an older one means that it may no longer be true."""


class ClusterNames(Struct):
    """Clusters by name."""

    cluster_names: list[str] = []
    """The names of the clusters."""


class SecretReference(Struct):
    """A Secret in the control plane."""

    namespace: str
    """Where the Secret is."""
    name: str
    """The name of the Secret."""


class PortStatus(Struct):
    """How a load balancer serves one port."""

    port: Int32
    """The port of the Service."""
    protocol: str
    """TCP, UDP or SCTP."""
    error: Annotated[str, Meta(max_length=316, pattern=QUALIFIED_NAME)]
    """What is wrong with the port, in one CamelCase word; those of an implementation carry its domain as a prefix."""
