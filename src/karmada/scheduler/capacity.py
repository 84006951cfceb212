"""The capacity that every cluster has left, as arrays: one row for each slot of the fleet, one array for each resource.

Amounts are counted in thousandths for cpu and in whole units for everything else, and never below zero. A cluster that
models its nodes also has, for each grade, how many nodes are of it and what such a node has at least. A `Capacity` is
immutable: `refreshed` makes the next one, reading only the rows that changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from karmada.estimator.amounts import PODS, Bools, Ints, amount, quantity
from karmada.kube.objects.quantity import ZERO, Quantity
from karmada.kube.objects.types import Obj


def left_over(summary: Obj, name: str) -> Quantity:
    """Return allocatable − allocated − allocating of one resource, which may be below zero."""
    total = quantity(summary["allocatable"][name])
    for taken in ("allocated", "allocating"):
        total = total - quantity((summary.get(taken) or {}).get(name, ZERO))
    return total


def summary_of(cluster: Obj) -> Obj | None:
    return (cluster.get("status") or {}).get("resourceSummary")


def grades_of(cluster: Obj) -> list[tuple[int, Mapping[str, int]]] | None:
    """Return, for a cluster that models its nodes, how many nodes of each grade there are and what each has at least.

    Lowest grade first; None when there is no model, or none that makes sense.
    """
    modelings = (summary_of(cluster) or {}).get("allocatableModelings")
    models = (cluster.get("spec") or {}).get("resourceModels")
    if not modelings or not models:
        return None
    counts: dict[int, int] = {}
    for modeling in modelings:
        grade = modeling.get("grade") or 0
        counts[grade] = counts.get(grade, 0) + (modeling.get("count") or 0)
    if any(count < 0 for count in counts.values()):
        return None
    return [
        (counts[model.get("grade") or 0], {r["name"]: amount(r["name"], quantity(r["min"])) for r in model["ranges"]})
        for model in sorted(models, key=_grade)
        if counts.get(model.get("grade") or 0)
    ]


def _grade(model: Obj) -> int:
    return model.get("grade") or 0


class Capacity:
    __slots__ = ("counts", "grades", "known", "left", "modelled", "pods", "version")

    def __init__(self) -> None:
        self.version = -1
        """The fleet's version that the rows are as new as."""
        self.known: Bools = np.zeros(0, np.bool_)
        self.pods: Ints = np.zeros(0, np.int64)
        self.left: dict[str, Ints] = {}
        self.modelled: Bools = np.zeros(0, np.bool_)
        self.counts: Ints = np.zeros((0, 0), np.int64)
        self.grades: dict[str, Ints] = {}
        """The least that a node of each grade has, by resource; a row for each cluster."""

    def refreshed(self, version: int, clusters: Sequence[Obj | None], rows: Iterable[int]) -> Capacity:
        """Return the next capacity, with these rows read anew, for so many clusters."""
        changed = list(rows)
        grades = {row: _grades_or_none(clusters[row]) for row in changed}
        size, width = len(clusters), max([self.counts.shape[1], *(len(found or ()) for found in grades.values())])
        new = Capacity()
        new.version = version
        new.known, new.modelled, new.pods = (_resized(a, size) for a in (self.known, self.modelled, self.pods))
        new.left = {name: _resized(values, size) for name, values in self.left.items()}
        new.counts = _resized(self.counts, size, width)
        new.grades = {name: _resized(values, size, width) for name, values in self.grades.items()}
        for values in (new.known, new.modelled, new.pods, new.counts, *new.left.values(), *new.grades.values()):
            values[changed] = 0
        for row in changed:
            new._read(row, clusters[row], grades[row])
        return new

    def _read(self, row: int, cluster: Obj | None, grades: list[tuple[int, Mapping[str, int]]] | None) -> None:
        summary = summary_of(cluster) if cluster is not None else None
        if summary is None:
            return
        self.known[row] = True
        for name in summary.get("allocatable") or ():
            here = max(amount(name, left_over(summary, name)), 0)
            if name == PODS:
                self.pods[row] = here
            self._column(self.left, name, self.pods.shape)[row] = here
        if grades is None:
            return
        self.modelled[row] = True
        for place, (count, least) in enumerate(grades):
            self.counts[row, place] = count
            for name, has in least.items():
                self._column(self.grades, name, self.counts.shape)[row, place] = has

    @staticmethod
    def _column(columns: dict[str, Ints], name: str, shape: tuple[int, ...]) -> Ints:
        if name not in columns:
            columns[name] = np.zeros(shape, np.int64)
        return columns[name]

    def rows(self, rows: Ints) -> Capacity:
        """Return a copy of some rows, for what is true of one binding only."""
        new = Capacity()
        new.version = self.version
        new.known, new.modelled = self.known[rows], self.modelled[rows]
        new.pods, new.counts = self.pods[rows], self.counts[rows]
        new.left = {name: values[rows] for name, values in self.left.items()}
        new.grades = {name: values[rows] for name, values in self.grades.items()}
        return new


def _grades_or_none(cluster: Obj | None) -> list[tuple[int, Mapping[str, int]]] | None:
    return None if cluster is None else grades_of(cluster)


def _resized(values: npt.NDArray[Any], *shape: int) -> npt.NDArray[Any]:
    if values.shape == shape:
        return values.copy()
    new = np.zeros(shape, values.dtype)
    new[tuple(slice(length) for length in values.shape)] = values
    return new
