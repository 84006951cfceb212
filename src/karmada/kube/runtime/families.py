"""Counters and histograms by labels, for what is counted at every decision.

All of a process is counted in one thread, so nothing is locked: counting takes a fraction of a microsecond, and what a
scraper gets is put together at the scrape.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate, repeat
from operator import mul

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.utils import floatToGoString

Labels = tuple[str, ...]
"""Their values, in the order of the family's names."""


def growing(first: float, factor: float, count: int) -> tuple[float, ...]:
    """The bounds of buckets, each so many times the one before. Rounded as Go rounds, so that they are called alike."""
    return tuple(accumulate(repeat(factor, count - 1), mul, initial=first))


class Counters:
    def __init__(self, name: str, text: str, labels: Sequence[str]) -> None:
        """The name is without `_total`."""
        self._head = (name, text)
        self._labels = labels
        self._counts: dict[Labels, int] = {}

    def count(self, labels: Labels) -> None:
        self._counts[labels] = self._counts.get(labels, 0) + 1

    def family(self) -> CounterMetricFamily:
        family = CounterMetricFamily(*self._head, labels=self._labels)
        for labels, count in self._counts.items():
            family.add_metric(labels, count)
        return family


class _Histogram:
    __slots__ = ("counts", "total")

    def __init__(self, buckets: int) -> None:
        self.counts = [0] * buckets
        self.total = 0.0


class Histograms:
    def __init__(self, name: str, text: str, labels: Sequence[str], bounds: Sequence[float]) -> None:
        self._head = (name, text)
        self._labels = labels
        self._bounds = bounds
        self._names = [*map(floatToGoString, bounds), "+Inf"]
        self._children: dict[Labels, _Histogram] = {}

    def observe(self, labels: Labels, seconds: float) -> None:
        found = self._children.get(labels)
        if found is None:
            found = self._children[labels] = _Histogram(len(self._names))
        found.counts[bisect_left(self._bounds, seconds)] += 1
        found.total += seconds

    def family(self) -> HistogramMetricFamily:
        family = HistogramMetricFamily(*self._head, labels=self._labels)
        for labels, found in self._children.items():
            buckets = list(zip(self._names, accumulate(found.counts), strict=True))
            family.add_metric(labels, buckets, found.total)
        return family
