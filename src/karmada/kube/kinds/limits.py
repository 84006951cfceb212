"""ResourceQuotas and LimitRanges: what a namespace may use, and what one object in it may."""

from __future__ import annotations

from karmada.kube.kinds import checks
from karmada.kube.kinds.container_rules import is_extended_resource
from karmada.kube.kinds.resource import Strategy
from karmada.kube.objects import names
from karmada.kube.objects.errors import FieldError, FieldErrors, duplicate, forbidden_field, invalid, required
from karmada.kube.objects.quantity import Quantity
from karmada.kube.objects.types import Obj

_OBJECTS = (
    "pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps", "persistentvolumeclaims",
    "services.nodeports", "services.loadbalancers",
)  # fmt: skip
"""Resources that are counted by the piece."""
_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_OF_QUOTAS = frozenset(
    {
        *_OBJECTS,
        *_COMPUTE,
        "requests.storage",
        *(f"{kind}.{name}" for kind in ("requests", "limits") for name in _COMPUTE),
    }
)
QUOTA_SCOPES = (
    "BestEffort", "CrossNamespacePodAffinity", "NotBestEffort", "NotTerminating", "PriorityClass", "Terminating",
    "VolumeAttributesClass",
)  # fmt: skip


def default_quota(obj: Obj) -> None:
    checks.canonical_quantities(obj.get("spec"), "hard")
    checks.canonical_quantities(obj.get("status"), "hard", "used")


def validate_quota(obj: Obj) -> list[FieldError]:
    errors = FieldErrors()
    spec = obj.get("spec") or {}
    for name, amount in (spec.get("hard") or {}).items():
        path = f"spec.hard[{name}]"
        _quota_name(errors, path, name)
        checks.resource_amount(errors, path, amount)
        parsed = checks.quantity(amount)
        if parsed is not None and (name in _OBJECTS or is_extended_resource(name)) and parsed.milli() % 1000:
            errors.append(invalid(path, str(parsed), "must be an integer"))
    for index, scope in enumerate(spec.get("scopes") or ()):
        if scope not in QUOTA_SCOPES:
            errors.append(invalid("spec.scopes", spec["scopes"], f"unsupported scope at index {index}: {scope}"))
    for index, expression in enumerate((spec.get("scopeSelector") or {}).get("matchExpressions") or ()):
        path = f"spec.scopeSelector.matchExpressions[{index}]"
        if expression.get("scopeName") not in QUOTA_SCOPES:
            errors.append(invalid(f"{path}.scopeName", expression.get("scopeName"), "unsupported scope"))
        operator, values = expression.get("operator"), expression.get("values")
        if operator in ("In", "NotIn") and not values:
            detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
            errors.append(required(f"{path}.values", detail))
        elif operator in ("Exists", "DoesNotExist") and values:
            detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
            errors.append(invalid(f"{path}.values", values, detail))
        elif operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
            errors.append(invalid(f"{path}.operator", operator or "", "not a valid selector operator"))
    return errors


def _quota_name(errors: list[FieldError], path: str, name: str) -> None:
    wrong = names.qualified_name(name)
    checks.add_invalid(errors, path, name, wrong)
    if wrong or "/" in name or name in _OF_QUOTAS or name.removeprefix("requests.").startswith("hugepages-"):
        return
    if name != "storage":
        errors.append(invalid(path, name, "must be a standard resource type or fully qualified"))
    errors.append(invalid(path, name, "must be a standard resource for quota"))


def update_quota(obj: Obj, old: Obj) -> list[FieldError]:
    errors = FieldErrors()
    new, was = obj.get("spec") or {}, old.get("spec") or {}
    if sorted(new.get("scopes") or ()) != sorted(was.get("scopes") or ()):
        errors.append(invalid("spec.scopes", new.get("scopes"), checks.IMMUTABLE))
    return errors


_LIMIT_LISTS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")


def default_limit_range(obj: Obj) -> None:
    for item in (obj.get("spec") or {}).get("limits") or ():
        checks.canonical_quantities(item, *_LIMIT_LISTS)
        if item.get("type") != "Container":
            continue
        limits = item.get("default") or {}
        limits = {**(item.get("max") or {}), **limits}
        requests = {**(item.get("min") or {}), **limits, **(item.get("defaultRequest") or {})}
        if limits:
            item["default"] = limits
        if requests:
            item["defaultRequest"] = requests


def validate_limit_range(obj: Obj) -> list[FieldError]:
    errors = FieldErrors()
    seen: set[str] = set()
    for index, item in enumerate((obj.get("spec") or {}).get("limits") or ()):
        path = f"spec.limits[{index}]"
        kind = item.get("type") or ""
        checks.add_invalid(errors, f"{path}.type", kind, names.qualified_name(kind))
        if kind in seen:
            errors.append(duplicate(f"{path}.type", kind))
        seen.add(kind)
        if kind == "Pod":
            detail = "may not be specified when `type` is 'Pod'"
            given = [key for key in ("default", "defaultRequest") if item.get(key)]
            errors.extend(forbidden_field(f"{path}.{key}", detail) for key in given)
        if kind == "PersistentVolumeClaim" and not any("storage" in (item.get(key) or {}) for key in ("min", "max")):
            detail = "either minimum or maximum storage value is required, but neither was provided"
            errors.append(required(f"{path}.limits", detail))
        _limits(errors, path, item)
    return errors


def _limits(errors: list[FieldError], path: str, item: Obj) -> None:
    for name in sorted({name for key in _LIMIT_LISTS for name in item.get(key) or ()}):
        low, high, limit, request, ratio = (_amount(item, key, name) for key in _COMPARED)
        if _exceeds(low, high):
            errors.append(invalid(f"{path}.min[{name}]", str(low), f"min value {low} is greater than max value {high}"))
        for key, value, what in (("defaultRequest", request, "default request"), ("default", limit, "default")):
            where = f"{path}.{key}[{name}]"
            if _exceeds(low, value):
                errors.append(invalid(where, str(value), f"min value {low} is greater than {what} value {value}"))
            if _exceeds(value, high):
                errors.append(invalid(where, str(value), f"{what} value {value} is greater than max value {high}"))
        if _exceeds(request, limit):
            detail = f"default request value {request} is greater than default limit value {limit}"
            errors.append(invalid(f"{path}.defaultRequest[{name}]", str(request), detail))
        if ratio is not None and ratio.milli() < 1000:
            errors.append(invalid(f"{path}.maxLimitRequestRatio[{name}]", str(ratio), f"ratio {ratio} is less than 1"))


_COMPARED = ("min", "max", "default", "defaultRequest", "maxLimitRequestRatio")


def _amount(item: Obj, key: str, name: str) -> Quantity | None:
    value = (item.get(key) or {}).get(name)
    return None if value is None else checks.quantity(value)


def _exceeds(one: Quantity | None, other: Quantity | None) -> bool:
    return one is not None and other is not None and one > other


RESOURCE_QUOTA = Strategy(
    default=default_quota, validate=validate_quota, validate_update=update_quota, returns_deleted=True
)
LIMIT_RANGE = Strategy(default=default_limit_range, validate=validate_limit_range, create_on_update=True)
