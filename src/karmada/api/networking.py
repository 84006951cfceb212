"""networking.karmada.io: services and ingresses over several clusters."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec import field

from karmada.api.common import (
    ATOMIC,
    ClusterNames,
    Condition,
    Int32,
    IntOrString,
    PortStatus,
    Struct,
    builtin,
    keyed_by,
)
from karmada.api.kind import Resource, kind
from karmada.kube.objects.types import Obj

V1ALPHA1 = "networking.karmada.io/v1alpha1"


class ExposurePort(Struct):
    """A port of the Service that other clusters can use."""

    port: Int32
    """The number of the port."""
    name: str = ""
    """The name of the port."""
    target_port: IntOrString | None = None
    """The port of the Pods: a form of older documents. The Service of the same name says it."""


class ClusterSelector(Struct):
    """A cluster."""

    name: str
    """Its name."""


class MultiClusterServiceSpec(Struct):
    """How a Service is used from other clusters."""

    types: list[str]
    """CrossCluster makes the Service's endpoints known in other clusters, LoadBalancer puts one load balancer before
    those of all clusters. It cannot be changed later."""
    ports: list[ExposurePort] = []
    """The ports that can be used; all when there are none."""
    range: ClusterNames = field(default_factory=ClusterNames)
    """Without effect."""
    service_provision_clusters: list[str] = []
    """Without effect; providerClusters has taken its place."""
    service_consumption_clusters: list[str] = []
    """Without effect; consumerClusters has taken its place."""
    provider_clusters: list[ClusterSelector] = []
    """The clusters whose Pods answer; all when there are none."""
    consumer_clusters: list[ClusterSelector] = []
    """The clusters whose Pods may use the service; empty means all."""


class ServiceLoadBalancerIngress(Struct):
    """An address of a load balancer."""

    ip: str = ""
    """Its IP address."""
    hostname: str = ""
    """Its host name."""
    ip_mode: str | None = None
    """VIP when packets arrive with this address, Proxy when they arrive with that of a node or Pod."""
    ports: Annotated[list[PortStatus], ATOMIC] = []
    """How it serves each port."""


class ServiceLoadBalancerStatus(Struct):
    """The load balancer."""

    ingress: Annotated[list[ServiceLoadBalancerIngress], ATOMIC] = []
    """Its addresses."""


class MultiClusterServiceStatus(Struct):
    """The status of a Service over all clusters."""

    conditions: Annotated[list[Condition], keyed_by("type")] = []
    """Whether the Service and its endpoints are where they are wanted."""
    load_balancer: ServiceLoadBalancerStatus = field(default_factory=ServiceLoadBalancerStatus)
    """The load balancer, for the type LoadBalancer."""


@kind(V1ALPHA1, plural="multiclusterservices", scope="Namespaced", short=["mcs"], subresources=["status"])
class MultiClusterService(Resource, kw_only=True):
    """Makes the Service of the same name usable from other clusters."""

    spec: MultiClusterServiceSpec
    """How it is used from other clusters."""
    status: MultiClusterServiceStatus = field(default_factory=MultiClusterServiceStatus)
    """The observed status."""


_NETWORKING = "io.k8s.api.networking.v1."
IngressSpec: TypeAlias = Annotated[Obj, builtin(_NETWORKING + "IngressSpec")]
IngressBackend: TypeAlias = Annotated[Obj, builtin(_NETWORKING + "IngressBackend")]
IngressTLS: TypeAlias = Annotated[Obj, builtin(_NETWORKING + "IngressTLS")]
IngressRule: TypeAlias = Annotated[Obj, builtin(_NETWORKING + "IngressRule")]


class IngressTemplate(Struct):
    """An Ingress."""

    spec: IngressSpec | None = None
    """Where requests go."""


class MultiClusterIngressSpec(Struct):
    """Where requests from outside go."""

    ingress_class_name: str | None = None
    """Which controller is in charge."""
    default_backend: IngressBackend | None = None
    """Where requests go that no rule takes."""
    tls: Annotated[list[IngressTLS], ATOMIC] = []
    """Certificates by host."""
    rules: Annotated[list[IngressRule], ATOMIC] = []
    """Where requests go, by host and path."""
    template: IngressTemplate | None = None
    """A form of older documents: the fields above, one level deeper."""


class IngressLoadBalancerIngress(Struct):
    """An address of a load balancer."""

    ip: str = ""
    """Its IP address."""
    hostname: str = ""
    """Its host name."""
    ports: Annotated[list[PortStatus], ATOMIC] = []
    """How it serves each port."""


class IngressLoadBalancerStatus(Struct):
    """The load balancer."""

    ingress: Annotated[list[IngressLoadBalancerIngress], ATOMIC] = []
    """Its addresses."""


class ServiceLocation(Struct):
    """Where a Service is."""

    name: str
    """The name of the Service."""
    clusters: list[str] = []
    """The clusters that have it."""


class MultiClusterIngressStatus(Struct):
    """The status of an ingress over all clusters."""

    load_balancer: IngressLoadBalancerStatus = field(default_factory=IngressLoadBalancerStatus)
    """The load balancer."""
    traffic_block_clusters: list[str] = []
    """Clusters that get no requests for now."""
    service_locations: list[ServiceLocation] = []
    """Where the Services behind it are."""
    conditions: Annotated[list[Condition], keyed_by("type")] = []
    """Whether the Services behind it were found."""


@kind(V1ALPHA1, plural="multiclusteringresses", scope="Namespaced", short=["mci"], subresources=["status"])
class MultiClusterIngress(Resource, kw_only=True):
    """Routes requests from outside to Services in several clusters."""

    spec: MultiClusterIngressSpec = field(default_factory=MultiClusterIngressSpec)
    """Where the requests go."""
    status: MultiClusterIngressStatus = field(default_factory=MultiClusterIngressStatus)
    """The observed status."""
