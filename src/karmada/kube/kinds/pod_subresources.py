"""Writes to a Pod that do not go through its main endpoint: binding, ephemeralcontainers, resize, eviction's mark.

Each function gets a private copy of the live Pod, changes only the part its subresource is for, and returns it; the
`*_errors` functions validate the result against the old Pod. They replace the update rules of the main endpoint, which
would refuse every one of these changes.
"""

from __future__ import annotations

from karmada.kube.kinds import checks
from karmada.kube.kinds.filling import take_version
from karmada.kube.kinds.pods import qos_class, validate
from karmada.kube.kinds.podspec import default_container
from karmada.kube.objects.errors import (
    Conflict,
    FieldError,
    FieldErrors,
    forbidden_field,
    invalid,
    not_supported,
    required,
)
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.objects.meta import set_condition
from karmada.kube.objects.types import Obj

_BINDING = GroupResource("", "pods/binding")
_RESIZABLE = ("cpu", "memory")


def _set_condition(pod: Obj, condition: Obj, now: float) -> None:
    status = pod.setdefault("status", {})
    status["conditions"] = set_condition(status.get("conditions"), {"lastProbeTime": None, **condition}, now)


# --- binding


def binding_errors(binding: Obj) -> list[FieldError]:
    errors = FieldErrors()
    target = binding.get("target") or {}
    if target.get("kind") not in (None, "", "Node"):
        errors.append(not_supported("target.kind", target["kind"], ("Node", "<empty>")))
    if not target.get("name"):
        errors.append(required("target.name"))
    return errors


def bind(pod: Obj, binding: Obj, now: float) -> Obj:
    """Assign the Pod to the binding's node, or Conflict."""
    name, spec = pod["metadata"]["name"], pod["spec"]
    if pod["metadata"].get("deletionTimestamp"):
        raise Conflict.of(_BINDING, name, f"pod {name} is being deleted, cannot be assigned to a host")
    if spec.get("nodeName"):
        raise Conflict.of(_BINDING, name, f'pod {name} is already assigned to node "{spec["nodeName"]}"')
    if spec.get("schedulingGates"):
        raise Conflict.of(_BINDING, name, f"pod {name} has non-empty .spec.schedulingGates")
    spec["nodeName"] = binding["target"]["name"]
    for key in ("annotations", "labels"):
        given = (binding.get("metadata") or {}).get(key)
        if given:
            pod["metadata"][key] = {**(pod["metadata"].get(key) or {}), **given}
    _set_condition(pod, {"type": "PodScheduled", "status": "True"}, now)
    return pod


def bound_errors(_pod: Obj, _old: Obj) -> list[FieldError]:
    """None: the Binding itself was validated before it was applied."""
    return []


def mark_evicted(pod: Obj, now: float) -> Obj:
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    _set_condition(pod, condition, now)
    return pod


# --- ephemeral containers


def take_ephemeral(pod: Obj, wanted: Obj) -> Obj:
    """Return the live Pod with the ephemeral containers of `wanted`."""
    containers = (wanted.get("spec") or {}).get("ephemeralContainers") or []
    for container in containers:
        default_container(container)
    if containers:
        pod["spec"]["ephemeralContainers"] = containers
    else:
        pod["spec"].pop("ephemeralContainers", None)
    take_version(pod, wanted)
    return pod


def ephemeral_errors(pod: Obj, old: Obj) -> list[FieldError]:
    wanted = {c.get("name"): c for c in pod["spec"].get("ephemeralContainers") or ()}
    errors = validate(pod)
    for container in old["spec"].get("ephemeralContainers") or ():
        name = container.get("name")
        if name not in wanted:
            detail = f'existing ephemeral containers "{name}" may not be removed\n'
            errors.append(forbidden_field("spec.ephemeralContainers", detail))
        elif wanted[name] != container:
            detail = f'existing ephemeral containers "{name}" may not be changed\n'
            errors.append(forbidden_field("spec.ephemeralContainers", detail))
    return errors


# --- resize


def take_resize(pod: Obj, wanted: Obj) -> Obj:
    """Return the live Pod with the resources and resize policies of `wanted`'s containers of the same names."""
    for kind in ("containers", "initContainers"):
        requested = {c.get("name"): c for c in (wanted.get("spec") or {}).get(kind) or ()}
        for container in pod["spec"].get(kind) or ():
            other = requested.get(container.get("name"))
            if other is None:
                continue
            for key in ("resources", "resizePolicy"):
                if key in other:
                    container[key] = other[key]
                else:
                    container.pop(key, None)
            default_container(container)
    take_version(pod, wanted)
    return pod


def resize_errors(pod: Obj, old: Obj) -> list[FieldError]:
    errors = validate(pod)
    for kind in ("containers", "initContainers"):
        pairs = zip(pod["spec"].get(kind) or (), old["spec"].get(kind) or (), strict=False)
        for index, (container, was) in enumerate(pairs):
            _resized(errors, f"spec.{kind}[{index}].resources", container.get("resources"), was.get("resources"))
    if not errors and qos_class(pod["spec"]) != qos_class(old["spec"]):
        detail = "Pod QOS Class may not change as a result of resizing"
        errors.append(invalid("spec", qos_class(old["spec"]), detail))
    return errors


def _resized(errors: list[FieldError], path: str, new: Obj | None, was: Obj | None) -> None:
    for kind in ("limits", "requests"):
        now, before = (new or {}).get(kind) or {}, (was or {}).get(kind) or {}
        for name in sorted({*now, *before}):
            if name not in now and name in _RESIZABLE:
                errors.append(forbidden_field(f"{path}.{kind}", f"resource {kind} cannot be removed"))
            elif name not in _RESIZABLE and checks.quantity(now.get(name, "0")) != checks.quantity(
                before.get(name, "0")
            ):
                errors.append(forbidden_field(path, "only cpu and memory resources are mutable"))
