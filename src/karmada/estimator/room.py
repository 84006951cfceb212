"""What nodes have left, as arrays: a row for each node, an array for each resource.

How many replicas fit, and placing some, are computed for all nodes at once. A resource that no node has has no array.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from karmada.estimator.amounts import Ints
from karmada.estimator.resources import Demand
from karmada.estimator.simulation import Node


class Room:
    """`pods` and `left` are never below zero."""

    __slots__ = ("left", "pods")

    def __init__(self, pods: Ints, left: dict[str, Ints]) -> None:
        self.pods = pods
        self.left = left

    def copy(self) -> Room:
        return Room(self.pods.copy(), {name: values.copy() for name, values in self.left.items()})

    def fits(self, demand: Demand, rows: Ints) -> Ints:
        """How many replicas fit on each of these nodes."""
        most: Ints = self.pods[rows]
        for name, need in demand.items():
            left = self.left.get(name)
            if left is None:
                return np.zeros(len(rows), np.int64)
            np.minimum(most, left[rows] // need, out=most)
        return most

    def place(self, demand: Demand, replicas: int, rows: Ints) -> int:
        """As many of the replicas as fit, on the first nodes that can take them; returns how many."""
        fits = self.fits(demand, rows)
        before = np.cumsum(fits) - fits
        placed = np.clip(replicas - before, 0, fits)
        used = np.flatnonzero(placed)
        at, count = rows[used], placed[used]
        self.pods[at] -= count
        for name, need in demand.items():
            if name in self.left:
                self.left[name][at] -= need * count
        return int(count.sum())

    def nodes(self, rows: Ints, names: Sequence[str]) -> list[Node]:
        """Some nodes with some of their resources, to be placed on one by one."""
        having = [name for name in names if name in self.left]
        columns = [self.left[name][rows].tolist() for name in having]
        pods = self.pods[rows].tolist()
        if not columns:
            return [Node({}, count) for count in pods]
        return [
            Node(dict(zip(having, amounts, strict=True)), count) for count, *amounts in zip(pods, *columns, strict=True)
        ]
