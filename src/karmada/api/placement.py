"""Which clusters, and how many replicas in each: the types that policies and bindings share.

A binding carries the placement of the policy it came from, so both accept the same forms. Two of them are older
spellings that admission turns into the present ones: the division preference Dynamic and a dynamicWeight that stands
beside it.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from karmada.api.common import ClusterNames, Int32, Int64, LabelSelector, NodeSelectorRequirement, Struct, Toleration


class FieldSelector(Struct):
    """Selects clusters by what their spec says of where they run."""

    match_expressions: list[NodeSelectorRequirement] = []
    """Conditions that must all hold. The key is provider, region or zone, the operator In or NotIn."""


class ClusterAffinity(Struct):
    """Selects clusters. What is given must all match; when nothing is given, every cluster is selected."""

    label_selector: LabelSelector | None = None
    """Selects clusters by their labels. An empty selector selects all."""
    field_selector: FieldSelector | None = None
    """Selects clusters by provider, region and zone."""
    cluster_names: list[str] = []
    """The only clusters that can be selected; without any, all can."""
    exclude: list[str] = []
    """Clusters that are never selected, whatever else is said."""


class OverflowAffinity(ClusterAffinity, kw_only=True):
    """A further group of clusters, for replicas that do not fit into the groups before it."""

    affinity_name: Annotated[str, Meta(min_length=1, max_length=32)]
    """The name of the group, unique among its siblings."""


class ClusterAffinityTerm(ClusterAffinity, kw_only=True):
    """One of several groups of clusters to choose from."""

    affinity_name: Annotated[str, Meta(min_length=1, max_length=32)]
    """The name of the group, unique among its siblings."""
    overflow_affinities: list[OverflowAffinity] = []
    """Groups that are added to this one, in this order, while replicas do not fit; they are removed in reverse order
    when replicas become fewer. A cluster in several groups counts for the first. For divided replicas only."""


class SpreadConstraint(Struct):
    """How many groups of clusters the resource is spread over."""

    spread_by_field: Literal["cluster", "region", "zone", "provider"] | None = None
    """What makes a group: every cluster for itself, or the clusters of one region, zone or provider."""
    spread_by_label: str = ""
    """A label of clusters; those with the same value are a group. Not together with spreadByField."""
    max_groups: int = 0
    """The most groups to use; 0 for as many as there are."""
    min_groups: int = 0
    """The fewest groups to use, without which nothing is scheduled. At least 1, which is the default."""


class StaticClusterWeight(Struct):
    """The weight of some clusters."""

    target_cluster: ClusterAffinity
    """The clusters it is about."""
    weight: Annotated[Int64, Meta(ge=0)]
    """Their share in proportion to the other weights. A cluster of weight 0 stands by: it gets replicas only when no
    cluster with a weight can take them."""


class ClusterPreferences(Struct):
    """Where the weights come from."""

    static_weight_list: list[StaticClusterWeight] = []
    """Weights that are given here. A cluster that several entries select has the greatest of their weights."""
    dynamic_weight: Literal["AvailableReplicas"] | None = None
    """Weights that are measured: AvailableReplicas is how many more replicas fit into a cluster. The list is then
    ignored."""


class ReplicaScheduling(Struct):
    """How replicas are given to the selected clusters."""

    replica_scheduling_type: Literal["Duplicated", "Divided"] = "Divided"
    """Whether every cluster gets all replicas (Duplicated) or they are divided among the clusters (Divided)."""
    replica_division_preference: Literal["Aggregated", "Weighted", "Dynamic"] | None = None
    """How replicas are divided: Aggregated into as few clusters as possible, or Weighted by weightPreference.
    Dynamic is an older name for Weighted with a dynamicWeight. Weighted by default."""
    weight_preference: ClusterPreferences | None = None
    """The weights for Weighted; equal ones when absent."""
    dynamic_weight: Literal["AvailableReplicas"] | None = None
    """An older place for weightPreference.dynamicWeight."""


class WorkloadAffinityTerm(Struct):
    """Groups resources by a label of theirs."""

    group_by_label_key: str
    """The label's key. Resources of one namespace that have it with the same value are a group."""


class WorkloadAffinity(Struct):
    """Where a resource goes in relation to others."""

    affinity: WorkloadAffinityTerm | None = None
    """Go to the clusters where the others of the group are. The first of a group may go anywhere."""
    anti_affinity: WorkloadAffinityTerm | None = None
    """Stay away from clusters where another of the group is."""


class Placement(Struct):
    """Which clusters a resource goes to."""

    cluster_affinity: ClusterAffinity | None = None
    """The clusters to choose from; all when absent. Not together with clusterAffinities."""
    cluster_affinities: list[ClusterAffinityTerm] = []
    """Groups of clusters to choose from: the first that meets all demands is taken."""
    cluster_tolerations: list[Toleration] = []
    """Taints of clusters that do not matter for this resource."""
    spread_constraints: list[SpreadConstraint] = []
    """Over how many clusters, regions, zones or providers to spread."""
    replica_scheduling: ReplicaScheduling | None = None
    """How replicas are given to clusters. When absent, every cluster gets all of them."""
    workload_affinity: WorkloadAffinity | None = None
    """Keep resources together or apart."""


class Suspension(Struct):
    """What is paused."""

    dispatching: bool | None = None
    """Whether nothing is sent to any cluster. What is there already stays."""
    dispatching_on_clusters: ClusterNames | None = None
    """Clusters that nothing is sent to. Not together with dispatching."""


class StatePreservationRule(Struct):
    """One piece of state to take along."""

    alias_label_name: str
    """The label that the moved resource gets, with the state as its value."""
    json_path: str
    """Where the state is found, as a JSONPath below the status of the resource that is left behind, such as
    {.readyReplicas}. Nothing is moved while it is not there."""


class StatePreservation(Struct):
    """What a resource takes along when it moves to another cluster."""

    rules: list[StatePreservationRule]
    """The pieces of state."""


class DecisionConditions(Struct):
    """When a resource counts as failed."""

    toleration_seconds: Int32 | None = 300
    """How long it may be unhealthy before it is moved."""


PurgeMode = Literal["Directly", "Gracefully", "Never", "Immediately", "Graciously"]


class ApplicationFailover(Struct):
    """Moving a resource that is unhealthy in a cluster."""

    decision_conditions: DecisionConditions
    """When to move it."""
    purge_mode: PurgeMode = "Gracefully"
    """What becomes of it where it was: deleted at once (Directly), deleted once it is healthy elsewhere or the grace
    period is over (Gracefully), or kept (Never). Immediately and Graciously are older names of the first two."""
    grace_period_seconds: Int32 | None = None
    """The longest time for Gracefully; 600 by default."""
    state_preservation: StatePreservation | None = None
    """What it takes along."""


class ClusterFailover(Struct):
    """Moving a resource away from a cluster that fails."""

    purge_mode: Literal["Directly", "Gracefully"] = "Gracefully"
    """Whether it is deleted there at once (Directly) or once it is healthy elsewhere (Gracefully)."""
    state_preservation: StatePreservation | None = None
    """What it takes along."""


class ApplicationMigrationPolicy(Struct):
    """An older form of application failover."""

    decision_conditions: DecisionConditions | None = None
    """When to move the resource."""
    purge_policy: PurgeMode = "Gracefully"
    """What becomes of it where it was; see application.purgeMode."""


class Failover(Struct):
    """What to do when a resource or its cluster fails."""

    application: ApplicationFailover | None = None
    """When the resource is unhealthy in a cluster that works; nothing is done when absent."""
    cluster: ClusterFailover | None = None
    """When the cluster fails; when absent, the controller's own settings hold."""
    application_migration_policy: ApplicationMigrationPolicy | None = None
    """An older form of application."""
