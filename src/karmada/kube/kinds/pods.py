"""Pods: defaults beyond the PodSpec's, quality of service, what an update may touch, and graceful deletion.

The rules of the writes that go through subresources (binding, ephemeralcontainers, resize) are in pod_subresources.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from karmada.kube.kinds import checks
from karmada.kube.kinds.pod_warnings import for_pods
from karmada.kube.kinds.podspec import (
    containers_of,
    default_pod_only,
    default_pod_spec,
    validate_annotations,
    validate_pod_spec,
)
from karmada.kube.kinds.resource import Strategy
from karmada.kube.objects.errors import FieldError, FieldErrors, forbidden_field, invalid, required
from karmada.kube.objects.types import Obj

UPDATE_FORBIDDEN = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_QOS_RESOURCES = ("cpu", "memory")
TERMINAL = ("Succeeded", "Failed")


def default(pod: Obj) -> None:
    spec = pod.get("spec")
    if spec is None:
        spec = pod["spec"] = {}
    default_pod_spec(spec)
    default_pod_only(spec)


def qos_class(spec: Obj) -> str:
    """Guaranteed: cpu and memory limited in every container, and requested in full; BestEffort: neither anywhere.

    Resources of the pod as a whole decide in place of those of its containers.
    """
    guaranteed, anything = True, False
    whole = spec.get("resources") or {}
    decided = _counted(whole.get("limits")) or _counted(whole.get("requests"))
    parts = [spec] if decided else [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    for part in parts:
        resources = part.get("resources") or {}
        limits, requests = _counted(resources.get("limits")), _counted(resources.get("requests"))
        anything = anything or bool(limits or requests)
        if set(limits) != set(_QOS_RESOURCES) or any(
            requests.get(name, limits[name]) != limits[name] for name in limits
        ):
            guaranteed = False
    if not anything:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


def _counted(resources: Obj | None) -> dict[str, Any]:
    found = {name: checks.quantity((resources or {}).get(name, "0")) for name in _QOS_RESOURCES}
    return {name: amount for name, amount in found.items() if amount is not None and amount.milli() > 0}


def prepare_create(pod: Obj) -> None:
    pod["status"] = {"phase": "Pending", "qosClass": qos_class(pod["spec"])}


def validate(pod: Obj) -> list[FieldError]:
    errors = FieldErrors()
    spec = pod.get("spec") or {}
    validate_annotations(errors, "metadata.annotations", pod["metadata"].get("annotations"), spec)
    validate_pod_spec(errors, "spec", spec)
    for kind in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(kind) or ()):
            image = container.get("image") or ""
            if image != image.strip():
                detail = "must not have leading or trailing whitespace"
                errors.append(invalid(f"spec.{kind}[{index}].image", image, detail))
    if spec.get("schedulingGates") and spec.get("nodeName"):
        detail = "cannot be set until all schedulingGates have been cleared"
        errors.append(forbidden_field("spec.nodeName", detail))
    return errors


# --- updates


def validate_update(pod: Obj, old: Obj) -> list[FieldError]:
    new, before = pod["spec"], old["spec"]
    if new == before:
        return []
    for kind in ("containers", "initContainers"):
        if len(new.get(kind) or ()) != len(before.get(kind) or ()):
            return [forbidden_field(f"spec.{kind}", "pod updates may not add or remove containers")]
    errors = FieldErrors()
    munged = dict(new)
    for kind in ("containers", "initContainers"):
        _restore_images(errors, munged, before, kind)
    for step in (_deadline, _tolerations, _gates, _grace):
        step(errors, munged, before)
    if not errors and not _equal(munged, before):
        errors.append(forbidden_field("spec", UPDATE_FORBIDDEN))
    return errors


def _equal(new: Obj, old: Obj) -> bool:
    """Absent and empty are equal."""
    return all((new.get(key) or None) == (old.get(key) or None) for key in {*new, *old})


def _restore_images(errors: list[FieldError], munged: Obj, before: Obj, kind: str) -> None:
    if not munged.get(kind):
        return
    restored = []
    for index, (container, was) in enumerate(zip(munged[kind], before[kind], strict=True)):
        if not container.get("image"):
            errors.append(required(f"spec.{kind}[{index}].image"))
        restored.append({**container, "image": was.get("image")})
    munged[kind] = restored


def _deadline(errors: list[FieldError], munged: Obj, before: Obj) -> None:
    new, was = munged.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds")
    path = "spec.activeDeadlineSeconds"
    if new is None:
        if was is not None:
            errors.append(invalid(path, None, "must not update from a positive integer to nil value"))
    elif was is not None and new > was:
        errors.append(invalid(path, new, "must be less than or equal to previous value"))
    checks.put_back(munged, before, "activeDeadlineSeconds")


def _tolerations(errors: list[FieldError], munged: Obj, before: Obj) -> None:
    """Tolerations may be added, and how long an existing one holds may change."""
    kept = [{**t, "tolerationSeconds": None} for t in munged.get("tolerations") or ()]
    for toleration in before.get("tolerations") or ():
        if {**toleration, "tolerationSeconds": None} not in kept:
            detail = "existing toleration can not be modified except its tolerationSeconds"
            errors.append(forbidden_field("spec.tolerations", detail))
            return
    checks.put_back(munged, before, "tolerations")


def _gates(errors: list[FieldError], munged: Obj, before: Obj) -> None:
    """Scheduling gates can only be removed; while there are some, node selection may be narrowed."""
    known = {gate.get("name") for gate in before.get("schedulingGates") or ()}
    for index, gate in enumerate(munged.get("schedulingGates") or ()):
        if gate.get("name") not in known:
            detail = f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'"
            errors.append(forbidden_field(f"spec.schedulingGates[{index}].name", detail))
    checks.put_back(munged, before, "schedulingGates")
    if not known:
        return
    selector, was = munged.get("nodeSelector") or {}, before.get("nodeSelector") or {}
    if any(selector.get(key) != value for key, value in was.items()):
        detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        errors.append(invalid("spec.nodeSelector", selector, detail))
    checks.put_back(munged, before, "nodeSelector")
    _gated_affinity(errors, munged, before)


def _gated_affinity(errors: list[FieldError], munged: Obj, before: Obj) -> None:
    new, was = munged.get("affinity") or {}, before.get("affinity") or {}
    node, node_was = new.get("nodeAffinity") or {}, was.get("nodeAffinity") or {}
    must, must_was = (part.get("requiredDuringSchedulingIgnoredDuringExecution") for part in (node, node_was))
    if must_was and must != must_was:
        terms = (must or {}).get("nodeSelectorTerms") or []
        terms_was = must_was.get("nodeSelectorTerms") or []
        path = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
        if len(terms) != len(terms_was):
            errors.append(
                invalid(path, terms, "no additions/deletions to non-empty NodeSelectorTerms list are allowed")
            )
        for index, (term, term_was) in enumerate(zip(terms, terms_was, strict=False)):
            if not _narrower(term, term_was):
                errors.append(
                    invalid(f"{path}[{index}]", term, "only additions are allowed (no mutations or deletions)")
                )
    if {**new, "nodeAffinity": None} == {**was, "nodeAffinity": None}:
        checks.put_back(munged, before, "affinity")


def _narrower(term: Obj, was: Obj) -> bool:
    for kind in ("matchExpressions", "matchFields"):
        now = term.get(kind) or []
        if any(requirement not in now for requirement in was.get(kind) or ()):
            return False
    return True


def _grace(_errors: list[FieldError], munged: Obj, before: Obj) -> None:
    if (before.get("terminationGracePeriodSeconds") or 0) < 0 and munged.get("terminationGracePeriodSeconds") == 1:
        checks.put_back(munged, before, "terminationGracePeriodSeconds")


# --- deletion and selection


def grace_period(pod: Obj, requested: int | None) -> int:
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    if not spec.get("nodeName") or status.get("phase") in TERMINAL:
        return 0
    period = requested if requested is not None else int(spec.get("terminationGracePeriodSeconds") or 0)
    return 1 if period < 0 else period


def generation(pod: Obj) -> Any:
    """Return the parts of a Pod whose changes count: the node is set by the scheduler and is no part of them."""
    return {key: value for key, value in (pod.get("spec") or {}).items() if key != "nodeName"}


def _spec(key: str) -> Callable[[Obj], str]:
    return lambda pod: (pod.get("spec") or {}).get(key) or ""


def _status(key: str) -> Callable[[Obj], str]:
    return lambda pod: (pod.get("status") or {}).get(key) or ""


def _host_network(pod: Obj) -> str:
    return "true" if (pod.get("spec") or {}).get("hostNetwork") else "false"


def _pod_ips(pod: Obj) -> str:
    return ",".join(entry.get("ip") or "" for entry in (pod.get("status") or {}).get("podIPs") or ())


def is_ready(pod: Obj) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)


POD = Strategy(
    warnings=for_pods,
    default=default,
    prepare_create=prepare_create,
    validate=validate,
    validate_update=validate_update,
    generation=generation,
    graceful=grace_period,
    returns_deleted=True,
    status_keeps=("ownerReferences",),
    fields={
        "spec.nodeName": _spec("nodeName"),
        "spec.host": _spec("nodeName"),
        "spec.restartPolicy": _spec("restartPolicy"),
        "spec.schedulerName": _spec("schedulerName"),
        "spec.serviceAccountName": _spec("serviceAccountName"),
        "spec.hostNetwork": _host_network,
        "status.phase": _status("phase"),
        "status.podIP": _status("podIP"),
        "status.podIPs": _pod_ips,
        "status.nominatedNodeName": _status("nominatedNodeName"),
    },
)

__all__ = ["POD", "TERMINAL", "containers_of", "grace_period", "is_ready", "qos_class", "validate_update"]
