"""Nodes, RuntimeClasses, and Leases, which are the heartbeats of nodes and leaders."""

from __future__ import annotations

from karmada.kube.kinds import checks
from karmada.kube.kinds.pod_warnings import node_labels
from karmada.kube.kinds.resource import Strategy
from karmada.kube.objects import names
from karmada.kube.objects.errors import FieldError, FieldErrors, duplicate, forbidden_field
from karmada.kube.objects.types import Obj

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_MUTABLE = frozenset({"podCIDR", "podCIDRs", "providerID", "unschedulable", "taints", "configSource"})


def default_node(obj: Obj) -> None:
    spec = obj.get("spec")
    if spec:
        _default_ranges(spec)
    status = obj.get("status")
    if status:
        checks.canonical_quantities(status, "capacity", "allocatable")
        if not status.get("allocatable") and status.get("capacity"):
            status["allocatable"] = dict(status["capacity"])


def _default_ranges(spec: Obj) -> None:
    """Fill in podCIDR and podCIDRs: the former is the first of the latter, and either one sets the other."""
    if spec.get("podCIDRs"):
        spec["podCIDR"] = spec["podCIDRs"][0]
    elif spec.get("podCIDR"):
        spec["podCIDRs"] = [spec["podCIDR"]]


def validate_node(obj: Obj) -> list[FieldError]:
    errors = FieldErrors()
    spec = obj.get("spec") or {}
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(spec.get("taints") or ()):
        path = f"spec.taints[{index}]"
        key, effect, value = taint.get("key") or "", taint.get("effect") or "", taint.get("value") or ""
        checks.add_invalid(errors, f"{path}.key", key, names.qualified_name(key))
        checks.add_invalid(errors, f"{path}.value", value, names.label_value(value))
        checks.one_of(errors, f"{path}.effect", effect, _EFFECTS)
        if (key, effect) in seen:
            error = duplicate(path, taint)
            detail = "taints must be unique by key and effect pair"
            errors.append(FieldError(error.field, error.reason, f"{error.body}: {detail}"))
        seen.add((key, effect))
    for index, text in enumerate(spec.get("podCIDRs") or ()):
        checks.cidr(errors, f"spec.podCIDRs[{index}]", text)
    for key, amount in ((obj.get("status") or {}).get("capacity") or {}).items():
        checks.resource_amount(errors, f"status.capacity[{key}]", amount)
    return errors


def update_node(obj: Obj, old: Obj) -> list[FieldError]:
    errors = FieldErrors()
    new, was = obj.get("spec") or {}, old.get("spec") or {}
    before = was.get("podCIDRs") or ([was["podCIDR"]] if was.get("podCIDR") else [])
    after = new.get("podCIDRs") or ([new["podCIDR"]] if new.get("podCIDR") else [])
    if before and before != after:
        errors.append(forbidden_field("spec.podCIDRs", 'node updates may not change podCIDR except from "" to valid'))
    if was.get("providerID") and was["providerID"] != new.get("providerID"):
        detail = 'node updates may not change providerID except from "" to valid'
        errors.append(forbidden_field("spec.providerID", detail))
    if any((new.get(key) or None) != (was.get(key) or None) for key in {*new, *was} - _MUTABLE):
        errors.append(forbidden_field("spec", "node updates may only change labels, taints, or capacity"))
    return errors


def validate_runtime_class(obj: Obj) -> list[FieldError]:
    errors = FieldErrors()
    handler = obj.get("handler") or ""
    checks.add_invalid(errors, "handler", handler, names.dns1123_label(handler))
    for name, amount in ((obj.get("overhead") or {}).get("podFixed") or {}).items():
        checks.resource_amount(errors, f"overhead.podFixed[{name}]", amount)
    checks.labels(errors, "scheduling.nodeSelector", (obj.get("scheduling") or {}).get("nodeSelector"))
    return errors


def update_runtime_class(obj: Obj, old: Obj) -> list[FieldError]:
    errors = FieldErrors()
    checks.unchanged(errors, "handler", obj.get("handler"), old.get("handler"))
    return errors


def validate_lease(obj: Obj) -> list[FieldError]:
    errors = FieldErrors()
    spec = obj.get("spec") or {}
    checks.positive(errors, "spec", spec, "leaseDurationSeconds")
    checks.non_negative(errors, "spec", spec, "leaseTransitions")
    if spec.get("preferredHolder") and not spec.get("strategy"):
        errors.append(forbidden_field("spec.preferredHolder", "may only be specified if `strategy` is defined"))
    return errors


NODE = Strategy(
    default=default_node,
    validate=validate_node,
    validate_update=update_node,
    keeps_status_on_create=True,
    fields={"spec.unschedulable": lambda obj: "true" if (obj.get("spec") or {}).get("unschedulable") else "false"},
)


def runtime_class_warnings(obj: Obj, _old: Obj | None) -> list[str]:
    return list(node_labels("scheduling.nodeSelector", (obj.get("scheduling") or {}).get("nodeSelector")))


RUNTIME_CLASS = Strategy(
    warnings=runtime_class_warnings,
    validate=validate_runtime_class,
    validate_update=update_runtime_class,
    create_on_update=True,
    unconditional_update=False,
)
LEASE = Strategy(validate=validate_lease, create_on_update=True, unconditional_update=False)
