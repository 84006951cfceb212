"""The server's own metrics, kept as plain counters on the hot path and shaped for Prometheus when scraped."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from karmada.kube.runtime.watchdog import STALLS
from karmada.kube.server.http.request import RequestInfo

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

BUCKETS = (0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 60.0)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_LONG_RUNNING = frozenset({"watch"})


UNKNOWN = RequestInfo(False, "other", "")
"""The labels of requests that were refused or had no such path: callers must not choose labels."""


class Series(NamedTuple):
    verb: str
    group: str
    version: str
    resource: str
    subresource: str
    scope: str


class RequestMetrics:
    def __init__(self) -> None:
        self._codes: dict[tuple[Series, int], int] = {}
        self._sums: dict[Series, float] = {}
        self._buckets: dict[Series, list[int]] = {}
        self._of_process: CollectorRegistry | None = None
        self.gauges: dict[str, Callable[[], Iterable[tuple[dict[str, str], float]]]] = {}
        self.others: Callable[[], bytes] = bytes
        """The metrics of what else runs in this process, as a page."""

    def observe(self, info: RequestInfo, code: int, seconds: float) -> None:
        scope = ("resource" if info.name else "namespace" if info.namespace else "cluster") if info.is_resource else ""
        series = Series(info.verb.upper(), info.group, info.version, info.resource, info.subresource, scope)
        key = (series, code)
        self._codes[key] = self._codes.get(key, 0) + 1
        if info.verb in _LONG_RUNNING:
            return
        self._sums[series] = self._sums.get(series, 0.0) + seconds
        buckets = self._buckets.get(series)
        if buckets is None:
            buckets = self._buckets[series] = [0] * (len(BUCKETS) + 1)
        buckets[bisect_left(BUCKETS, seconds)] += 1

    def expose(self) -> tuple[bytes, str]:
        """Return the page for a scraper, and its content type."""
        return self._page(), CONTENT_TYPE

    def _page(self) -> bytes:
        lines = ["# TYPE apiserver_request_total counter"]
        lines += [
            f'apiserver_request_total{{{_labels(series)},code="{code}"}} {count}'
            for (series, code), count in self._codes.items()
        ]
        lines.append("# TYPE apiserver_request_duration_seconds histogram")
        for series, buckets in self._buckets.items():
            lines += _histogram(series, buckets, self._sums[series])
        for name, read in self.gauges.items():
            lines.append(f"# TYPE {name} gauge")
            lines += [f"{name}{_braces(labels)} {value:g}" for labels, value in read()]
        return ("\n".join(lines) + "\n").encode() + self.others() + self._process()

    def _process(self) -> bytes:
        """process_cpu_seconds_total, process_resident_memory_bytes and the like, and the stalls of the event loop."""
        from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest

        if self._of_process is None:
            self._of_process = CollectorRegistry()
            ProcessCollector(registry=self._of_process)
            self._of_process.register(STALLS)
        return generate_latest(self._of_process)


def _labels(series: Series) -> str:
    return ",".join(f'{key}="{_escape(value)}"' for key, value in zip(Series._fields, series, strict=True))


def _braces(labels: dict[str, str]) -> str:
    inner = ",".join(f'{key}="{_escape(value)}"' for key, value in labels.items())
    return f"{{{inner}}}" if inner else ""


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _histogram(series: Series, buckets: list[int], total: float) -> list[str]:
    name, labels, seen, lines = "apiserver_request_duration_seconds", _labels(series), 0, []
    for bound, count in zip((*map(str, BUCKETS), "+Inf"), buckets, strict=True):
        seen += count
        lines.append(f'{name}_bucket{{{labels},le="{bound}"}} {seen}')
    lines.append(f"{name}_sum{{{labels}}} {total:g}")
    lines.append(f"{name}_count{{{labels}}} {seen}")
    return lines
