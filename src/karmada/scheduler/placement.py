"""A placement, read once: many bindings share one, each with a copy of its own, so plans are found by content.

A `Plan` is what the algorithm needs of a placement: which affinity applies, what is spread over how many groups,
and by which strategy replicas are divided.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import orjson

from karmada.kube.objects.types import Obj

DUPLICATED, DIVIDED = "Duplicated", "Divided"
AGGREGATED, WEIGHTED = "Aggregated", "Weighted"
BY_DUPLICATION, BY_AGGREGATION = "Duplicated", "Aggregated"
BY_DYNAMIC_WEIGHT, BY_STATIC_WEIGHT = "DynamicWeight", "StaticWeight"

CLUSTER, REGION, ZONE, PROVIDER = "cluster", "region", "zone", "provider"
LABEL = "label"
NO_LIMIT = 2**31 - 1
OUTSIDE = 1000
"""The tier of a cluster that no affinity of the term selects."""


class Bounds(NamedTuple):
    least: int
    most: int


class Topology(NamedTuple):
    """The property that makes groups of clusters, and how many of them are wanted; `key` is the label's for LABEL."""

    field: str
    key: str
    bounds: Bounds

    @property
    def title(self) -> str:
        return self.key or self.field


class Plan:
    __slots__ = (
        "_by_name", "affinity", "clusters", "divided", "fields", "key", "one_cluster", "placement",
        "preference", "region", "scheduling_type", "spread_ignored", "static_rules", "static_rules_key", "strategy",
        "terms", "tolerations", "tolerations_key", "topologies",
    )  # fmt: skip

    def __init__(self, key: bytes) -> None:
        placement: Obj = orjson.loads(key)
        self.key = key
        self.placement = placement
        self.affinity: Obj | None = placement.get("clusterAffinity")
        self.terms: Sequence[Obj] = placement.get("clusterAffinities") or ()
        self._by_name = {term.get("affinityName") or "": term for term in reversed(self.terms)}
        self.tolerations: Sequence[Obj] = placement.get("clusterTolerations") or ()
        self.tolerations_key = orjson.dumps(self.tolerations)
        self._read_scheduling(placement.get("replicaScheduling"))
        self._read_spread(placement.get("spreadConstraints") or ())

    # dividing

    def _read_scheduling(self, scheduling: Obj | None) -> None:
        self.scheduling_type = (scheduling or {}).get("replicaSchedulingType") or ""
        self.preference = (scheduling or {}).get("replicaDivisionPreference") or ""
        self.divided = self.scheduling_type == DIVIDED
        weights = (scheduling or {}).get("weightPreference")
        dynamic = bool((weights or {}).get("dynamicWeight"))
        rules = (weights or {}).get("staticWeightList") or ()
        self.strategy: str | None = None
        if scheduling is None or self.scheduling_type == DUPLICATED:
            self.strategy = BY_DUPLICATION
        elif self.divided and self.preference == AGGREGATED:
            self.strategy = BY_AGGREGATION
        elif self.divided and self.preference == WEIGHTED:
            self.strategy = BY_DYNAMIC_WEIGHT if dynamic else BY_STATIC_WEIGHT
        self.static_rules: Sequence[Obj] | None = rules if weights is not None else None
        self.static_rules_key = orjson.dumps(self.static_rules)
        self.spread_ignored = (
            self.divided and self.preference == WEIGHTED and (weights is None or (bool(rules) and not dynamic))
        )

    @property
    def unsupported(self) -> str:
        return (
            f"unsupported replica scheduling strategy, replicaSchedulingType: {self.scheduling_type}, "
            f"replicaDivisionPreference: {self.preference}, please try another scheduling strategy"
        )

    # spreading

    def _read_spread(self, constraints: Sequence[Obj]) -> None:
        found: dict[tuple[str, str], Bounds] = {}
        for constraint in constraints:
            field, label = constraint.get("spreadByField") or "", constraint.get("spreadByLabel") or ""
            bounds = Bounds(constraint.get("minGroups") or 0, constraint.get("maxGroups") or NO_LIMIT)
            if field or label:
                found[field or LABEL, "" if field else label] = bounds
        self.fields = tuple(constraint.get("spreadByField") or "" for constraint in constraints)
        """In the order they are written in, which is the order they are checked in."""
        self.spread_ignored = self.spread_ignored or not constraints
        self.clusters = found.pop((CLUSTER, ""), None)
        self.topologies = tuple(
            Topology(field, key, Bounds(max(bounds.least, 1), bounds.most))
            for (field, key), bounds in sorted(found.items(), key=lambda entry: _TOPOLOGY_ORDER.index(entry[0][0]))
        )
        self.region = self.topologies[0] if self.topologies and self.topologies[0].field == REGION else None
        self.one_cluster = any(
            constraint.get("spreadByField") == CLUSTER
            and constraint.get("minGroups") == 1
            and constraint.get("maxGroups") == 1
            for constraint in constraints
        )

    # affinities

    def term(self, name: str) -> Obj | None:
        """Return the group of clusters with a name."""
        return self._by_name.get(name) if name else None

    def first_term(self, observed: str) -> int:
        """Return where to begin among the groups: where it ended last time."""
        names = [term.get("affinityName") for term in self.terms]
        return names.index(observed) if observed in names else 0


_TOPOLOGY_ORDER = (CLUSTER, REGION, ZONE, PROVIDER, LABEL)


@lru_cache(maxsize=4096)
def _plan(key: bytes) -> Plan:
    return Plan(key)


def plan_of(placement: Obj | None) -> Plan:
    return _plan(orjson.dumps(placement or {}))
