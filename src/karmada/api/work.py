"""work.karmada.io: what was decided for a resource (bindings), and what is sent to a cluster (Works).

Bindings are v1alpha2 here; their first version is in karmada.api.work_v1alpha1.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from karmada.api.common import (
    REASON,
    Condition,
    Int32,
    Int64,
    NodeSelector,
    Raw,
    ResourceList,
    Struct,
    Time,
    Toleration,
    default,
)
from karmada.api.kind import AGE, Column, Resource, kind
from karmada.api.placement import Failover, Placement, Suspension

V1ALPHA1 = "work.karmada.io/v1alpha1"
V1ALPHA2 = "work.karmada.io/v1alpha2"

Health = Literal["Healthy", "Unhealthy", "Unknown"]


class ObjectReference(Struct):
    """The resource that a binding is about."""

    api_version: str
    """The group and version of the resource."""
    kind: str
    """The kind of the resource."""
    name: str
    """The name of the resource."""
    namespace: str = ""
    """The namespace of the resource."""
    uid: str = ""
    """The uid of the resource."""
    resource_version: str = ""
    """The resourceVersion of the resource when the binding was last written."""


class NodeClaim(Struct):
    """What a replica demands of the node it runs on."""

    hard_node_affinity: NodeSelector | None = None
    """Nodes it must run on; preferences are not kept."""
    node_selector: dict[str, str] = {}
    """Labels the node must have."""
    tolerations: list[Toleration] = []
    """Taints of nodes that do not matter."""


class ComponentReplicaRequirements(Struct):
    """What one replica of a component needs."""

    node_claim: NodeClaim | None = None
    """What it demands of its node."""
    resource_request: ResourceList = {}
    """The resources it needs."""
    priority_class_name: str = ""
    """The PriorityClass of its Pods."""


class ReplicaRequirements(ComponentReplicaRequirements):
    """What one replica needs."""

    namespace: str = ""
    """The namespace it runs in, for the quotas there."""


class Component(Struct):
    """One of several kinds of Pods that make up a resource."""

    name: Annotated[str, Meta(max_length=32)]
    """The name of the component, unique among its siblings."""
    replicas: Int32
    """How many of its replicas there are."""
    replica_requirements: ComponentReplicaRequirements | None = None
    """What one of them needs."""


class TargetCluster(Struct):
    """A cluster and its share."""

    name: str
    """The name of the cluster."""
    replicas: Int32 = 0
    """How many replicas it gets."""


class GracefulEvictionTask(Struct):
    """A cluster that the resource is leaving."""

    from_cluster: str
    """The cluster it leaves."""
    reason: Annotated[str, Meta(min_length=1, max_length=32, pattern=REASON)]
    """Why, in one CamelCase word for programs."""
    producer: str
    """Who decided it."""
    purge_mode: Literal["Immediately", "Directly", "Graciously", "Gracefully", "Never"] | None = None
    """What becomes of the copy in the cluster: deleted at once (Directly), deleted once the resource is healthy
    elsewhere (Gracefully), or kept (Never). Immediately and Graciously are older names of the first two."""
    replicas: Int32 | None = None
    """How many replicas the cluster had."""
    message: Annotated[str, Meta(max_length=1024)] = ""
    """Why, in a sentence for people."""
    grace_period_seconds: Int32 | None = None
    """How long to wait for the resource to be healthy elsewhere. Not together with suppressDeletion."""
    suppress_deletion: bool | None = None
    """Whether the copy stays until somebody sets this to false."""
    preserved_label_state: dict[str, str] = {}
    """Labels that the resource gets in the cluster it moves to."""
    creation_timestamp: Time | None = None
    """When the task began; the controller fills it in."""
    clusters_before_failover: list[str] = []
    """The clusters the resource was in when the task began."""


class BindingSnapshot(Struct):
    """Another binding, as it was scheduled."""

    name: str
    """Its name."""
    namespace: str = ""
    """Its namespace."""
    clusters: list[TargetCluster] = []
    """Its clusters."""


class BindingSuspension(Suspension):
    """What is paused."""

    scheduling: bool | None = None
    """Whether the scheduler leaves this binding alone. What was scheduled stays."""


class BindingPriority(Struct):
    """How urgent the binding is for the scheduler."""

    priority: Annotated[Int32, default(0)] = 0
    """The value of its priority class; higher goes first."""


class WorkloadAffinityGroups(Struct):
    """The groups of resources this one belongs to, each written as label key, equals sign, label value."""

    affinity_group: str = ""
    """Those it wants to be with."""
    anti_affinity_group: str = ""
    """Those it wants to be away from."""


class ResourceBindingSpec(Struct):
    """What was decided for a resource, and what the decision was made from."""

    resource: ObjectReference
    """The resource."""
    propagate_deps: bool = False
    """Whether what the resource depends on goes with it."""
    replicas: Int32 = 0
    """How many replicas the resource has in all."""
    replica_requirements: ReplicaRequirements | None = None
    """What one replica needs."""
    components: list[Component] = []
    """The parts of a resource that has several kinds of Pods; they take the place of the two fields before."""
    clusters: list[TargetCluster] = []
    """Where the resource goes: the scheduler's decision."""
    placement: Placement | None = None
    """The placement of the policy that selected the resource."""
    graceful_eviction_tasks: list[GracefulEvictionTask] = []
    """Clusters that the resource is leaving."""
    required_by: list[BindingSnapshot] = []
    """Bindings of resources that depend on this one, which follows them to their clusters."""
    scheduler_name: str = ""
    """The scheduler in charge."""
    failover: Failover | None = None
    """What to do when the resource or its cluster fails."""
    conflict_resolution: Literal["Abort", "Overwrite"] = "Abort"
    """What to do when a cluster already has the resource and it is not managed by the control plane."""
    reschedule_triggered_at: Time | None = None
    """When this is later than the last scheduling, everything is scheduled afresh."""
    suspension: BindingSuspension | None = None
    """What is paused."""
    preserve_resources_on_deletion: bool | None = None
    """Whether clusters keep their copies when the resource is deleted here."""
    schedule_priority: BindingPriority | None = None
    """How urgent the binding is for the scheduler."""
    workload_affinity_groups: WorkloadAffinityGroups | None = None
    """The groups the resource belongs to."""


class AggregatedStatusItem(Struct):
    """How the resource is doing in one cluster."""

    cluster_name: str
    """The cluster."""
    status: Raw | None = None
    """The status of the resource there, or what was taken from it."""
    applied: bool = False
    """Whether the cluster has what was sent."""
    applied_message: str = ""
    """Why it has not."""
    health: Health | None = None
    """Whether the resource is healthy there."""


class ResourceBindingStatus(Struct):
    """What became of the decision."""

    scheduler_observed_generation: Int64 = 0
    """The generation of the binding that was last scheduled."""
    scheduler_observing_affinity_name: str = ""
    """The group of clusters that was chosen among clusterAffinities."""
    last_scheduled_time: Time | None = None
    """When it was last scheduled."""
    conditions: list[Condition] = []
    """Whether it is scheduled, and whether the clusters have it."""
    aggregated_status: list[AggregatedStatusItem] = []
    """How the resource is doing in each cluster."""


_BINDING_COLUMNS = (
    Column("SCHEDULED", '.status.conditions[?(@.type=="Scheduled")].status'),
    Column("FULLYAPPLIED", '.status.conditions[?(@.type=="FullyApplied")].status'),
    AGE,
)


@kind(
    V1ALPHA2,
    plural="resourcebindings",
    scope="Namespaced",
    short=["rb"],
    columns=_BINDING_COLUMNS,
    subresources=["status"],
)
class ResourceBinding(Resource, kw_only=True):
    """Which clusters a resource of a namespace goes to. Made for every resource that a policy selects."""

    spec: ResourceBindingSpec
    """The decision and what it was made from."""
    status: ResourceBindingStatus = field(default_factory=ResourceBindingStatus)
    """The observed status."""


@kind(
    V1ALPHA2,
    plural="clusterresourcebindings",
    scope="Cluster",
    short=["crb"],
    columns=_BINDING_COLUMNS,
    subresources=["status"],
)
class ClusterResourceBinding(Resource, kw_only=True):
    """Which clusters a resource without a namespace goes to. Made for every resource that a policy selects."""

    spec: ResourceBindingSpec
    """The decision and what it was made from."""
    status: ResourceBindingStatus = field(default_factory=ResourceBindingStatus)
    """The observed status."""


class WorkloadTemplate(Struct):
    """Objects for a cluster."""

    manifests: list[Raw] = []
    """The objects, whole."""


class WorkSpec(Struct):
    """What is sent to a cluster."""

    workload: WorkloadTemplate = field(default_factory=WorkloadTemplate)
    """The objects."""
    suspend_dispatching: bool | None = None
    """Whether nothing is sent for now. What the cluster reports is still read."""
    preserve_resources_on_deletion: bool | None = None
    """Whether the cluster keeps the objects when the Work is deleted."""


class ResourceIdentifier(Struct):
    """One of the objects of a Work."""

    ordinal: int
    """Its place among the manifests, from 0."""
    version: str
    """The version of its API."""
    kind: str
    """Its kind."""
    resource: str
    """The plural by which its kind is served."""
    name: str
    """Its name."""
    group: str = ""
    """The group of its API."""
    namespace: str = ""
    """Its namespace."""


class ManifestStatus(Struct):
    """The status of one object in the cluster."""

    identifier: ResourceIdentifier
    """Which object."""
    status: Raw | None = None
    """Its status there, or what was taken from it."""
    health: Health | None = None
    """Whether it is healthy."""


class WorkStatus(Struct):
    """The observed status of the objects."""

    conditions: list[Condition] = []
    """Whether the cluster has the objects."""
    manifest_statuses: list[ManifestStatus] = []
    """The status of each object."""


@kind(
    V1ALPHA1,
    plural="works",
    scope="Namespaced",
    short=["wk"],
    columns=[
        Column("WORKLOAD-KIND", ".spec.workload.manifests[*].kind"),
        Column("APPLIED", '.status.conditions[?(@.type=="Applied")].status'),
        AGE,
    ],
    subresources=["status"],
)
class Work(Resource, kw_only=True):
    """What is sent to one cluster, which its namespace names: karmada-es- and the cluster's name."""

    spec: WorkSpec
    """What is sent."""
    status: WorkStatus = field(default_factory=WorkStatus)
    """The observed status."""
