"""The input of scheduling: a binding's spec, what is remembered of it, and what the filters need of other bindings.

Everything that is derived from them is derived once, here. A request never changes; `under` makes the one for another
group of clusters.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from karmada.estimator.terms import Assumption
from karmada.kube.objects.names import fnv32a
from karmada.kube.objects.times import parse_time
from karmada.kube.objects.types import Obj
from karmada.scheduler.placement import Plan, plan_of


class Peers(Protocol):
    """Where the bindings of a group are found; filters.workload_affinity says what they raise when that fails."""

    def affinity(self, group: str) -> Iterable[Obj]:
        """Return the ResourceBindings, as new as they are known, whose affinityGroup it is."""
        ...

    def anti_affinity(self, group: str) -> Iterable[Obj]:
        """Return the ResourceBindings, as new as they are known, whose antiAffinityGroup it is."""
        ...


_NOTHING_ASSUMED: Mapping[str, Sequence[Assumption]] = {}


class Request:
    __slots__ = (
        "affinity_name", "assumed", "components", "evicted", "fresh", "is_workload", "peers", "plan", "previous",
        "replicas", "requirements", "resource", "spec", "term",
    )  # fmt: skip

    def __init__(
        self,
        spec: Obj,
        *,
        affinity_name: str = "",
        fresh: bool = False,
        peers: Peers | None = None,
        assumed: Mapping[str, Sequence[Assumption]] = _NOTHING_ASSUMED,
    ) -> None:
        """`affinity_name`: the group of clusters that was taken last time. `fresh`: as if nothing were placed."""
        self.spec = spec
        self.resource: Obj = spec.get("resource") or {}
        self.replicas: int = spec.get("replicas") or 0
        self.requirements: Obj | None = spec.get("replicaRequirements")
        self.components: Sequence[Obj] = spec.get("components") or ()
        self.is_workload = self.replicas > 0 or self.requirements is not None or len(self.components) > 0
        self.previous: dict[str, int] = {
            target["name"]: target.get("replicas") or 0 for target in spec.get("clusters") or ()
        }
        tasks = spec.get("gracefulEvictionTasks")
        self.evicted: frozenset[str] = frozenset(task["fromCluster"] for task in tasks) if tasks else frozenset()
        self.plan: Plan = plan_of(spec.get("placement"))
        self.affinity_name = affinity_name
        self.term: Obj | None = self.plan.term(affinity_name)
        self.fresh = fresh
        self.peers = peers
        self.assumed = assumed

    @classmethod
    def of(
        cls,
        binding: Obj,
        *,
        peers: Peers | None = None,
        assumed: Mapping[str, Sequence[Assumption]] = _NOTHING_ASSUMED,
    ) -> Request:
        status = binding.get("status") or {}
        return cls(
            binding["spec"],
            affinity_name=status.get("schedulerObservingAffinityName") or "",
            fresh=is_fresh(binding["spec"], status),
            peers=peers,
            assumed=assumed,
        )

    def under(self, affinity_name: str) -> Request:
        """Return the request for another group of clusters."""
        new = copy.copy(self)
        new.affinity_name, new.term = affinity_name, self.plan.term(affinity_name)
        return new

    def assuming(self, assumed: Mapping[str, Sequence[Assumption]]) -> Request:
        new = copy.copy(self)
        new.assumed = assumed
        return new

    @property
    def divides_replicas(self) -> bool:
        """Return whether clusters get replica counts: only for a workload with one kind of Pods."""
        return (self.replicas > 0 or self.requirements is not None) and len(self.components) <= 1

    @property
    def ties_descend(self) -> bool:
        """Return whether the last name wins a tie: for every other resource, lest the same cluster gets all of them."""
        uid = self.resource.get("uid") or ""
        return bool(uid) and fnv32a(uid) % 2 == 1

    def affinities(self) -> Sequence[Obj]:
        """Return the affinities of which one must select a cluster; none when all clusters will do."""
        if self.plan.affinity is not None:
            return (self.plan.affinity,)
        if self.term is None:
            return ()
        return (self.term, *(self.term.get("overflowAffinities") or ())) if self.is_workload else (self.term,)

    @property
    def tiers(self) -> Sequence[Obj] | None:
        """Return the affinities whose clusters are filled one after the other; None when there are no tiers."""
        if self.plan.affinity is not None or self.term is None or self.term.get("overflowAffinities") is None:
            return None
        return (self.term, *self.term["overflowAffinities"])


def is_fresh(spec: Obj, status: Obj) -> bool:
    """Return whether a fresh start was requested after the binding was last scheduled."""
    triggered, last = spec.get("rescheduleTriggeredAt"), status.get("lastScheduledTime")
    return bool(triggered and last) and parse_time(triggered) > parse_time(last)
