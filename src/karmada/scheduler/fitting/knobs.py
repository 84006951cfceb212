"""A change of which there is more or less, and what is worth trying with such changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from karmada.scheduler.fitting.changes import Change, Sort

Sizes = tuple[int, ...]
"""The sizes of several knobs; 0 for one that is not used."""


class Knob(NamedTuple):
    make: Callable[[int], Change]
    """The change of a size, from 1 to `limit`."""
    limit: int = 1


def fixed(change: Change) -> Knob:
    """Return the knob of a change that is made or not."""
    return Knob(lambda _size: change)


def changes_of(knobs: Sequence[Knob], sizes: Sizes) -> tuple[Change, ...]:
    return tuple(knob.make(size) for knob, size in zip(knobs, sizes, strict=True) if size)


@dataclass(frozen=True, slots=True)
class Option:
    """Changes of one sort about one thing: the taints of a cluster, its resources, a spread constraint."""

    sort: Sort
    about: str
    """The cluster; empty when it is about none."""
    knobs: tuple[Knob, ...]
    alone: bool = True
    """True if it is likely to help without another one."""


def distinct(options: Iterable[Option]) -> Iterator[Option]:
    """Yield the first of equal options, such as for a taint that many clusters have, or a cluster in several groups."""
    seen: set[tuple[str, ...]] = set()
    for option in options:
        key = tuple(knob.make(knob.limit).text for knob in option.knobs)
        if key and key not in seen:
            seen.add(key)
            yield option
