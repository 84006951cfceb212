"""PriorityClasses."""

from __future__ import annotations

from karmada.kube.kinds import checks
from karmada.kube.kinds.filling import fill, fill_text
from karmada.kube.kinds.resource import Strategy
from karmada.kube.objects.errors import FieldError, FieldErrors, forbidden_field, not_supported
from karmada.kube.objects.types import Obj

MAX_USER_PRIORITY = 1_000_000_000
SYSTEM_PRIORITIES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_PREEMPTION = ("PreemptLowerPriority", "Never")
_RESERVED = "priority class names with 'system-' prefix are reserved for system use only. error: "


def default_priority_class(obj: Obj) -> None:
    fill_text(obj, preemptionPolicy="PreemptLowerPriority")
    fill(obj, value=0)


def validate_priority_class(obj: Obj) -> list[FieldError]:
    errors = FieldErrors()
    name, value = obj["metadata"].get("name") or "", obj.get("value") or 0
    if name.startswith("system-"):
        if SYSTEM_PRIORITIES.get(name) != value:
            why = f"{name} is not a known system priority class"
            if name in SYSTEM_PRIORITIES:
                why = f"value of {name} PriorityClass must be {SYSTEM_PRIORITIES[name]}"
            errors.append(forbidden_field("metadata.name", _RESERVED + why))
    elif value > MAX_USER_PRIORITY:
        detail = f"maximum allowed value of a user defined priority is {MAX_USER_PRIORITY}"
        errors.append(forbidden_field("value", detail))
    if obj.get("preemptionPolicy") not in _PREEMPTION:
        errors.append(not_supported("preemptionPolicy", obj.get("preemptionPolicy"), _PREEMPTION))
    return errors


def update_priority_class(obj: Obj, old: Obj) -> list[FieldError]:
    errors = FieldErrors()
    if (obj.get("value") or 0) != (old.get("value") or 0):
        errors.append(forbidden_field("value", "may not be changed in an update."))
    checks.unchanged(errors, "preemptionPolicy", obj.get("preemptionPolicy"), old.get("preemptionPolicy"))
    return errors


PRIORITY_CLASS = Strategy(
    default=default_priority_class,
    validate=validate_priority_class,
    validate_update=update_priority_class,
    generation=lambda obj: obj.get("value"),
)
