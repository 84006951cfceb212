"""ReplicaSchedulingPolicy, an older kind of two groups: how replicas are divided, and when they move away."""

from __future__ import annotations

from karmada.admission.affinity import check_affinity
from karmada.admission.context import Context
from karmada.admission.selectors import check_namespace, fill_namespace
from karmada.kube.kinds import checks
from karmada.kube.objects.errors import FieldError, FieldErrors, invalid
from karmada.kube.objects.times import parse_duration
from karmada.kube.objects.types import Obj


def mutate(policy: Obj, _old: Obj | None, context: Context) -> None:
    """Fill in a policy of the namespaced kind."""
    fill_namespace(policy.get("spec") or {}, context.namespace)


def validate(policy: Obj, _old: Obj | None, _context: Context) -> list[FieldError]:
    spec = policy["spec"]
    errors = FieldErrors()
    checks.non_negative(errors, "spec", spec, "totalReplicas")
    weights = (spec.get("preferences") or {}).get("staticWeightList") or ()
    for index, weight in enumerate(weights):
        check_affinity(errors, f"spec.preferences.staticWeightList[{index}].targetCluster", weight.get("targetCluster"))
    _rescheduling(errors, "spec.reschedulePolicy", spec.get("reschedulePolicy") or {})
    namespace = policy["metadata"].get("namespace")
    if namespace:
        check_namespace(errors, spec, namespace)
    return errors


def _rescheduling(errors: list[FieldError], path: str, policy: Obj) -> None:
    interval = policy.get("interval")
    if interval:
        wrong = _wrong_interval(interval)
        if wrong:
            errors.append(invalid(f"{path}.interval", interval, wrong))
    for key in ("cpuUtilization", "memoryUtilization"):
        checks.between(errors, f"{path}.threshold.{key}", (policy.get("threshold") or {}).get(key), 1, 100)


def _wrong_interval(text: str) -> str:
    try:
        return "" if parse_duration(text) > 0 else "must be greater than 0"
    except ValueError as error:
        return str(error)
