"""The metrics an autoscaler names in its spec: each is read, turned into replicas, and shown in the status.

What fails is a SourceFailed with the reason and text of the ScalingActive condition. Amounts are in thousandths.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import NamedTuple

from karmada.kube.objects.quantity import Quantity
from karmada.kube.objects.types import Obj
from karmada.kube.sim.controllers.hpa_metrics import Metrics, MetricsError, PodMetric, selector_text
from karmada.kube.sim.controllers.hpa_replicas import (
    Proposal,
    Tolerances,
    by_average,
    by_share,
    by_utilization,
    by_value,
)


class SourceFailed(Exception):
    """`reason` and `problem` are for the condition, the exception's text for the summary of failed metrics."""

    def __init__(self, reason: str, problem: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason
        self.problem = problem


class Target(NamedTuple):
    """What is scaled: its wanted and existing replicas, and its pods."""

    namespace: str
    selector: str
    wanted: int
    existing: int
    pods: Collection[Obj]


class Reading(NamedTuple):
    """Replicas that a metric recommends, its name in events, and its entry in status.currentMetrics."""

    replicas: int
    name: str
    status: Obj


class Sources:
    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._kinds: dict[str, Callable[[Obj, Target, Tolerances, float], Awaitable[Reading]]] = {
            "Resource": self._resource,
            "ContainerResource": self._container,
            "Pods": self._pods,
            "Object": self._object,
            "External": self._external,
        }

    async def read(self, metric: Obj, target: Target, tolerances: Tolerances, now: float) -> Reading:
        kind = metric["type"]
        read = self._kinds.get(kind)
        if read is None:
            problem = f'unknown metric source type "{kind}"'
            raise SourceFailed("InvalidMetricSourceType", problem, problem)
        return await read(metric, target, tolerances, now)

    # resource metrics

    async def _resource(self, metric: Obj, target: Target, tolerances: Tolerances, now: float) -> Reading:
        source = metric["resource"]
        try:
            found, name, current = await self._usage(source, "", target, tolerances, now)
        except MetricsError as error:
            text = f"failed to get {source['name']} resource metric value: {error}"
            raise SourceFailed("FailedGetResourceMetric", str(error), text) from error
        status = {"type": "Resource", "resource": {"name": source["name"], "current": current}}
        return Reading(found.replicas, f"{source['name']} resource{name}", status)

    async def _container(self, metric: Obj, target: Target, tolerances: Tolerances, now: float) -> Reading:
        source = metric["containerResource"]
        try:
            found, name, current = await self._usage(source, source["container"], target, tolerances, now)
        except MetricsError as error:
            text = f"failed to get {source['name']} container metric value: {error}"
            raise SourceFailed("FailedGetContainerResourceMetric", str(error), text) from error
        shown = {"name": source["name"], "container": source["container"], "current": current}
        name = f"{source['name']} container resource{name}"
        return Reading(found.replicas, name, {"type": "ContainerResource", "containerResource": shown})

    async def _usage(
        self, source: Obj, container: str, target: Target, tolerances: Tolerances, now: float
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
                found = by_average(target.wanted, target.pods, metrics, resource, amount, tolerances, now)
                return found, "", {"averageValue": _shown(found.usage)}
            percent = wanted["averageUtilization"]
            found = by_utilization(target.wanted, target.pods, metrics, resource, container, percent, tolerances, now)
        except MetricsError as error:
            what = "usage" if by_amount else "utilization"
            raise MetricsError(f"failed to get {resource} {what}: {error}") from error
        current = {"averageUtilization": found.usage, "averageValue": _shown(found.average)}
        return found, " utilization (percentage of request)", current

    async def _read_usage(self, target: Target, resource: str, container: str) -> dict[str, PodMetric]:
        try:
            return await self._metrics.resource(target.namespace, target.selector, resource, container)
        except MetricsError as error:
            raise MetricsError(f"unable to get metrics for resource {resource}: {error}") from error

    # custom and external metrics

    async def _pods(self, metric: Obj, target: Target, tolerances: Tolerances, now: float) -> Reading:
        source = metric["pods"]
        name, amount = source["metric"]["name"], _milli(source["target"]["averageValue"])
        try:
            try:
                metrics = await self._metrics.pods(
                    target.namespace, target.selector, name, selector_text(source["metric"])
                )
            except MetricsError as error:
                raise MetricsError(f"unable to get metric {name}: {error}") from error
            found = by_average(target.wanted, target.pods, metrics, "", amount, tolerances, now)
        except MetricsError as error:
            text = f"failed to get pods metric value: {error}"
            raise SourceFailed("FailedGetPodsMetric", str(error), text) from error
        shown = {"metric": source["metric"], "current": {"averageValue": _shown(found.usage)}}
        return Reading(found.replicas, f"pods metric {name}", {"type": "Pods", "pods": shown})

    async def _object(self, metric: Obj, target: Target, tolerances: Tolerances, _now: float) -> Reading:
        source = metric["object"]
        described, name = source["describedObject"], source["metric"]["name"]
        try:
            try:
                usage = await self._metrics.object(target.namespace, described, name, selector_text(source["metric"]))
            except MetricsError as error:
                where = f"{target.namespace}/{described['name']}"
                raise MetricsError(f"unable to get metric {name}: {described['kind']} on {where}: {error}") from error
            found, current = _of_one_value(source["target"], usage, target, tolerances)
        except MetricsError as error:
            text = f"failed to get object metric value: {error}"
            raise SourceFailed("FailedGetObjectMetric", str(error), text) from error
        shown = {"describedObject": described, "metric": source["metric"], "current": current}
        return Reading(found.replicas, f"{described['kind']} metric {name}", {"type": "Object", "object": shown})

    async def _external(self, metric: Obj, target: Target, tolerances: Tolerances, _now: float) -> Reading:
        source = metric["external"]
        name, selector = source["metric"]["name"], source["metric"].get("selector")
        try:
            try:
                values = await self._metrics.external(target.namespace, name, selector_text(source["metric"]))
            except MetricsError as error:
                where = f"{target.namespace}/{name}/{printed(selector)}"
                raise MetricsError(f"unable to get external metric {where}: {error}") from error
            found, current = _of_one_value(source["target"], sum(values), target, tolerances)
        except MetricsError as error:
            text = f"failed to get external metric {name}: {error}"
            raise SourceFailed("FailedGetExternalMetric", str(error), text) from error
        shown = {"metric": source["metric"], "current": current}
        name = f"external metric {name}({printed(selector)})"
        return Reading(found.replicas, name, {"type": "External", "external": shown})


def _of_one_value(wanted: Obj, usage: int, target: Target, tolerances: Tolerances) -> tuple[Proposal, Obj]:
    """Either all pods together are to keep the value down, or each takes a share of it."""
    if wanted.get("averageValue") is not None:
        found = by_share(target.existing, usage, _milli(wanted["averageValue"]), tolerances)
        return found, {"averageValue": _shown(found.usage)}
    if wanted.get("value") is None:
        raise MetricsError("neither a value target nor an average value target was set")
    found = by_value(target.wanted, target.pods, usage, _milli(wanted["value"]), tolerances)
    return found, {"value": _shown(found.usage)}


def _milli(amount: str | int) -> int:
    return Quantity.parse(amount).milli()


def _shown(milli: int) -> str:
    return str(Quantity.of_milli(milli))


def printed(selector: Obj | None) -> str:
    """A selector as Go prints the struct: that is how it gets into messages."""
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
