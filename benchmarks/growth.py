"""How cost grows with size: the exponent e of cost = c · size^e, by least squares on the logarithms.

1 is linear, 2 is quadratic, 0 does not grow. A constant part (a process has to start) bends the line at small sizes and
makes the exponent smaller than it is for large ones; the residual shows how far from a line the points are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec


class Fit(msgspec.Struct, frozen=True):
    exponent: float
    factor: float
    """The cost at size 1."""
    residual: float
    """How far a point is from the line at most, as a share of its value."""

    def at(self, size: float) -> float:
        return float(self.factor * size**self.exponent)


def fit(points: Sequence[tuple[float, float]]) -> Fit | None:
    """Of (size, cost) points; None when fewer than two sizes have a positive cost."""
    usable = [(math.log(size), math.log(cost)) for size, cost in points if size > 0 and cost > 0]
    if len({x for x, _ in usable}) < 2:
        return None
    middle_x = math.fsum(x for x, _ in usable) / len(usable)
    middle_y = math.fsum(y for _, y in usable) / len(usable)
    slope = math.fsum((x - middle_x) * (y - middle_y) for x, y in usable) / math.fsum(
        (x - middle_x) ** 2 for x, _ in usable
    )
    intercept = middle_y - slope * middle_x
    residual = max(abs(math.expm1(y - intercept - slope * x)) for x, y in usable)
    return Fit(slope, math.exp(intercept), residual)
