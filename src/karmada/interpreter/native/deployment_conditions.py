"""The conditions of a Deployment that runs in several clusters, for `kubectl wait --for=condition=Available`.

Clusters report counters, not conditions, but a Deployment's conditions follow from its counters: it is Available while
at most maxUnavailable of the desired replicas are missing, and has progressed to its end when all of them are updated
and available. The desired number is not reported, only the number that exists, which a rollout may exceed by maxSurge.
So the counters of a cluster prove yes, no, or nothing; the template gets a condition only where all clusters agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from karmada.interpreter.native.fields import numbers, section
from karmada.interpreter.operations import Report
from karmada.kube.objects.meta import set_condition
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj

_AVAILABLE, _PROGRESSING = "Available", "Progressing"
_IS_AVAILABLE = ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
_IS_NOT_AVAILABLE = ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
_IS_COMPLETE = ("True", "NewReplicaSetAvailable", "Deployment has successfully progressed in all clusters.")
_VERDICTS: dict[frozenset[bool | None], tuple[str, str, str]] = {
    frozenset({True}): _IS_AVAILABLE,
    frozenset({False}): _IS_NOT_AVAILABLE,
}
"""Verdict by what the clusters say; anything else is a disagreement, or nothing is known."""
_DEFAULT = "25%"


def with_conditions(template: Obj, status: Obj, reports: Sequence[Report], now: float) -> Obj:
    """Return the aggregated status with only the conditions on which all clusters agree."""
    statuses = [report.status for report in reports if report.status is not None]
    everywhere = bool(reports) and len(statuses) == len(reports)
    verdicts = {_available(template, found) for found in statuses} if everywhere else set()
    complete = verdicts == {True} and all(_is_complete(found) for found in statuses)
    conditions = list(status.get("conditions") or ())
    conditions = _put(conditions, _AVAILABLE, _VERDICTS.get(frozenset(verdicts)), now)
    conditions = _put(conditions, _PROGRESSING, _IS_COMPLETE if complete else None, now)
    kept = {field: value for field, value in status.items() if field != "conditions"}
    return {**kept, "conditions": conditions} if conditions else kept


def _put(conditions: list[Obj], kind: str, wanted: tuple[str, str, str] | None, now: float) -> list[Obj]:
    old = next((found for found in conditions if found.get("type") == kind), {})
    if wanted is None:
        return [found for found in conditions if found is not old]
    status, reason, message = wanted
    new = {"type": kind, "status": status, "reason": reason, "message": message}
    same = old.items() >= new.items() and "lastUpdateTime" in old
    return set_condition(conditions, {**new, "lastUpdateTime": old["lastUpdateTime"] if same else rfc3339(now)}, now)


def _available(template: Obj, status: Obj) -> bool | None:
    """Return what the counters of one cluster prove."""
    available, unavailable = numbers(status, ("availableReplicas", "unavailableReplicas"))
    existing = available + unavailable
    if not existing and section(template, "spec").get("replicas") != 0:
        return None  # its ReplicaSet may not have been made yet
    if available >= _least(template, existing):
        return True
    return False if available < _least(template, _fewest_desired(template, existing)) else None


def _fewest_desired(template: Obj, existing: int) -> int:
    """Return the smallest number of desired replicas of which a rollout may have made so many."""
    surge = _rollout(template).get("maxSurge", _DEFAULT)
    if isinstance(surge, int):
        return max(0, existing - surge)
    desired = existing * 100 // (100 + _percent(surge))
    while desired + _share(surge, desired, up=True) < existing:  # once at most, for what was rounded
        desired += 1
    return desired


def _least(template: Obj, desired: int) -> int:
    """Return how many of the desired replicas must be available."""
    strategy = section(section(template, "spec"), "strategy")
    if strategy.get("type") == "Recreate":
        return desired
    missing = _share(_rollout(template).get("maxUnavailable", _DEFAULT), desired, up=False)
    surge = _share(_rollout(template).get("maxSurge", _DEFAULT), desired, up=True)
    return desired - min(desired, missing or (0 if surge else 1))


def _rollout(template: Obj) -> Obj:
    return section(section(section(template, "spec"), "strategy"), "rollingUpdate")


def _share(value: Any, of: int, *, up: bool) -> int:
    if isinstance(value, int):
        return value
    whole = of * _percent(value)
    return -(-whole // 100) if up else whole // 100


def _percent(value: Any) -> int:
    return int(str(value).removesuffix("%") or 0)


def _is_complete(status: Obj) -> bool:
    observed, own = numbers(status, ("observedGeneration", "generation"))
    replicas, updated, available, unavailable = numbers(
        status, ("replicas", "updatedReplicas", "availableReplicas", "unavailableReplicas")
    )
    return observed >= own and replicas == updated == available and not unavailable
