"""The engine that the schedulers of both kinds of bindings share: the fleet as it is now, and decisions on it.

The fleet follows the clusters' informer: changes are gathered and taken over when the next decision begins.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from karmada.api.cluster import Cluster
from karmada.api.work import ResourceBinding
from karmada.kube.objects import meta
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key, key_of
from karmada.scheduler.algorithm import in_sets, schedule, schedule_remotely
from karmada.scheduler.decision import Decision, Reason
from karmada.scheduler.estimators.estimator_result import EstimatorResult
from karmada.scheduler.estimators.protocol import Estimator, FollowsReports
from karmada.scheduler.filters.workload_affinity import AFFINITY, ANTI_AFFINITY
from karmada.scheduler.fleet import Fleet
from karmada.scheduler.meter import NO_METRICS, Meter
from karmada.scheduler.plugins import EVERYTHING
from karmada.scheduler.request import Request
from karmada.scheduler.service.assembly import assemble
from karmada.scheduler.service.assumptions import Assumptions
from karmada.scheduler.service.context import Context
from karmada.scheduler.service.estimates import estimates
from karmada.scheduler.service.pauses import Doubling, Limits, Pauses, Short
from karmada.scheduler.service.triggers import DEFAULT_NAME


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The flags of a scheduler."""

    name: str = DEFAULT_NAME
    plugins: tuple[str, ...] = (EVERYTHING,)
    propagate_empty: bool = False
    limits: Limits = field(default_factory=Limits)


class SchedulingEngine:
    def __init__(
        self, context: Context, options: Options, estimators: Sequence[Estimator] = (), meter: Meter = NO_METRICS
    ) -> None:
        self.options = options
        self.by_priority = context.gates.enabled("PriorityBasedScheduling")
        self.pauses: Pauses = Short() if self.by_priority else Doubling(context.clock, options.limits)
        self.components = context.gates.enabled("MultiplePodTemplatesScheduling")
        self._algorithm = assemble(
            context.gates, options.plugins, propagate_empty=options.propagate_empty, estimators=estimators, meter=meter
        )
        self._following = [one for one in self._algorithm.remote if isinstance(one, FollowsReports)]
        self.follows_reports = bool(self._following)
        self._clusters = context.informers.of(Cluster.gvr)
        self._clusters.add_handler(self._cluster_changed)
        self._changes: dict[str, Obj | None] = {}
        self._fleet = Fleet()
        self._quotas = context.gates.enabled("FederatedQuotaEnforcement")
        self._turn = asyncio.Lock()
        self.peers = Peers(context) if context.gates.enabled("WorkloadAffinity") else None
        self.assumptions = (
            Assumptions(context.clock) if context.gates.enabled("SchedulingOvercommitProtection") else None
        )

    def _cluster_changed(self, old: Obj | None, new: Obj | None) -> None:
        cluster = new or old
        assert cluster is not None
        self._changes[cluster["metadata"]["name"]] = new

    @property
    def fleet(self) -> Fleet:
        if self._changes:
            changes, self._changes = self._changes, {}
            self._fleet = self._fleet.updated(changes)
        return self._fleet

    def request(self, binding: Obj) -> Request:
        if self.assumptions is None:
            return Request.of(binding, peers=self.peers)
        return Request.of(binding, peers=self.peers, assumed=self.assumptions.by_cluster())

    async def estimates(self, request: Request) -> list[EstimatorResult]:
        """Return what estimators report for a workload, in every cluster."""
        profile, local, remote = self._algorithm
        if self.assumptions is not None:
            request = request.assuming(self.assumptions.by_cluster())
        return await estimates(request, self.fleet, local, remote, sets=in_sets(request, profile))

    def reported(self, old: Obj | None, new: Obj) -> None:
        """Note that a binding changed, perhaps its status."""
        for cluster in reported_changes(old, new):
            for estimator in self._following:
                estimator.changed(cluster)

    # decisions

    async def decide(self, binding: Obj, request: Request) -> Decision:
        """Decide where a binding goes. If decisions depend on one another, the next knows of this one at once."""
        if self.peers is None and self.assumptions is None:
            return await self._decide(request)
        async with self._turn:
            request = self.request(binding)
            decision = await self._decide(request)
            if _is_resource_binding(binding):
                self._expect(binding, decision, request.is_workload)
        return decision

    @property
    def decides_at_once(self) -> bool:
        """Return whether a decision awaits nothing, depends on no other and is refused by no quota."""
        alone = self.peers is None and self.assumptions is None and not self.by_priority
        return alone and not self._quotas and not self._algorithm.remote

    def decide_at_once(self, request: Request) -> Decision:
        """`decide`, where `decides_at_once`."""
        return schedule(request, self.fleet, self._algorithm.local, self._algorithm.profile)

    async def _decide(self, request: Request) -> Decision:
        profile, local, remote = self._algorithm
        if remote or len(request.plan.terms) > 1:
            return await schedule_remotely(request, self.fleet, local, remote, profile)
        return schedule(request, self.fleet, local, profile)

    def _expect(self, binding: Obj, decision: Decision, is_workload: bool) -> None:
        """Note a decision that will be written: what cannot be placed stays, unless no cluster fits any more."""
        failure, targets = decision.failure, decision.targets
        if failure is not None and failure.reason is not Reason.NO_CLUSTER_FIT:
            return
        if list(binding["spec"].get("clusters") or ()) == list(targets):
            return
        if self.peers is not None:
            self.peers.expect(binding, targets)
        if self.assumptions is not None and is_workload:
            self.assumptions.note(binding, targets)

    def written(self, binding: Obj) -> None:
        """Note that the decision on a ResourceBinding is written."""
        if self.peers is not None:
            self.peers.written(binding)

    def forget(self, key: Key) -> None:
        """Forget the decision on a ResourceBinding: it could not be written, is gone, or another scheduler's now."""
        if self.peers is not None:
            self.peers.forget(key)
        if self.assumptions is not None:
            self.assumptions.forget(key)


def _is_resource_binding(binding: Obj) -> bool:
    return bool(meta.namespace(binding))


def _index(which: str) -> dict[str, object]:
    def by_group(binding: Obj) -> Iterable[str]:
        group = ((binding.get("spec") or {}).get("workloadAffinityGroups") or {}).get(which)
        return (group,) if group else ()

    return {which: by_group}


_INDEXES = {**_index(AFFINITY), **_index(ANTI_AFFINITY)}


class Peers:
    """Bindings by their affinity groups. A decision counts before it is written."""

    def __init__(self, context: Context) -> None:
        self._bindings = context.informers.of(ResourceBinding.gvr, indexes=_INDEXES)  # type: ignore[arg-type]
        self._expected: dict[Key, Obj] = {}

    def expect(self, binding: Obj, targets: Sequence[Obj]) -> None:
        self._expected[key_of(binding)] = {**binding, "spec": {**binding["spec"], "clusters": list(targets)}}

    def written(self, binding: Obj) -> None:
        self._expected.pop(key_of(binding), None)
        self._bindings.wrote(binding)

    def forget(self, key: Key) -> None:
        self._expected.pop(key, None)

    def affinity(self, group: str) -> Iterable[Obj]:
        return self._of(AFFINITY, group)

    def anti_affinity(self, group: str) -> Iterable[Obj]:
        return self._of(ANTI_AFFINITY, group)

    def _of(self, which: str, group: str) -> list[Obj]:
        keys = self._bindings.keys_by_index(which, group)
        found = (self._expected.get(key) or self._bindings.get(key) for key in keys)
        return [binding for binding in found if binding is not None]


def reported_changes(old: Obj | None, new: Obj) -> list[str]:
    """Return the clusters for which a binding has another status than before."""
    before, after = _statuses(old), _statuses(new)
    if before == after:
        return []
    first, second = ({item["clusterName"]: item for item in items} for items in (before, after))
    return [name for name in first | second if first.get(name) != second.get(name)]


def _statuses(binding: Obj | None) -> Sequence[Obj]:
    return ((binding or {}).get("status") or {}).get("aggregatedStatus") or ()
