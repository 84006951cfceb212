"""FederatedResourceQuota: names that can be limited, amounts that can be counted, shares that fit into the whole."""

from __future__ import annotations

from karmada.admission.context import Context
from karmada.api.names import cluster_name_errors
from karmada.kube.kinds import checks
from karmada.kube.kinds.container_rules import is_extended_resource
from karmada.kube.objects import names
from karmada.kube.objects.errors import FieldError, FieldErrors, invalid
from karmada.kube.objects.quantity import ZERO, Quantity
from karmada.kube.objects.types import Obj

NAME_LIMIT = 63
"""The name becomes the value of a label."""
_COUNTED = frozenset({
    "pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps", "persistentvolumeclaims",
    "services.nodeports", "services.loadbalancers",
})  # fmt: skip
"""Resources of which there are only whole ones."""
_LIMITED = _COUNTED | {
    "cpu", "memory", "ephemeral-storage",
    "requests.cpu", "requests.memory", "requests.storage", "requests.ephemeral-storage",
    "limits.cpu", "limits.memory", "limits.ephemeral-storage",
}  # fmt: skip
_KNOWN = _LIMITED | {"storage"}
_HUGE_PAGES = ("hugepages-", "requests.hugepages-")


def validate(quota: Obj, _old: Obj | None, _context: Context) -> list[FieldError]:
    errors = FieldErrors()
    name = quota["metadata"].get("name") or ""
    if len(name) > NAME_LIMIT:
        errors.append(invalid("metadata.name", name, f"must be no more than {NAME_LIMIT} characters"))
    spec, status = quota.get("spec") or {}, quota.get("status") or {}
    _amounts(errors, "spec.overall", spec.get("overall"))
    assignments = spec.get("staticAssignments") or []
    for index, assignment in enumerate(assignments):
        path = f"spec.staticAssignments[{index}]"
        _cluster(errors, path, assignment)
        _amounts(errors, f"{path}.hard", assignment.get("hard"))
    _shares(errors, spec.get("overall") or {}, assignments)
    for part in ("overall", "overallUsed"):
        _amounts(errors, f"status.{part}", status.get(part))
    for index, item in enumerate(status.get("aggregatedStatus") or ()):
        path = f"status.aggregatedStatus[{index}]"
        _cluster(errors, path, item)
        for part in ("hard", "used"):
            _amounts(errors, f"{path}.{part}", item.get(part))
    return errors


def _cluster(errors: list[FieldError], path: str, holder: Obj) -> None:
    name = holder.get("clusterName") or ""
    wrong = cluster_name_errors(name)
    if wrong:
        errors.append(invalid(f"{path}.clusterName", name, ",".join(wrong)))


def _amounts(errors: list[FieldError], path: str, amounts: Obj | None) -> None:
    for name, amount in (amounts or {}).items():
        place = f"{path}[{name}]"
        _resource(errors, place, name)
        _amount(errors, place, name, amount)


def _resource(errors: list[FieldError], path: str, name: str) -> None:
    checks.add_invalid(errors, path, name, names.qualified_name(name))
    if "/" in name or name.startswith(_HUGE_PAGES):
        return
    if name not in _KNOWN:
        errors.append(invalid(path, name, "must be a standard resource type or fully qualified"))
    if name not in _LIMITED:
        errors.append(invalid(path, name, "must be a standard resource for quota"))


def _amount(errors: list[FieldError], path: str, name: str, amount: str | int) -> None:
    parsed = checks.quantity(amount)
    if parsed is None:
        errors.append(invalid(path, amount, checks.BAD_QUANTITY))
        return
    if parsed.nano < 0:
        errors.append(invalid(path, str(parsed), checks.NON_NEGATIVE))
    if (name in _COUNTED or is_extended_resource(name)) and parsed.milli() % 1000:
        errors.append(invalid(path, str(parsed), "must be an integer"))


def _shares(errors: list[FieldError], overall: Obj, assignments: list[Obj]) -> None:
    for name, amount in overall.items():
        whole = checks.quantity(amount)
        if whole is not None and whole < _sum(name, assignments):
            errors.append(invalid(f"spec.overall[{name}]", str(whole), "overall is less than assignments"))
    for index, assignment in enumerate(assignments):
        for name in assignment.get("hard") or ():
            if name not in overall:
                path = f"spec.staticAssignments[{index}].hard[{name}]"
                errors.append(invalid(path, name, "assignment resourceName is not exist in overall"))


def _sum(name: str, assignments: list[Obj]) -> Quantity:
    total = ZERO
    for assignment in assignments:
        share = (assignment.get("hard") or {}).get(name)
        total += (checks.quantity(share) if share is not None else None) or ZERO
    return total
