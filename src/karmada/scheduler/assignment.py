"""Replicas for the selected clusters: by the placement's strategy, tier by tier if there are tiers.

A strategy is a `Division`: it says which requests are its own and divides replicas among some clusters. Tiers are
filled one after the other: each gets as many replicas as all its clusters together have room for, until none are left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from karmada.api.matching import cluster_matches
from karmada.estimator.amounts import Ints
from karmada.kube.objects.types import Obj
from karmada.scheduler import division
from karmada.scheduler.division import Shares
from karmada.scheduler.failures import TIERS_SHORTAGE, Failure, error
from karmada.scheduler.fleet import Facet, Fleet
from karmada.scheduler.placement import BY_AGGREGATION, BY_DUPLICATION, BY_DYNAMIC_WEIGHT, BY_STATIC_WEIGHT
from karmada.scheduler.ranking import Ranking
from karmada.scheduler.request import Request
from karmada.scheduler.webster import dispense

NO_CLUSTERS = "no clusters available to schedule"


@dataclass(slots=True)
class Job:
    """Replicas to divide among some clusters; all mappings are in cluster order."""

    request: Request
    fleet: Fleet
    slots: Ints
    """The rows of the clusters in the fleet."""
    replicas: int
    room: Mapping[str, int]
    """How many further replicas each cluster takes, by its name."""
    previous: Mapping[str, int]


@dataclass(slots=True)
class Divided:
    """The share of each cluster, and how it came about: what was done, how many replicas by which weights."""

    shares: Shares
    how: str = ""
    placed: int = 0
    weights: Mapping[str, int] | None = None


@runtime_checkable
class Division(Protocol):
    name: str

    def handles(self, request: Request) -> bool: ...

    def divide(self, job: Job) -> Divided | Failure: ...


class Duplicated:
    name = BY_DUPLICATION

    def handles(self, request: Request) -> bool:
        return request.plan.strategy == BY_DUPLICATION

    def divide(self, job: Job) -> Divided | Failure:
        return Divided(division.duplicate(job.replicas, job.room), "all replicas in every cluster")


class StaticWeight:
    name = BY_STATIC_WEIGHT

    def handles(self, request: Request) -> bool:
        return request.plan.strategy == BY_STATIC_WEIGHT

    def divide(self, job: Job) -> Divided | Failure:
        weights = division.static_weights(static_weights(job))
        shares = dispense(job.replicas, weights, descending=job.request.ties_descend)
        return Divided(shares, "by given weights", job.replicas, weights)


class DynamicWeight:
    name = BY_DYNAMIC_WEIGHT
    aggregated = False

    def handles(self, request: Request) -> bool:
        return request.plan.strategy == self.name

    def divide(self, job: Job) -> Divided | Failure:
        result = division.divide_by_room(
            job.replicas,
            job.room,
            job.previous,
            aggregated=self.aggregated,
            fresh=job.request.fresh,
            descending=job.request.ties_descend,
        )
        if isinstance(result, Failure):
            return result
        return Divided(result.shares, result.move.value, result.placed, result.weights)


class Aggregated(DynamicWeight):
    name = BY_AGGREGATION
    aggregated = True


def static_weights(job: Job) -> dict[str, int]:
    """Return the greatest weight that a rule gives to each cluster; 1 for all when there are no preferences."""
    plan, fleet = job.request.plan, job.fleet
    rules = plan.static_rules
    if rules is None:
        return dict.fromkeys(job.room, 1)

    def compute(fleet: Fleet, rows: Ints) -> list[int]:
        return [_weight(fleet.cluster(row), rules) for row in rows.tolist()]

    weights = fleet.arrays.array(("weights", plan.static_rules_key), Facet.FACTS, fleet, compute)
    return dict(zip(job.room, weights[job.slots].tolist(), strict=True))


def _weight(cluster: Obj, rules: Sequence[Obj]) -> int:
    matching = (rule.get("weight") or 0 for rule in rules if cluster_matches(rule.get("targetCluster") or {}, cluster))
    return max(matching, default=0)


@dataclass(slots=True)
class Assignment:
    """Replicas by cluster in the order of the result, and the division in each tier."""

    shares: Shares
    tiers: list[tuple[int, Divided]]


def assign(request: Request, ranking: Ranking, places: Ints, divisions: Sequence[Division]) -> Assignment | Failure:
    one = next((one for one in divisions if one.handles(request)), None)
    if one is None:
        return error(request.plan.unsupported)
    if request.tiers is None or ranking.tiers is None:
        result = _divide(one, request, ranking, places, request.replicas)
        return result if isinstance(result, Failure) else Assignment(result.shares, [(0, result)])
    return _by_tier(one, request, ranking, places, ranking.tiers[places])


def _divide(one: Division, request: Request, ranking: Ranking, places: Ints, replicas: int) -> Divided | Failure:
    fleet, slots = ranking.fleet, ranking.slots[places]
    room: dict[str, int] = dict(zip(fleet.named[slots].tolist(), ranking.room[places].tolist(), strict=True))
    previous = {name: count for name, count in request.previous.items() if name in room}
    return one.divide(Job(request, fleet, slots, replicas, room, previous))


def _by_tier(one: Division, request: Request, ranking: Ranking, places: Ints, tiers: Ints) -> Assignment | Failure:
    assignment, remaining = Assignment({}, []), request.replicas
    for tier in np.unique(tiers).tolist():
        if remaining <= 0:
            break
        members = places[tiers == tier]
        given = min(remaining, int(ranking.available[members].sum()))
        result = _divide(one, request, ranking, members, given)
        if isinstance(result, Failure):
            return result
        assignment.shares.update(result.shares)
        assignment.tiers.append((tier, result))
        remaining -= given
    return TIERS_SHORTAGE if remaining > 0 else assignment
