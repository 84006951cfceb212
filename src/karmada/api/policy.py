"""policy.karmada.io: what goes where, how it is changed on the way, and what it may use there."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from karmada.api.common import Int32, LabelSelector, ResourceList, Struct, default
from karmada.api.kind import AGE, Column, Resource, kind
from karmada.api.overriders import Overriders
from karmada.api.placement import ClusterAffinity, ClusterPreferences, Failover, Placement, Suspension

V1ALPHA1 = "policy.karmada.io/v1alpha1"


class ResourceSelector(Struct):
    """Selects resources of one kind."""

    api_version: str
    """The group and version of the resources."""
    kind: str
    """The kind of the resources."""
    namespace: str = ""
    """Where they are. In a namespaced policy this is the policy's namespace, in others empty means everywhere."""
    name: str = ""
    """The name of the resource; empty for all."""
    label_selector: LabelSelector | None = None
    """Selects resources by their labels. Ignored when there is a name."""


class SchedulePriority(Struct):
    """How urgent a resource is for the scheduler."""

    priority_class_source: Literal["KubePriorityClass"]
    """Where the class is looked up: KubePriorityClass means among the PriorityClasses of scheduling.k8s.io."""
    priority_class_name: str
    """The name of the class."""


class PropagationSpec(Struct):
    """Which resources go where, and how."""

    resource_selectors: Annotated[list[ResourceSelector], Meta(min_length=1)]
    """The resources: those that any of these selects."""
    association: bool = False
    """Without effect; propagateDeps has taken its place."""
    propagate_deps: bool = False
    """Whether what a resource depends on (ConfigMaps, Secrets, …) goes with it."""
    placement: Placement = field(default_factory=Placement)
    """The clusters."""
    priority: Annotated[Int32, default(0)] = 0
    """Which of several policies for a resource counts: the one with the highest priority, then the one that selects it
    most precisely, then the first by name."""
    preemption: Literal["Always", "Never"] = "Never"
    """Whether this policy takes resources away from one with a lower priority."""
    dependent_overrides: list[str] = []
    """Override policies that must exist before this policy takes effect."""
    scheduler_name: str = "default-scheduler"
    """The scheduler in charge. It cannot be changed later."""
    failover: Failover | None = None
    """What to do when a resource or its cluster fails."""
    conflict_resolution: Literal["Abort", "Overwrite"] = "Abort"
    """What to do when a cluster already has the resource and it is not managed by the control plane: leave it alone
    (Abort) or take it over (Overwrite)."""
    activation_preference: Literal["Lazy"] | None = None
    """When a change of this policy takes effect: at once, or (Lazy) with the next change of the resource itself."""
    suspension: Suspension | None = None
    """What is paused."""
    preserve_resources_on_deletion: bool | None = None
    """Whether clusters keep their copies when the resource is deleted here."""
    schedule_priority: SchedulePriority | None = None
    """How urgent the resources are for the scheduler."""


_PROPAGATION_COLUMNS = (
    Column("CONFLICT-RESOLUTION", ".spec.conflictResolution"),
    Column("PRIORITY", ".spec.priority"),
    AGE,
)


@kind(
    V1ALPHA1,
    plural="propagationpolicies",
    scope="Namespaced",
    short=["pp"],
    columns=_PROPAGATION_COLUMNS,
    subresources=(),
)
class PropagationPolicy(Resource, kw_only=True):
    """Which resources of a namespace go to which clusters."""

    spec: PropagationSpec
    """Which resources go where, and how."""


@kind(
    V1ALPHA1,
    plural="clusterpropagationpolicies",
    scope="Cluster",
    short=["cpp"],
    columns=_PROPAGATION_COLUMNS,
    subresources=(),
)
class ClusterPropagationPolicy(Resource, kw_only=True):
    """Which resources, of all namespaces and of none, go to which clusters."""

    spec: PropagationSpec
    """Which resources go where, and how."""


class RuleWithCluster(Struct):
    """Changes for some clusters."""

    overriders: Overriders
    """The changes."""
    target_cluster: ClusterAffinity | None = None
    """The clusters; all when absent."""


class OverrideSpec(Struct):
    """Which resources are changed for which clusters."""

    resource_selectors: list[ResourceSelector] = []
    """The resources: those that any of these selects. Without any, all."""
    override_rules: list[RuleWithCluster] | None = None
    """What is changed for which clusters. Rules are applied in this order."""
    target_cluster: ClusterAffinity | None = None
    """An older form of overrideRules: the clusters of a single rule."""
    overriders: Overriders = field(default_factory=Overriders)
    """An older form of overrideRules: the changes of a single rule."""


@kind(V1ALPHA1, plural="overridepolicies", scope="Namespaced", short=["op"])
class OverridePolicy(Resource, kw_only=True):
    """How resources of a namespace are changed on their way to clusters."""

    spec: OverrideSpec
    """Which resources are changed for which clusters."""


@kind(V1ALPHA1, plural="clusteroverridepolicies", scope="Cluster", short=["cop"])
class ClusterOverridePolicy(Resource, kw_only=True):
    """How resources, of all namespaces and of none, are changed on their way to clusters. These changes come before
    those of OverridePolicies.
    """

    spec: OverrideSpec
    """Which resources are changed for which clusters."""


class StaticClusterAssignment(Struct):
    """The part of a quota that one cluster gets."""

    cluster_name: str
    """The cluster."""
    hard: ResourceList
    """Its limits; a ResourceQuota with them is made there."""


class FederatedResourceQuotaSpec(Struct):
    """Limits."""

    overall: ResourceList
    """Limits for the namespace over all clusters together."""
    static_assignments: list[StaticClusterAssignment] = []
    """Limits for single clusters."""


class ClusterQuotaStatus(Struct):
    """What is used in one cluster."""

    cluster_name: str
    """The cluster."""
    hard: ResourceList = {}
    """Its limits."""
    used: ResourceList = {}
    """What is used of them."""


class FederatedResourceQuotaStatus(Struct):
    """What is used of the limits."""

    overall: ResourceList = {}
    """The limits over all clusters."""
    overall_used: ResourceList = {}
    """What is used of them."""
    aggregated_status: list[ClusterQuotaStatus] = []
    """What is used in each cluster that has limits of its own."""


@kind(
    V1ALPHA1,
    plural="federatedresourcequotas",
    scope="Namespaced",
    columns=[Column("OVERALL", ".status.overall"), Column("OVERALL_USED", ".status.overallUsed")],
    subresources=["status"],
)
class FederatedResourceQuota(Resource, kw_only=True):
    """How much a namespace may use over all clusters together."""

    spec: FederatedResourceQuotaSpec
    """The limits."""
    status: FederatedResourceQuotaStatus = field(default_factory=FederatedResourceQuotaStatus)
    """What is used of them."""


class MatchCondition(Struct):
    """Holds for a cluster or does not, by one condition in its status."""

    condition_type: str
    """The type of the condition, such as Ready."""
    operator: str
    """In or NotIn. A cluster without the condition matches neither."""
    status_values: list[str]
    """Values of the condition's status: True, False, Unknown."""


class PolicyTaint(Struct):
    """A taint to put on clusters."""

    key: str
    """The taint's key."""
    effect: str
    """NoSchedule keeps new resources away, NoExecute evicts those that are there."""
    value: str = ""
    """The taint's value."""


class ClusterTaintPolicySpec(Struct):
    """Which taints are added to which clusters, and when."""

    taints: Annotated[list[PolicyTaint], Meta(min_length=1)]
    """The taints."""
    target_clusters: ClusterAffinity | None = None
    """The clusters; all when absent. A cluster that is no longer selected keeps its taints."""
    add_on_conditions: list[MatchCondition] = []
    """The taints are added when all of these hold; never when there are none."""
    remove_on_conditions: list[MatchCondition] = []
    """The taints are removed when all of these hold; never when there are none."""


@kind(V1ALPHA1, plural="clustertaintpolicies", scope="Cluster", categories=())
class ClusterTaintPolicy(Resource, kw_only=True):
    """When clusters are tainted because of their conditions. Taints stay when the policy is deleted."""

    spec: ClusterTaintPolicySpec
    """Which taints are added to which clusters, and when."""


class RescheduleThreshold(Struct):
    """Thresholds of utilisation."""

    cpu_utilization: Int32 | None = None
    """Percent of a cluster's CPUs in use."""
    memory_utilization: Int32 | None = None
    """Percent of a cluster's memory in use."""


class ReschedulePolicy(Struct):
    """Moves replicas away from clusters above the thresholds."""

    enabled: bool = False
    """Whether replicas are moved."""
    interval: str = ""
    """How often clusters are checked, as a duration such as 5m; 60s by default."""
    threshold: RescheduleThreshold | None = None
    """The thresholds above which replicas are moved away."""


class ReplicaSchedulingSpec(Struct):
    """How replicas are divided."""

    resource_selectors: list[ResourceSelector] = []
    """The resources; all when absent."""
    total_replicas: Int32 | None = None
    """How many replicas a resource has over all clusters; those of the resource itself when absent."""
    preferences: ClusterPreferences | None = None
    """The weights of the clusters; the placement of the propagation policy decides when absent."""
    reschedule_policy: ReschedulePolicy | None = None
    """Moves replicas away from clusters above the thresholds."""


@kind(V1ALPHA1, plural="replicaschedulingpolicies", scope="Namespaced", short=["rsp"])
class ReplicaSchedulingPolicy(Resource, kw_only=True):
    """How the replicas of resources are divided among clusters: an older kind; the replicaScheduling of a
    PropagationPolicy does the same.
    """

    spec: ReplicaSchedulingSpec
    """How replicas are divided."""
