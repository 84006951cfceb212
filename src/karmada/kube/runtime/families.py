"""Counters and histograms by labels, for what is counted at every decision and reconcile.

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
    """Return the bounds of buckets, each so many times the one before.

    Rounded as Go rounds, so that they are called alike.
    """
    return tuple(accumulate(repeat(factor, count - 1), mul, initial=first))


class Count:
    """One counter of a family."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0


class Counters:
    def __init__(self, name: str, text: str, labels: Sequence[str]) -> None:
        """Take a name without `_total`."""
        self._head = (name, text)
        self._labels = labels
        self._children: dict[Labels, Count] = {}

    def of(self, labels: Labels) -> Count:
        """Return the counter with these labels, which is 0 at first; for those who count often."""
        found = self._children.get(labels)
        if found is None:
            found = self._children[labels] = Count()
        return found

    def count(self, labels: Labels) -> None:
        self.of(labels).value += 1

    def family(self) -> CounterMetricFamily:
        family = CounterMetricFamily(*self._head, labels=self._labels)
        for labels, count in self._children.items():
            family.add_metric(labels, count.value)
        return family


class Distribution:
    """One histogram of a family."""

    __slots__ = ("_bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, seconds: float) -> None:
        self.counts[bisect_left(self._bounds, seconds)] += 1
        self.total += seconds


class Histograms:
    def __init__(self, name: str, text: str, labels: Sequence[str], bounds: Sequence[float]) -> None:
        self._head = (name, text)
        self._labels = labels
        self._bounds = bounds
        self._names = [*map(floatToGoString, bounds), "+Inf"]
        self._children: dict[Labels, Distribution] = {}

    def of(self, labels: Labels) -> Distribution:
        """Return the histogram with these labels, which is empty at first; for those who observe often."""
        found = self._children.get(labels)
        if found is None:
            found = self._children[labels] = Distribution(self._bounds)
        return found

    def observe(self, labels: Labels, seconds: float) -> None:
        self.of(labels).observe(seconds)

    def family(self) -> HistogramMetricFamily:
        family = HistogramMetricFamily(*self._head, labels=self._labels)
        for labels, found in self._children.items():
            buckets = list(zip(self._names, accumulate(found.counts), strict=True))
            family.add_metric(labels, buckets, found.total)
        return family
