"""Webster's method: seats in proportion to weights, exactly as if each seat were given out on its own.

The next seat goes to the largest weight/(2·seats+1), computed as a double; then to who has fewer seats; then to the
first in the order the weights come in. `one_by_one` does just that with a heap. With many parties or seats that is
slow, so `in_bulk` first gives out at once all seats whose quotient is above a limit (those come first in any case),
chosen such that few seats remain, and then the rest in batches: in the order of the next quotients, up to where
somebody's second next would have come before.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from math import sqrt
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_SMALL = 100
"""Below about so many seats plus half the parties a heap is faster than arrays."""
_ROUNDS = 5
_BATCHES = 4


def dispense(seats: int, weights: Mapping[str, int], *, descending: bool = False) -> dict[str, int]:
    """Return seats by name, in the order of names; ties go to the first name, or to the last if `descending`.

    Empty when no weight is positive.
    """
    names = sorted(weights)
    shares = apportion(seats, [weights[name] for name in names], descending=descending)
    return dict(zip(names, shares, strict=True)) if shares else {}


def apportion(seats: int, weights: Sequence[int], *, descending: bool = False) -> list[int]:
    """Return seats for weights, ties to the earlier (or, if `descending`, the later); empty when all weights are 0."""
    if not any(weights):
        return []
    if descending:
        return apportion(seats, weights[::-1])[::-1]
    if seats + len(weights) // 2 < _SMALL:
        return one_by_one(seats, weights)
    return in_bulk(seats, weights)


def one_by_one(seats: int, weights: Sequence[int]) -> list[int]:
    given, parties = [0] * len(weights), list(map(float, weights))
    places: Sequence[int] = range(len(weights))
    if seats < len(weights):  # only as many as there are seats can get any
        places = sorted(places, key=parties.__getitem__, reverse=True)[:seats]
    _continue(seats, [(-parties[place], 0, place) for place in places if parties[place] > 0], parties, given)
    return given


def _continue(seats: int, heap: list[tuple[float, int, int]], weights: Sequence[float], given: list[int]) -> None:
    """Give out seats one by one; the heap has (−quotient, seats, place) of everybody who can get one."""
    heapq.heapify(heap)
    for _ in range(seats):
        _, had, place = heap[0]
        had += 1
        given[place] = had
        heapq.heapreplace(heap, (-(weights[place] / (2 * had + 1)), had, place))


def in_bulk(seats: int, weights: Sequence[int]) -> list[int]:
    import numpy as np

    if seats <= 0:
        return [0] * len(weights)
    everybody = np.array(weights, dtype=np.float64)
    places = np.flatnonzero(everybody > 0)
    parties = everybody[places]
    given = _above_a_limit(seats, parties)
    left = seats - int(given.sum())
    for _ in range(_BATCHES):
        if left == 0:
            break
        left -= _batch(left, parties, given)
    if left:
        _rest(left, parties, given)
    result = np.zeros(len(everybody), dtype=np.int64)
    result[places] = given
    shares: list[int] = result.tolist()
    return shares


def _above_a_limit(seats: int, parties: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Return all seats whose quotient is above a limit: never more than there are, with a good limit almost as many.

    With a limit of 1/x a party has (w·x ± 1)/2 seats, about w·x/2. So x is first a little below 2·seats/Σw, and then
    corrected by what it gave; the best that does not give too much is kept. (2·seats − parties)/Σw never gives too much
    and leaves no more seats than there are parties: that is taken when nothing better is found.
    """
    import numpy as np

    best, most = np.zeros(len(parties), dtype=np.int64), 0
    low, high = 0.0, float("inf")
    size, weight = len(parties), float(parties.sum())
    rate = max(2.0 * seats - 1.2 * sqrt(size), 1.0) / weight
    for _ in range(_ROUNDS):
        given = _count_above(1.0 / rate, parties)
        total = int(given.sum())
        if total <= seats:
            low = rate
            if total <= most < seats and total:
                break
            best, most = given, total
            if seats - total <= size // 2:
                return best
        else:
            high = rate
        active = parties[parties * rate > 1.0]
        slope = float(active.sum()) / 2.0 or float(parties.max()) / 2.0
        rate += (seats - 0.5 - total) / slope
        if not low < rate < high:
            rate = (low + high) / 2.0 if high < float("inf") else low * 2.0
    if seats - most > size:
        best = _count_above(weight / (2.0 * seats - size), parties)
    return best


def _count_above(limit: float, parties: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Return for each party how many s from 0 on have weight/(2s+1) > limit; rounded quotients are checked again."""
    import numpy as np

    count = np.maximum(np.ceil((parties / limit - 1.0) * 0.5), 0.0)
    count -= (count > 0) & (parties / (2.0 * count - 1.0) <= limit)
    count += parties / (2.0 * count + 1.0) > limit
    return count.astype(np.int64)


def _batch(left: int, parties: npt.NDArray[np.float64], given: npt.NDArray[np.int64]) -> int:
    """Give a seat each to as many as surely come next; how many that were."""
    import numpy as np

    quotients = parties / (2 * given + 1)
    order = np.lexsort((given, -quotients))[:left]
    second = np.maximum.accumulate(parties[order] / (2 * given[order] + 3))
    overtaken = np.flatnonzero(quotients[order[1:]] <= second[:-1])
    sure = order[: int(overtaken[0]) + 1] if len(overtaken) else order
    given[sure] += 1
    return len(sure)


def _rest(left: int, parties: npt.NDArray[np.float64], given: npt.NDArray[np.int64]) -> None:
    """Give the last seats one by one: only as many parties as there are seats can get any."""
    import numpy as np

    quotients = parties / (2 * given + 1)
    order = np.lexsort((given, -quotients))[:left]
    order.sort()
    shares: list[int] = given[order].tolist()
    heap = [
        (-quotient, had, place)
        for place, (quotient, had) in enumerate(zip(quotients[order].tolist(), shares, strict=True))
    ]
    _continue(left, heap, parties[order].tolist(), shares)
    given[order] = shares
