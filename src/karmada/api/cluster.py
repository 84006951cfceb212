"""cluster.karmada.io: the member clusters.

The defaults of resourceModels, which depend on a feature gate, are in `default_resource_models`. What `kubectl get`
shows is more than paths can say, so the columns here are only those of a plain CRD; the rows of the embedded server
are in karmada.api.cluster_table.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

from msgspec import field

from karmada.api.common import Condition, Int32, Quantity, ResourceList, SecretReference, Struct, Taint
from karmada.api.kind import AGE, Column, Resource, kind
from karmada.kube.objects.types import Obj

V1ALPHA1 = "cluster.karmada.io/v1alpha1"
MAX_QUANTITY = "9223372036854775807"
"""The end of the last range of a resource model: no limit."""


class ResourceModelRange(Struct):
    """From how much to how much of a resource."""

    name: str
    """The resource: cpu, memory, storage or ephemeral-storage."""
    min: Quantity
    """The least, itself included."""
    max: Quantity
    """The most, itself not included. In the last grade there is no most, whatever is written here."""


class ResourceModel(Struct):
    """Nodes of about the same size."""

    grade: int
    """The number of the grade: the higher, the larger the nodes."""
    ranges: list[ResourceModelRange]
    """How much of each resource a node of this grade has left."""


class ClusterSpec(Struct):
    """How a cluster is reached, and where it is."""

    sync_mode: Literal["Push", "Pull"]
    """Who applies resources to the cluster: the control plane (Push), or an agent in the cluster, which fetches them
    (Pull)."""
    id: str = ""
    """What makes the cluster itself, whatever its name here: two clusters never have the same. At most 128000
    characters."""
    api_endpoint: str = ""
    """The URL of the cluster's API server."""
    secret_ref: SecretReference | None = None
    """The Secret with the credentials for the cluster, under the keys token and caBundle."""
    impersonator_secret_ref: SecretReference | None = None
    """The Secret with the token (under the key token) by which users are impersonated in the cluster. Without it,
    the cluster cannot be reached through the proxy."""
    insecure_skip_tls_verification: bool = field(default=False, name="insecureSkipTLSVerification")
    """Whether the certificate of the cluster's API server is not checked. The connection is then insecure."""
    proxy_url: str = field(default="", name="proxyURL")
    """The proxy in front of the cluster: a URL with the scheme http, https or socks5."""
    proxy_header: dict[str, str] = {}
    """Headers that are sent to the proxy; commas part several values of one."""
    provider: str = ""
    """The cloud provider of the cluster."""
    region: str = ""
    """The region the cluster is in."""
    zone: str = ""
    """The zone the cluster is in: an older form of zones, into which it is moved."""
    zones: list[str] = []
    """The zones the cluster is in."""
    taints: list[Taint] = []
    """Taints that keep resources away (effect NoSchedule) or evict them (NoExecute) unless they tolerate them."""
    resource_models: list[ResourceModel] = []
    """Grades by which the nodes of the cluster are counted, so that it is known how many replicas of a given size fit.
    In the order of their grades, each beginning where the one before ends."""


class APIResource(Struct):
    """A kind that a cluster serves."""

    name: str
    """Its plural."""
    kind: str
    """Its kind."""


class APIEnablement(Struct):
    """What a cluster serves in one group and version."""

    group_version: str
    """The group and version."""
    resources: list[APIResource] = []
    """The kinds in it."""


class NodeSummary(Struct):
    """How many nodes a cluster has."""

    total_num: Int32 = 0
    """All of them."""
    ready_num: Int32 = 0
    """Those that are ready."""


class AllocatableModeling(Struct):
    """How many nodes are of one grade."""

    grade: int
    """The grade, as in the spec's resourceModels."""
    count: int
    """The number of nodes."""


class ResourceSummary(Struct):
    """What a cluster has, over all its nodes."""

    allocatable: ResourceList = {}
    """What Pods can have."""
    allocating: ResourceList = {}
    """Requests of Pods that are not scheduled to a node yet."""
    allocated: ResourceList = {}
    """Requests of Pods that are scheduled to nodes."""
    allocatable_modelings: list[AllocatableModeling] = []
    """How many nodes there are of each grade."""


class ClusterStatus(Struct):
    """How a cluster is doing."""

    kubernetes_version: str = ""
    """The version of Kubernetes it runs."""
    api_enablements: list[APIEnablement] = []
    """The kinds it serves."""
    conditions: list[Condition] = []
    """Whether it is reached and works."""
    node_summary: NodeSummary | None = None
    """How many nodes it has."""
    resource_summary: ResourceSummary | None = None
    """What it has in all."""
    remedy_actions: list[str] = []
    """Actions that Remedies require for the cluster."""


@kind(
    V1ALPHA1,
    plural="clusters",
    scope="Cluster",
    categories=(),
    columns=[
        Column("Version", ".status.kubernetesVersion"),
        Column("Mode", ".spec.syncMode"),
        Column("Ready", '.status.conditions[?(@.type=="Ready")].status'),
        Column("Age", AGE.path, AGE.type),
        Column("Zones", ".spec.zones", priority=1),
        Column("Region", ".spec.region", priority=1),
        Column("Provider", ".spec.provider", priority=1),
        Column("API-Endpoint", ".spec.apiEndpoint", priority=1),
        Column("Proxy-URL", ".spec.proxyURL", priority=1),
    ],
    subresources=["status"],
    aggregated=True,
)
class Cluster(Resource, kw_only=True):
    """A member cluster."""

    spec: ClusterSpec
    """How it is reached, and where it is."""
    status: ClusterStatus = field(default_factory=ClusterStatus)
    """The observed status."""


_STEPS = (
    ("0", "0"), ("1", "4Gi"), ("2", "16Gi"), ("4", "32Gi"), ("8", "64Gi"), ("16", "128Gi"), ("32", "256Gi"),
    ("64", "512Gi"), ("128", "1Ti"), (MAX_QUANTITY, MAX_QUANTITY),
)  # fmt: skip
"""Where the default grades begin and end: CPUs, memory."""


def default_resource_models() -> list[Obj]:
    """Nine grades that double in size, for clusters that bring none of their own."""
    return [
        {"grade": grade, "ranges": [_range("cpu", low[0], high[0]), _range("memory", low[1], high[1])]}
        for grade, (low, high) in enumerate(pairwise(_STEPS))
    ]


def _range(name: str, low: str, high: str) -> Obj:
    return {"name": name, "min": low, "max": high}
