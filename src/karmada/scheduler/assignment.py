"""Replicas for the selected clusters: by the placement's strategy, tier by tier if there are tiers.

A strategy is a `Division`: it says which requests are its own and divides replicas among some clusters. Tiers are
filled one after the other: each gets as many replicas as all its clusters together have room for, until none are left.

The arithmetic is in pure functions. Clusters come as mappings from name to number, in cluster order (the best first);
results are mappings in the order in which they are written to the binding. Dividing by room (dynamic weights,
aggregation) is steady unless it has to be fresh: what is placed stays, and only the difference is divided. Fewer
replicas are taken from everybody in proportion to what each has, whatever room there is; more replicas are divided by
the room that is left; as many as before stay where they are. A `Failure` is returned, not raised.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from operator import itemgetter
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from karmada.api.matching import cluster_matches
from karmada.estimator.amounts import Ints
from karmada.kube.objects.types import Obj
from karmada.scheduler.decision import TIERS_SHORTAGE, Failure, error, shortage
from karmada.scheduler.fleet import Facet, Fleet
from karmada.scheduler.placement import BY_AGGREGATION, BY_DUPLICATION, BY_DYNAMIC_WEIGHT, BY_STATIC_WEIGHT
from karmada.scheduler.ranking import Ranking
from karmada.scheduler.request import Request
from karmada.scheduler.webster import dispense

Shares = dict[str, int]


class Move(StrEnum):
    """The step that a division by room took."""

    FIRST = "first placement"
    UP = "scale up"
    DOWN = "scale down"
    KEPT = "as before"
    FRESH = "fresh placement"


STEP_OF = {
    Move.FIRST: "failed to scale up",
    Move.UP: "failed to scale up",
    Move.DOWN: "failed to scale down",
    Move.FRESH: "failed to do fresh scale",
}


class ByRoom(NamedTuple):
    """A division by room and how it came about: `placed` more replicas by `weights`, on top of what was kept."""

    shares: Shares
    move: Move
    placed: int
    weights: Mapping[str, int]


def taking_part(weights: Mapping[str, int]) -> Mapping[str, int]:
    """Return the clusters that take part and their weights: those with one, or all alike when none has."""
    if 0 not in weights.values():
        return weights
    return {name: weight for name, weight in weights.items() if weight > 0} or dict.fromkeys(weights, 1)


def divide_by_room(
    replicas: int,
    room: Mapping[str, int],
    previous: Mapping[str, int],
    *,
    aggregated: bool = False,
    fresh: bool = False,
    descending: bool = False,
) -> ByRoom | Failure:
    """Divide in proportion to `room` (for further replicas), or, if `aggregated`, in as few clusters as have room.

    `previous` is where replicas are now; those in clusters without an entry in `room` are placed anew.
    """
    had = {name: count for name, count in previous.items() if name in room}
    assigned = sum(had.values())
    weights: Mapping[str, int]
    kept: Mapping[str, int] = {}
    if fresh:
        move, target = Move.FRESH, replicas
        weights = {name: count + had.get(name, 0) for name, count in room.items()} if had else room
    elif assigned > replicas:
        move, target, weights = Move.DOWN, replicas, had
    elif assigned < replicas:
        move, target, weights, kept = (Move.UP if had else Move.FIRST), replicas - assigned, room, had
    else:
        return ByRoom(had, Move.KEPT, 0, {})
    total = sum(weights.values())
    if total < target:
        return shortage(total).during(STEP_OF[move])
    if aggregated:
        weights = fewest(target, weights, first=kept)
    placed = dispense(target, weights, descending=descending)
    return ByRoom(_added(placed, kept), move, target, weights)


def fewest(target: int, room: Mapping[str, int], *, first: Mapping[str, int]) -> Shares:
    """Return the shortest row of clusters with room for all: those that have replicas already first, then by room."""
    row = sorted(room.items(), key=itemgetter(1), reverse=True)
    if first:
        row.sort(key=lambda entry: not first.get(entry[0]))
    taken: Shares = {}
    for name, count in row:
        if target <= 0:
            break
        taken[name] = count
        target -= count
    return taken


def _added(placed: Shares, kept: Mapping[str, int]) -> Shares:
    for name, count in kept.items():
        placed[name] = placed.get(name, 0) + count
    return placed


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
        return Divided(dict.fromkeys(job.room, job.replicas), "all replicas in every cluster")


class StaticWeight:
    name = BY_STATIC_WEIGHT

    def handles(self, request: Request) -> bool:
        return request.plan.strategy == BY_STATIC_WEIGHT

    def divide(self, job: Job) -> Divided | Failure:
        weights = taking_part(static_weights(job))
        shares = dispense(job.replicas, weights, descending=job.request.ties_descend)
        return Divided(shares, "by given weights", job.replicas, weights)


class DynamicWeight:
    name = BY_DYNAMIC_WEIGHT
    aggregated = False

    def handles(self, request: Request) -> bool:
        return request.plan.strategy == self.name

    def divide(self, job: Job) -> Divided | Failure:
        result = divide_by_room(
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
