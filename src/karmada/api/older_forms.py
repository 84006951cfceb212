"""Manifests of older documents: what they mean in the present forms.

A policy is stored as it was applied, so that applying it again changes nothing. Controllers and admission read it
through these functions, which return a spec in the present form: the spec itself when it is in that form already (a few
look-ups), else a copy. What the present API has no other form for (replicas and resources
overriders, spreadByLabel, weights of 0) is a field of its own and not touched here.
"""

from __future__ import annotations

from karmada.kube.objects.types import Obj

_INGRESS_FIELDS = ("ingressClassName", "defaultBackend", "tls", "rules")
_CLUSTER_PURGE = {
    "Gracefully": "Gracefully",
    "Graciously": "Gracefully",
    "Directly": "Directly",
    "Immediately": "Directly",
}
_GRACEFUL = ("Gracefully", "Graciously")
_DEFAULT_PURGE = "Gracefully"
_TOLERATION_SECONDS = 300
GRACE_SECONDS = 600


def present_policy(spec: Obj) -> Obj:
    """The spec of a PropagationPolicy or ClusterPropagationPolicy in the present form."""
    placement = spec.get("placement")
    if placement:
        present = present_placement(placement)
        if present is not placement:
            spec = {**spec, "placement": present}
    failover = spec.get("failover")
    if failover and failover.get("applicationMigrationPolicy") is not None:
        spec = {**spec, "failover": _present_failover(failover), "propagateDeps": True}
    return spec


def present_placement(placement: Obj) -> Obj:
    """A placement, in a policy or in a binding, in the present form."""
    scheduling = placement.get("replicaScheduling")
    if scheduling and _has_older_division(scheduling):
        placement = {**placement, "replicaScheduling": _present_division(scheduling)}
    constraints = placement.get("spreadConstraints")
    if constraints and _spread_without_clusters(constraints):
        by_cluster = {"spreadByField": "cluster", "minGroups": 1}
        placement = {**placement, "spreadConstraints": [*constraints, by_cluster]}
    return placement


def present_ingress(spec: Obj) -> Obj:
    """The spec of a MultiClusterIngress: the fields of a template count where the spec itself has none."""
    if spec.get("template") is None:
        return spec
    inner = spec["template"].get("spec") or {}
    taken = {field: inner[field] for field in _INGRESS_FIELDS if not spec.get(field) and inner.get(field)}
    return {**{field: value for field, value in spec.items() if field != "template"}, **taken}


def policy_warnings(spec: Obj) -> list[str]:
    """What the writer of a policy in an older form should know."""
    found = []
    placement = spec.get("placement") or {}
    if _has_older_division(placement.get("replicaScheduling") or {}):
        found.append(
            "spec.placement.replicaScheduling: an older form of replicaDivisionPreference Weighted with "
            "weightPreference.dynamicWeight"
        )
    if _spread_without_clusters(placement.get("spreadConstraints") or []):
        found.append(
            "spec.placement.spreadConstraints: one with spreadByField cluster is added when clusters are selected, "
            "since the others need it"
        )
    if (spec.get("failover") or {}).get("applicationMigrationPolicy") is not None:
        found.append(
            "spec.failover.applicationMigrationPolicy: an older form of spec.failover.application and "
            "spec.failover.cluster with spec.propagateDeps"
        )
    return found


def ingress_warnings(spec: Obj) -> list[str]:
    return [] if spec.get("template") is None else ["spec.template: an older form of the fields of spec itself"]


def _has_older_division(scheduling: Obj) -> bool:
    return scheduling.get("replicaDivisionPreference") == "Dynamic" or bool(scheduling.get("dynamicWeight"))


def _present_division(scheduling: Obj) -> Obj:
    """Dynamic, or a dynamicWeight beside it, is Weighted with the weight among the weights."""
    present = {field: value for field, value in scheduling.items() if field != "dynamicWeight"}
    if scheduling.get("replicaDivisionPreference", "Dynamic") == "Dynamic":
        present["replicaDivisionPreference"] = "Weighted"
    weights = scheduling.get("weightPreference") or {}
    if not weights.get("dynamicWeight"):
        weights = {**weights, "dynamicWeight": scheduling.get("dynamicWeight") or "AvailableReplicas"}
    present["weightPreference"] = weights
    return present


def _spread_without_clusters(constraints: list[Obj]) -> bool:
    fields = [_field(constraint) for constraint in constraints]
    return any(fields) and "cluster" not in fields


def _field(constraint: Obj) -> str:
    """Neither a field nor a label means clusters, which is the default."""
    field: str = constraint.get("spreadByField") or ""
    return field if field or constraint.get("spreadByLabel") else "cluster"


def _present_failover(failover: Obj) -> Obj:
    """Moving an application because it or its cluster fails: two settings in the present form, which win if given."""
    present = {field: value for field, value in failover.items() if field != "applicationMigrationPolicy"}
    policy = failover["applicationMigrationPolicy"]
    purge = policy.get("purgePolicy") or _DEFAULT_PURGE
    if present.get("application") is None:
        conditions = {"tolerationSeconds": _TOLERATION_SECONDS, **(policy.get("decisionConditions") or {})}
        present["application"] = {"decisionConditions": conditions, "purgeMode": purge}
        if purge in _GRACEFUL:
            present["application"]["gracePeriodSeconds"] = GRACE_SECONDS
    if present.get("cluster") is None and purge in _CLUSTER_PURGE:
        present["cluster"] = {"purgeMode": _CLUSTER_PURGE[purge]}
    return present
