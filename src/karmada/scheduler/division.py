"""How replicas are divided among the selected clusters: one pure function for each strategy.

Clusters come as mappings from name to number, in cluster order (the best first); results are mappings in the order in
which they are written to the binding. Dividing by room (dynamic weights, aggregation) is steady unless it has to be
fresh: what is placed stays, and only the difference is divided. Fewer replicas are taken from everybody in proportion
to what each has, whatever room there is; more replicas are divided by the room that is left; as many as before stay
where they are. A `Failure` is returned, not raised.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from operator import itemgetter
from typing import NamedTuple

from karmada.scheduler.failures import Failure, shortage
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


def duplicate(replicas: int, clusters: Iterable[str]) -> Shares:
    """Give all replicas to each cluster."""
    return dict.fromkeys(clusters, replicas)


def static_weights(weights: Mapping[str, int]) -> Mapping[str, int]:
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
