"""CronFederatedHPA."""

from __future__ import annotations

from karmada.admission.context import Context
from karmada.admission.schedules import is_schedule
from karmada.api.autoscaling import V1ALPHA1
from karmada.kube.kinds.autoscaling import reference_errors
from karmada.kube.kinds.checks import MAX_INT32
from karmada.kube.kinds.metadata import metadata_errors
from karmada.kube.kinds.schedule import schedule_problem, zone_is_known
from karmada.kube.objects.errors import FieldError, duplicate, invalid
from karmada.kube.objects.types import Obj


def validate(autoscaler: Obj, old: Obj | None, context: Context) -> list[FieldError]:
    errors = metadata_errors(autoscaler, namespaced=True, old=old)
    reference = autoscaler["spec"].get("scaleTargetRef") or {}
    kind, federated = reference.get("kind") or "", reference.get("apiVersion") == V1ALPHA1
    if federated and kind != "FederatedHPA":
        detail = f"invalid scaleTargetRef kind: {kind}, only support FederatedHPA"
        return [*errors, invalid("spec.scaleTargetRef.kind", kind, detail)]
    reference_errors(errors, "spec.scaleTargetRef", reference)
    seen: set[str] = set()
    for index, rule in enumerate(autoscaler["spec"].get("rules") or ()):
        path, name = f"spec.rules[{index}]", rule.get("name") or ""
        if name in seen:
            errors.append(duplicate(f"{path}.name", name))
        seen.add(name)
        _time(errors, path, rule, context)
        if federated:
            _bounds(errors, path, rule)
        else:
            _replicas(errors, f"{path}.targetReplicas", rule.get("targetReplicas"), kind)
    return errors


def _time(errors: list[FieldError], path: str, rule: Obj, context: Context) -> None:
    schedule, zone = rule.get("schedule") or "", rule.get("timeZone")
    if not is_schedule(schedule):
        errors.append(invalid(f"{path}.schedule", schedule, "invalid cron format"))
    elif schedule_problem(schedule):
        context.warn(f"{path}.schedule: {schedule!r} is accepted but never starts: {schedule_problem(schedule)}")
    if zone and not zone_is_known(zone):
        errors.append(invalid(f"{path}.timeZone", zone, f"unknown time zone {zone}"))


def _bounds(errors: list[FieldError], path: str, rule: Obj) -> None:
    """Validate the new bounds of a FederatedHPA: one of them is enough."""
    low, high = rule.get("targetMinReplicas"), rule.get("targetMaxReplicas")
    if low is None and high is None:
        detail = (
            "targetMinReplicas and targetMaxReplicas cannot be nil at the same time if you want to scale FederatedHPA"
        )
        errors.append(invalid(f"{path}.targetMaxReplicas", None, detail))
        return
    for key, value in (("targetMinReplicas", low), ("targetMaxReplicas", high)):
        if value is not None and value <= 0:
            errors.append(invalid(f"{path}.{key}", value, f"{key} should be larger than 0"))
    least, most = 1 if low is None else low, MAX_INT32 if high is None else high
    if least > most:
        detail = "targetMaxReplicas should be larger than or equal to targetMinReplicas"
        errors.append(invalid(f"{path}.targetMinReplicas", least, detail))


def _replicas(errors: list[FieldError], path: str, replicas: int | None, kind: str) -> None:
    if replicas is None:
        errors.append(invalid(path, None, f"targetReplicas cannot be nil if you want to scale {kind}"))
    elif replicas < 0:
        errors.append(invalid(path, replicas, "targetReplicas should be larger than or equal to 0"))
