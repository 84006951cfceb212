"""What nodes have left, as arrays: a row for each node, an array for each resource.

How many replicas fit is computed for all nodes at once. A resource that no node has has no array.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from karmada.estimator.amounts import Ints
from karmada.estimator.resources import Demand

PODS_PER_NODE = 110
"""Pods of a node that a model of nodes stands for."""
_STEP = 256
"""Rows at a time: replicas that are placed mostly fit on few nodes."""


class Room:
    """`pods` and `left` are never below zero."""

    __slots__ = ("left", "pods")

    def __init__(self, pods: Ints, left: dict[str, Ints]) -> None:
        self.pods = pods
        self.left = left

    @classmethod
    def of_grades(cls, grades: Iterable[tuple[int, Mapping[str, int]]]) -> Room:
        """So many nodes of each grade, each with the least of its grade."""
        known = list(grades)
        counts = [count for count, _ in known]
        names = {name for _, least in known for name in least}
        left = {name: np.repeat([least.get(name, 0) for _, least in known], counts) for name in names}
        return cls(np.full(sum(counts), PODS_PER_NODE, np.int64), left)

    def copy(self) -> Room:
        return Room(self.pods.copy(), {name: values.copy() for name, values in self.left.items()})

    def fits(self, demand: Demand, rows: Ints) -> Ints:
        """Return how many replicas fit on each of these nodes."""
        most: Ints = self.pods[rows]
        for name, need in demand.items():
            left = self.left.get(name)
            if left is None:
                return np.zeros(len(rows), np.int64)
            np.minimum(most, left[rows] // need, out=most)
        return most

    def replicas(self, demand: Demand) -> int:
        """Return how many fit on all nodes together."""
        return int(self.fits(demand, np.arange(len(self.pods))).sum())

    def place(self, demand: Demand, replicas: int, rows: Ints) -> int:
        """As many of the replicas as fit, on the first nodes that can take them; returns how many."""
        remaining = replicas
        for start in range(0, len(rows), _STEP):
            remaining -= self._place(demand, remaining, rows[start : start + _STEP])
            if not remaining:
                break
        return replicas - remaining

    def _place(self, demand: Demand, replicas: int, rows: Ints) -> int:
        fits = self.fits(demand, rows)
        placed = np.clip(replicas - (np.cumsum(fits) - fits), 0, fits)
        used = np.flatnonzero(placed)
        at, count = rows[used], placed[used]
        self.pods[at] -= count
        for name, need in demand.items():
            if name in self.left:
                self.left[name][at] -= need * count
        return int(count.sum())
