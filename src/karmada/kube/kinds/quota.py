"""The usage of an object under ResourceQuotas, and which quotas apply to it.

Pure functions of plain objects, shared by the admission plug-in and the quota controller. A resource name is one of
three sorts: a count of objects ("pods", "count/deployments.apps"), an amount that pods request or are limited to
("requests.cpu", "limits.memory", "cpu"), or storage that claims request.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from karmada.kube.kinds import checks
from karmada.kube.kinds.pod_amounts import Usage, pod_resources
from karmada.kube.kinds.pods import TERMINAL, qos_class
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.objects.quantity import Quantity
from karmada.kube.objects.types import Obj

PODS = GroupResource("", "pods")
SERVICES = GroupResource("", "services")
CLAIMS = GroupResource("", "persistentvolumeclaims")
QUOTAS = GroupResource("", "resourcequotas")
_ONE = Quantity.of(1)
_PLAIN_COUNTS = frozenset({
    "pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps", "persistentvolumeclaims",
})  # fmt: skip
_COMPUTE = frozenset({"cpu", "memory", "ephemeral-storage"})
_MUST_SAY = frozenset({"cpu", "memory"})
_CLASS_SUFFIX = ".storageclass.storage.k8s.io/"
_BETA_CLASS = "volume.beta.kubernetes.io/storage-class"


def usage(resource: GroupResource, obj: Obj) -> Usage:
    """Return the usage of an object, by resource name."""
    found: Usage = {f"count/{resource}": _ONE}
    if resource.group == "" and resource.resource in _PLAIN_COUNTS:
        found[resource.resource] = _ONE
    if resource == PODS:
        return _pod_usage(found, obj)
    if resource == SERVICES:
        found |= _service_usage(obj.get("spec") or {})
    elif resource == CLAIMS:
        found |= _claim_usage(obj)
    return found


def _pod_usage(found: Usage, pod: Obj) -> Usage:
    """Return the usage of a pod; of one that has ended only the object itself counts."""
    if (pod.get("status") or {}).get("phase") in TERMINAL:
        return {"count/pods": _ONE}
    spec = pod.get("spec") or {}
    for name, amount in pod_resources(spec, "requests").items():
        if name in _COMPUTE or name.startswith("hugepages-"):
            found[name] = amount
        found[f"requests.{name}"] = amount
    for name, amount in pod_resources(spec, "limits").items():
        if name in _COMPUTE:
            found[f"limits.{name}"] = amount
    return found


def _service_usage(spec: Obj) -> Usage:
    found: Usage = {}
    ports = len(spec.get("ports") or ())
    if spec.get("type") == "NodePort":
        found["services.nodeports"] = Quantity.of(ports)
    elif spec.get("type") == "LoadBalancer":
        found["services.loadbalancers"] = _ONE
        if spec.get("allocateLoadBalancerNodePorts") is False:
            ports = sum(1 for port in spec.get("ports") or () if port.get("nodePort"))
        found["services.nodeports"] = Quantity.of(ports)
    return found


def _claim_usage(claim: Obj) -> Usage:
    spec = claim.get("spec") or {}
    annotations = claim["metadata"].get("annotations") or {}
    name = annotations.get(_BETA_CLASS) or spec.get("storageClassName") or ""
    size = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    amount = checks.quantity(size) if size is not None else None
    found: Usage = {}
    if name:
        found[f"{name}{_CLASS_SUFFIX}persistentvolumeclaims"] = _ONE
    if amount is not None:
        found["requests.storage"] = amount
        if name:
            found[f"{name}{_CLASS_SUFFIX}requests.storage"] = amount
    return found


def constrained(quota: Obj) -> dict[str, Any]:
    """Return what a quota limits, according to status.hard: only that is enforced."""
    found: dict[str, Any] = (quota.get("status") or {}).get("hard") or {}
    return found


# --- what pods must set

_NEEDED_KINDS = (("limits.", "limits"), ("requests.", "requests"))


def missing(quota: Obj, pod: Obj) -> list[str]:
    """Constrained compute resources that a container does not mention, as "name for: container,container"."""
    if (pod.get("spec") or {}).get("resources"):
        return []
    lacking = []
    for name in sorted((quota.get("spec") or {}).get("hard") or ()):
        kind, plain = _kind_of(name)
        if kind is None:
            continue
        without = [
            container.get("name") or ""
            for key in ("containers", "initContainers")
            for container in (pod.get("spec") or {}).get(key) or ()
            if plain not in ((container.get("resources") or {}).get(kind) or {})
        ]
        if without:
            lacking.append(f"{name} for: {','.join(sorted(without))}")
    return lacking


def _kind_of(name: str) -> tuple[str | None, str]:
    """Return whether a name in a quota limits requests or limits, and of which resource; storage and counts neither."""
    for prefix, kind in _NEEDED_KINDS:
        plain = name.removeprefix(prefix)
        if plain != name:
            return (kind, plain) if plain in _MUST_SAY else (None, name)
    return ("requests", name) if name in _MUST_SAY else (None, name)


# --- scopes


def in_scope(quota: Obj, resource: GroupResource, obj: Obj) -> bool:
    """Return whether an object is in the scopes of a quota."""
    spec = quota.get("spec") or {}
    wanted = [{"scopeName": scope, "operator": "Exists"} for scope in spec.get("scopes") or ()]
    wanted += (spec.get("scopeSelector") or {}).get("matchExpressions") or []
    if not wanted:
        return True
    if resource == PODS:
        return all(_pod_matches(expression, obj.get("spec") or {}) for expression in wanted)
    if resource == CLAIMS:
        return all(_claim_matches(expression, obj.get("spec") or {}) for expression in wanted)
    return False


def _pod_matches(expression: Obj, spec: Obj) -> bool:
    scope: str = expression.get("scopeName") or ""
    if scope in ("Terminating", "NotTerminating"):
        return (spec.get("activeDeadlineSeconds") is not None) == (scope == "Terminating")
    if scope in ("BestEffort", "NotBestEffort"):
        return (qos_class(spec) == "BestEffort") == (scope == "BestEffort")
    if scope == "PriorityClass":
        return _compares(expression, spec.get("priorityClassName") or "")
    if scope == "CrossNamespacePodAffinity":
        return _crosses_namespaces(spec.get("affinity") or {})
    return False


def _claim_matches(expression: Obj, spec: Obj) -> bool:
    if expression.get("scopeName") != "VolumeAttributesClass":
        return False
    return _compares(expression, spec.get("volumeAttributesClassName") or "")


def _compares(expression: Obj, value: str) -> bool:
    operator: str = expression.get("operator") or ""
    values: list[str] = expression.get("values") or []
    if operator in ("Exists", "DoesNotExist"):
        return bool(value) == (operator == "Exists")
    return (value in values) == (operator == "In")


def _crosses_namespaces(affinity: Obj) -> bool:
    terms: list[Obj] = []
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(kind) or {}
        terms += rules.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        preferred = rules.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        terms += [term.get("podAffinityTerm") or {} for term in preferred]
    return any(term.get("namespaces") or term.get("namespaceSelector") is not None for term in terms)


def limited_resources(names: Iterable[str], counts: Mapping[str, Quantity]) -> list[str]:
    """Return which of the names that a quota limits an object counts for, in order."""
    return sorted(name for name in names if name in counts)
