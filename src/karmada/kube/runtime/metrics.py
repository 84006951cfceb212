"""Prometheus metrics of the runtime, under the names that Kubernetes' own controllers use.

A process has one `Metrics`, with a registry of its own (tests make as many as they like). Counters and histograms are
bound to their labels once, and counted as `families` does it: a key passes seven of them on its way. Gauges are read
from the living queues at each scrape.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Protocol

from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector

from karmada.kube.runtime.families import Counters, Histograms

_QUEUE_BUCKETS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0, 1000.0)
_RECONCILE_BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


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


class BoundQueueMetrics:
    """The metrics of one queue (see queue.QueueMetrics)."""

    def __init__(self, metrics: Metrics, name: str) -> None:
        self._adds = metrics.queue_adds.of((name,))
        self._retries = metrics.queue_retries.of((name,))
        self._wait = metrics.queue_wait.of((name,))
        self._work = metrics.queue_work.of((name,))

    def added(self) -> None:
        self._adds.value += 1

    def taken(self, waited: float) -> None:
        self._wait.observe(waited)

    def finished(self, worked: float) -> None:
        self._work.observe(worked)

    def retried(self) -> None:
        self._retries.value += 1


class ControllerMetrics:
    def __init__(self, metrics: Metrics, name: str, queue: str) -> None:
        self._metrics = metrics
        self._name = name
        self._queue = queue
        self.queue = BoundQueueMetrics(metrics, queue)
        self._outcomes = {
            outcome: metrics.reconciles.of((name, outcome))
            for outcome in ("success", "error", "requeue", "requeue_after")
        }
        self._errors = metrics.reconcile_errors.of((name,))
        self._time = metrics.reconcile_time.of((name,))

    def follow(self, queue: MeasuredQueue, workers: int) -> None:
        self._metrics.queues.names[queue] = self._queue
        self._metrics.workers.labels(self._name).set(workers)

    def reconciled(self, outcome: str, seconds: float) -> None:
        self._outcomes[outcome].value += 1
        self._time.observe(seconds)
        if outcome == "error":
            self._errors.value += 1
