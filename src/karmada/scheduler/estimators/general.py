"""The estimator that is always there: room by what the clusters report of themselves.

Replicas are computed for all clusters at once, from the fleet's arrays, once for each demand; bindings that need the
same share the answer. A cluster that models its nodes is taken at its model: so many nodes of each grade, each with no
more than the least of its grade. Other clusters are taken as one big node. Clusters to which something was just given
that they do not report yet are computed again with that taken off.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from karmada.estimator.amounts import Ints
from karmada.estimator.assumed import Placed
from karmada.estimator.resources import Demand, demand_key, demand_of, on_node
from karmada.estimator.room import PODS_PER_NODE, Room
from karmada.estimator.simulation import Component, place_one_set
from karmada.estimator.terms import MAX_REPLICAS, Assumption
from karmada.scheduler.capacity import Capacity, grades_of
from karmada.scheduler.estimators.protocol import EstimateRequest
from karmada.scheduler.estimators.sets import sets_in
from karmada.scheduler.fleet import Facet, Fleet


class GeneralEstimator:
    name = "general-estimator"

    def __init__(self, *, models: bool = True) -> None:
        """`models`: whether models of nodes are used."""
        self._models = models
        self._placed: dict[str, Placed[_Left]] = {}

    def estimate(self, request: EstimateRequest) -> Ints:
        return self._sets(request) if request.sets else self._replicas(request)

    # replicas

    def _replicas(self, request: EstimateRequest) -> Ints:
        requirements, fleet = request.requirements, request.fleet
        demand = None if requirements is None else demand_of(requirements)

        def compute(fleet: Fleet, rows: Ints) -> Ints:
            return replicas_in(fleet.capacity.rows(rows), demand, self._models)

        key = ("replicas", self._models, demand_key(requirements))
        room: Ints = fleet.arrays.array(key, Facet.CAPACITY, fleet, compute)[request.slots]
        if request.assumed:
            self._assume(request, demand, room)
        return room

    def _assume(self, request: EstimateRequest, demand: Demand | None, room: Ints) -> None:
        fleet = request.fleet
        for place, slot in enumerate(request.slots.tolist()):
            assumed = request.assumed.get(fleet.names[slot])
            if assumed:
                room[place] = self._with_assumed(fleet, slot, demand, assumed)

    def _with_assumed(self, fleet: Fleet, slot: int, demand: Demand | None, assumed: Sequence[Assumption]) -> int:
        cluster = fleet.cluster(slot)
        placed = self._placed.get(fleet.names[slot])
        if placed is None:
            placed = self._placed[fleet.names[slot]] = Placed()
        left = placed.state(id(cluster), assumed, lambda: _Left(fleet, slot, self._models), _Left.place)
        by_summary = int(replicas_in(left.summary, demand, models=False)[0])
        pods = int(left.summary.pods[0])
        if left.nodes is None or demand is None or not pods:
            return by_summary
        return min(pods, left.nodes.replicas(on_node(demand)), MAX_REPLICAS)

    # sets of components

    def _sets(self, request: EstimateRequest) -> Ints:
        fleet, components = request.fleet, request.components

        def compute(fleet: Fleet, rows: Ints) -> list[int]:
            return [sets_in(fleet.cluster(row), components, (), models=self._models) for row in rows.tolist()]

        keys = tuple((c.get("replicas"), demand_key(c.get("replicaRequirements"))) for c in components)
        room: Ints = fleet.arrays.array(("sets", self._models, keys), Facet.CAPACITY, fleet, compute)[request.slots]
        for place, slot in enumerate(request.slots.tolist() if request.assumed else ()):
            assumed = request.assumed.get(fleet.names[slot])
            if assumed:
                room[place] = sets_in(fleet.cluster(slot), components, assumed, models=self._models)
        return room


class _Left:
    """The capacity that one cluster has left by its summary and, if it models its nodes, on those."""

    def __init__(self, fleet: Fleet, slot: int, models: bool) -> None:
        self.cluster = fleet.cluster(slot)
        """Held, so that no other object has its id."""
        self.summary = fleet.capacity.rows(np.array([slot]))
        grades = grades_of(self.cluster) if models else None
        self.nodes = None if grades is None else Room.of_grades(grades)

    def place(self, assumption: Assumption) -> None:
        for component in assumption.components:
            demand = demand_of(component.get("replicaRequirements"))
            _take_off(self.summary, demand, component.get("replicas") or 0)
        if self.nodes is not None:
            place_one_set(self.nodes, [Component.of(component) for component in assumption.components])


def replicas_in(room: Capacity, demand: Demand | None, models: bool) -> Ints:
    """Return how many replicas fit into each row."""
    if demand is None:
        return np.minimum(room.pods, MAX_REPLICAS)
    most = _by_summary(room, demand)
    if models and room.modelled.any():
        most = np.where(room.modelled, _by_model(room, demand), most)
    return np.minimum(np.minimum(room.pods, most), MAX_REPLICAS)


def _by_summary(room: Capacity, demand: Demand) -> Ints:
    most = np.full(len(room.pods), MAX_REPLICAS, np.int64)
    for name, need in demand.items():
        left = room.left.get(name)
        if left is None:
            return np.zeros(len(room.pods), np.int64)
        np.minimum(most, left // need, out=most)
    return most


def _by_model(room: Capacity, demand: Demand) -> Ints:
    on_each = np.full(room.counts.shape, PODS_PER_NODE, np.int64)
    for name, need in on_node(demand).items():
        least = room.grades.get(name)
        np.minimum(on_each, 0 if least is None else least // need, out=on_each)
    total: Ints = (room.counts * on_each).sum(axis=1)
    return total


def _take_off(room: Capacity, demand: Demand, replicas: int) -> None:
    if replicas <= 0:
        return
    np.maximum(room.pods - replicas, 0, out=room.pods)
    for name, need in demand.items():
        if name in room.left:
            np.maximum(room.left[name] - need * replicas, 0, out=room.left[name])
