"""HorizontalPodAutoscalers. autoscaling/v2 is stored; v1 is a narrower view of it (see autoscaling_v1.py)."""

from __future__ import annotations

from karmada.kube.kinds import checks
from karmada.kube.kinds.filling import fill, fill_text, part
from karmada.kube.kinds.resource import Strategy
from karmada.kube.objects import names
from karmada.kube.objects.errors import FieldError, FieldErrors, forbidden_field, invalid, not_supported, required
from karmada.kube.objects.types import Obj

METRIC_SOURCES = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}
_SELECT_POLICIES = ("Disabled", "Max", "Min")
_MAX_PERIOD, _MAX_STABILIZATION = 1800, 3600


def default(obj: Obj) -> None:
    spec = part(obj, "spec")
    fill(spec, minReplicas=1)
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    behavior = spec.get("behavior")
    if behavior is not None:
        up, down = part(behavior, "scaleUp"), part(behavior, "scaleDown")
        fill(up, stabilizationWindowSeconds=0)
        for rules in (up, down):
            fill_text(rules, selectPolicy="Max")
        if not up.get("policies"):
            up["policies"] = [_policy("Pods", 4), _policy("Percent", 100)]
        if not down.get("policies"):
            down["policies"] = [_policy("Percent", 100)]


def _policy(kind: str, value: int) -> Obj:
    return {"type": kind, "value": value, "periodSeconds": 15}


def prepare_create(obj: Obj) -> None:
    obj["status"] = {"currentMetrics": None, "desiredReplicas": 0}


def validate(obj: Obj, *, new_target: bool = True) -> list[FieldError]:
    errors = FieldErrors()
    spec = obj.get("spec") or {}
    bounds_errors(errors, spec)
    reference = spec.get("scaleTargetRef") or {}
    reference_errors(errors, "spec.scaleTargetRef", reference)
    if new_target:
        _api_version(errors, "spec.scaleTargetRef.apiVersion", reference)
    for index, metric in enumerate(spec.get("metrics") or ()):
        _metric(errors, f"spec.metrics[{index}]", metric)
    behavior_errors(errors, "spec.behavior", spec.get("behavior") or {})
    return errors


def bounds_errors(errors: list[FieldError], spec: Obj) -> None:
    low, high = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    if low is not None and low < 1:
        errors.append(invalid("spec.minReplicas", low, "must be greater than or equal to 1"))
    if high < 1:
        errors.append(invalid("spec.maxReplicas", high, "must be greater than 0"))
    if low is not None and high < low:
        errors.append(invalid("spec.maxReplicas", high, "must be greater than or equal to `minReplicas`"))


def reference_errors(errors: list[FieldError], path: str, reference: Obj) -> None:
    for key in ("kind", "name"):
        checks.named(errors, f"{path}.{key}", reference.get(key), names.path_segment)


def _api_version(errors: list[FieldError], path: str, reference: Obj) -> None:
    """Validate the apiVersion of a target: in the core group only ReplicationControllers can be scaled."""
    version = reference.get("apiVersion") or ""
    if version.count("/") > 1:
        errors.append(invalid(path, version, f"unexpected GroupVersion string: {version}"))
    elif "/" not in version and (version, reference.get("kind")) != ("v1", "ReplicationController"):
        errors.append(invalid(path, version, "apiVersion must specify API group"))


def _metric(errors: list[FieldError], path: str, metric: Obj) -> None:
    kind = metric.get("type")
    if not kind:
        errors.append(required(f"{path}.type", "must specify a metric source type"))
        return
    source = METRIC_SOURCES.get(kind)
    if source is None:
        errors.append(not_supported(f"{path}.type", kind, tuple(METRIC_SOURCES)))
        return
    for other in METRIC_SOURCES.values():
        if other != source and metric.get(other) is not None:
            detail = "must specify only the metric source type corresponding to the specified metric source"
            errors.append(forbidden_field(f"{path}.{other}", detail))
    found = metric.get(source)
    if found is None:
        errors.append(required(f"{path}.{source}", "must populate information for the given metric source"))
        return
    _source(errors, f"{path}.{source}", source, found)


def _source(errors: list[FieldError], path: str, kind: str, source: Obj) -> None:
    if kind in ("resource", "containerResource"):
        checks.needed(errors, f"{path}.name", source.get("name"), "must specify a resource name")
        if kind == "containerResource":
            checks.needed(errors, f"{path}.container", source.get("container"), "must specify a container")
    else:
        metric = source.get("metric") or {}
        checks.needed(errors, f"{path}.metric.name", metric.get("name"), "must specify a metric name")
        checks.label_selector(errors, f"{path}.metric.selector", metric.get("selector"))
    if kind == "object":
        reference_errors(errors, f"{path}.describedObject", source.get("describedObject") or {})
    _target(errors, f"{path}.target", kind, source.get("target") or {})


def _target(errors: list[FieldError], path: str, kind: str, target: Obj) -> None:
    checks.one_of(errors, f"{path}.type", target.get("type"), ("Utilization", "Value", "AverageValue"))
    utilization = target.get("averageUtilization")
    if utilization is not None and utilization < 1:
        errors.append(invalid(f"{path}.averageUtilization", utilization, "must be greater than 0"))
    for key in ("value", "averageValue"):
        amount = target.get(key)
        parsed = checks.quantity(amount) if amount is not None else None
        if amount is not None and (parsed is None or parsed.nano <= 0):
            errors.append(invalid(f"{path}.{key}", amount, "must be positive"))
    if kind in ("resource", "containerResource"):
        if utilization is None and target.get("averageValue") is None:
            detail = "must set either a target raw value or a target utilization"
            errors.append(required(f"{path}.averageUtilization", detail))
        elif utilization is not None and target.get("averageValue") is not None:
            detail = "may not set both a target raw value and a target utilization"
            errors.append(forbidden_field(f"{path}.averageValue", detail))
    elif kind == "pods":
        if target.get("averageValue") is None:
            errors.append(required(f"{path}.averageValue", "must specify a positive target averageValue"))
    elif target.get("value") is None and target.get("averageValue") is None:
        detail = "must set either a target value for metric or a per-pod target"
        errors.append(required(f"{path}.averageValue", detail))
    elif kind == "external" and target.get("value") is not None and target.get("averageValue") is not None:
        detail = "may not set both a target value for metric and a per-pod target"
        errors.append(forbidden_field(f"{path}.value", detail))


def behavior_errors(errors: list[FieldError], path: str, behavior: Obj) -> None:
    for key in ("scaleUp", "scaleDown"):
        rules, place = behavior.get(key), f"{path}.{key}"
        if rules is None:
            continue
        window = rules.get("stabilizationWindowSeconds")
        if window is not None and window < 0:
            errors.append(
                invalid(f"{place}.stabilizationWindowSeconds", window, "must be greater than or equal to zero")
            )
        elif window is not None and window > _MAX_STABILIZATION:
            detail = f"must be less than or equal to {_MAX_STABILIZATION}"
            errors.append(invalid(f"{place}.stabilizationWindowSeconds", window, detail))
        if rules.get("selectPolicy") is not None and rules["selectPolicy"] not in _SELECT_POLICIES:
            errors.append(not_supported(f"{place}.selectPolicy", rules["selectPolicy"], _SELECT_POLICIES))
        policies = rules.get("policies") or ()
        if not policies:
            errors.append(required(f"{place}.policies", "must specify at least one Policy"))
        for index, policy in enumerate(policies):
            _scaling_policy(errors, f"{place}.policies[{index}]", policy)


def _scaling_policy(errors: list[FieldError], path: str, policy: Obj) -> None:
    kind, value, period = policy.get("type"), policy.get("value") or 0, policy.get("periodSeconds") or 0
    if kind not in ("Pods", "Percent"):
        errors.append(not_supported(f"{path}.type", kind, ("Pods", "Percent")))
    if value <= 0:
        errors.append(invalid(f"{path}.value", value, "must be greater than zero"))
    if period <= 0:
        errors.append(invalid(f"{path}.periodSeconds", period, "must be greater than zero"))
    elif period > _MAX_PERIOD:
        errors.append(invalid(f"{path}.periodSeconds", period, f"must be less than or equal to {_MAX_PERIOD}"))


def validate_status(obj: Obj, _old: Obj) -> list[FieldError]:
    errors = FieldErrors()
    checks.non_negative(errors, "status", obj.get("status") or {}, "currentReplicas", "desiredReplicas")
    return errors


def validate_change(obj: Obj, old: Obj) -> list[FieldError]:
    """Return the errors of a target; one that was stored without a group may stay."""
    targets = [(one.get("spec") or {}).get("scaleTargetRef") for one in (obj, old)]
    return validate(obj, new_target=targets[0] != targets[1])


HORIZONTAL_POD_AUTOSCALER = Strategy(
    default=default,
    prepare_create=prepare_create,
    validate=validate,
    validate_ratcheting=validate_change,
    validate_status=validate_status,
)
