"""The candidates in cluster order: by tier, then the higher score, then the more room, then by name.

A score gives points from 0 to 100 to some clusters at once; those of all scores are added up. Staying where one is, is
better; being selected by an affinity makes no difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from karmada.api.matching import cluster_matches
from karmada.estimator.amounts import Ints
from karmada.kube.objects.types import Obj
from karmada.scheduler.fleet import Facet, Fleet
from karmada.scheduler.placement import LABEL, OUTSIDE, ZONE, Topology
from karmada.scheduler.request import Request

if TYPE_CHECKING:
    from karmada.estimator.amounts import Ints
    from karmada.scheduler.fleet import Fleet


MOST = 100


class ScoreError(Exception):
    """A score that cannot be given; scheduling fails and is tried again."""


@runtime_checkable
class Score(Protocol):
    name: str

    def points(self, request: Request, fleet: Fleet, slots: Ints) -> Ints | None:
        """Return points for the slots, in their order; None for no points to anybody. May raise ScoreError."""
        ...


class ClusterLocality:
    """Full points for the clusters that the resource is in."""

    name = "ClusterLocality"

    def points(self, request: Request, fleet: Fleet, slots: Ints) -> Ints | None:
        here = [fleet.slots[name] for name in request.previous if name in fleet.slots]
        if not here:
            return None
        points = np.zeros(fleet.size, np.int64)
        points[here] = MOST
        return points[slots]


class ClusterAffinity:
    """No points: an affinity selects or does not."""

    name = "ClusterAffinity"

    def points(self, request: Request, fleet: Fleet, slots: Ints) -> Ints | None:  # noqa: ARG002
        return None


@dataclass(slots=True)
class Ranking:
    """One entry for each candidate, in order."""

    fleet: Fleet
    slots: Ints
    score: Ints
    room: Ints
    """Estimated, for further replicas."""
    available: Ints
    """The room plus the replicas it has."""
    tiers: Ints | None
    """None when there is only one."""

    def names(self, places: Ints) -> list[str]:
        names: list[str] = self.fleet.named[self.slots[places]].tolist()
        return names

    def groups(self, topology: Topology) -> dict[str, list[int]]:
        """Return the places of each group, in order; a cluster in several zones is in several groups."""
        numbers = self._numbers(topology)
        order = np.argsort(numbers, kind="stable")
        by_number = numbers[order]
        ends = [*(np.flatnonzero(by_number[1:] != by_number[:-1]) + 1).tolist(), len(order)]
        places: list[int] = order.tolist()
        found: dict[str, list[int]] = {}
        merged, start, symbols = set(), 0, self.fleet.arrays.symbols
        for end in ends:
            for name in symbols[by_number[start]]:
                if name in found:
                    found[name] = found[name] + places[start:end]
                    merged.add(name)
                else:
                    found[name] = places[start:end]
            start = end
        for name in merged:
            found[name].sort()
        return found

    def groups_at(self, places: Ints, topology: Topology) -> set[str]:
        """Return the groups that some places are in."""
        symbols = self.fleet.arrays.symbols
        return {name for number in set(self._numbers(topology)[places].tolist()) for name in symbols[number]}

    def _numbers(self, topology: Topology) -> Ints:
        """Return for each place a number that stands for the groups it is in."""

        def compute(fleet: Fleet, rows: Ints) -> list[int]:
            return [fleet.arrays.number(groups_of(fleet.cluster(row), topology)) for row in rows.tolist()]

        key = ("topology", topology.field, topology.key)
        numbers: Ints = self.fleet.arrays.array(key, Facet.FACTS, self.fleet, compute)[self.slots]
        return numbers


def groups_of(cluster: Obj, topology: Topology) -> tuple[str, ...]:
    """Return the groups that a cluster is in."""
    spec = cluster.get("spec") or {}
    if topology.field == ZONE:
        return tuple(dict.fromkeys(spec.get("zones") or ()))
    if topology.field == LABEL:
        value = (cluster["metadata"].get("labels") or {}).get(topology.key)
    else:
        value = spec.get(topology.field)
    return (value,) if value else ()


def rank(request: Request, fleet: Fleet, slots: Ints, score: Ints | None, room: Ints) -> Ranking:
    """Rank clusters; `slots` come in the order of names, `score` (None if all alike) and `room` go with them."""
    available = room
    if request.previous:
        here = np.zeros(fleet.size, np.int64)
        for name, replicas in request.previous.items():
            slot = fleet.slots.get(name)
            if slot is not None:
                here[slot] = replicas
        available = room + here[slots]
    tiers = _tiers(request, fleet, slots)
    if score is None and tiers is None:
        order = (-available).argsort(kind="stable")
    else:
        keys = [-available] + ([-score] if score is not None else []) + ([tiers] if tiers is not None else [])
        order = np.lexsort(keys)
    room_in_order = room[order]
    return Ranking(
        fleet,
        slots[order],
        score[order] if score is not None else np.zeros(len(slots), np.int64),
        room_in_order,
        room_in_order if available is room else available[order],
        tiers[order] if tiers is not None else None,
    )


def _tiers(request: Request, fleet: Fleet, slots: Ints) -> Ints | None:
    if request.plan.affinity is not None or request.term is None:
        return None
    affinities: Sequence[Obj] = (request.term, *(request.term.get("overflowAffinities") or ()))

    def compute(fleet: Fleet, rows: Ints) -> list[int]:
        return [tier_of(fleet.cluster(row), affinities) for row in rows.tolist()]

    key = ("tiers", request.plan.key, request.affinity_name)
    tiers: Ints = fleet.arrays.array(key, Facet.FACTS, fleet, compute)[slots]
    return tiers


def tier_of(cluster: Obj, affinities: Sequence[Obj]) -> int:
    return next((tier for tier, affinity in enumerate(affinities) if cluster_matches(affinity, cluster)), OUTSIDE)
