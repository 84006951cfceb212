"""One assembly for every process of the control plane, and for its tests.

Given a way to connect to the API server (in-process or over the network), an `Assembly` has one set of informers with
the caches that fit the number of objects, one connection to each member, and a manager; processes add the parts they
want to run: controllers, a scheduler. An agent adds those of one cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from karmada.api.cluster import Cluster
from karmada.api.config import ReplicaSchedulingPolicy as ClusterReplicaSchedulingPolicy
from karmada.api.policy import ReplicaSchedulingPolicy
from karmada.api.well_known import execution_namespace
from karmada.api.work import ClusterResourceBinding, ResourceBinding, Work
from karmada.components.quarantine_keeper import QuarantineKeeper
from karmada.controllers.context import CONTROLLER_MANAGER, Context, OwnCluster, Settings
from karmada.controllers.setting_metrics import SettingMetrics
from karmada.features import default_gates
from karmada.kube.client.client import Client
from karmada.kube.objects.clock import Clock, RealClock
from karmada.kube.objects.doc import parse_custom
from karmada.kube.objects.gvk import GVK, GVR
from karmada.kube.objects.shapes import BARE, BARE_DOCS, Shape
from karmada.kube.runtime.back_off import BackOff
from karmada.kube.runtime.controller import Reconciler
from karmada.kube.runtime.features import FeatureGates, FeatureMetrics
from karmada.kube.runtime.follow_ups import FollowUps
from karmada.kube.runtime.health import Health
from karmada.kube.runtime.informers import Limit
from karmada.kube.runtime.manager import Component, Manager, Team
from karmada.kube.runtime.metrics import Metrics
from karmada.kube.runtime.quarantine import QUARANTINE
from karmada.members.switching import Open, over_network

if TYPE_CHECKING:
    from karmada.components.election import Election
    from karmada.components.rows import Part
    from karmada.components.sharing import Sharing
    from karmada.descheduler.controller import Estimators
    from karmada.descheduler.controller import Options as DeschedulingOptions
    from karmada.estimator.client.calls import Calls
    from karmada.estimator.client.connections import Connections
    from karmada.estimator.client.options import ClientOptions
    from karmada.estimator.members import MemberEstimators
    from karmada.kube.runtime.membership import Membership
    from karmada.scheduler.estimators.protocol import Estimator, LocalEstimator, RemoteEstimator
    from karmada.scheduler.service.core import Options, SchedulingEngine

MANY: dict[GVR | GVK, Shape] = dict.fromkeys(
    (Work.gvr, ResourceBinding.gvr, ClusterResourceBinding.gvr), BARE_DOCS._replace(of_bytes=parse_custom)
)
"""The most numerous kinds, of which few objects are read at a time."""
OPTIONAL = frozenset({ReplicaSchedulingPolicy.gvr, ClusterReplicaSchedulingPolicy.gvr})
"""Kinds that a server with Karmada's own CRDs does not have."""


def _limits(own: OwnCluster) -> dict[GVR | GVK, Limit]:
    """Return what an agent has a right to list: its own Cluster and Works."""
    return {
        Work.gvr: Limit(namespace=execution_namespace(own.name)),
        Cluster.gvr: Limit(field_selector=f"metadata.name={own.name}"),
    }


class Assembly:
    """`connect` returns a client that writes under the given name; `name` is this process's own."""

    def __init__(
        self,
        connect: Callable[[str], Client],
        *,
        name: str = CONTROLLER_MANAGER,
        settings: Settings | None = None,
        gates: FeatureGates | None = None,
        clock: Clock | None = None,
        metrics: Metrics | None = None,
        health: Health | None = None,
        back_off: BackOff | None = None,
        own: OwnCluster | None = None,
        open_member: Open = over_network,
        event_client: Client | None = None,
        follow_ups: FollowUps | None = None,
    ) -> None:
        """`own` is an agent's cluster: nothing of others is watched.

        `follow_ups` are those of the API server, where it is in this process.
        """
        clock = clock or RealClock()
        self.metrics = metrics or Metrics()
        self.manager = Manager(
            connect(name),
            clock=clock,
            metrics=self.metrics,
            health=health,
            back_off=back_off,
            shape=BARE,
            shapes=MANY,
            optional=OPTIONAL,
            limits=_limits(own) if own is not None else None,
        )
        self.context = Context(
            connect,
            self.manager.informers,
            clock,
            gates or default_gates(),
            settings or Settings(),
            component=CONTROLLER_MANAGER if own is None else name,
            own=own,
            open_member=open_member,
            event_client=event_client,
            follow_ups=follow_ups or FollowUps(),
        )
        self.metrics.registry.register(FeatureMetrics(self.context.gates))
        self.metrics.registry.register(SettingMetrics(self.context.settings))
        self.metrics.registry.register(self.context.events)
        self.metrics.registry.register(QUARANTINE)
        self._added: set[Component] = set()
        self._connections: Connections | None = None
        self._member_estimators: MemberEstimators | None = None

    def add_controllers(self, election: Election | None = None) -> None:
        """Add every controller that settings and gates enable."""
        from karmada.components.parts import all_parts
        from karmada.components.rows import Shared

        self.add(all_parts(Shared(self.context)), election)

    def share_controllers(self, sharing: Sharing, unguarded: Client) -> Membership:
        """Add controllers whose work all replicas share; `unguarded` writes the Leases themselves."""
        from karmada.components.parts import all_parts
        from karmada.components.rows import Shared
        from karmada.controllers.shards import of_cluster
        from karmada.kube.runtime.paired_electors import SharedLeader
        from karmada.members.owned import OwnedMembers

        manager, context = self.manager, self.context
        context.shares_work = True
        membership = sharing.membership(unguarded, manager.informers, manager.clock)
        elector = SharedLeader(sharing.group_lease.lease(unguarded, manager.clock, self.metrics), membership)
        self._add_to(manager.sharing_team(elector, membership), all_parts(Shared(context)))
        if any(component is context.members for component in self._added):
            membership.add(OwnedMembers(context.members, lambda name: membership.owns(of_cluster(name))))
        self.metrics.registry.register(membership)
        return membership

    def add_scheduler(
        self,
        options: Options | None = None,
        estimators: Sequence[Estimator] = (),
        election: Election | None = None,
        *,
        client: ClientOptions | None = None,
        in_process: bool = False,
    ) -> SchedulingEngine:
        """`client`: how the estimators of the clusters are called, if they are.

        `in_process`: whether those of the members in mode Push are in this process.
        """
        from karmada.scheduler.service.scheduler import scheduler_parts

        before: list[Part] = []
        if in_process:
            before, estimators = [self.member_estimators()], [*estimators, _in_process(self.member_estimators())]
        if client is not None:
            accurate, first_round = _accurate(self.estimator_connections(client), self.context.clock)
            before, estimators = [*before, first_round], [*estimators, accurate]
        parts = scheduler_parts(self.context, options, estimators)
        self.add([*before, *parts], election)
        return parts[0].core

    def add_descheduler(
        self,
        options: DeschedulingOptions | None = None,
        election: Election | None = None,
        *,
        client: ClientOptions | None = None,
        in_process: bool = False,
    ) -> None:
        """`client` and `in_process` as for the scheduler; at least one of them."""
        from karmada.descheduler.controller import descheduler_parts

        if client is None:
            assert in_process, "a descheduler without estimators does nothing"
            members = self.member_estimators()
            self.add([members, *descheduler_parts(self.context, members, options)], election)
            return
        calls, connected = _calls(self.estimator_connections(client), self.context.clock)
        estimators = _in_process_first(self.member_estimators(), calls) if in_process else calls
        before = [self.member_estimators()] if in_process else []
        self.add([*before, *descheduler_parts(self.context, estimators, options, connected.start)], election)

    def estimator_connections(self, options: ClientOptions) -> Connections:
        """Return the connections to estimators, one set for all parts of the process; made at the first use."""
        if self._connections is None:
            from karmada.estimator.client.connections import Connections

            context = self.context
            self._connections = Connections(context.informers, context.client, context.clock, options)
            self.manager.add(self._connections)
        return self._connections

    def member_estimators(self) -> MemberEstimators:
        """Estimators of the members in this process, one set for all its parts; each adds it to what it runs."""
        if self._member_estimators is None:
            from karmada.estimator.members import MemberEstimators

            context = self.context
            self._member_estimators = MemberEstimators(context.informers, context.members, context.gates, context.clock)
        return self._member_estimators

    def add(self, parts: Iterable[Part], election: Election | None = None) -> None:
        """Run these parts, with an election only while its lease is held.

        What parts share starts before them and stops after them, on every replica.
        """
        manager = self.manager
        elector = election and election.elector(manager.client, manager.clock, self.metrics)
        self._add_to(manager.team(elector) if elector else None, parts)

    def _add_to(self, team: Team | None, parts: Iterable[Part]) -> None:
        manager = self.manager
        if QUARANTINE.kept and self.context.own is None and QuarantineKeeper.name not in manager.controllers:
            manager.add(QuarantineKeeper(self.context))
        made = list(parts)
        for component in self.context.components():
            if component not in self._added:
                self._added.add(component)
                manager.add_component(component)
        for part in made:
            manager.add_part(part, team=team)
        own = (part.metrics for part in made if isinstance(part, Reconciler))
        for collector in {collector for collector in own if collector is not None}:
            self.metrics.registry.register(collector)


def _in_process(estimators: MemberEstimators) -> LocalEstimator:
    from karmada.scheduler.estimators.in_process import InProcessEstimator

    return InProcessEstimator(estimators)


def _accurate(connections: Connections, clock: Clock) -> tuple[RemoteEstimator, Component]:
    """Return the estimator that calls those of the clusters, and what has to start before it is used."""
    from karmada.scheduler.estimators.accurate import AccurateEstimator

    calls, first_round = _calls(connections, clock)
    return AccurateEstimator(calls, clock), first_round


def _calls(connections: Connections, clock: Clock) -> tuple[Calls, Component]:
    from karmada.estimator.client.calls import Calls
    from karmada.estimator.client.connections import FirstRound

    return Calls(connections, clock), FirstRound(connections, clock)


def _in_process_first(members: MemberEstimators, others: Calls) -> Estimators:
    from karmada.estimator.in_process_first import InProcessFirst

    return InProcessFirst(members, others)
