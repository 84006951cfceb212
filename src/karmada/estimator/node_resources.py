"""Plug-in NodeResourceEstimator: how many replicas, or sets of components, fit on the nodes."""

from __future__ import annotations

from collections.abc import Sequence

from karmada.estimator.amounts import Ints
from karmada.estimator.answers import Answers
from karmada.estimator.matching import claim_of
from karmada.estimator.resources import demand_of
from karmada.estimator.results import Code, Result
from karmada.estimator.room import Room
from karmada.estimator.simulation import Component, Simulation, on_node
from karmada.estimator.snapshot import Snapshot
from karmada.estimator.terms import MAX_REPLICAS, Assumption
from karmada.kube.objects.types import Obj

_NONE_FITS = "no enough resources"


class NodeResourceEstimator:
    name = "NodeResourceEstimator"

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._answers = Answers(snapshot)

    def replicas(self, requirements: Obj | None, assumed: Sequence[Assumption]) -> Result:
        claim, demand = claim_of(requirements), on_node(demand_of(requirements))
        if assumed:
            room = self._with(assumed)
            total = int(room.fits(demand, self._answers.selected(claim)).sum())
        else:
            total = self._answers.replicas(claim, demand)
        return Result(Code.SUCCESS, min(total, MAX_REPLICAS))

    def sets(self, components: Sequence[Obj], _namespace: str, assumed: Sequence[Assumption]) -> Result:
        if not components:
            return Result(Code.NO_OPERATION, reason=f"{self.name} received empty components list")
        room = self._with(assumed) if assumed else self._snapshot.room
        count = self._one_component(room, components) if len(components) == 1 else self._place(room, components)
        return Result(Code.SUCCESS, count) if count else Result(Code.UNSCHEDULABLE, 0, _NONE_FITS)

    def _one_component(self, room: Room, components: Sequence[Obj]) -> int:
        """Replicas of one set may go to several nodes, so nothing of what fits is lost between sets."""
        requirements, replicas = components[0].get("replicaRequirements"), components[0].get("replicas") or 0
        if replicas <= 0:
            return MAX_REPLICAS
        fits = room.fits(on_node(demand_of(requirements)), self._answers.selected(claim_of(requirements)))
        return min(int(fits.sum()) // replicas, MAX_REPLICAS)

    def _place(self, room: Room, components: Sequence[Obj]) -> int:
        rows = self._snapshot.rows()
        place = {row: at for at, row in enumerate(rows.tolist())}
        parts = [Component.of(one, self._suitable(one, place)) for one in components]
        names = sorted({name for part in parts for name in part.demand})
        return Simulation(room.nodes(rows, names), parts).sets(MAX_REPLICAS)

    def _suitable(self, component: Obj, place: dict[int, int]) -> frozenset[int]:
        selected = self._answers.selected(claim_of(component.get("replicaRequirements")))
        return frozenset(place[row] for row in selected.tolist())

    def _with(self, assumed: Sequence[Assumption]) -> Room:
        """With as much as fits of what was placed here a moment ago."""
        room = self._snapshot.room.copy()
        for assumption in assumed:
            self._assume(room, assumption.components)
        return room

    def _assume(self, room: Room, components: Sequence[Obj]) -> None:
        """One set; what comes after a component that does not fit stays out."""
        for component in components:
            requirements, replicas = component.get("replicaRequirements"), component.get("replicas") or 0
            if replicas <= 0:
                continue
            rows: Ints = self._answers.selected(claim_of(requirements))
            if room.place(on_node(demand_of(requirements)), replicas, rows) < replicas:
                return
