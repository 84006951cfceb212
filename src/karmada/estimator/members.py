"""Estimators of all members in this process: for the control plane that reads its members anyway.

The member's informers are those that its summary is made from, so nothing is watched twice. There is an estimator for
each cluster in mode Push from the moment it is ready: an unreachable one is not watched. What it estimates counts once
its informers have synced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from karmada.api.cluster import Cluster
from karmada.estimator.estimator import ClusterEstimator
from karmada.estimator.metrics import EstimatorMetrics
from karmada.estimator.terms import EstimateError
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.meta import has_condition
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.features import FeatureGates
from karmada.kube.runtime.informers import Informers
from karmada.kube.runtime.logging import get_logger
from karmada.members.access import NoAccess
from karmada.members.members import Member, Members

UNKNOWN = -1
log = get_logger("estimators")


class _Held(NamedTuple):
    member: Member
    estimator: ClusterEstimator


class MemberEstimators:
    name = "estimators of members"

    def __init__(self, informers: Informers, members: Members, gates: FeatureGates, clock: Clock) -> None:
        self._clusters = informers.of(Cluster.gvr)
        self._members = members
        self._gates = gates
        self._clock = clock
        self._metrics = EstimatorMetrics(clock)
        self._held: dict[str, _Held] = {}
        self._users = 0
        self._unsubscribe: Callable[[], None] | None = None

    async def start(self) -> None:
        """Follow the members while one of its users runs: each of them starts and stops it."""
        self._users += 1
        if self._unsubscribe is None:
            self._unsubscribe = self._clusters.add_handler(self._cluster_changed)

    async def stop(self) -> None:
        self._users -= 1
        if self._users or self._unsubscribe is None:
            return
        self._unsubscribe()
        self._unsubscribe = None
        for name in list(self._held):
            self._drop(name)

    def get(self, cluster: str) -> ClusterEstimator | None:
        held = self._held.get(cluster)
        return None if held is None else held.estimator

    async def unschedulable_replicas(self, clusters: Iterable[str], resource: Obj, threshold: float) -> dict[str, int]:
        """Return how many replicas of a workload could not be scheduled for the threshold; UNKNOWN is possible."""
        return {cluster: self._unschedulable(cluster, resource, threshold) for cluster in clusters}

    def _unschedulable(self, cluster: str, resource: Obj, threshold: float) -> int:
        estimator = self.get(cluster)
        if estimator is None:
            return UNKNOWN
        try:
            return estimator.unschedulable_replicas(resource, threshold)
        except EstimateError as error:
            log.v(1).info("No count of unschedulable replicas", cluster=cluster, err=str(error))
            return UNKNOWN

    # clusters

    def _cluster_changed(self, old: Obj | None, new: Obj | None) -> None:
        cluster = new or old
        assert cluster is not None
        name = cluster["metadata"]["name"]
        if new is None or (new.get("spec") or {}).get("syncMode") != "Push":
            self._drop(name)
        elif has_condition((new.get("status") or {}).get("conditions"), "Ready"):
            self._hold(name)

    def _hold(self, name: str) -> None:
        try:
            member = self._members.get(name)
        except NoAccess as error:
            log.v(1).info("No access to a cluster", cluster=name, err=str(error))
            return
        held = self._held.get(name)
        if held is not None and held.member is member:
            return
        self._drop(name)
        estimator = ClusterEstimator(name, member.informers, self._gates, self._clock, metrics=self._metrics)
        estimator.start()
        self._held[name] = _Held(member, estimator)

    def _drop(self, name: str) -> None:
        held = self._held.pop(name, None)
        if held is not None:
            held.estimator.stop()
