"""What was computed over all nodes, kept for the next request and brought up to date row by row.

Two memories: which nodes a claim selects, and how many replicas with some demand fit on each node that a claim selects.
Each entry knows the version of the snapshot it is as new as; the rows that changed since, in the respect that matters,
are computed again. So an estimate after a pod event costs a few array operations, and the same estimate again nothing.
Entries that were not used for the longest are dropped when there are too many.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from karmada.estimator.amounts import Bools, Ints
from karmada.estimator.matching import Matcher, claim_key
from karmada.estimator.resources import Demand
from karmada.estimator.snapshot import Snapshot
from karmada.kube.objects.memo import Memo
from karmada.kube.objects.types import Obj

_CLAIMS, _DEMANDS = 256, 128
S = TypeVar("S", bound=np.generic)


class _Matches:
    """The nodes that a claim selects."""

    __slots__ = ("matcher", "rows", "selected", "version")

    def __init__(self, claim: Obj | None) -> None:
        self.matcher = Matcher(claim)
        self.selected: Bools = np.zeros(0, np.bool_)
        self.rows: Ints = np.zeros(0, np.int64)
        self.version = -1

    def update(self, snapshot: Snapshot) -> None:
        if self.version == snapshot.version:
            return
        self.selected = _resized(self.selected, len(snapshot.present))
        changed = np.flatnonzero(snapshot.facts_changed > self.version) if self.version >= 0 else snapshot.rows()
        self.version = snapshot.version
        if not len(changed):
            return
        self.selected[changed] = snapshot.present[changed]
        unclear = changed if not self.matcher.selects_all else changed[snapshot.tainted[changed]]
        for row in unclear[snapshot.present[unclear]].tolist():
            name, labels, taints = snapshot.facts(row)
            self.selected[row] = self.matcher.selects(name, labels) and self.matcher.tolerates(taints)
        self.rows = np.flatnonzero(self.selected)


class _Fits:
    """How many replicas fit on each node."""

    __slots__ = ("demand", "matches", "on_each", "total", "version")

    def __init__(self, matches: _Matches, demand: Demand) -> None:
        self.matches = matches
        self.demand = demand
        self.on_each: Ints = np.zeros(0, np.int64)
        self.total = 0
        self.version = -1

    def update(self, snapshot: Snapshot) -> None:
        if self.version == snapshot.version:
            return
        self.matches.update(snapshot)
        self.on_each = _resized(self.on_each, len(snapshot.present))
        changed = np.flatnonzero(snapshot.changed > self.version) if self.version >= 0 else snapshot.rows()
        self.version = snapshot.version
        now = snapshot.room.fits(self.demand, changed)
        now[~self.matches.selected[changed]] = 0
        self.total += int(now.sum() - self.on_each[changed].sum())
        self.on_each[changed] = now


class Answers:
    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._matches: Memo[bytes, _Matches] = Memo(_CLAIMS)
        self._fits: Memo[Hashable, _Fits] = Memo(_DEMANDS)

    def selected(self, claim: Obj | None) -> Ints:
        """Return the rows of the nodes that a claim selects."""
        matches = self._matching(claim_key(claim), claim)
        matches.update(self._snapshot)
        return matches.rows

    def replicas(self, claim: Obj | None, demand: Demand) -> int:
        """Return how many replicas fit on the nodes that a claim selects."""
        claimed = claim_key(claim)
        key = (claimed, tuple(demand.items()))
        fits = self._fits.get(key)
        if fits is None:
            fits = self._fits.put(key, _Fits(self._matching(claimed, claim), demand))
        fits.update(self._snapshot)
        return fits.total

    def _matching(self, key: bytes, claim: Obj | None) -> _Matches:
        found = self._matches.get(key)
        return found if found is not None else self._matches.put(key, _Matches(claim))


def _resized(values: npt.NDArray[S], size: int) -> npt.NDArray[S]:
    """Return the values with zeroes for what was added."""
    return values if len(values) == size else np.pad(values, (0, size - len(values)))
