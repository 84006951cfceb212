"""How many events a process has dropped, by component and cause, and how many it has merged."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from karmada.kube.runtime.event_writer import EventWriter


class EventMetrics(Collector):
    def __init__(self, writer: EventWriter) -> None:
        self._writer = writer

    def collect(self) -> Iterable[Metric]:
        family = CounterMetricFamily(
            "event_recorder_dropped_events", "Events that were not written", labels=["component", "cause"]
        )
        for labels, count in sorted(self._writer.dropped.items()):
            family.add_metric(labels, count)
        yield family
        merged = CounterMetricFamily(
            "event_recorder_merged_events",
            "Events that were written as a count of one that was still queued",
            labels=["component"],
        )
        for component, count in sorted(self._writer.merged.items()):
            merged.add_metric([component], count)
        yield merged
