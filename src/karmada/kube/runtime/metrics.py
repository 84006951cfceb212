"""Prometheus metrics of the runtime, under the names that Kubernetes' own controllers use.

A process has one `Metrics`, with a registry of its own (tests make as many as they like). Counters and histograms are
counted at every decision and reconcile: all of a process in one thread, so nothing is locked, counting takes a fraction
of a microsecond, and what a scraper gets is put together at the scrape. A key passes seven of them on its way, which
are bound to their labels once. Gauges are read from the living queues at each scrape.
"""

from __future__ import annotations

import weakref
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, repeat
from operator import mul
from typing import Protocol

from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

_QUEUE_BUCKETS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0, 1000.0)
_RECONCILE_BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


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


class Counters(dict[Labels, Count]):
    """Counters by labels; one that is read for the first time is 0."""

    def __init__(self, name: str, text: str, labels: Sequence[str]) -> None:
        """Take a name without `_total`."""
        super().__init__()
        self._head = (name, text)
        self._labels = labels

    def __missing__(self, labels: Labels) -> Count:
        found = self[labels] = Count()
        return found

    def family(self) -> CounterMetricFamily:
        family = CounterMetricFamily(*self._head, labels=self._labels)
        for labels, count in self.items():
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


class Histograms(dict[Labels, Distribution]):
    """Histograms by labels; one that is read for the first time is empty."""

    def __init__(self, name: str, text: str, labels: Sequence[str], bounds: Sequence[float]) -> None:
        super().__init__()
        self._head = (name, text)
        self._labels = labels
        self._bounds = bounds
        self._names = [*map(floatToGoString, bounds), "+Inf"]

    def __missing__(self, labels: Labels) -> Distribution:
        found = self[labels] = Distribution(self._bounds)
        return found

    def family(self) -> HistogramMetricFamily:
        family = HistogramMetricFamily(*self._head, labels=self._labels)
        for labels, found in self.items():
            buckets = list(zip(self._names, accumulate(found.counts), strict=True))
            family.add_metric(labels, buckets, found.total)
        return family


class MeasuredQueue(Protocol):
    """The figures that the gauges read from a queue."""

    def __len__(self) -> int: ...

    def unfinished(self) -> float: ...

    def longest_running(self) -> float: ...


class _QueueGauges(Collector):
    """Gauges of the living queues; those of one name are added up."""

    def __init__(self) -> None:
        self.names: weakref.WeakKeyDictionary[MeasuredQueue, str] = weakref.WeakKeyDictionary()

    def collect(self) -> Iterable[Metric]:
        queues: dict[str, list[MeasuredQueue]] = {}
        for queue, label in self.names.items():
            queues.setdefault(label, []).append(queue)
        for name, text, read in (
            ("workqueue_depth", "Keys that wait for a worker", lambda found: sum(map(len, found))),
            (
                "workqueue_unfinished_work_seconds",
                "Seconds of work under way",
                lambda found: sum(queue.unfinished() for queue in found),
            ),
            (
                "workqueue_longest_running_processor_seconds",
                "Seconds the oldest key has been with a worker",
                lambda found: max(queue.longest_running() for queue in found),
            ),
        ):
            family = GaugeMetricFamily(name, text, labels=["name"])
            for label, found in sorted(queues.items()):
                family.add_metric([label], read(found))
            yield family


class _Families(Collector):
    def __init__(self, *families: Counters | Histograms) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return [family.family() for family in self._families]


class Metrics:
    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        self.queues = _QueueGauges()
        registry.register(self.queues)

        self.queue_adds = Counters("workqueue_adds", "Keys put into the queue", ("name",))
        self.queue_retries = Counters("workqueue_retries", "Keys put in for later, as after a failure", ("name",))
        self.queue_wait = Histograms(
            "workqueue_queue_duration_seconds", "Seconds a key waits for a worker", ("name",), _QUEUE_BUCKETS
        )
        self.queue_work = Histograms(
            "workqueue_work_duration_seconds", "Seconds a worker holds a key", ("name",), _QUEUE_BUCKETS
        )
        self.reconciles = Counters("controller_runtime_reconcile", "Reconciles by outcome", ("controller", "result"))
        self.reconcile_errors = Counters("controller_runtime_reconcile_errors", "Failed reconciles", ("controller",))
        self.reconcile_time = Histograms(
            "controller_runtime_reconcile_time_seconds", "Seconds per reconcile", ("controller",), _RECONCILE_BUCKETS
        )
        registry.register(
            _Families(
                self.queue_adds, self.queue_retries, self.queue_wait, self.queue_work,
                self.reconciles, self.reconcile_errors, self.reconcile_time,
            )
        )  # fmt: skip
        self.workers = Gauge(
            "controller_runtime_max_concurrent_reconciles", "Workers", ["controller"], registry=registry
        )
        self.leading = Gauge("leader_election_master_status", "1 while this process leads", ["name"], registry=registry)

    def controller(self, name: str, queue: str = "") -> ControllerMetrics:
        """`queue`: what its queue is called, if not like the controller."""
        return ControllerMetrics(self, name, queue or name)

    def expose(self) -> tuple[bytes, str]:
        """Return the page for a scraper, and its content type."""
        return generate_latest(self.registry), CONTENT_TYPE_PLAIN_0_0_4


@dataclass(frozen=True, slots=True)
class QueueMetrics:
    """The figures that a queue reports; times are in seconds."""

    adds: Count
    retries: Count
    waited: Distribution
    worked: Distribution


class ControllerMetrics:
    def __init__(self, metrics: Metrics, name: str, queue: str) -> None:
        self._metrics = metrics
        self._name = name
        self._queue = queue
        label = (queue,)
        self.queue = QueueMetrics(
            metrics.queue_adds[label],
            metrics.queue_retries[label],
            metrics.queue_wait[label],
            metrics.queue_work[label],
        )
        self._outcomes = {
            outcome: metrics.reconciles[name, outcome] for outcome in ("success", "error", "requeue", "requeue_after")
        }
        self._errors = metrics.reconcile_errors[(name,)]
        self._time = metrics.reconcile_time[(name,)]

    def follow(self, queue: MeasuredQueue, workers: int) -> None:
        self._metrics.queues.names[queue] = self._queue
        self._metrics.workers.labels(self._name).set(workers)

    def reconciled(self, outcome: str, seconds: float) -> None:
        self._outcomes[outcome].value += 1
        self._time.observe(seconds)
        if outcome == "error":
            self._errors.value += 1
