"""How many completions of a Job each of its clusters gets: Webster's method, weighted by replicas.

Seats go one by one to the cluster with the largest weight/(2·seats+1). All but the last few of them are given out at
once: as many as each cluster has for certain when the quotient is somewhat above where the method ends.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping

from karmada.kube.objects.hashing import fnv32a


def divide(completions: int, weights: Mapping[str, int], uid: str = "") -> dict[str, int]:
    """Completions by cluster; empty when no cluster has a weight.

    Of clusters with the same claim the one with fewer seats is first, then the one whose name is, seen from the end of
    the alphabet that `uid`, the Job's, chooses.
    """
    total = sum(weights.values())
    if total <= 0:
        return {}
    descending = bool(uid) and fnv32a(uid) % 2 == 1
    names = sorted(weights, reverse=descending)
    seats = {name: _certain(weights[name], total, completions, len(names)) for name in names}
    line = [(-_quotient(weights[name], seats[name]), seats[name], rank, name) for rank, name in enumerate(names)]
    heapq.heapify(line)
    for _ in range(completions - sum(seats.values())):
        _, _, rank, name = line[0]
        seats[name] += 1
        heapq.heapreplace(line, (-_quotient(weights[name], seats[name]), seats[name], rank, name))
    return {name: seats[name] for name in weights}


def _quotient(weight: int, seats: int) -> float:
    return weight / (2 * seats + 1)


def _certain(weight: int, total: int, completions: int, parties: int) -> int:
    """Seats that come before the last ones whatever the others get."""
    sure = completions - parties / 2
    return max(0, math.floor(weight * sure / total + 0.5) - 1) if sure > 0 else 0
