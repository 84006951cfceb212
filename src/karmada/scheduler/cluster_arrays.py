"""Arrays with one row for each cluster, computed once for all who need them and kept up to date row by row.

A fleet and all that were made from it share one `ClusterArrays`. An array remembers the version it is as new as; when
it is read with a newer fleet, only the rows of clusters that have changed since, in the respect that matters, are
computed again, into a copy: who still works with the older fleet keeps the older array. The arrays that were not used
for the longest are dropped when there are too many.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

import numpy as np

from karmada.estimator.amounts import Ints
from karmada.kube.objects.memo import Memo

if TYPE_CHECKING:
    from karmada.scheduler.fleet import Facet, Fleet

Compute = Callable[["Fleet", Ints], "Ints | list[int]"]
"""The values for some slots."""
_LIMIT = 2048


class ClusterArrays:
    __slots__ = ("_arrays", "_numbers", "symbols")

    def __init__(self) -> None:
        self._arrays: Memo[Hashable, tuple[int, Ints]] = Memo(_LIMIT)
        self._numbers: dict[tuple[str, ...], int] = {}
        self.symbols: list[tuple[str, ...]] = []
        """The texts that numbers in arrays stand for."""

    def number(self, texts: tuple[str, ...]) -> int:
        """Return the number that stands for some texts."""
        found = self._numbers.get(texts)
        if found is None:
            found = self._numbers[texts] = len(self.symbols)
            self.symbols.append(texts)
        return found

    def array(self, key: Hashable, facet: Facet, fleet: Fleet, compute: Compute) -> Ints:
        """Return the values for all slots; those of empty slots mean nothing. Not to be written to."""
        found = self._arrays.get(key)
        if found is None:
            values = _computed(fleet, fleet.by_name, None, compute)
        else:
            version, values = found
            if version == fleet.version:
                return values
            if version > fleet.version:
                return _computed(fleet, fleet.by_name, None, compute)
            rows = fleet.changed_since(version, facet)
            if len(rows):
                values = _computed(fleet, rows, values, compute)
        self._arrays.put(key, (fleet.version, values))
        return values


def _computed(fleet: Fleet, rows: Ints, old: Ints | None, compute: Compute) -> Ints:
    values = np.zeros(fleet.size, np.int64)
    if old is not None:
        values[: len(old)] = old
    if len(rows):
        values[rows] = compute(fleet, rows)
    return values
