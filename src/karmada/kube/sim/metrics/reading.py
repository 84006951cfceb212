"""A reading: what every pod and node uses at one moment, computed on request.

The usage of a pod comes from, in this order: settings (the more exactly one names the pod, the earlier it counts, then
the younger), the pod's own annotation, the annotations of its workload from the top down. For each measure (cpu,
memory, a custom metric) the first that has it decides. A pod without any source is idle. A total is shared by the ready
pods of its target: of the setting's, or of the workload.

Counts and owners found for one pod serve for the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from karmada.kube.objects import meta
from karmada.kube.objects.podstate import is_active, is_ready, node_name, phase
from karmada.kube.objects.quantity import Quantity
from karmada.kube.objects.selectors import EVERYTHING, LabelSelector
from karmada.kube.objects.times import parse_time
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key
from karmada.kube.sim.controllers.podcontrol import BY_CONTROLLER, BY_NODE
from karmada.kube.sim.metrics.amounts import (
    ANNOTATION,
    NANO,
    RESOURCES,
    WINDOW_SECONDS,
    Demand,
    annotated,
    chance,
    nano_at,
)
from karmada.kube.sim.metrics.load import LoadModel, Rule

IDLE = {"cpu": (NANO // 1000, 2 * NANO // 1000), "memory": (8 * 2**20 * NANO, 16 * 2**20 * NANO)}
"""Resources that an idle container uses: at least, and by chance more."""
NODE_OVERHEAD = {"cpu": 60 * NANO // 1000, "memory": 320 * 2**20 * NANO}
"""Resources that the node itself needs."""
_IDLE_WOBBLE = 0.05
_MOST_LEVELS = 5
"""Bounds the walk, since users can create cycles of owner references."""
_KIBI = 1024 * NANO


class Measured(NamedTuple):
    """One container: its name, nano cores, nano bytes."""

    name: str
    cpu: int
    memory: int


class _Source(NamedTuple):
    """A source of load: `key` and `members` say whose ready pods share its totals."""

    demand: Demand
    since: float
    key: str
    members: Iterable[Obj]
    labels: Mapping[str, str] = {}


class Reading:
    """The usage at one moment."""

    def __init__(self, model: LoadModel) -> None:
        self._model = model
        self.now = model.clock.now()
        self._window = int(self.now // WINDOW_SECONDS)
        self._rules = list(reversed(model.rules.items()))
        self._rules.sort(key=lambda item: -item[1].exactness)
        self._ready: dict[str, int] = {}
        self._chains: dict[str, list[Obj]] = {}

    # pods

    def containers(self, pod: Obj) -> list[Measured] | None:
        """Return the usage of its containers; None before the first sample."""
        if phase(pod) != "Running" or self._lost(node_name(pod)):
            return None
        names = [name for name, since in running_containers(pod) if since + self._model.first_sample <= self.now]
        return self.usage(pod, names) if names else None

    def usage(self, pod: Obj, names: list[str]) -> list[Measured]:
        """Usage of these containers, whichever API reports it."""
        sources = list(self._sources(pod))
        cpu, memory = (self._divided(pod, names, resource, sources) for resource in RESOURCES)
        return [Measured(name, cpu[name], _whole_kibi(memory[name])) for name in names]

    def metric(self, pod: Obj, name: str, series: LabelSelector = EVERYTHING) -> int | None:
        """Return the value of a custom metric; None if the pod has no such metric."""
        if phase(pod) != "Running":
            return None
        for source in self._sources(pod):
            if source.demand.has(name) and series.matches(source.labels):
                return self._demanded(source, pod, name, 0)
        return None

    def workload_metric(self, owner_uid: str, name: str, series: LabelSelector = EVERYTHING) -> int | None:
        """Return the sum over a workload's pods; None if none has the metric."""
        values = [value for pod in self._below(owner_uid) if (value := self.metric(pod, name, series)) is not None]
        return sum(values) if values else None

    def object_metric(
        self, kind: str, namespace: str, name: str, metric: str, series: LabelSelector = EVERYTHING
    ) -> int | None:
        """Return the metric that a setting gives to an object itself."""
        for _, rule in self._rules:
            setting = rule.setting
            named = setting.kind == kind and setting.name == name and setting.namespace in ("", namespace)
            if named and metric in setting.object and series.matches(setting.labels):
                return nano_at(setting.object[metric], self.now - setting.since)
        return None

    # nodes

    def node(self, node: Obj) -> dict[str, int] | None:
        """Return nano units by resource: its pods and its own needs, at most what it has.

        None when the node is not reachable.
        """
        name = meta.name(node)
        if self._lost(name):
            return None
        used = dict(NODE_OVERHEAD)
        for pod in self._model.pods.by_index(BY_NODE, name):
            names = [container for container, _ in running_containers(pod)]
            for measured in self.usage(pod, names) if names else ():
                used["cpu"] += measured.cpu
                used["memory"] += measured.memory
        capacity = (node.get("status") or {}).get("capacity") or {}
        for resource in RESOURCES:
            if resource in capacity:
                used[resource] = min(used[resource], Quantity.parse(capacity[resource]).nano)
        return {"cpu": used["cpu"], "memory": _whole_kibi(used["memory"])}

    def _lost(self, name: str) -> bool:
        node = self._model.nodes.get(Key("", name)) if name else None
        ready = meta.get_condition(((node or {}).get("status") or {}).get("conditions"), "Ready")
        return ready is not None and ready.get("status") != "True"

    # sources of load of a pod

    def _sources(self, pod: Obj) -> Iterator[_Source]:
        for name, rule in self._rules:
            if self._hits(rule, pod):
                yield _Source(
                    rule.demand, rule.setting.since, f"setting/{name}", self._targets(rule), rule.setting.labels
                )
        owners = self._owners(pod)
        text = meta.annotations(pod).get(ANNOTATION)
        if text:
            group = owners[-1]["uid"] if owners else ""
            members = self._below(group) if group else (pod,)
            yield _Source(annotated(text), 0.0, group or meta.uid(pod), members)
        for owner in reversed(owners):
            text = meta.annotations(self._workload(pod, owner) or {}).get(ANNOTATION)
            if text:
                yield _Source(annotated(text), 0.0, owner["uid"], self._below(owner["uid"]))

    def _hits(self, rule: Rule, pod: Obj) -> bool:
        setting = rule.setting
        if setting.namespace and setting.namespace != meta.namespace(pod):
            return False
        if not rule.selector.matches(meta.labels(pod)):
            return False
        if not setting.kind and not setting.name:
            return True
        if setting.kind in ("", "Pod") and setting.name in ("", meta.name(pod)):
            return True
        for owner in self._owners(pod):
            if setting.kind in ("", owner["kind"]) and setting.name in ("", owner["name"]):
                return True
        return False

    def _targets(self, rule: Rule) -> Iterator[Obj]:
        return (pod for pod in self._model.pods.list(rule.setting.namespace) if self._hits(rule, pod))

    def _workload(self, pod: Obj, owner: Obj) -> Obj | None:
        informer = self._model.workloads.get(owner["kind"])
        found = informer.get(Key(meta.namespace(pod), owner["name"])) if informer is not None else None
        return found if found is not None and meta.uid(found) == owner["uid"] else None

    def _owners(self, pod: Obj) -> list[Obj]:
        """Return the references to the controllers above it, nearest first."""
        found = self._chains.get(meta.uid(pod))
        if found is None:
            found = self._chains[meta.uid(pod)] = []
            obj: Obj | None = pod
            while obj is not None and (owner := meta.controller_of(obj)) is not None and len(found) < _MOST_LEVELS:
                found.append(owner)
                obj = self._workload(pod, owner)
        return found

    def _below(self, uid: str, levels: int = _MOST_LEVELS) -> Iterator[Obj]:
        """Yield all pods of a workload, also those that belong to its ReplicaSets or Jobs."""
        yield from self._model.pods.by_index(BY_CONTROLLER, uid)
        for informer in self._model.workloads.values() if levels else ():
            for child in informer.by_index(BY_CONTROLLER, uid):
                yield from self._below(meta.uid(child), levels - 1)

    # amounts

    def _divided(self, pod: Obj, names: list[str], resource: str, sources: list[_Source]) -> dict[str, int]:
        """Return what each of these containers uses of cpu or memory."""
        requests = {name: _request(pod, name, resource) for name in names}
        for source in sources:
            if source.demand.has(resource):
                whole = self._demanded(source, pod, resource, sum(requests.values()))
                if source.demand.container in requests:
                    others = {name: self._idle(pod, name, resource) for name in names}
                    return others | {source.demand.container: whole}
                return _in_proportion(whole, requests)
        return {name: self._idle(pod, name, resource) for name in names}

    def _demanded(self, source: _Source, pod: Obj, measure: str, request: int) -> int:
        demand, elapsed = source.demand, self.now - (source.since or self._started(pod))
        value = nano_at(demand.each[measure], elapsed, request) if measure in demand.each else 0
        if measure in demand.together and is_active(pod) and is_ready(pod):
            value += nano_at(demand.together[measure], elapsed) // max(1, self._sharers(source))
        return self._wobbling(value, demand.jitter, pod, measure)

    def _started(self, pod: Obj) -> float:
        return parse_time(meta.creation_time(pod)) if meta.creation_time(pod) else self.now

    def _sharers(self, source: _Source) -> int:
        count = self._ready.get(source.key)
        if count is None:
            count = sum(is_active(pod) and is_ready(pod) for pod in source.members)
            self._ready[source.key] = count
        return count

    def _idle(self, pod: Obj, container: str, resource: str) -> int:
        least, more = IDLE[resource]
        own = least + round(more * chance(self._model.seed, meta.uid(pod), container, resource))
        return self._wobbling(own, _IDLE_WOBBLE, pod, f"{container}/{resource}")

    def _wobbling(self, value: int, by: float, pod: Obj, what: str) -> int:
        if not by:
            return value
        return round(value * (1 + by * (2 * chance(self._model.seed, meta.uid(pod), what, self._window) - 1)))


def running_containers(pod: Obj) -> Iterator[tuple[str, float]]:
    """Name and start of those that run, init containers that stay (sidecars) included."""
    status = pod.get("status") or {}
    for listed in ("containerStatuses", "initContainerStatuses"):
        for container in status.get(listed) or ():
            running = (container.get("state") or {}).get("running")
            if running is not None:
                started = running.get("startedAt")
                yield container["name"], parse_time(started) if started else 0.0


def _request(pod: Obj, container: str, resource: str) -> int:
    spec = pod.get("spec") or {}
    for found in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        if found["name"] == container:
            requested = ((found.get("resources") or {}).get("requests") or {}).get(resource)
            return Quantity.parse(requested).nano if requested is not None else 0
    return 0


def _in_proportion(whole: int, requests: dict[str, int]) -> dict[str, int]:
    """Divide in proportion to requests; evenly if there are none. The parts add up."""
    total = sum(requests.values())
    shares = requests if total else dict.fromkeys(requests, 1)
    total = total or len(requests)
    parts = {name: whole * share // total for name, share in shares.items()}
    first = next(iter(parts))
    parts[first] += whole - sum(parts.values())
    return parts


def _whole_kibi(nano: int) -> int:
    return nano // _KIBI * _KIBI
