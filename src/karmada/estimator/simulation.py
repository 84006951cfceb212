"""How many complete sets of components fit on some nodes, by putting them there one after the other.

Each component's replicas go to the first nodes that have room, as many as fit. What a node has only becomes less, so a
node that was too small for a component stays too small for it and is not looked at again. And as long as every
component finds room for all its replicas on the node that comes first for it, sets look the same: so many of them are
placed in one step. That makes the time linear in the nodes, however many sets fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from karmada.estimator.amounts import Ints
from karmada.estimator.resources import Demand, demand_of, on_node
from karmada.estimator.room import Room
from karmada.kube.objects.types import Obj


class Component(NamedTuple):
    replicas: int
    demand: Demand
    """Need of one replica that counts on a node."""
    rows: Ints | None = None
    """The nodes that it may go to, in their order; all when None."""

    @classmethod
    def of(cls, component: Obj, rows: Ints | None = None) -> Component:
        demand = on_node(demand_of(component.get("replicaRequirements")))
        return cls(component.get("replicas") or 0, demand, rows)


def complete_sets(room: Room, components: Sequence[Component], most: int) -> int:
    """`most` at most. The room stays as it is."""
    placed = [component for component in components if component.replicas > 0]
    if not placed:
        return most
    if len(placed) == 1:  # its replicas may be split between nodes, so nothing is lost between sets
        return min(int(_fits(room, placed[0]).sum()) // placed[0].replicas, most)
    return _Placing(room, placed).sets(most)


def place_one_set(room: Room, components: Sequence[Component]) -> None:
    """As much of a set as fits: what comes after a component that does not fit as a whole stays out."""
    for component in components:
        if component.replicas > 0:
            placed = room.place(component.demand, component.replicas, _rows(room, component))
            if placed < component.replicas:
                return


def _rows(room: Room, component: Component) -> Ints:
    return np.arange(len(room.pods)) if component.rows is None else component.rows


def _fits(room: Room, component: Component) -> Ints:
    return room.fits(component.demand, _rows(room, component))


_Needs = list[tuple[list[int], int]]
"""The rest of a resource on each node, and how much of it is needed."""


class _Part:
    """A component while it is placed: `first` is the place in `rows` of the first node that may have room."""

    __slots__ = ("demand", "first", "needs", "replicas", "rows")

    def __init__(self, room: Room, component: Component, columns: dict[str, list[int]]) -> None:
        rows = _rows(room, component)
        self.rows: list[int] = rows[_fits(room, component) > 0].tolist()
        self.replicas = component.replicas
        self.demand = component.demand
        self.needs: _Needs = [(columns[name], need) for name, need in component.demand.items() if name in columns]
        self.first = 0


class _Placing:
    """Plain lists: one node at a time, they are faster than arrays."""

    def __init__(self, room: Room, components: Sequence[Component]) -> None:
        names = {name for component in components for name in component.demand if name in room.left}
        self._columns = {name: room.left[name].tolist() for name in names}
        self._pods: list[int] = room.pods.tolist()
        self._parts = [_Part(room, component, self._columns) for component in components]
        self._joint: dict[tuple[int, ...], tuple[int, _Needs]] = {}

    def sets(self, most: int) -> int:
        done = 0
        while True:
            done += self._place_alike(most - done)
            if done >= most or not all(map(self._place, self._parts)):
                return done
            done += 1

    def _place_alike(self, most: int) -> int:
        """Place as many sets as fit on the nodes that come first for each component, whole components only."""
        at: list[int] = []
        for part in self._parts:
            row = self._first_row(part)
            if row < 0:
                return 0
            at.append(row)
        loads = self._loads(at)
        for row, pods, needs in loads:
            count = self._pods[row] // pods
            if count < most:
                most = count
            for left, need in needs:
                count = left[row] // need
                if count < most:
                    most = count
        for row, pods, needs in loads if most else ():
            self._pods[row] -= pods * most
            for left, need in needs:
                left[row] -= need * most
        return most

    def _loads(self, at: list[int]) -> list[tuple[int, int, _Needs]]:
        """Return what one set needs on each of these nodes, one for each component; several may be the same."""
        sharing: dict[int, tuple[int, ...]] = {}
        for number, row in enumerate(at):
            sharing[row] = (*sharing[row], number) if row in sharing else (number,)
        return [(row, *self._together(parts)) for row, parts in sharing.items()]

    def _together(self, numbers: tuple[int, ...]) -> tuple[int, _Needs]:
        """Pods and resources that one set of these components needs."""
        found = self._joint.get(numbers)
        if found is None:
            parts = [self._parts[number] for number in numbers]
            total: dict[str, int] = {}
            for part in parts:
                for name, need in part.demand.items():
                    total[name] = total.get(name, 0) + need * part.replicas
            needs = [(self._columns[name], need) for name, need in total.items()]
            found = self._joint[numbers] = (sum(part.replicas for part in parts), needs)
        return found

    def _first_row(self, part: _Part) -> int:
        """Return the first node that can take a replica; -1 when there is none."""
        rows, pods, needs = part.rows, self._pods, part.needs
        for at in range(part.first, len(rows)):
            row = rows[at]
            if pods[row]:
                for left, need in needs:
                    if left[row] < need:
                        break
                else:
                    part.first = at
                    return row
        part.first = len(rows)
        return -1

    def _place(self, part: _Part) -> bool:
        """Return all replicas of one component, on as many nodes as it takes."""
        remaining, needs = part.replicas, part.needs
        while remaining:
            row = self._first_row(part)
            if row < 0:
                return False
            count = self._pods[row]
            if remaining < count:
                count = remaining
            for left, need in needs:
                fits = left[row] // need
                if fits < count:
                    count = fits
            self._pods[row] -= count
            for left, need in needs:
                left[row] -= need * count
            remaining -= count
        return True
