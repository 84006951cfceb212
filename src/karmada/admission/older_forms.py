"""Manifests of older documents, brought into the present forms where there is one that means the same.

Each function changes a spec in place and tells the user what it did with a warning. A spec in the present form costs a
few look-ups and stays as it is. What older documents have and the present API has no other form for (replicas and
resources overriders, spreadByLabel, weights of 0) is a field of its own and not touched here.
"""

from __future__ import annotations

from karmada.admission.context import Context
from karmada.kube.objects.types import Obj

_INGRESS_FIELDS = ("ingressClassName", "defaultBackend", "tls", "rules")
_CLUSTER_PURGE = {
    "Gracefully": "Gracefully",
    "Graciously": "Gracefully",
    "Directly": "Directly",
    "Immediately": "Directly",
}
_DEFAULT_PURGE = "Gracefully"


def propagation(spec: Obj, context: Context) -> None:
    """The spec of a policy."""
    placement(spec.get("placement") or {}, context)
    failover = spec.get("failover")
    if failover and failover.get("applicationMigrationPolicy") is not None:
        _migration(spec, failover)
        context.warn(
            "spec.failover.applicationMigrationPolicy is an older form: stored as spec.failover.application and "
            "spec.failover.cluster, with spec.propagateDeps set"
        )


def placement(found: Obj, context: Context) -> None:
    """A placement, in a policy or in a binding."""
    scheduling = found.get("replicaScheduling")
    if scheduling is not None:
        _division(scheduling, context)
    constraints = found.get("spreadConstraints")
    if constraints and _spread_without_clusters(constraints):
        constraints.append({"spreadByField": "cluster", "minGroups": 1})
        context.warn(
            "spec.placement.spreadConstraints: a constraint with spreadByField cluster was added, which the others need"
        )


def _division(scheduling: Obj, context: Context) -> None:
    """Dynamic with a dynamicWeight beside it was what is now Weighted with the weight among the weights."""
    dynamic = scheduling.get("replicaDivisionPreference") == "Dynamic"
    beside = scheduling.pop("dynamicWeight", None)
    if dynamic:
        scheduling["replicaDivisionPreference"] = "Weighted"
    if dynamic or beside:
        weights = scheduling.get("weightPreference") or {}
        if not weights.get("dynamicWeight"):
            weights = {**weights, "dynamicWeight": beside or "AvailableReplicas"}
        scheduling["weightPreference"] = weights
        context.warn(
            "spec.placement.replicaScheduling: dynamic division in an older form, stored as replicaDivisionPreference "
            "Weighted with weightPreference.dynamicWeight"
        )


def _spread_without_clusters(constraints: list[Obj]) -> bool:
    fields = [_field(constraint) for constraint in constraints]
    return any(fields) and "cluster" not in fields


def _field(constraint: Obj) -> str:
    """Neither a field nor a label means clusters, which is the default."""
    field: str = constraint.get("spreadByField") or ""
    return field if field or constraint.get("spreadByLabel") else "cluster"


def _migration(spec: Obj, failover: Obj) -> None:
    """Moving an application away, because it or its cluster fails: today two settings, and dependencies must follow."""
    policy = failover.pop("applicationMigrationPolicy")
    purge = policy.get("purgePolicy") or _DEFAULT_PURGE
    if failover.get("application") is None:
        failover["application"] = {"decisionConditions": policy.get("decisionConditions") or {}, "purgeMode": purge}
    if failover.get("cluster") is None and purge in _CLUSTER_PURGE:
        failover["cluster"] = {"purgeMode": _CLUSTER_PURGE[purge]}
    spec["propagateDeps"] = True


def ingress(spec: Obj, context: Context) -> None:
    """The spec of a MultiClusterIngress: what stands in a template comes up to where it is looked for."""
    template = spec.pop("template", None)
    if template is None:
        return
    inner = template.get("spec") or {}
    for field in _INGRESS_FIELDS:
        if not spec.get(field) and inner.get(field):
            spec[field] = inner[field]
    context.warn("spec.template is an older form: stored as the fields of spec itself")
