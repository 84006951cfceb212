"""Which groups of clusters (regions, zones, …) to take, as one wants at least so many clusters in all.

Groups stand in a row: those with few clusters first, then those with the higher weight, then by name. A way to choose
is to walk along the row and take some until there are enough groups and enough clusters; it ends there. Of all ways the
one with the greatest weight wins, then the one with the most clusters, then the one that took earlier groups. If the
heaviest groups of the winner are a way on their own, the shortest such is taken.

Ways are many (all subsets, nearly), so the best one is found by dynamic programming over the row: for each position,
number of groups and number of clusters so far, the best that can still come.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Group(NamedTuple):
    name: str
    value: int
    """How many clusters it has."""
    weight: int


def choose(groups: Sequence[Group], least: int, most: int, target: int) -> list[Group] | None:
    """Return `least` to `most` groups with `target` clusters together, the heaviest first; None if there is no way."""
    if len(groups) < least or most < least:
        return None
    row = sorted(groups, key=lambda group: (group.value, -group.weight, group.name))
    if sum(group.value for group in row[:least]) >= target:
        best = sorted(row, key=lambda group: (-group.weight, -group.value))[:least]
    else:
        found = _best_way(row, least, most, target)
        if found is None:
            return None
        best = found
    best.sort(key=lambda group: (-group.weight, group.name))
    return next(
        (best[:length] for length in range(least, len(best)) if _is_way(best[:length], least, target)),
        best,
    )


def _is_way(groups: Sequence[Group], least: int, target: int) -> bool:
    """Return whether a walk would have ended with exactly these: enough, and not enough without the last in the row."""
    values = sorted((group.value, -group.weight, group.name) for group in groups)
    total = sum(value for value, _, _ in values)
    return total >= target and (len(groups) == least or total - values[-1][0] < target)


def _best_way(row: list[Group], least: int, most: int, target: int) -> list[Group] | None:
    """Walk backwards over the row; `weight[c, s]` is the best still to come with c groups and s clusters so far.

    A way longer than `least` has fewer than `target` clusters before its last group, so it has at most `target` groups.
    Ties go to taking a group, since that makes the way that is found first.
    """
    longest = min(most, len(row), max(least, target))
    shape = (longest + 1, target + 1)
    weight, value = np.full(shape, -1, np.int64), np.zeros(shape, np.int64)
    weight[least:, target] = 0
    taken = np.zeros((len(row), *shape), np.bool_)
    for place in range(len(row) - 1, -1, -1):
        group = row[place]
        after = np.minimum(np.arange(target + 1) + group.value, target)
        rest = weight[1:, after]
        heavier, more = rest + group.weight, value[1:, after] + group.value
        better = (heavier > weight[:-1]) | ((heavier == weight[:-1]) & (more >= value[:-1]))
        better &= rest >= 0
        better[least:, target] = False
        taken[place, :-1] = better
        weight[:-1] = np.where(better, heavier, weight[:-1])
        value[:-1] = np.where(better, more, value[:-1])
    return _walk(row, taken, target) if weight[0, 0] >= 0 else None


def _walk(row: list[Group], taken: np.ndarray[tuple[int, ...], np.dtype[np.bool_]], target: int) -> list[Group]:
    way: list[Group] = []
    total = 0
    for place, group in enumerate(row):
        if taken[place, len(way), min(total, target)]:
            way.append(group)
            total += group.value
    return way
