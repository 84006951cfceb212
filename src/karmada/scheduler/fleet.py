"""All clusters at one moment: the objects, indexes over them, and arrays for what is computed over all of them.

A cluster keeps its slot (a row number) as long as it is there, so arrays over slots stay valid while clusters change.
A `Fleet` itself never changes: `updated` makes the next one from what has changed since, so that a decision that waits
for an answer from afar ends on the fleet it began with. For every slot it is known at which version the cluster last
changed in each respect (`Facet`); a heartbeat that only reports other usage makes nobody match selectors again.

Arrays have one row for each cluster; a fleet and all that were made from it share one `ClusterArrays`. An array
remembers the version it is as new as; when it is read with a newer fleet, only the rows of clusters that have changed
since, in the respect that matters, are computed again, into a copy: who still works with the older fleet keeps the
older array. The arrays that were not used for the longest are dropped when there are too many.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from karmada.estimator.amounts import Bools, Ints
from karmada.kube.objects import meta
from karmada.kube.objects.memo import Memo
from karmada.kube.objects.types import Obj
from karmada.scheduler.capacity import Capacity, summary_of

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


class Facet(IntEnum):
    """In what respect a cluster changed."""

    FACTS = 0
    """Its labels, its spec, and whether it is being deleted."""
    APIS = 1
    """The kinds it serves."""
    CAPACITY = 2
    """The capacity that it has left, and how it models its nodes."""
    SELECTION = 3
    """Its facts or the kinds it serves."""
    ANY = 4


class Fleet:
    __slots__ = (
        "_capacity",
        "_changed",
        "arrays",
        "by_name",
        "clusters",
        "count",
        "deleting",
        "leaving",
        "named",
        "names",
        "rank",
        "size",
        "slots",
        "version",
    )  # fmt: skip

    def __init__(self) -> None:
        self.version = 0
        self.arrays = ClusterArrays()
        self.size = 0
        """How many slots there are, empty ones included."""
        self.count = 0
        """How many clusters there are."""
        self.clusters: Sequence[Obj | None] = []
        self.names: Sequence[str] = []
        self.named: npt.NDArray[np.object_] = np.zeros(0, np.object_)
        """The names, to be taken by many slots at once."""
        self.slots: Mapping[str, int] = {}
        self.by_name: Ints = np.zeros(0, np.int64)
        """The slots in use, in the order of names."""
        self.rank: Ints = np.zeros(0, np.int64)
        """For each slot in use its place in by_name."""
        self.deleting: Bools = np.zeros(0, np.bool_)
        self.leaving: Sequence[str] = ()
        """The clusters that are being deleted."""
        self._changed: Ints = np.zeros((len(Facet), 0), np.int64)
        self._capacity = Capacity()

    @classmethod
    def of(cls, clusters: Iterable[Obj]) -> Fleet:
        return cls().updated({cluster["metadata"]["name"]: cluster for cluster in clusters})

    def cluster(self, slot: int) -> Obj:
        found = self.clusters[slot]
        assert found is not None, "an empty slot"
        return found

    def updated(self, changes: Mapping[str, Obj | None]) -> Fleet:
        """Return the next fleet, with these clusters added or replaced, or, where there is None, removed."""
        clusters = list(self.clusters)
        slots, places = self._placed(changes)
        clusters += [None] * (len(places) and max(places.values()) + 1 - len(clusters))
        new = Fleet()
        new.version, new.arrays, new.size = self.version + 1, self.arrays, len(clusters)
        new._changed = np.full((len(Facet), new.size), -1, np.int64)
        new._changed[:, : self.size] = self._changed
        new.deleting = np.zeros(new.size, np.bool_)
        new.deleting[: self.size] = self.deleting
        for name, cluster in changes.items():
            slot = places.get(name)
            if slot is None:
                continue
            for facet in _differences(clusters[slot], cluster):
                new._changed[facet, slot] = new.version
            clusters[slot] = cluster
            new.deleting[slot] = cluster is not None and meta.is_deleting(cluster)
        new.clusters, new.slots, new.count, new._capacity = clusters, slots, len(slots), self._capacity
        new._index(self)
        new.leaving = tuple(new.names[slot] for slot in np.flatnonzero(new.deleting).tolist())
        return new

    def _placed(self, changes: Mapping[str, Obj | None]) -> tuple[Mapping[str, int], dict[str, int]]:
        """Return the slots of all clusters afterwards, and those that the changes are about. A slot is used again."""
        added = [name for name, cluster in changes.items() if cluster is not None and name not in self.slots]
        removed = [name for name, cluster in changes.items() if cluster is None and name in self.slots]
        places = {name: self.slots[name] for name in changes if name in self.slots}
        if not added and not removed:
            return self.slots, places
        slots = {name: slot for name, slot in self.slots.items() if name not in changes or changes[name] is not None}
        free = [slot for slot in range(self.size) if self.clusters[slot] is None]
        end = self.size
        for name in added:
            if not free:
                free.append(end)
                end += 1
            slots[name] = places[name] = free.pop()
        return slots, places

    def _index(self, old: Fleet) -> None:
        if self.slots is old.slots:
            self.names, self.named, self.by_name, self.rank = old.names, old.named, old.by_name, old.rank
            return
        names = [""] * self.size
        for name, slot in self.slots.items():
            names[slot] = name
        self.names, self.named = names, np.array(names, np.object_)
        self.by_name = np.array([self.slots[name] for name in sorted(self.slots)], np.int64)
        self.rank = np.zeros(self.size, np.int64)
        self.rank[self.by_name] = np.arange(len(self.by_name))

    def changed_since(self, version: int, facet: Facet) -> Ints:
        """Return the slots of clusters that have changed since a version; not of those that have gone."""
        rows = np.flatnonzero(self._changed[facet] > version)
        return (
            rows
            if self.count == self.size
            else np.array([row for row in rows.tolist() if self.clusters[row] is not None], np.int64)
        )

    @property
    def capacity(self) -> Capacity:
        """Return the capacity that the clusters have left; computed at the first use."""
        capacity = self._capacity
        if capacity.version != self.version:
            rows = self.changed_since(capacity.version, Facet.CAPACITY)
            if len(rows) or len(capacity.pods) != self.size:
                capacity = capacity.refreshed(self.version, self.clusters, rows.tolist())
                self._capacity = capacity
        return capacity


def _differences(old: Obj | None, new: Obj | None) -> Iterable[Facet]:
    if old is None or new is None:
        return Facet
    found = [Facet.ANY] if old is not new else []
    spec, status = new.get("spec") or {}, new.get("status") or {}
    old_spec, old_status = old.get("spec") or {}, old.get("status") or {}
    if (
        meta.labels(old) != meta.labels(new)
        or old_spec != spec
        or meta.is_deleting(old) != meta.is_deleting(new)
        or meta.uid(old) != meta.uid(new)
    ):
        found.append(Facet.FACTS)
    if old_status.get("apiEnablements") != status.get("apiEnablements"):
        found.append(Facet.APIS)
    if len(found) > 1:
        found.append(Facet.SELECTION)
    if summary_of(old) != summary_of(new) or old_spec.get("resourceModels") != spec.get("resourceModels"):
        found.append(Facet.CAPACITY)
    return found
