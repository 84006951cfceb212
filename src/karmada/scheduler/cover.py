"""A set of clusters that meets several spread constraints at once.

Every constraint wants its number of groups between bounds. The search takes clusters one by one: each time one that
brings a new group where groups are wanting, best first, and never one that brings too many anywhere. When nothing is
wanting any more, it fills up in cluster order. Where it cannot go on, it takes back its last choice. It stops at the
first set with room enough for all replicas; if there is none, at the first it found. Finding a set can take very long
in contrived fleets, so the number of steps is limited.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from karmada.scheduler.placement import Bounds

_PATIENCE = 3000
Groups = tuple[tuple[str, ...], ...]
"""The groups of one cluster in each topology."""


@dataclass(slots=True)
class _State:
    """The clusters taken so far, and in each topology the groups they are in."""

    taken: list[int]
    groups: list[frozenset[str]]

    def plus(self, place: int, of: Groups) -> _State:
        return _State([*self.taken, place], [have.union(new) for have, new in zip(self.groups, of, strict=True)])


@dataclass(slots=True)
class Cover:
    members: Sequence[Groups]
    """For each place in cluster order the groups it is in; places that lack one in some topology are never taken."""
    bounds: Sequence[Bounds]
    """For each topology, how many groups."""
    clusters: Bounds
    """How many clusters."""
    available: Sequence[int]
    need: int
    """Replicas that should have room in the result; negative when that does not matter."""
    merit: Sequence[int]
    """For each place the weight of its groups."""
    steps: int = 0
    seen: set[frozenset[int]] = field(default_factory=set)

    def search(self) -> list[int] | None:
        """Places, in the order they were taken; None when no set was found."""
        first: list[int] | None = None
        for found in self._from(_State([], [frozenset()] * len(self.bounds))):
            if self.need < 0 or sum(self.available[place] for place in found) >= self.need:
                return found
            first = first or found
        return first

    def _from(self, state: _State) -> Iterator[list[int]]:
        self.steps += 1
        key = frozenset(state.taken)
        if self.steps > _PATIENCE or key in self.seen:
            return
        self.seen.add(key)
        wanting = [t for t, bounds in enumerate(self.bounds) if len(state.groups[t]) < bounds.least]
        if not wanting:
            filled = self._filled(state)
            if len(filled) >= self.clusters.least:
                yield filled
        if len(state.taken) >= self.clusters.most:
            return
        for place in self._next(state, wanting):
            yield from self._from(state.plus(place, self.members[place]))

    def _next(self, state: _State, wanting: list[int]) -> list[int]:
        """Return what to take next, best first: each brings a new group to the first topology that wants one."""
        found = []
        for place, groups in enumerate(self.members):
            if place in state.taken or not self._fits(state, groups):
                continue
            brings = [t for t in wanting if not state.groups[t].issuperset(groups[t])]
            if not wanting or wanting[0] in brings:
                found.append((-len(brings), -self.merit[place], place))
        return [place for _, _, place in sorted(found)]

    def _fits(self, state: _State, groups: Groups) -> bool:
        if not all(groups):
            return False
        return all(
            len(have.union(new)) <= bounds.most
            for have, new, bounds in zip(state.groups, groups, self.bounds, strict=True)
        )

    def _filled(self, state: _State) -> list[int]:
        for place, groups in enumerate(self.members):
            if len(state.taken) >= self.clusters.most:
                break
            if place not in state.taken and self._fits(state, groups):
                state = state.plus(place, groups)
        return state.taken
