"""Which of the candidates are selected: the spread constraints.

Spreading by cluster takes the best ones, and others with more room in their place while there is too little. Spreading
by region chooses regions first (groups.py), then the best cluster of each, then the best of the rest. With zones,
providers or labels besides, that result stands if it happens to have the right number of those, too; if not, all
constraints are met together (cover.py). With only one of them, it is treated as a region is. Without an upper bound
there is none.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from karmada.estimator.amounts import Ints
from karmada.scheduler.cover import Cover
from karmada.scheduler.decision import Failure, error
from karmada.scheduler.groups import Group, choose
from karmada.scheduler.placement import NO_LIMIT, REGION, Bounds, Topology
from karmada.scheduler.ranking import Ranking
from karmada.scheduler.request import Request

IGNORE_ROOM = -1
TOO_FEW_CLUSTERS = "the number of feasible clusters is less than spreadConstraint.MinGroups"
TOO_FEW_IN_GROUPS = "the number of clusters is less than the cluster spreadConstraint.MinGroups"
NO_SET = "no set of feasible clusters meets all spread constraints"
UNKNOWN_FIELD = "just support cluster and region spread constraint"
_ANY_NUMBER = Bounds(0, NO_LIMIT)


def select(request: Request, ranking: Ranking, *, sets: bool) -> Ints | Failure:
    """Return places in the ranking, in the order of selection. `sets`: count complete sets of components."""
    plan = request.plan
    if plan.spread_ignored:
        return np.arange(len(ranking.slots))
    need = (1 if sets else request.replicas) if plan.divided else IGNORE_ROOM
    others = plan.topologies
    if plan.region is not None:
        usual, others = by_groups(request, ranking, plan.region), others[1:]
    elif plan.clusters is not None:
        usual = by_cluster(ranking.available, plan.clusters, need)
    elif others:
        usual = by_groups(request, ranking, others[0])
    else:
        return error(UNKNOWN_FIELD)
    if isinstance(usual, Failure) or _meets(ranking, usual, others):
        return usual
    if len(plan.topologies) == 1:
        grouped = by_groups(request, ranking, plan.topologies[0])
        if isinstance(grouped, Failure):
            return grouped
        if len(grouped) <= (plan.clusters or _ANY_NUMBER).most and _meets(ranking, grouped, others):
            return grouped
    return by_all(request, ranking, need)


def _meets(ranking: Ranking, places: Ints, topologies: Sequence[Topology]) -> bool:
    """Return whether a selection is in the right number of groups."""
    return all(
        topology.bounds.least <= len(ranking.groups_at(places, topology)) <= topology.bounds.most
        for topology in topologies
    )


# by cluster


def by_cluster(available: Ints, bounds: Bounds, need: int) -> Ints | Failure:
    """Return the first places; from the last on, each gives way to that with most room while room is wanting."""
    if len(available) < bounds.least:
        return error(TOO_FEW_CLUSTERS)
    count = min(len(available), bounds.most)
    places = np.arange(len(available))
    selected, rest = places[:count], places[count:]
    if need == IGNORE_ROOM:
        return selected
    total, at = int(available[selected].sum()), count - 1
    while total < need and at >= 0 and len(rest):
        best = int(np.argmax(available[rest]))
        gain = int(available[rest[best]] - available[selected[at]])
        if gain > 0:
            selected[at], rest[best] = rest[best], selected[at]
            total += gain
        at -= 1
    if total < need or not count:
        return error(f"no enough resource when selecting {count} clusters")
    return selected


# by groups


def by_groups(request: Request, ranking: Ranking, topology: Topology) -> Ints | Failure:
    """Return the best cluster of each chosen group, then the best of the others in these groups."""
    groups = ranking.groups(topology)
    if len(groups) < topology.bounds.least:
        return error(f"the number of feasible {topology.title} is less than spreadConstraint.MinGroups")
    clusters = request.plan.clusters or (Bounds(0, 0) if topology.field == REGION else _ANY_NUMBER)
    scores = group_scores(request, ranking, topology, groups)
    rows = [Group(name, len(members), scores[name]) for name, members in groups.items()]
    chosen = choose(rows, *topology.bounds, clusters.least)
    if chosen is None:
        return error(TOO_FEW_IN_GROUPS)
    selected: dict[int, None] = {}
    for group in chosen:
        first = next((place for place in groups[group.name] if place not in selected), None)
        if first is not None:
            selected[first] = None
    everybody = {place for group in chosen for place in groups[group.name]}
    more = min(len(everybody), clusters.most) - len(selected)
    rest = sorted(everybody.difference(selected))[: max(more, 0)]
    return np.array([*selected, *rest], np.int64)


def group_scores(
    request: Request, ranking: Ranking, topology: Topology, groups: dict[str, list[int]]
) -> dict[str, int]:
    available: list[int] = ranking.available.tolist()
    score: list[int] = ranking.score.tolist()
    if not request.plan.divided:
        return {
            name: score_duplicated(request.replicas, [(available[p], score[p]) for p in members])
            for name, members in groups.items()
        }
    least = topology.bounds.least
    share = -(-request.replicas // least)
    enough = max(request.plan.clusters.least if request.plan.clusters is not None else 0, least)
    return {
        name: score_divided(share, enough, [(available[p], score[p]) for p in members])
        for name, members in groups.items()
    }


def score_duplicated(replicas: int, members: Sequence[tuple[int, int]]) -> int:
    """Score a group by how many clusters (with their room and score) can take all replicas, then by their scores."""
    valid = [score for room, score in members if room >= replicas]
    return len(valid) * 1000 + sum(valid) // len(valid) if valid else 0


def score_divided(share: int, enough: int, members: Sequence[tuple[int, int]]) -> int:
    """Score a group by how much of its share it can take with `enough` or more clusters, then by their scores."""
    room = score = count = 0
    for room_here, score_here in members:
        room += room_here
        score += score_here
        count += 1
        if count >= enough and room >= share:
            break
    return room * 1000 + score // len(members) if room < share else share * 1000 + score // count


# by everything at once


def by_all(request: Request, ranking: Ranking, need: int) -> Ints | Failure:
    topologies = request.plan.topologies
    size = len(ranking.slots)
    members: list[list[tuple[str, ...]]] = [[] for _ in range(size)]
    merit = [0] * size
    for topology in topologies:
        groups = ranking.groups(topology)
        if len(groups) < topology.bounds.least:
            return error(f"the number of feasible {topology.title} is less than spreadConstraint.MinGroups")
        scores = group_scores(request, ranking, topology, groups)
        here: list[list[str]] = [[] for _ in range(size)]
        for name, places in groups.items():
            for place in places:
                here[place].append(name)
                merit[place] += scores[name]
        for place in range(size):
            members[place].append(tuple(here[place]))
    found = Cover(
        [tuple(groups_here) for groups_here in members],
        [topology.bounds for topology in topologies],
        request.plan.clusters or _ANY_NUMBER,
        ranking.available.tolist(),
        need,
        merit,
    ).search()
    return error(NO_SET) if found is None else np.array(found, np.int64)
