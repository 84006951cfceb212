"""multicluster.x-k8s.io: services that clusters offer to one another, as the multi-cluster services API has them."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from karmada.api.common import ATOMIC, Condition, Int32, Struct, keyed_by
from karmada.api.kind import Column, Resource, kind

V1ALPHA1 = "multicluster.x-k8s.io/v1alpha1"
_AGE = Column("Age", ".metadata.creationTimestamp", "date")


class ServiceExportStatus(Struct):
    """The status of the export."""

    conditions: Annotated[list[Condition], keyed_by("type")] = []
    """Whether the Service is offered."""


@kind(
    V1ALPHA1,
    plural="serviceexports",
    scope="Namespaced",
    short=["svcex"],
    categories=(),
    columns=[_AGE],
    subresources=["status"],
)
class ServiceExport(Resource, kw_only=True):
    """Offers the Service of the same name to other clusters."""

    status: ServiceExportStatus = field(default_factory=ServiceExportStatus)
    """The observed status."""


class ServicePort(Struct):
    """A port of the Service."""

    port: Int32
    """The number of the port."""
    name: str = ""
    """The name of the port, unique among its siblings."""
    protocol: str = ""
    """TCP, UDP or SCTP; TCP by default."""
    app_protocol: str | None = None
    """What is spoken on the port, such as http."""


class ClientIPConfig(Struct):
    """How long a client stays with a Pod."""

    timeout_seconds: Int32 | None = None
    """For how many seconds, up to a day."""


class SessionAffinityConfig(Struct):
    """How clients stay with Pods."""

    client_ip: ClientIPConfig | None = field(default=None, name="clientIP")
    """For the session affinity ClientIP."""


class ServiceImportSpec(Struct):
    """A Service as it is used."""

    type: Literal["ClusterSetIP", "Headless"]
    """Whether the Service has an address of its own, or only those of its Pods."""
    ports: Annotated[list[ServicePort], ATOMIC]
    """Its ports."""
    ips: Annotated[list[str], Meta(max_length=1)] = []
    """Its address, for the type ClusterSetIP."""
    session_affinity: str = ""
    """ClientIP when a client's connections shall all go to the same Pod, else None."""
    session_affinity_config: SessionAffinityConfig | None = None
    """How clients stay with Pods."""


class ClusterStatus(Struct):
    """A cluster that offers the Service."""

    cluster: str
    """Its name."""


class ServiceImportStatus(Struct):
    """Where the Service comes from."""

    clusters: Annotated[list[ClusterStatus], keyed_by("cluster")] = []
    """The clusters that offer it."""


@kind(
    V1ALPHA1,
    plural="serviceimports",
    scope="Namespaced",
    short=["svcim"],
    categories=(),
    columns=[Column("Type", ".spec.type"), Column("IP", ".spec.ips"), _AGE],
    subresources=["status"],
)
class ServiceImport(Resource, kw_only=True):
    """A Service that other clusters offer."""

    spec: ServiceImportSpec | None = None
    """The Service as it is used."""
    status: ServiceImportStatus = field(default_factory=ServiceImportStatus)
    """Where it comes from."""
