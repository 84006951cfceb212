"""PropagationPolicy and ClusterPropagationPolicy.

A policy gets a permanent id when it is created, whatever it brought along: an id that came back with a restored backup
could be that of another policy. From then on the id cannot change, because everything the policy claims carries it.
"""

from __future__ import annotations

from karmada.admission.context import Context, Refusal
from karmada.admission.placement import check_placement, check_placement_size, fill_placement
from karmada.admission.selectors import check_namespace, fill_namespace
from karmada.admission.tidying import AFFINITY, SELECTOR, drop_empty
from karmada.api.older_forms import GRACE_SECONDS, policy_warnings, present_policy
from karmada.api.well_known import (
    CLUSTER_POLICY_FINALIZER,
    CLUSTER_POLICY_ID,
    POLICY_FINALIZER,
    POLICY_ID,
)
from karmada.kube.kinds import checks
from karmada.kube.objects import names
from karmada.kube.objects.errors import FieldError, FieldErrors, invalid
from karmada.kube.objects.types import Obj

GRACEFUL = ("Gracefully", "Graciously")
_SERVICE_IMPORT = ("multicluster.x-k8s.io/v1alpha1", "ServiceImport")
_OMITTED = (
    AFFINITY
    | SELECTOR
    | {
        "association", "propagateDeps", "clusterAffinities", "overflowAffinities", "clusterTolerations",
        "spreadConstraints", "spreadByField", "spreadByLabel", "maxGroups", "minGroups", "replicaDivisionPreference",
        "staticWeightList", "dynamicWeight", "key", "operator", "value", "effect", "dependentOverrides",
        "activationPreference",
    }
)  # fmt: skip


def mutate(policy: Obj, _old: Obj | None, context: Context) -> None:
    """PropagationPolicy."""
    fill_namespace(policy.get("spec") or {}, context.namespace)
    _mutate(policy, context, POLICY_ID, POLICY_FINALIZER)


def mutate_cluster_wide(policy: Obj, _old: Obj | None, context: Context) -> None:
    """ClusterPropagationPolicy."""
    _mutate(policy, context, CLUSTER_POLICY_ID, CLUSTER_POLICY_FINALIZER)


def _mutate(policy: Obj, context: Context, label: str, finalizer: str) -> None:
    spec = policy.get("spec")
    if spec is not None:
        for warning in policy_warnings(spec):
            context.warn(warning)
        _fill(spec)
    if context.creating:
        meta = policy["metadata"]
        meta["labels"] = {**(meta.get("labels") or {}), label: context.settings.new_id()}
        finalizers = meta.get("finalizers") or []
        if finalizer not in finalizers:
            meta["finalizers"] = [*finalizers, finalizer]


def _fill(spec: Obj) -> None:
    if spec.get("placement") is None:
        spec["placement"] = {}
    fill_placement(spec["placement"])
    for selector in spec.get("resourceSelectors") or ():
        if (selector.get("apiVersion"), selector.get("kind")) == _SERVICE_IMPORT:
            spec["propagateDeps"] = True
    application = (spec.get("failover") or {}).get("application")
    if application is not None and application.get("gracePeriodSeconds") is None and _graceful(application):
        application["gracePeriodSeconds"] = GRACE_SECONDS
    drop_empty(spec, _OMITTED)


def _graceful(application: Obj) -> bool:
    return application.get("purgeMode", "Gracefully") in GRACEFUL


# validation


def validate(policy: Obj, old: Obj | None, _context: Context) -> list[FieldError]:
    """PropagationPolicy."""
    _check_identity(policy, old, POLICY_ID)
    return _validate(policy["spec"], old, policy["metadata"].get("namespace") or "")


def validate_cluster_wide(policy: Obj, old: Obj | None, _context: Context) -> list[FieldError]:
    """ClusterPropagationPolicy."""
    _check_identity(policy, old, CLUSTER_POLICY_ID)
    return _validate(policy["spec"], old, None)


def _check_identity(policy: Obj, old: Obj | None, label: str) -> None:
    """Validate a policy; changes of immutable fields are refused first, without further validation."""
    identity = (policy["metadata"].get("labels") or {}).get(label)
    if old is not None:
        if policy["spec"].get("schedulerName") != (old.get("spec") or {}).get("schedulerName"):
            raise Refusal("the schedulerName should not be updated")
        if (identity or "") != ((old["metadata"].get("labels") or {}).get(label) or ""):
            raise Refusal(f"label {label} is immutable, it can only be set by the system during creation")
    if identity is None:
        raise Refusal(f"label {label} is required, it should be set by the mutating admission webhook during creation")


def _validate(spec: Obj, old: Obj | None, namespace: str | None) -> list[FieldError]:
    errors = FieldErrors()
    before = ((old or {}).get("spec") or {}).get("placement") or {}
    check_placement_size(errors, spec.get("placement") or {}, before)
    spec = present_policy(spec)
    check_placement(errors, spec.get("placement") or {})
    failover = spec.get("failover") or {}
    if failover.get("application") is not None and not spec.get("propagateDeps"):
        detail = "application failover is set, propagateDeps must be true"
        errors.append(invalid("spec.propagateDeps", False, detail))
    _failover(errors, failover)
    if namespace is not None:
        check_namespace(errors, spec, namespace)
    if spec.get("preemption") == "Always":
        _named(errors, spec.get("resourceSelectors") or [])
    _suspension(errors, spec.get("suspension") or {})
    return errors


def _failover(errors: list[FieldError], failover: Obj) -> None:
    application = failover.get("application")
    if application is not None:
        _application(errors, "spec.failover.application", application)
        _state(errors, "spec.failover.application", application)
    _state(errors, "spec.failover.cluster", failover.get("cluster") or {})


def _application(errors: list[FieldError], path: str, application: Obj) -> None:
    toleration = (application.get("decisionConditions") or {}).get("tolerationSeconds")
    if toleration is not None and toleration < 0:
        errors.append(invalid(f"{path}.decisionConditions.tolerationSeconds", toleration, checks.NON_NEGATIVE))
    grace, graceful = application.get("gracePeriodSeconds"), _graceful(application)
    path = f"{path}.gracePeriodSeconds"
    if not graceful and grace is not None:
        errors.append(invalid(path, grace, "only takes effect when purgeMode is gracefully"))
    if graceful and grace is None:
        errors.append(invalid(path, None, "should not be empty when purgeMode is gracefully"))
    if grace is not None and grace <= 0:
        errors.append(invalid(path, grace, "must be greater than 0"))


def _state(errors: list[FieldError], path: str, behaviour: Obj) -> None:
    rules = (behaviour.get("statePreservation") or {}).get("rules") or ()
    for index, rule in enumerate(rules):
        label = rule.get("aliasLabelName") or ""
        place = f"{path}.statePreservation.rules[{index}].aliasLabelName"
        checks.add_invalid(errors, place, label, names.qualified_name(label))


def _named(errors: list[FieldError], selectors: list[Obj]) -> None:
    """Who takes resources away from other policies must say which."""
    for index, selector in enumerate(selectors):
        if not selector.get("name"):
            detail = (
                "name cannot be empty if preemption is Always, the empty name may cause unexpected resources preemption"
            )
            errors.append(invalid(f"spec.resourceSelectors[{index}].name", "", detail))


def _suspension(errors: list[FieldError], suspension: Obj) -> None:
    if suspension.get("dispatching") and (suspension.get("dispatchingOnClusters") or {}).get("clusterNames"):
        detail = "suspension dispatching cannot co-exist with dispatchingOnClusters.clusterNames"
        errors.append(invalid("spec.suspension.suspension", suspension, detail))
