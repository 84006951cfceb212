"""What every controller of the control plane gets: the API, informers, members, time, gates and settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from karmada.controllers.templates import Templates
from karmada.features import default_gates
from karmada.kube.client.client import Client
from karmada.kube.client.config import RestConfig
from karmada.kube.objects.clock import Clock
from karmada.kube.runtime.events import EventRecorder, EventWriter
from karmada.kube.runtime.features import FeatureGates
from karmada.kube.runtime.follow_ups import FollowUps
from karmada.kube.runtime.informers import Informers
from karmada.kube.runtime.manager import Component
from karmada.members.members import Members
from karmada.members.switching import Open, over_network

CONTROLLER_MANAGER = "karmada-controller-manager"


@dataclass(frozen=True, slots=True)
class OwnCluster:
    """The cluster of an agent, which sees and handles no other, and how it is reached from there."""

    name: str
    access: RestConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The flags of the controller manager, with their defaults; times in seconds."""

    cluster_status_update_frequency: float = 10.0
    cluster_success_threshold: float = 30.0
    cluster_failure_threshold: float = 30.0
    cluster_monitor_period: float = 5.0
    cluster_monitor_grace_period: float = 40.0
    cluster_startup_grace_period: float = 60.0
    cluster_cache_sync_timeout: float = 120.0
    enable_cluster_resource_modeling: bool = True
    enable_taint_manager: bool = True
    enable_no_execute_taint_eviction: bool = False
    no_execute_taint_eviction_purge_mode: str = "Gracefully"
    resource_eviction_rate: float = 0.5
    graceful_eviction_timeout: float = 600.0
    evict_last_copy: bool = False
    """True if the end of an eviction's grace period removes a copy even if no other serves, as in Karmada."""
    concurrent_cluster_syncs: int = 5
    concurrent_resourcebinding_syncs: int = 5
    concurrent_clusterresourcebinding_syncs: int = 5
    concurrent_namespace_syncs: int = 1
    concurrent_resource_template_syncs: int = 5
    concurrent_propagation_policy_syncs: int = 1
    concurrent_cluster_propagation_policy_syncs: int = 1
    controllers: tuple[str, ...] = ("*",)
    """Which controllers run: names, names after a dash for those that do not, `*` for all that are on by default."""
    cluster_api_kubeconfig: str = ""
    """The management cluster of Cluster API, whose clusters join by themselves."""
    cluster_api_context: str = ""
    allow_insecure_members: bool = False
    """True if members may be reached over plain HTTP, which sends their credentials in the clear."""
    skipped_propagating_apis: str = ""
    skipped_propagating_namespaces: tuple[str, ...] = ("kube-.*",)
    federated_resource_quota_sync_period: float = 300.0
    horizontal_pod_autoscaler_sync_period: float = 15.0
    horizontal_pod_autoscaler_downscale_stabilization: float = 300.0
    horizontal_pod_autoscaler_tolerance: float = 0.1
    horizontal_pod_autoscaler_cpu_initialization_period: float = 300.0
    horizontal_pod_autoscaler_initial_readiness_delay: float = 30.0


GROUPED = 64
"""Keys that a controller of the way of a template reconciles at once, whatever fewer its flag says.

Reconciles that run together wait for the same commit of the store and go on together; the code and data that one of
them has brought into the processor's caches are there for the next.
"""


@dataclass(slots=True)
class Context:
    connect: Callable[[str], Client]
    """A client that writes under the given name."""
    informers: Informers
    clock: Clock
    gates: FeatureGates = field(default_factory=default_gates)
    settings: Settings = field(default_factory=Settings)
    recorders: dict[str, EventRecorder] = field(default_factory=dict)
    component: str = CONTROLLER_MANAGER
    """The name under which controllers write."""
    own: OwnCluster | None = None
    open_member: Open = over_network
    """How members are reached; a rehearsal has them in this process."""
    follow_ups: FollowUps = field(default_factory=FollowUps)
    """Follow-ups of the API server, where it is in this process; others have no effect."""
    event_client: Client | None = None
    """Client for Events where other writes are guarded: an Event reports what was done before."""
    shares_work: bool = False
    """True if replicas share the work of the controllers (see kube/runtime/membership)."""
    shared: list[Component] = field(default_factory=list)
    """Parts that several controllers use, and that start before them."""
    _client: Client | None = None
    _events: EventWriter | None = None
    _members: Members | None = None
    _templates: Templates | None = None

    @property
    def client(self) -> Client:
        if self._client is None:
            self._client = self.connect(self.component)
        return self._client

    @property
    def members(self) -> Members:
        """Return the member clusters; watched only in a process whose parts need them."""
        if self._members is None:
            self._members = Members(
                self.informers,
                self.clock,
                user_agent=self.component,
                allow_insecure=self.settings.allow_insecure_members,
                own=self.own.access if self.own is not None else None,
                open_way=self.open_member,
            )
        return self._members

    @property
    def templates(self) -> Templates:
        if self._templates is None:
            self._templates = Templates(self.client, self.informers)
        return self._templates

    def components(self) -> Iterator[Component]:
        """Yield the shared components to start, as far as they were requested: members, events, others."""
        if self._members is not None:
            yield self._members
        if self._events is not None:
            yield self._events
        yield from self.shared

    @property
    def events(self) -> EventWriter:
        """Writes the events of all recorders, behind what they report."""
        if self._events is None:
            self._events = EventWriter(self.event_client or self.client, clock=self.clock, behind=True)
        return self._events

    def recorder(self, component: str) -> EventRecorder:
        recorder = self.recorders.get(component)
        if recorder is None:
            recorder = self.recorders[component] = EventRecorder(self.client, component, writer=self.events)
        return recorder
