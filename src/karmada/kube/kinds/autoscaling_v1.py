"""autoscaling/v1: HorizontalPodAutoscaler with one CPU target, and all else of v2 in annotations.

Going down, the first CPU utilisation metric becomes targetCPUUtilizationPercentage; other metrics, the status's
metrics and conditions and the behavior become JSON annotations. Going up, the annotations are read back and dropped,
so that a round trip through v1 loses nothing. Neither direction changes the object it gets.
"""

from __future__ import annotations

from typing import Any

import orjson

from karmada.kube.kinds import autoscaling
from karmada.kube.kinds.filling import fill, part
from karmada.kube.kinds.resource import Strategy
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.errors import FieldError
from karmada.kube.objects.types import Obj

METRICS = "autoscaling.alpha.kubernetes.io/metrics"
CURRENT_METRICS = "autoscaling.alpha.kubernetes.io/current-metrics"
CONDITIONS = "autoscaling.alpha.kubernetes.io/conditions"
BEHAVIOR = "autoscaling.alpha.kubernetes.io/behavior"
_ANNOTATIONS = (METRICS, CURRENT_METRICS, CONDITIONS, BEHAVIOR)


def _pick(source: Obj, names: dict[str, str]) -> Obj:
    """Fields under new names, those that are there."""
    return {new: source[old] for old, new in names.items() if source.get(old) is not None}


def _flat_metric(kind: str, source: Obj, values: str, prefix: str) -> Obj:
    """Return one metric of v2 (`values` holds its target or current numbers) in the form of v1."""
    numbers = source.get(values) or {}
    if kind in ("resource", "containerResource"):
        flat = _pick(source, {"name": "name", "container": "container"})
        return flat | _pick(
            numbers, {"averageUtilization": f"{prefix}AverageUtilization", "averageValue": f"{prefix}AverageValue"}
        )
    metric = source.get("metric") or {}
    if kind == "pods":
        flat = _pick(metric, {"name": "metricName", "selector": "selector"})
        return flat | _pick(numbers, {"averageValue": f"{prefix}AverageValue"})
    if kind == "object":
        flat = _pick(source, {"describedObject": "target"}) | _pick(
            metric, {"name": "metricName", "selector": "selector"}
        )
        return flat | _pick(numbers, {"value": f"{prefix}Value", "averageValue": "averageValue"})
    flat = _pick(metric, {"name": "metricName", "selector": "metricSelector"})
    return flat | _pick(numbers, {"value": f"{prefix}Value", "averageValue": f"{prefix}AverageValue"})


def _deep_metric(kind: str, flat: Obj, values: str, prefix: str) -> Obj:
    """Return the object in the form of v2."""
    numbers = _pick(
        flat,
        {
            f"{prefix}AverageUtilization": "averageUtilization",
            f"{prefix}AverageValue": "averageValue",
            f"{prefix}Value": "value",
        },
    )
    if kind == "object" and flat.get("averageValue") is not None:
        numbers["averageValue"] = flat["averageValue"]
    if values == "target":
        if "averageUtilization" in numbers:
            numbers["type"] = "Utilization"
        else:
            numbers["type"] = "AverageValue" if "averageValue" in numbers else "Value"
    if kind in ("resource", "containerResource"):
        return _pick(flat, {"name": "name", "container": "container"}) | {values: numbers}
    selector = "metricSelector" if kind == "external" else "selector"
    source: Obj = {"metric": _pick(flat, {"metricName": "name", selector: "selector"}), values: numbers}
    if kind == "object":
        source["describedObject"] = flat.get("target") or {}
    return source


def _flatten(metric: Obj, values: str, prefix: str) -> Obj:
    source = autoscaling.METRIC_SOURCES.get(metric.get("type") or "", "")
    found = metric.get(source)
    flat: Obj = {"type": metric.get("type")}
    return flat if found is None else flat | {source: _flat_metric(source, found, values, prefix)}


def _deepen(metric: Obj, values: str, prefix: str) -> Obj:
    source = autoscaling.METRIC_SOURCES.get(metric.get("type") or "", "")
    found = metric.get(source)
    deep: Obj = {"type": metric.get("type")}
    return deep if found is None else deep | {source: _deep_metric(source, found, values, prefix)}


def _cpu_utilization(metric: Obj, values: str) -> int | None:
    resource = metric.get("resource") or {}
    if metric.get("type") != "Resource" or resource.get("name") != "cpu":
        return None
    found: int | None = (resource.get(values) or {}).get("averageUtilization")
    return found


def _split(metrics: list[Obj] | None, values: str) -> tuple[int | None, Obj | None, list[Obj]]:
    """Return the first CPU utilisation, the metric it came from, and the metrics besides it."""
    for index, metric in enumerate(metrics or ()):
        utilization = _cpu_utilization(metric, values)
        if utilization is not None:
            return utilization, metric, [*(metrics or ())[:index], *(metrics or ())[index + 1 :]]
    return None, None, list(metrics or ())


def _dump(value: Any) -> str:
    return orjson.dumps(value).decode()


_RULES = ("StabilizationWindowSeconds", "SelectPolicy", "Policies", "Tolerance")
_POLICY = ("Type", "Value", "PeriodSeconds")


def _exported_behavior(behavior: Obj) -> Obj:
    """As Kubernetes writes it into the annotation: its internal form, whose fields are capitalised and all there."""

    def rules(found: Obj | None) -> Obj | None:
        if found is None:
            return None
        exported = {name: found.get(_lower(name)) for name in _RULES}
        policies = found.get("policies")
        if policies is not None:
            exported["Policies"] = [{name: policy.get(_lower(name)) for name in _POLICY} for policy in policies]
        return exported

    return {"ScaleUp": rules(behavior.get("scaleUp")), "ScaleDown": rules(behavior.get("scaleDown"))}


def _lower(name: str) -> str:
    return name[:1].lower() + name[1:]


def _imported(value: Any) -> Any:
    """Return the form of the API: field names begin with small letters, and what is null is not there."""
    if isinstance(value, dict):
        return {_lower(key): _imported(item) for key, item in value.items() if item is not None}
    return [_imported(item) for item in value] if isinstance(value, list) else value


def from_v2(obj: Obj) -> Obj:
    new: Obj = copy_json(obj)
    new["apiVersion"] = "autoscaling/v1"
    spec, status = part(new, "spec"), part(new, "status")
    extra: dict[str, str] = {}
    target, _, others = _split(spec.pop("metrics", None), "target")
    if target is not None:
        spec["targetCPUUtilizationPercentage"] = target
    if others:
        extra[METRICS] = _dump([_flatten(metric, "target", "target") for metric in others])
    behavior = spec.pop("behavior", None)
    if behavior is not None:
        extra[BEHAVIOR] = _dump(_exported_behavior(behavior))
    current_metrics = status.pop("currentMetrics", None) or []
    current, _, _ = _split(current_metrics, "current")
    if current is not None:
        status["currentCPUUtilizationPercentage"] = current
    if current_metrics:
        extra[CURRENT_METRICS] = _dump([_flatten(metric, "current", "current") for metric in current_metrics])
    conditions = status.pop("conditions", None)
    if conditions:
        extra[CONDITIONS] = _dump(conditions)
    fill(status, currentReplicas=0)
    if extra:
        meta = new["metadata"]
        meta["annotations"] = {**(meta.get("annotations") or {}), **extra}
    return new


def _load(annotations: Obj, key: str) -> Any:
    """Return the content of an annotation; nothing for text that is no JSON."""
    try:
        return orjson.loads(annotations[key])
    except (KeyError, ValueError):
        return None


def to_v2(obj: Obj) -> Obj:
    new: Obj = copy_json(obj)
    new["apiVersion"] = "autoscaling/v2"
    spec, status = part(new, "spec"), part(new, "status")
    annotations = (new.get("metadata") or {}).get("annotations") or {}
    metrics = [_deepen(metric, "target", "target") for metric in _dicts(_load(annotations, METRICS))]
    target = spec.pop("targetCPUUtilizationPercentage", None)
    if target is not None:
        cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": target}}
        metrics.insert(0, {"type": "Resource", "resource": cpu})
    if metrics:
        spec["metrics"] = metrics
    behavior = _load(annotations, BEHAVIOR)
    if isinstance(behavior, dict):
        spec["behavior"] = _imported(behavior)
    current = status.pop("currentCPUUtilizationPercentage", None)
    currents = [_deepen(metric, "current", "current") for metric in _dicts(_load(annotations, CURRENT_METRICS))]
    if current is not None and _split(currents, "current")[0] is None:
        currents.insert(
            0, {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": current}}}
        )
    if currents:
        status["currentMetrics"] = currents
    conditions = _dicts(_load(annotations, CONDITIONS))
    if conditions:
        status["conditions"] = conditions
    fill(status, desiredReplicas=0)
    _drop_annotations(new, annotations)
    autoscaling.default(new)
    return new


def _dicts(value: Any) -> list[Obj]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _drop_annotations(obj: Obj, annotations: Obj) -> None:
    if not any(key in annotations for key in _ANNOTATIONS):
        return
    kept = {key: value for key, value in annotations.items() if key not in _ANNOTATIONS}
    if kept:
        obj["metadata"]["annotations"] = kept
    else:
        del obj["metadata"]["annotations"]


def default(obj: Obj) -> None:
    fill(part(obj, "spec"), minReplicas=1)


def validate(obj: Obj) -> list[FieldError]:
    return autoscaling.validate(to_v2(obj))


def validate_change(obj: Obj, old: Obj) -> list[FieldError]:
    return autoscaling.validate_change(to_v2(obj), to_v2(old))


def validate_status(obj: Obj, old: Obj) -> list[FieldError]:
    return autoscaling.validate_status(obj, old)


HORIZONTAL_POD_AUTOSCALER_V1 = Strategy(
    default=default,
    prepare_create=lambda obj: obj.__setitem__("status", {"currentReplicas": 0, "desiredReplicas": 0}),
    validate=validate,
    validate_ratcheting=validate_change,
    validate_status=validate_status,
)
