"""The metrics an autoscaler names in its spec: each is read, turned into replicas, and shown in the status.

What fails is a SourceFailed with the reason and text of the ScalingActive condition. Amounts are in thousandths.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from karmada.kube.autoscaling.metrics import Metrics, MetricsError, PodMetric, selector_text
from karmada.kube.autoscaling.replicas import Proposal, Rules, by_average, by_share, by_utilization, by_value
from karmada.kube.objects.quantity import Quantity
from karmada.kube.objects.types import Obj

K = TypeVar("K", bound=Hashable)
_AMOUNTS = {"AverageValue": "averageValue", "Value": "value"}
"""The fields of a target, and of what is reported, by the types of targets that are one value."""
UNKNOWN_SOURCE = "InvalidMetricSourceType"
_NO_AMOUNT = "neither a value target nor an average value target was set"


class SourceFailed(Exception):
    """`reason` and `problem` are for the condition, the exception's text for the summary of failed metrics."""

    def __init__(self, reason: str, problem: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason
        self.problem = problem


@dataclass(frozen=True, slots=True)
class Target(Generic[K]):
    """The scaled object: its wanted and existing replicas, and its pods."""

    namespace: str
    selector: str
    wanted: int
    existing: int
    pods: Mapping[K, Obj]


class Reading(NamedTuple):
    """Replicas that a metric recommends, its name in events, and its entry in status.currentMetrics."""

    replicas: int
    name: str
    status: Obj


class Sources(Generic[K]):
    def __init__(self, metrics: Metrics[K]) -> None:
        self._metrics = metrics
        self._kinds: dict[str, Callable[[Obj, Target[K], Rules, float], Awaitable[Reading]]] = {
            "Resource": self._resource,
            "ContainerResource": self._container,
            "Pods": self._pods,
            "Object": self._object,
            "External": self._external,
        }

    async def read(self, metric: Obj, target: Target[K], rules: Rules, now: float) -> Reading:
        kind = metric["type"]
        read = self._kinds.get(kind)
        if read is None:
            problem = f'unknown metric source type "{kind}"'
            raise SourceFailed(UNKNOWN_SOURCE, problem, problem)
        return await read(metric, target, rules, now)

    # resource metrics

    async def _resource(self, metric: Obj, target: Target[K], rules: Rules, now: float) -> Reading:
        source = metric["resource"]
        try:
            found, name, current = await self._usage(source, "", target, rules, now)
        except MetricsError as error:
            text = f"failed to get {source['name']} resource metric value: {error}"
            raise SourceFailed("FailedGetResourceMetric", str(error), text) from error
        status = {"type": "Resource", "resource": {"name": source["name"], "current": current}}
        return Reading(found.replicas, f"{source['name']} resource{name}", status)

    async def _container(self, metric: Obj, target: Target[K], rules: Rules, now: float) -> Reading:
        source = metric["containerResource"]
        try:
            found, name, current = await self._usage(source, source["container"], target, rules, now)
        except MetricsError as error:
            text = f"failed to get {source['container']} container metric value: {error}"
            raise SourceFailed("FailedGetContainerResourceMetric", str(error), text) from error
        shown = {"name": source["name"], "container": source["container"], "current": current}
        name = f"{source['name']} container resource{name}"
        return Reading(found.replicas, name, {"type": "ContainerResource", "containerResource": shown})

    async def _usage(
        self, source: Obj, container: str, target: Target[K], rules: Rules, now: float
    ) -> tuple[Proposal, str, Obj]:
        resource, wanted = source["name"], source["target"]
        by_amount = wanted.get("averageValue") is not None
        if not by_amount and wanted.get("averageUtilization") is None:
            raise MetricsError(
                "invalid resource metric source: neither a utilization target nor a value target was set"
            )
        try:
            metrics = await self._read_usage(target, resource, container)
            if by_amount:
                amount = _milli(wanted["averageValue"])
                found = by_average(target.wanted, target.pods, metrics, resource, amount, rules, now)
                return found, "", {"averageValue": _shown(found.usage)}
            percent = wanted["averageUtilization"]
            found = by_utilization(target.wanted, target.pods, metrics, resource, container, percent, rules, now)
        except MetricsError as error:
            what = "usage" if by_amount else "utilization"
            raise MetricsError(f"failed to get {resource} {what}: {error}") from error
        current = {"averageUtilization": found.usage, "averageValue": _shown(found.average)}
        return found, " utilization (percentage of request)", current

    async def _read_usage(self, target: Target[K], resource: str, container: str) -> dict[K, PodMetric]:
        try:
            return await self._metrics.resource(target.namespace, target.selector, resource, container)
        except MetricsError as error:
            raise MetricsError(f"unable to get metrics for resource {resource}: {error}") from error

    # custom and external metrics

    async def _pods(self, metric: Obj, target: Target[K], rules: Rules, now: float) -> Reading:
        source = metric["pods"]
        name, amount = source["metric"]["name"], _milli(source["target"]["averageValue"])
        try:
            selector = selector_text(source["metric"])
            try:
                metrics = await self._metrics.pods(target.namespace, target.selector, name, selector)
            except MetricsError as error:
                raise MetricsError(f"unable to get metric {name}: {error}") from error
            found = by_average(target.wanted, target.pods, metrics, "", amount, rules, now)
        except MetricsError as error:
            text = f"failed to get pods metric value: {error}"
            raise SourceFailed("FailedGetPodsMetric", str(error), text) from error
        shown = {"metric": source["metric"], "current": {"averageValue": _shown(found.usage)}}
        return Reading(found.replicas, f"pods metric {name}", {"type": "Pods", "pods": shown})

    async def _object(self, metric: Obj, target: Target[K], rules: Rules, _now: float) -> Reading:
        source = metric["object"]
        described, name, wanted = source["describedObject"], source["metric"]["name"], source["target"]
        try:
            kind = wanted.get("type")
            if wanted.get(_AMOUNTS.get(kind, "")) is None:
                raise MetricsError(f"invalid object metric source: {_NO_AMOUNT}")
            selector = selector_text(source["metric"])
            try:
                usage = await self._metrics.object(target.namespace, described, name, selector)
            except MetricsError as error:
                where = f"{target.namespace}/{described['name']}"
                raise MetricsError(f"unable to get metric {name}: {described['kind']} on {where}: {error}") from error
            found = _of_one_value(kind, wanted, usage, target, rules)
        except MetricsError as error:
            text = f"failed to get object metric value: {error}"
            raise SourceFailed("FailedGetObjectMetric", str(error), text) from error
        return self._of_object(source, found, rules)

    def _of_object(self, source: Obj, found: Proposal, rules: Rules) -> Reading:  # noqa: ARG002 - some calibrate here
        """Return what is reported of a metric that describes one object."""
        described, metric = source["describedObject"], source["metric"]
        current = {_AMOUNTS[source["target"]["type"]]: _shown(found.usage)}
        shown = {"describedObject": described, "metric": metric, "current": current}
        name = f"{described['kind']} metric {metric['name']}"
        return Reading(found.replicas, name, {"type": "Object", "object": shown})

    async def _external(self, metric: Obj, target: Target[K], rules: Rules, _now: float) -> Reading:
        source = metric["external"]
        name, selector, wanted = source["metric"]["name"], source["metric"].get("selector"), source["target"]
        try:
            kind = next((kind for kind, amount in _AMOUNTS.items() if wanted.get(amount) is not None), None)
            if kind is None:
                raise MetricsError(f"invalid external metric source: {_NO_AMOUNT}")
            series = selector_text(source["metric"])
            try:
                values = await self._metrics.external(target.namespace, name, series)
            except MetricsError as error:
                where = f"{target.namespace}/{name}/{printed(selector)}"
                raise MetricsError(f"unable to get external metric {where}: {error}") from error
            found = _of_one_value(kind, wanted, sum(values), target, rules)
        except MetricsError as error:
            text = f"failed to get external metric {name}: {error}"
            raise SourceFailed("FailedGetExternalMetric", str(error), text) from error
        shown = {"metric": source["metric"], "current": {_AMOUNTS[kind]: _shown(found.usage)}}
        name = f"external metric {name}({printed(selector)})"
        return Reading(found.replicas, name, {"type": "External", "external": shown})


def _of_one_value(kind: str, wanted: Obj, usage: int, target: Target[K], rules: Rules) -> Proposal:
    """Either each pod takes a share of the value, or all together are to keep it down."""
    amount = _milli(wanted[_AMOUNTS[kind]])
    if kind == "AverageValue":
        return by_share(target.existing, usage, amount, rules)
    return by_value(target.wanted, target.pods.values(), usage, amount, rules)


def _milli(amount: str | int) -> int:
    return Quantity.parse(amount).milli()


def _shown(milli: int) -> str:
    return str(Quantity.of_milli(milli))


def printed(selector: Obj | None) -> str:
    """Return a selector as Go prints the struct: that is how it gets into messages."""
    if selector is None:
        return "nil"
    labels = "".join(f"{key}: {value}," for key, value in sorted((selector.get("matchLabels") or {}).items()))
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{' '.join(values)}],}},"
        for key, operator, values in (
            (e["key"], e["operator"], e.get("values") or ()) for e in selector.get("matchExpressions") or ()
        )
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
