"""Plug-in NodeResourceEstimator: how many replicas, or sets of components, fit on the nodes."""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from karmada.estimator.answers import Answers
from karmada.estimator.assumed import Placed
from karmada.estimator.matching import claim_of
from karmada.estimator.resources import demand_of, on_node
from karmada.estimator.results import Code, Result
from karmada.estimator.room import Room
from karmada.estimator.simulation import Component, complete_sets, place_one_set
from karmada.estimator.snapshot import Snapshot
from karmada.estimator.terms import MAX_REPLICAS, Assumption
from karmada.kube.objects.types import Obj

_NONE_FITS = "no enough resources"


class NodeResourceEstimator:
    name = "NodeResourceEstimator"

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._answers = Answers(snapshot)
        self._placed: Placed[Room] = Placed()
        self._sets: dict[bytes, int] = {}
        self._sets_version = -1

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
        count = self._known_sets(components) if not assumed else self._count_sets(components, self._with(assumed))
        return Result(Code.SUCCESS, count) if count else Result(Code.UNSCHEDULABLE, 0, _NONE_FITS)

    def _known_sets(self, components: Sequence[Obj]) -> int:
        """Return the number of complete sets, kept as long as nothing changes in the member."""
        if self._sets_version != self._snapshot.version:
            self._sets.clear()
            self._sets_version = self._snapshot.version
        key = orjson.dumps(components)
        found = self._sets.get(key)
        if found is None:
            found = self._sets[key] = self._count_sets(components, self._snapshot.room)
        return found

    def _count_sets(self, components: Sequence[Obj], room: Room) -> int:
        return complete_sets(room, self._components(components), MAX_REPLICAS)

    def _components(self, components: Sequence[Obj]) -> list[Component]:
        claims = [claim_of(component.get("replicaRequirements")) for component in components]
        selected = map(self._answers.selected, claims)
        return [Component.of(component, rows) for component, rows in zip(components, selected, strict=True)]

    def _with(self, assumed: Sequence[Assumption]) -> Room:
        """With as much as fits of what was placed here a moment ago."""
        return self._placed.state(self._snapshot.version, assumed, self._snapshot.room.copy, self._place)

    def _place(self, room: Room, assumption: Assumption) -> None:
        place_one_set(room, self._components(assumption.components))
