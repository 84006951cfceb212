"""How many replicas a metric recommends.

Replicas are proportional to usage over target, unless that is within the tolerance. Pods without a reliable value are
estimated: when the others recommend fewer replicas, pods without metrics count as fully busy; when more, they count as
idle, as do pods that are not ready yet. If the estimate reverses the direction, nothing changes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple, TypeAlias

from karmada.kube.objects.meta import get_condition, is_deleting
from karmada.kube.objects.quantity import Quantity
from karmada.kube.objects.times import parse_time
from karmada.kube.objects.types import Obj
from karmada.kube.sim.controllers.hpa_metrics import MetricsError, PodMetric
from karmada.kube.sim.controllers.podstate import is_ready, phase

CPU_INITIALIZATION = 300.0
"""Seconds after its start during which a pod's CPU usage counts only if it is ready."""
INITIAL_READINESS = 30.0
"""A pod that has not been ready later than this after its start has never been ready."""

Values: TypeAlias = Mapping[str, int]
Retry: TypeAlias = Callable[[Values], tuple[float, int]]
"""From values assumed for further pods to the ratio with them, and how many pods that is made of."""


class Tolerances(NamedTuple):
    down: float = 0.1
    up: float = 0.1

    def allow(self, ratio: float) -> bool:
        return 1.0 - self.down <= ratio <= 1.0 + self.up


class Groups(NamedTuple):
    """Pods by whether their metrics can be used."""

    ready: int
    unready: frozenset[str]
    missing: frozenset[str]
    ignored: frozenset[str]


class Proposal(NamedTuple):
    """Replicas, and what the target was compared with: a percentage or a value, and the average per pod."""

    replicas: int
    usage: int
    average: int = 0


def group_pods(pods: Iterable[Obj], metrics: Mapping[str, PodMetric], resource: str, now: float) -> Groups:
    ready, unready, missing, ignored = 0, set(), set(), set()
    for pod in pods:
        name = pod["metadata"]["name"]
        if is_deleting(pod) or phase(pod) == "Failed":
            ignored.add(name)
        elif phase(pod) == "Pending":
            unready.add(name)
        elif name not in metrics:
            missing.add(name)
        elif resource == "cpu" and _is_starting(pod, metrics[name], now):
            unready.add(name)
        else:
            ready += 1
    return Groups(ready, frozenset(unready), frozenset(missing), frozenset(ignored))


def _is_starting(pod: Obj, metric: PodMetric, now: float) -> bool:
    status = pod.get("status") or {}
    condition = get_condition(status.get("conditions"), "Ready")
    if condition is None or not status.get("startTime"):
        return True
    started = parse_time(status["startTime"])
    changed = parse_time(condition["lastTransitionTime"]) if condition.get("lastTransitionTime") else started
    unready = bool(condition.get("status") == "False")
    if started + CPU_INITIALIZATION > now:
        return unready or metric.timestamp < changed + metric.window
    return unready and started + INITIAL_READINESS > changed


def request_of(pod: Obj, resource: str, container: str = "") -> int:
    """Requests of a pod, or of one of its containers; MetricsError when a container has none."""
    spec = pod.get("spec") or {}
    whole = ((spec.get("resources") or {}).get("requests") or {}).get(resource)
    if whole is not None and not container:
        return Quantity.parse(whole).milli()
    sidecars = [c for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always"]
    total = 0
    for part in (*(spec.get("containers") or ()), *sidecars):
        if container and part["name"] != container:
            continue
        request = ((part.get("resources") or {}).get("requests") or {}).get(resource)
        if request is None:
            name = pod["metadata"]["name"]
            raise MetricsError(f"missing request for {resource} in container {part['name']} of Pod {name}")
        total += Quantity.parse(request).milli()
    return total


# --- metrics of pods


def by_utilization(
    current: int,
    pods: Collection[Obj],
    metrics: Mapping[str, PodMetric],
    resource: str,
    container: str,
    target: int,
    tolerances: Tolerances,
    now: float,
) -> Proposal:
    """`target` is the wanted percentage of what the pods request."""
    groups, values = _reliable(pods, metrics, resource, now)
    requests = {pod["metadata"]["name"]: request_of(pod, resource, container) for pod in pods}

    def utilization(of: Values) -> tuple[float, int, int]:
        known = [name for name in of if name in requests]
        requested = sum(requests[name] for name in known)
        if not requested:
            raise MetricsError("no metrics returned matched known pods")
        used = sum(of[name] for name in known)
        percent = used * 100 // requested
        return percent / target, percent, used // len(known)

    ratio, percent, average = utilization(values)
    fallback = {name: requests[name] * max(100, target) // 100 for name in groups.missing}

    def retry(more: Values) -> tuple[float, int]:
        filled = {**values, **more}
        return utilization(filled)[0], len(filled)

    replicas = _in_proportion(current, ratio, groups, fallback, retry, tolerances)
    return Proposal(replicas, percent, average)


def by_average(
    current: int,
    pods: Collection[Obj],
    metrics: Mapping[str, PodMetric],
    resource: str,
    target: int,
    tolerances: Tolerances,
    now: float,
) -> Proposal:
    """`target` is the wanted value per pod."""
    groups, values = _reliable(pods, metrics, resource, now)
    average = sum(values.values()) // len(values)

    def retry(more: Values) -> tuple[float, int]:
        filled = {**values, **more}
        return sum(filled.values()) // len(filled) / target, len(filled)

    fallback = dict.fromkeys(groups.missing, target)
    replicas = _in_proportion(current, average / target, groups, fallback, retry, tolerances)
    return Proposal(replicas, average, average)


def _reliable(
    pods: Collection[Obj], metrics: Mapping[str, PodMetric], resource: str, now: float
) -> tuple[Groups, dict[str, int]]:
    if not pods:
        raise MetricsError("no pods returned by selector while calculating replica count")
    groups = group_pods(pods, metrics, resource, now)
    left_out = groups.unready | groups.ignored
    values = {name: metric.value for name, metric in metrics.items() if name not in left_out}
    if not values:
        raise MetricsError("did not receive metrics for targeted pods (pods might be unready)")
    return groups, values


def _in_proportion(
    current: int, ratio: float, groups: Groups, busy: Values, retry: Retry, tolerances: Tolerances
) -> int:
    """`busy`: what pods without metrics are taken to use when there should be fewer."""
    counts_unready = bool(groups.unready) and ratio > 1.0
    if not counts_unready and not groups.missing:
        return current if tolerances.allow(ratio) else math.ceil(ratio * groups.ready)
    assumed: dict[str, int] = {}
    if ratio < 1.0:
        assumed.update(busy)
    elif ratio > 1.0:
        assumed.update(dict.fromkeys(groups.missing, 0))
    if counts_unready:
        assumed.update(dict.fromkeys(groups.unready, 0))
    careful, number = retry(assumed)
    turned = (ratio < 1.0 < careful) or (careful < 1.0 < ratio)
    if tolerances.allow(careful) or turned:
        return current
    replicas = math.ceil(careful * number)
    against = (careful < 1.0 and replicas > current) or (careful > 1.0 and replicas < current)
    return current if against else replicas


# --- metrics of other things


def ready_pods(pods: Collection[Obj]) -> int:
    if not pods:
        raise MetricsError("no pods returned by selector while calculating replica count")
    return sum(1 for pod in pods if phase(pod) == "Running" and is_ready(pod))


def by_value(current: int, pods: Collection[Obj], usage: int, target: int, tolerances: Tolerances) -> Proposal:
    """One value for all pods together, which falls as they become more."""
    ratio = usage / target
    if not current:
        return Proposal(math.ceil(ratio), usage)
    replicas = current if tolerances.allow(ratio) else math.ceil(ratio * ready_pods(pods))
    return Proposal(replicas, usage)


def by_share(existing: int, usage: int, target: int, tolerances: Tolerances) -> Proposal:
    """One value, of which each pod is to have a share; `existing` are the replicas that there are."""
    needed = math.ceil(usage / target)
    if not existing:
        return Proposal(needed, 0)
    replicas = existing if tolerances.allow(usage / (target * existing)) else needed
    return Proposal(replicas, math.ceil(usage / existing))
