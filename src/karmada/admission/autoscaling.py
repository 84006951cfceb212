"""FederatedHPA: the defaults and rules of a HorizontalPodAutoscaler, less what cannot be measured over clusters.

When a behavior is set, both directions are written out in full, because what scales reads them
unchecked; a tolerance is not among what is taken over. What has the wrong shape stays as it is: the schema says
what is wrong with it.
"""

from __future__ import annotations

from karmada.admission.context import Context
from karmada.kube.kinds import checks
from karmada.kube.kinds.autoscaling import behavior_errors, bounds_errors, reference_errors
from karmada.kube.kinds.container_rules import resource_name_errors
from karmada.kube.kinds.metadata import metadata_errors
from karmada.kube.objects import names
from karmada.kube.objects.errors import FieldError, forbidden_field, invalid, not_supported, required
from karmada.kube.objects.types import Obj

SOURCES = {"Object": "object", "Pods": "pods", "Resource": "resource", "ContainerResource": "containerResource"}
"""The kinds of metrics, in the order in which sources are looked for."""
METRIC_TYPES = tuple(sorted(SOURCES))
TARGET_TYPES = ("Utilization", "Value", "AverageValue")
_DIRECTIONS = ("scaleUp", "scaleDown")
_TAKEN_OVER = ("selectPolicy", "stabilizationWindowSeconds", "policies")


def mutate(autoscaler: Obj, _old: Obj | None, _context: Context) -> None:
    spec = autoscaler.get("spec")
    if spec is None:
        return
    if spec.get("minReplicas") is None:
        spec["minReplicas"] = 1
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    behavior = spec.get("behavior")
    if isinstance(behavior, dict) and all(isinstance(behavior.get(way), dict | None) for way in _DIRECTIONS):
        up: Obj = {"stabilizationWindowSeconds": 0, "policies": [_policy("Pods", 4), _policy("Percent", 100)]}
        down: Obj = {"policies": [_policy("Percent", 100)]}
        spec["behavior"] = {
            "scaleUp": _direction(up, behavior.get("scaleUp") or {}),
            "scaleDown": _direction(down, behavior.get("scaleDown") or {}),
        }


def _policy(kind: str, value: int) -> Obj:
    return {"type": kind, "value": value, "periodSeconds": 15}


def _direction(defaults: Obj, given: Obj) -> Obj:
    taken = {key: given[key] for key in _TAKEN_OVER if given.get(key) is not None}
    return {"selectPolicy": "Max", **defaults, **taken}


def validate(autoscaler: Obj, old: Obj | None, _context: Context) -> list[FieldError]:
    errors = metadata_errors(autoscaler, namespaced=True, old=old)
    spec = autoscaler["spec"]
    bounds_errors(errors, spec)
    reference_errors(errors, "spec.scaleTargetRef", spec.get("scaleTargetRef") or {})
    for index, metric in enumerate(spec.get("metrics") or ()):
        _metric(errors, f"spec.metrics[{index}]", metric)
    behavior_errors(errors, "spec.behavior", spec.get("behavior") or {})
    checks.non_negative(errors, "status", autoscaler.get("status") or {}, "currentReplicas", "desiredReplicas")
    return errors


def _metric(errors: list[FieldError], path: str, metric: Obj) -> None:
    kind = metric.get("type") or ""
    if not kind:
        errors.append(required(f"{path}.type", "must specify a metric source type"))
    if kind not in SOURCES:
        errors.append(not_supported(f"{path}.type", kind, METRIC_TYPES))
    present = [source for source in SOURCES.values() if metric.get(source) is not None]
    if present:
        _source(errors, f"{path}.{present[0]}", present[0], metric[present[0]])
    expected = SOURCES.get(kind)
    if expected is not None and expected not in present:
        errors.append(required(f"{path}.{expected}", "must populate information for the given metric source"))
    errors += [
        forbidden_field(f"{path}.{source}", "must populate the given metric source only")
        for source in sorted(present)
        if source != expected
    ]


def _source(errors: list[FieldError], path: str, kind: str, source: Obj) -> None:
    if kind == "object":
        reference_errors(errors, f"{path}.describedObject", source.get("describedObject") or {})
    if kind in ("object", "pods"):
        name = (source.get("metric") or {}).get("name")
        checks.named(errors, f"{path}.metric.name", name, names.path_segment, "must specify a metric name")
    else:
        _measured_resource(errors, path, kind, source)
    target = source.get("target") or {}
    _target(errors, f"{path}.target", target)
    _amounts(errors, f"{path}.target", kind, target)


def _measured_resource(errors: list[FieldError], path: str, kind: str, source: Obj) -> None:
    name = source.get("name") or ""
    if not name:
        errors.append(required(f"{path}.name", "must specify a resource name"))
    if kind == "containerResource":
        if name:
            resource_name_errors(errors, f"{path}.name", name)
        container = source.get("container")
        checks.named(errors, f"{path}.container", container, names.dns1123_label, "must specify a container")


def _target(errors: list[FieldError], path: str, target: Obj) -> None:
    kind = target.get("type") or ""
    if not kind:
        errors.append(required(f"{path}.type", "must specify a metric target type"))
    if kind not in TARGET_TYPES:
        errors.append(invalid(f"{path}.type", kind, "must be either Utilization, Value, or AverageValue"))
    for key in ("value", "averageValue"):
        amount = target.get(key)
        if amount is not None:
            parsed = checks.quantity(amount)
            if parsed is None or parsed.nano <= 0:
                errors.append(invalid(f"{path}.{key}", amount, "must be positive"))
    utilization = target.get("averageUtilization")
    if utilization is not None and utilization < 1:
        errors.append(invalid(f"{path}.averageUtilization", utilization, "must be greater than 0"))


def _amounts(errors: list[FieldError], path: str, kind: str, target: Obj) -> None:
    """Refuse a metric whose target is not given, or more than once."""
    average, utilization = target.get("averageValue"), target.get("averageUtilization")
    if kind == "object":
        if target.get("value") is None and average is None:
            errors.append(required(f"{path}.averageValue", "must set either a target value or averageValue"))
    elif kind == "pods":
        if average is None:
            errors.append(required(f"{path}.averageValue", "must specify a positive target averageValue"))
    elif average is None and utilization is None:
        detail = "must set either a target raw value or a target utilization"
        errors.append(required(f"{path}.averageUtilization", detail))
    elif average is not None and utilization is not None:
        detail = "may not set both a target raw value and a target utilization"
        errors.append(forbidden_field(f"{path}.averageValue", detail))
