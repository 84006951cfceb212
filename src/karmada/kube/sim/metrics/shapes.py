"""The objects of the metrics APIs."""

from __future__ import annotations

from karmada.kube.objects import meta
from karmada.kube.objects.quantity import Format, Quantity
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.server.aggregation.metrics_rendering import GROUP
from karmada.kube.sim.metrics.load import ExternalValue
from karmada.kube.sim.metrics.reading import Measured

WINDOW = "10.0s"
WINDOW_SECONDS = 60


def _usage(cpu: int, memory: int) -> Obj:
    return {"cpu": str(Quantity(cpu)), "memory": str(Quantity(memory, Format.BINARY_SI))}


def _metrics(kind: str, obj: Obj, now: float) -> Obj:
    metadata: Obj = {"name": meta.name(obj)}
    if meta.namespace(obj):
        metadata["namespace"] = meta.namespace(obj)
    metadata["creationTimestamp"] = rfc3339(now)
    if meta.labels(obj):
        metadata["labels"] = meta.labels(obj)
    return {
        "kind": kind,
        "apiVersion": f"{GROUP}/v1beta1",
        "metadata": metadata,
        "timestamp": rfc3339(now),
        "window": WINDOW,
    }


def node_metrics(node: Obj, used: dict[str, int], now: float) -> Obj:
    return {**_metrics("NodeMetrics", node, now), "usage": _usage(used["cpu"], used["memory"])}


def pod_metrics(pod: Obj, used: list[Measured], now: float) -> Obj:
    containers = [{"name": one.name, "usage": _usage(one.cpu, one.memory)} for one in used]
    return {**_metrics("PodMetrics", pod, now), "containers": containers}


def external_value(metric: str, value: ExternalValue, now: float) -> Obj:
    return {
        "metricName": metric,
        "metricLabels": value.labels,
        "timestamp": rfc3339(now),
        "value": str(Quantity(value.nano)),
    }
