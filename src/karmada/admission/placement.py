"""Validation of placements."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from karmada.admission.affinity import check_affinity
from karmada.admission.limits import LIMITS
from karmada.kube.kinds import checks
from karmada.kube.objects import names
from karmada.kube.objects.errors import FieldError, invalid, not_supported, too_long
from karmada.kube.objects.types import Obj

PATH = "spec.placement"
"""Bytes of a policy's placement, which each binding also carries in an annotation: of these 256 kB are allowed."""
TOLERATION_OPERATORS = ("", "Exists", "Equal")
_INLINE = ("labelSelector", "fieldSelector", "clusterNames", "exclude")
_OVERFLOW_NAME = "overflow affinity name must be unique and must not duplicate the primary group's affinityName"
_OVERFLOW_DIVISION = "overflowAffinities can only be used together with dynamic weight or aggregated scheduling"
_OVERFLOW_ALONE = "overflowAffinities can only be used together with the inline ClusterAffinity"
_NO_CLUSTER_SPREAD = (
    "the cluster spread constraint must be enabled in one of the constraints in case of SpreadByField is enabled"
)


def fill_placement(placement: Obj) -> None:
    """Defaults of spread constraints and of the division."""
    for constraint in placement.get("spreadConstraints") or ():
        if not constraint.get("spreadByField") and not constraint.get("spreadByLabel"):
            constraint["spreadByField"] = "cluster"
        if not constraint.get("minGroups"):
            constraint["minGroups"] = 1
    scheduling = placement.get("replicaScheduling")
    if scheduling is not None and _is_divided(scheduling) and not scheduling.get("replicaDivisionPreference"):
        scheduling["replicaDivisionPreference"] = "Weighted"


def _is_divided(scheduling: Obj) -> bool:
    return bool(scheduling.get("replicaSchedulingType", "Divided") == "Divided")


def check_placement_size(errors: list[FieldError], placement: Obj, before: Obj) -> None:
    """Refuse a placement that is too large for what is written from it, unless it was as large before."""
    size = len(orjson.dumps(placement))
    most = LIMITS["placement-bytes"]
    if size > most and size > len(orjson.dumps(before)):
        errors.append(too_long(PATH, most))


def check_placement(errors: list[FieldError], placement: Obj) -> None:
    affinity, terms = placement.get("clusterAffinity"), placement.get("clusterAffinities")
    if affinity is not None and terms is not None:
        errors.append(invalid(PATH, placement, "clusterAffinities cannot co-exist with clusterAffinity"))
    if not _overflow_possible(placement.get("replicaScheduling")):
        for index, term in enumerate(terms or ()):
            more = term.get("overflowAffinities")
            if more is not None:
                path = f"{PATH}.clusterAffinities[{index}].overflowAffinities"
                errors.append(invalid(path, more, _OVERFLOW_DIVISION))
    check_affinity(errors, f"{PATH}.clusterAffinity", affinity)
    _terms(errors, terms or [])
    _spread(errors, placement.get("spreadConstraints") or [])
    _workload_affinity(errors, placement.get("workloadAffinity"))
    for index, toleration in enumerate(placement.get("clusterTolerations") or ()):
        operator = toleration.get("operator") or ""
        if operator in ("Lt", "Gt"):
            path = f"{PATH}.clusterTolerations[{index}].operator"
            errors.append(not_supported(path, operator, TOLERATION_OPERATORS))


# groups of clusters


def _overflow_possible(scheduling: Obj | None) -> bool:
    """Return whether replicas are divided by the available replicas of clusters."""
    if scheduling is None or not _is_divided(scheduling):
        return False
    preference = scheduling.get("replicaDivisionPreference")
    measured = bool((scheduling.get("weightPreference") or {}).get("dynamicWeight"))
    return preference == "Aggregated" or (preference == "Weighted" and measured)


def _terms(errors: list[FieldError], terms: list[Obj]) -> None:
    path = f"{PATH}.clusterAffinities"
    seen: set[str] = set()
    for index, term in enumerate(terms):
        name = term.get("affinityName") or ""
        checks.add_invalid(errors, f"{path}[{index}]", name, names.qualified_name(name))
        if name in seen:
            errors.append(invalid(path, terms, "each affinity term in a policy must have a unique name"))
        seen.add(name)
        check_affinity(errors, f"{path}[{index}]", term)
        _overflow(errors, f"{path}[{index}].overflowAffinities", term)


def _overflow(errors: list[FieldError], path: str, term: Obj) -> None:
    more = term.get("overflowAffinities")
    if not more:
        return
    if not any(_given(term.get(key)) for key in _INLINE):
        errors.append(invalid(path, more, _OVERFLOW_ALONE))
    seen = {term.get("affinityName") or ""}
    for index, affinity in enumerate(more):
        name = affinity.get("affinityName") or ""
        place = f"{path}[{index}].affinityName"
        checks.add_invalid(errors, place, name, names.qualified_name(name))
        if name in seen:
            errors.append(invalid(place, name, _OVERFLOW_NAME))
        seen.add(name)
        check_affinity(errors, f"{path}[{index}]", affinity)


def _given(value: Any) -> bool:
    """Return whether a selector says something: an empty one selects everything; an empty list says nothing."""
    return isinstance(value, dict) or bool(value)


# spread


def _spread(errors: list[FieldError], constraints: list[Obj]) -> None:
    path = f"{PATH}.spreadConstraints"
    used: dict[str, int] = {}
    for index, constraint in enumerate(constraints):
        checks.add_invalid(errors, f"{path}[{index}]", constraint, _wrong_with(constraint))
        by_field = constraint.get("spreadByField")
        if by_field:
            used[by_field] = used.get(by_field, 0) + 1
            if used[by_field] == 2:
                detail = f"multiple {by_field} spread constraints are not allowed"
                errors.append(invalid(path, constraints, detail))
    if used and "cluster" not in used:
        errors.append(invalid(path, constraints, _NO_CLUSTER_SPREAD))


def _wrong_with(constraint: Obj) -> Iterator[str]:
    low, high = constraint.get("minGroups") or 0, constraint.get("maxGroups") or 0
    if constraint.get("spreadByField") and constraint.get("spreadByLabel"):
        yield "spreadByLabel should not co-exist with spreadByField"
    if low < 0:
        yield "minGroups lower than 0 is not allowed"
    if high < 0:
        yield "maxGroups lower than 0 is not allowed"
    if 0 < high < low:
        yield "maxGroups lower than minGroups is not allowed"


# other resources


def _workload_affinity(errors: list[FieldError], affinity: Obj | None) -> None:
    if affinity is None:
        return
    keys = []
    for side in ("affinity", "antiAffinity"):
        term = affinity.get(side)
        if term is not None:
            key = term.get("groupByLabelKey") or ""
            path = f"{PATH}.workloadAffinity.{side}.groupByLabelKey"
            checks.add_invalid(errors, path, key, names.qualified_name(key))
            keys.append(key)
    if len(keys) == 2 and keys[0] == keys[1]:
        detail = "affinity and antiAffinity must not use the same groupByLabelKey"
        errors.append(invalid(f"{PATH}.workloadAffinity", affinity, detail))
