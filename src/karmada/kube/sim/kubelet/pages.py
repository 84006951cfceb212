"""The kubelet's own API: a node's pods, their usage, logs, exec and port-forward.

Served on the node's port, and through the API server as nodes/<name>/proxy. Counters of CPU time are updated when they
are read: by the present usage times the seconds since they were read before.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import NamedTuple

import orjson

from karmada.kube.objects import meta
from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.times import parse_time, rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key
from karmada.kube.server.handlers.pod_logs import LogOptions, container_named
from karmada.kube.server.http.request import Query
from karmada.kube.server.http.results import RawResult, Result
from karmada.kube.sim.controllers.podcontrol import BY_NODE
from karmada.kube.sim.kubelet.access import TEXT, PodAccess
from karmada.kube.sim.kubelet.channels import Wanted
from karmada.kube.sim.metrics.load import LoadModel
from karmada.kube.sim.metrics.reading import Reading, running_containers

PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
_NANO = 10**9


class Sample(NamedTuple):
    """One container: who it is, and what it uses now (nano cores, nano bytes)."""

    pod: Obj
    name: str
    started: float
    cpu: int
    memory: int


class KubeletPages:
    def __init__(self, access: PodAccess, load: LoadModel) -> None:
        self._access = access
        self._load = load
        self._counters: dict[str, _Counters] = {}
        self._pages: dict[str, Callable[[str], Awaitable[Result]]] = {
            "healthz": self._healthy,
            "pods": self._pods,
            "runningpods": self._pods,
            "metrics/resource": self._resource_metrics,
            "stats/summary": self._summary,
        }

    async def handle(self, node: str, path: str, query: Query, headers: Mapping[str, str]) -> Result:
        path = path.strip("/")
        page = self._pages.get(path)
        if page is not None:
            return await page(node)
        verb, *parts = path.split("/")
        if verb == "containerLogs" and len(parts) == 3:
            return self._logs(node, parts, query, stream=True)
        if verb in ("exec", "attach", "portForward"):
            return self._connect(verb, node, parts, query, headers)
        return RawResult(b"404 page not found\n", TEXT, 404)

    # pods

    def _pod(self, node: str, namespace: str, name: str) -> Obj | None:
        pod = self._load.pods.get(Key(namespace, name))
        return pod if pod is not None and (pod.get("spec") or {}).get("nodeName") == node else None

    def _logs(self, node: str, parts: list[str], query: Query, *, stream: bool) -> Result:
        namespace, name, container = parts
        pod = self._pod(node, namespace, name)
        if pod is None:
            return RawResult(f'pod "{name}" does not exist\n'.encode(), TEXT, 404)
        if container_named(pod, container) is None:
            return RawResult(f'container "{container}" not found in pod "{name}"\n'.encode(), TEXT, 404)
        options = LogOptions.parse(query, name, self._load.clock.now())
        return self._access.logs(pod, container, options, stream=stream)

    def _connect(self, verb: str, node: str, parts: list[str], query: Query, headers: Mapping[str, str]) -> Result:
        """Serve /exec/<namespace>/<pod>[/<uid>]/<container> and /portForward/<namespace>/<pod>[/<uid>]."""
        pod = self._pod(node, parts[0], parts[1]) if len(parts) >= 2 else None
        if pod is None:
            return RawResult(b"pod does not exist", TEXT, 404)
        if verb == "portForward":
            return self._access.port_forward(pod, query, headers)
        container = container_named(pod, parts[-1]) if len(parts) in (3, 4) else None
        if container is None:
            return RawResult(f'container not found ("{parts[-1]}")'.encode(), TEXT, 404)
        wanted = Wanted(*(query.flag(name) for name in ("input", "output", "error", "tty")))
        if verb == "attach":
            return self._access.attach(pod, container, wanted, headers)
        return self._access.exec(pod, container, query.all("command"), wanted, headers)

    # pages

    async def _healthy(self, _node: str) -> Result:
        return RawResult(b"ok", TEXT)

    async def _pods(self, node: str) -> Result:
        items = self._load.pods.by_index(BY_NODE, node)
        return RawResult(orjson.dumps({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items}))

    def _samples(self, reading: Reading, node: str) -> Iterator[Sample]:
        for pod in sorted(self._load.pods.by_index(BY_NODE, node), key=meta.key):
            started = dict(running_containers(pod))
            for one in reading.usage(pod, list(started)) if started else ():
                yield Sample(pod, one.name, started[one.name], one.cpu, one.memory)

    def _read(self, node: str) -> tuple[Reading, list[Sample], Obj, dict[str, int], _Counters]:
        found = self._load.nodes.get(Key("", node))
        reading = Reading(self._load)
        used = reading.node(found) if found is not None else None
        if found is None or used is None:
            raise NotFound(f'node "{node}" not found')
        samples = list(self._samples(reading, node))
        counters = self._counters.setdefault(node, _Counters())
        counters.advance(reading.now, {_identity(sample): (sample.cpu, sample.started) for sample in samples})
        created = meta.creation_time(found)
        counters.advance_node(reading.now, used["cpu"], parse_time(created) if created else reading.now)
        return reading, samples, found, used, counters

    async def _resource_metrics(self, node: str) -> Result:
        reading, samples, _, used, counters = self._read(node)
        return RawResult(resource_metrics(samples, used, counters, reading.now).encode(), PROMETHEUS)

    async def _summary(self, node: str) -> Result:
        reading, samples, found, used, counters = self._read(node)
        return RawResult(orjson.dumps(summary(found, samples, used, counters, reading.now)))


def _identity(sample: Sample) -> tuple[str, str, float]:
    return meta.uid(sample.pod), sample.name, sample.started


class _Counters:
    """CPU seconds of a node's containers, by who they are."""

    def __init__(self) -> None:
        self._seconds: dict[tuple[str, str, float], float] = {}
        self._read = 0.0
        self.node = 0.0
        self._node_read = 0.0

    def advance(self, now: float, used: dict[tuple[str, str, float], tuple[int, float]]) -> None:
        """Counters of containers that no longer exist are dropped."""
        self._seconds = {
            who: self._seconds.get(who, 0.0) + cpu / _NANO * max(0.0, now - max(started, self._read))
            for who, (cpu, started) in used.items()
        }
        self._read = now

    def advance_node(self, now: float, cpu: int, started: float) -> None:
        self.node += cpu / _NANO * max(0.0, now - max(started, self._node_read))
        self._node_read = now

    def of(self, sample: Sample) -> float:
        return self._seconds[_identity(sample)]


def resource_metrics(samples: list[Sample], used: dict[str, int], counters: _Counters, now: float) -> str:
    stamp = int(now * 1000)
    lines: list[str] = []

    def family(name: str, kind: str, text: str, values: list[tuple[str, float]]) -> None:
        lines.extend((f"# HELP {name} [STABLE] {text}", f"# TYPE {name} {kind}"))
        lines.extend(f"{name}{labels} {value:.9g} {stamp}" for labels, value in values)

    def labels(sample: Sample) -> str:
        namespace, pod = meta.key(sample.pod)
        return f'{{container="{sample.name}",namespace="{namespace}",pod="{pod}"}}'

    pods: dict[tuple[str, str], list[Sample]] = {}
    for sample in samples:
        pods.setdefault(meta.key(sample.pod), []).append(sample)
    whole = {key: f'{{namespace="{key[0]}",pod="{key[1]}"}}' for key in pods}
    family("container_cpu_usage_seconds_total", "counter", "CPU time used by the container, in core-seconds",
           [(labels(s), counters.of(s)) for s in samples])  # fmt: skip
    family("container_memory_working_set_bytes", "gauge", "Memory the container is working with, in bytes",
           [(labels(s), s.memory / _NANO) for s in samples])  # fmt: skip
    family("container_start_time_seconds", "gauge", "When the container started, in seconds since the epoch",
           [(labels(s), s.started) for s in samples])  # fmt: skip
    family(
        "node_cpu_usage_seconds_total", "counter", "CPU time used by the node, in core-seconds", [("", counters.node)]
    )
    family("node_memory_working_set_bytes", "gauge", "Memory the node is working with, in bytes",
           [("", used["memory"] / _NANO)])  # fmt: skip
    family("pod_cpu_usage_seconds_total", "counter", "CPU time used by the pod, in core-seconds",
           [(whole[key], sum(counters.of(s) for s in found)) for key, found in pods.items()])  # fmt: skip
    family("pod_memory_working_set_bytes", "gauge", "Memory the pod is working with, in bytes",
           [(whole[key], sum(s.memory for s in found) / _NANO) for key, found in pods.items()])  # fmt: skip
    lines.extend(("# HELP resource_scrape_error [STABLE] 1 if something could not be read, else 0",
                  "# TYPE resource_scrape_error gauge", "resource_scrape_error 0"))  # fmt: skip
    return "\n".join(lines) + "\n"


def summary(node: Obj, samples: list[Sample], used: dict[str, int], counters: _Counters, now: float) -> Obj:
    moment = rfc3339(now)

    def stats(cpu: int, seconds: float, memory: int) -> Obj:
        size = memory // _NANO
        return {
            "cpu": {"time": moment, "usageNanoCores": cpu, "usageCoreNanoSeconds": int(seconds * _NANO)},
            "memory": {"time": moment, "usageBytes": size, "workingSetBytes": size, "rssBytes": size},
        }

    pods: dict[tuple[str, str], Obj] = {}
    for sample in samples:
        namespace, name = meta.key(sample.pod)
        reference = {"name": name, "namespace": namespace, "uid": meta.uid(sample.pod)}
        started = (sample.pod.get("status") or {}).get("startTime")
        entry = pods.setdefault((namespace, name), {"podRef": reference, "startTime": started, "containers": []})
        measured = stats(sample.cpu, counters.of(sample), sample.memory)
        entry["containers"].append({"name": sample.name, "startTime": rfc3339(sample.started), **measured})
    for entry in pods.values():
        parts = entry["containers"]
        entry |= stats(
            sum(part["cpu"]["usageNanoCores"] for part in parts),
            sum(part["cpu"]["usageCoreNanoSeconds"] for part in parts) / _NANO,
            sum(part["memory"]["usageBytes"] for part in parts) * _NANO,
        )
    whole = {"nodeName": meta.name(node), "startTime": meta.creation_time(node)}
    return {"node": whole | stats(used["cpu"], counters.node, used["memory"]), "pods": list(pods.values())}
