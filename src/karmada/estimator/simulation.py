"""How many complete sets of components fit on some nodes, by putting them there one after the other.

Each component's replicas go to the first nodes that have room, as many as fit. What a node has only becomes less, so a
node that was too small for a component stays too small for it and is not looked at again: `_first` remembers how many
such nodes a component has at the front. And as long as every component finds room on the node it was last placed on,
sets look the same: so many of them are placed in one step. That makes the time linear in the nodes, however many sets
fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from karmada.estimator.resources import Demand, counts_on_node, demand_of
from karmada.kube.objects.types import Obj

PODS_PER_NODE = 110


class Component(NamedTuple):
    replicas: int
    demand: Demand
    """Of one replica, what counts on a node."""
    suits: frozenset[int] | None = None
    """The nodes, by number, that it may go to; all when None."""

    @classmethod
    def of(cls, component: Obj, suits: frozenset[int] | None = None) -> Component:
        demand = on_node(demand_of(component.get("replicaRequirements")))
        return cls(component.get("replicas") or 0, demand, suits)


def on_node(demand: Demand) -> Demand:
    return {name: need for name, need in demand.items() if counts_on_node(name)}


class Node:
    """What a node has left; what it does not name it has none of."""

    __slots__ = ("left", "pods")

    def __init__(self, left: Mapping[str, int], pods: int = PODS_PER_NODE) -> None:
        self.left = dict(left)
        self.pods = pods

    def fits(self, demand: Demand) -> int:
        """How many replicas have room."""
        most = self.pods
        for name, need in demand.items():
            most = min(most, self.left.get(name, 0) // need)
        return max(most, 0)

    def place(self, demand: Demand, count: int) -> None:
        self.pods = max(self.pods - count, 0)
        for name, need in demand.items():
            if name in self.left:
                self.left[name] = max(self.left[name] - need * count, 0)


def nodes_of(grades: Iterable[tuple[int, Mapping[str, int]]]) -> list[Node]:
    """The nodes that a model of nodes stands for."""
    return [Node(least) for count, least in grades for _ in range(count)]


class Simulation:
    def __init__(self, nodes: Sequence[Node], components: Sequence[Component]) -> None:
        self._nodes = nodes
        self._components = components
        self._first = [0] * len(components)

    def sets(self, most: int) -> int:
        """Complete sets that were placed, `most` at most; what was placed of an incomplete one stays."""
        if not any(component.replicas > 0 for component in self._components):
            return most
        done = 0
        while done < most:
            alike = self._place_alike(most - done)
            done += alike
            if not alike:
                if not all(map(self._place, range(len(self._components)))):
                    break
                done += 1
        return done

    def _place_alike(self, most: int) -> int:
        """Place as many sets as fit on the nodes that come first for each component, whole components only."""
        per_node: dict[int, tuple[int, dict[str, int]]] = {}
        for number, component in enumerate(self._components):
            if component.replicas <= 0:
                continue
            at = self._first_with_room(number)
            if at == len(self._nodes):
                return 0
            pods, needs = per_node.setdefault(at, (0, {}))
            for name, need in component.demand.items():
                needs[name] = needs.get(name, 0) + need * component.replicas
            per_node[at] = (pods + component.replicas, needs)
        for at, (pods, needs) in per_node.items():
            most = min(most, self._nodes[at].pods // pods, self._nodes[at].fits(needs))
        if most > 0:
            for at, (pods, needs) in per_node.items():
                self._nodes[at].place(needs, most)
                self._nodes[at].pods -= (pods - 1) * most
        return max(most, 0)

    def _first_with_room(self, number: int) -> int:
        """The first node that can take a replica of a component."""
        component, at = self._components[number], self._first[number]
        while at < len(self._nodes) and not self._fits(component, at):
            at += 1
        self._first[number] = at
        return at

    def _fits(self, component: Component, at: int) -> int:
        suits = component.suits is None or at in component.suits
        return self._nodes[at].fits(component.demand) if suits else 0

    def _place(self, number: int) -> bool:
        component = self._components[number]
        remaining, at = component.replicas, self._first[number]
        while remaining > 0 and at < len(self._nodes):
            node = self._nodes[at]
            fitting = self._fits(component, at)
            placed = min(fitting, remaining)
            if placed:
                node.place(component.demand, placed)
                remaining -= placed
            if placed == fitting:
                at += 1
        self._first[number] = at
        return remaining <= 0


def replicas_on(nodes: Iterable[Node], demand: Demand) -> int:
    return sum(node.fits(demand) for node in nodes)


def place_one_set(nodes: Sequence[Node], components: Iterable[Obj]) -> None:
    """As much of a set as fits."""
    Simulation(nodes, [Component.of(component) for component in components]).sets(1)
