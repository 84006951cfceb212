"""How many replicas a metric recommends.

Replicas are proportional to usage over target, unless that is within the tolerance. Pods without a reliable value are
estimated: when the others recommend fewer replicas, pods without metrics count as fully busy; when more, they count as
idle, as do pods that are not ready yet. If the estimate reverses the direction, nothing changes.

Pods and their metrics have the same keys: names in one cluster, clusters and names in a federation. `Rules` has what
differs between autoscalers; `calibration` scales what is computed from the pods that can be seen to all pods.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from karmada.kube.autoscaling.metrics import MetricsError, PodMetric
from karmada.kube.objects.meta import get_condition, is_deleting
from karmada.kube.objects.podstate import is_ready, phase
from karmada.kube.objects.quantity import Quantity
from karmada.kube.objects.times import parse_time
from karmada.kube.objects.types import Obj

K = TypeVar("K", bound=Hashable)
_NO_PODS = "no pods returned by selector while calculating replica count"


class Tolerances(NamedTuple):
    """The tolerances of a HorizontalPodAutoscaler, by direction."""

    down: float = 0.1
    up: float = 0.1

    def allow(self, ratio: float) -> bool:
        return 1.0 - self.down <= ratio <= 1.0 + self.up


@dataclass(frozen=True, slots=True)
class Rules:
    """How replicas are computed."""

    tolerates: Callable[[float], bool] = Tolerances().allow
    """True if a ratio of usage to target is near enough to 1."""
    calibration: float = 1.0
    """The part of all replicas that the pods are of."""
    cpu_initialization: float = 300.0
    """Seconds after its start during which a pod's CPU usage counts only if it is ready."""
    initial_readiness: float = 30.0
    """A pod that has not been ready later than this after its start has never been ready."""
    no_values: str = "did not receive metrics for targeted pods (pods might be unready)"
    """Message for the case that no pod has a value that counts."""

    def replicas(self, ratio: float, pods: int) -> int:
        """So many times the pods that were measured, of all clusters."""
        return math.ceil(ratio * pods / self.calibration)


@dataclass(frozen=True, slots=True)
class Groups(Generic[K]):
    """Pods by whether their metrics can be used."""

    ready: int
    unready: frozenset[K]
    missing: frozenset[K]
    ignored: frozenset[K]


class Proposal(NamedTuple):
    """Replicas, and what the target was compared with: a percentage or a value, and the average per pod."""

    replicas: int
    usage: int
    average: int = 0


def group_pods(
    pods: Mapping[K, Obj], metrics: Mapping[K, PodMetric], resource: str, now: float, rules: Rules
) -> Groups[K]:
    ready = 0
    unready: set[K] = set()
    missing: set[K] = set()
    ignored: set[K] = set()
    for key, pod in pods.items():
        if is_deleting(pod) or phase(pod) == "Failed":
            ignored.add(key)
        elif phase(pod) == "Pending":
            unready.add(key)
        elif key not in metrics:
            missing.add(key)
        elif resource == "cpu" and _is_starting(pod, metrics[key], now, rules):
            unready.add(key)
        else:
            ready += 1
    return Groups(ready, frozenset(unready), frozenset(missing), frozenset(ignored))


def _is_starting(pod: Obj, metric: PodMetric, now: float, rules: Rules) -> bool:
    status = pod.get("status") or {}
    condition = get_condition(status.get("conditions"), "Ready")
    if condition is None or not status.get("startTime"):
        return True
    started = parse_time(status["startTime"])
    changed = parse_time(condition["lastTransitionTime"]) if condition.get("lastTransitionTime") else started
    unready = bool(condition.get("status") == "False")
    if started + rules.cpu_initialization > now:
        return unready or metric.timestamp < changed + metric.window
    return unready and started + rules.initial_readiness > changed


def request_of(pod: Obj, resource: str, container: str = "") -> int:
    """Return the requests of a pod, or of one of its containers; MetricsError when a container has none."""
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
    pods: Mapping[K, Obj],
    metrics: Mapping[K, PodMetric],
    resource: str,
    container: str,
    target: int,
    rules: Rules,
    now: float,
) -> Proposal:
    """`target` is the wanted percentage of what the pods request."""
    groups, values = _reliable(pods, metrics, resource, now, rules)
    requests = {key: request_of(pod, resource, container) for key, pod in pods.items()}

    def utilization(of: Mapping[K, int]) -> tuple[float, int, int]:
        known = [key for key in of if key in requests]
        requested = sum(requests[key] for key in known)
        if not requested:
            raise MetricsError("no metrics returned matched known pods")
        used = sum(of[key] for key in known)
        percent = used * 100 // requested
        return percent / target, percent, used // len(known)

    ratio, percent, average = utilization(values)
    fallback = {key: requests[key] * max(100, target) // 100 for key in groups.missing}

    def ratio_with(more: Mapping[K, int]) -> tuple[float, int]:
        filled = {**values, **more}
        return utilization(filled)[0], len(filled)

    replicas = _in_proportion(current, ratio, groups, fallback, ratio_with, rules)
    return Proposal(replicas, percent, average)


def by_average(
    current: int,
    pods: Mapping[K, Obj],
    metrics: Mapping[K, PodMetric],
    resource: str,
    target: int,
    rules: Rules,
    now: float,
) -> Proposal:
    """`target` is the wanted value per pod."""
    groups, values = _reliable(pods, metrics, resource, now, rules)
    average = sum(values.values()) // len(values)

    def ratio_with(more: Mapping[K, int]) -> tuple[float, int]:
        filled = {**values, **more}
        return sum(filled.values()) // len(filled) / target, len(filled)

    fallback = dict.fromkeys(groups.missing, target)
    replicas = _in_proportion(current, average / target, groups, fallback, ratio_with, rules)
    return Proposal(replicas, average, average)


def _reliable(
    pods: Mapping[K, Obj], metrics: Mapping[K, PodMetric], resource: str, now: float, rules: Rules
) -> tuple[Groups[K], dict[K, int]]:
    if not pods:
        raise MetricsError(_NO_PODS)
    groups = group_pods(pods, metrics, resource, now, rules)
    left_out = groups.unready | groups.ignored
    values = {key: metric.value for key, metric in metrics.items() if key not in left_out}
    if not values:
        raise MetricsError(rules.no_values)
    return groups, values


def _in_proportion(
    current: int,
    ratio: float,
    groups: Groups[K],
    busy: Mapping[K, int],
    ratio_with: Callable[[Mapping[K, int]], tuple[float, int]],
    rules: Rules,
) -> int:
    """`busy`: what pods without metrics are taken to use when there should be fewer.

    `ratio_with` turns values assumed for further pods into the ratio with them, and the number of pods it is made of.
    """
    counts_unready = bool(groups.unready) and ratio > 1.0
    if not counts_unready and not groups.missing:
        return current if rules.tolerates(ratio) else rules.replicas(ratio, groups.ready)
    assumed: dict[K, int] = {}
    if ratio < 1.0:
        assumed.update(busy)
    elif ratio > 1.0:
        assumed.update(dict.fromkeys(groups.missing, 0))
    if counts_unready:
        assumed.update(dict.fromkeys(groups.unready, 0))
    careful, number = ratio_with(assumed)
    turned = (ratio < 1.0 < careful) or (careful < 1.0 < ratio)
    if rules.tolerates(careful) or turned:
        return current
    replicas = rules.replicas(careful, number)
    against = (careful < 1.0 and replicas > current) or (careful > 1.0 and replicas < current)
    return current if against else replicas


# --- metrics of other things


def ready_pods(pods: Collection[Obj]) -> int:
    if not pods:
        raise MetricsError(_NO_PODS)
    return sum(1 for pod in pods if phase(pod) == "Running" and is_ready(pod))


def by_value(current: int, pods: Collection[Obj], usage: int, target: int, rules: Rules) -> Proposal:
    """Return one value for all pods together, which falls as they become more."""
    ratio = usage / target
    if not current:
        return Proposal(math.ceil(ratio), usage)
    replicas = current if rules.tolerates(ratio) else rules.replicas(ratio, ready_pods(pods))
    return Proposal(replicas, usage)


def by_share(existing: int, usage: int, target: int, rules: Rules) -> Proposal:
    """Return one value, of which each pod is to have a share; `existing` are the replicas that there are."""
    needed = rules.replicas(usage / target, 1)
    if not existing:
        return Proposal(needed, 0)
    replicas = existing if rules.tolerates(usage / (target * existing)) else needed
    return Proposal(replicas, math.ceil(usage / existing))
