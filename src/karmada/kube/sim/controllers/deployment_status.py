"""A Deployment's status: counts added up from its ReplicaSets, and conditions that report the progress of a rollout.

Available compares the available pods with the least there may be. Progressing follows a rollout: it is renewed by every
step forward, and when none came for progressDeadlineSeconds it says so; once complete it stays until the next rollout.
ReplicaFailure repeats what a ReplicaSet says. A condition that changes moves to the end of the list; lastUpdateTime
moves with every change, lastTransitionTime with the status only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from karmada.kube.objects import meta
from karmada.kube.objects.times import parse_time, rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.sim.controllers.deployment_revisions import bounds, count, total, wanted

AVAILABLE, PROGRESSING, REPLICA_FAILURE = "Available", "Progressing", "ReplicaFailure"
CREATED: Final = "NewReplicaSetCreated"
FOUND: Final = "FoundNewReplicaSet"
UPDATED: Final = "ReplicaSetUpdated"
COMPLETE: Final = "NewReplicaSetAvailable"
TIMED_OUT: Final = "ProgressDeadlineExceeded"
CREATE_ERROR: Final = "ReplicaSetCreateError"
PAUSED, RESUMED = "DeploymentPaused", "DeploymentResumed"
_NO_DEADLINE = 2**31 - 1
_ALWAYS_KEPT = ("collisionCount",)


# --- conditions


def with_condition(status: Obj, kind: str, truth: str, reason: str, message: str, now: float) -> Obj:
    """Return the status with this condition; as it is if it says the same already."""
    conditions = status.get("conditions") or ()
    old = meta.get_condition(conditions, kind)
    if old is not None and old.get("status") == truth and old.get("reason") == reason:
        return status
    return _renewed(status, kind, truth, reason, message, now)


def _renewed(status: Obj, kind: str, truth: str, reason: str, message: str, now: float) -> Obj:
    """Return the condition with a new lastUpdateTime, even if it says what it said before."""
    conditions = status.get("conditions") or ()
    old = meta.get_condition(conditions, kind)
    same = old is not None and old.get("status") == truth
    new = {
        "type": kind,
        "status": truth,
        "reason": reason,
        "message": message,
        "lastUpdateTime": rfc3339(now),
        "lastTransitionTime": old["lastTransitionTime"] if old is not None and same else rfc3339(now),
    }
    return {**status, "conditions": [*(c for c in conditions if c.get("type") != kind), new]}


def without_condition(status: Obj, kind: str) -> Obj:
    if meta.get_condition(status.get("conditions"), kind) is None:
        return status
    left = [condition for condition in status["conditions"] if condition.get("type") != kind]
    return {**{key: value for key, value in status.items() if key != "conditions"}, **_conditions(left)}


def _conditions(conditions: list[Obj]) -> Obj:
    return {"conditions": conditions} if conditions else {}


def progressing(status: Obj) -> Obj | None:
    return meta.get_condition(status.get("conditions"), PROGRESSING)


def progress_reason(status: Obj) -> str:
    return str((progressing(status) or {}).get("reason") or "")


# --- counts


def counted(deployment: Obj, replica_sets: Sequence[Obj], new: Obj | None, now: float, *, terminating: bool) -> Obj:
    """Return the status by the ReplicaSets' counts, with the condition Available."""
    available = _sum(replica_sets, "availableReplicas")
    counts = {
        "observedGeneration": meta.generation(deployment),
        "replicas": _sum(replica_sets, "replicas"),
        "updatedReplicas": count(new, "replicas") if new is not None else 0,
        "readyReplicas": _sum(replica_sets, "readyReplicas"),
        "availableReplicas": available,
        "unavailableReplicas": max(0, total(replica_sets) - available),
    }
    old: Obj = deployment.get("status") or {}
    status: Obj = {name: number for name, number in counts.items() if number}
    status |= {key: old[key] for key in _ALWAYS_KEPT if key in old}
    status |= _conditions(list(old.get("conditions") or ()))
    if terminating and any("terminatingReplicas" in (rs.get("status") or {}) for rs in replica_sets):
        status["terminatingReplicas"] = _sum(replica_sets, "terminatingReplicas")
    if available >= wanted(deployment) - bounds(deployment).unavailable:
        message = "Deployment has minimum availability."
        return with_condition(status, AVAILABLE, "True", "MinimumReplicasAvailable", message, now)
    message = "Deployment does not have minimum availability."
    return with_condition(status, AVAILABLE, "False", "MinimumReplicasUnavailable", message, now)


def _sum(replica_sets: Iterable[Obj], field: str) -> int:
    return sum(count(replica_set, field) for replica_set in replica_sets)


# --- progress


def deadline(deployment: Obj) -> int | None:
    """Seconds within which a rollout must make progress; None without a deadline."""
    seconds = deployment["spec"].get("progressDeadlineSeconds")
    return None if seconds is None or seconds == _NO_DEADLINE else int(seconds)


def is_complete(deployment: Obj, status: Obj) -> bool:
    """Return whether all that is wanted is there, updated and available, and nothing else is there."""
    goal = wanted(deployment)
    fields = ("updatedReplicas", "replicas", "availableReplicas")
    return all(status.get(field, 0) == goal for field in fields) and status.get(
        "observedGeneration", 0
    ) >= meta.generation(deployment)


def _progressed(old: Obj, new: Obj) -> bool:
    """More updated pods, fewer old ones, or more that are ready or available."""
    for field in ("updatedReplicas", "readyReplicas", "availableReplicas"):
        if new.get(field, 0) > old.get(field, 0):
            return True
    return _outdated(new) < _outdated(old)


def _outdated(status: Obj) -> int:
    return int(status.get("replicas", 0)) - int(status.get("updatedReplicas", 0))


def deadline_in(deployment: Obj, status: Obj, now: float) -> float | None:
    """Seconds until a rollout has taken too long, below 0 when it has; None when there is nothing to wait for."""
    limit, condition = deadline(deployment), progressing(status)
    if limit is None or condition is None or condition.get("reason") in (COMPLETE, TIMED_OUT):
        return None
    since = condition.get("lastUpdateTime") or condition.get("lastTransitionTime")
    return parse_time(since) + limit - now if since else None


def with_progress(deployment: Obj, status: Obj, new: Obj | None, now: float) -> Obj:
    """Return the status of a rollout, with the condition Progressing."""
    if deadline(deployment) is None:
        return without_condition(status, PROGRESSING)
    settled = progress_reason(status) == COMPLETE and _outdated(status) == 0
    if settled:
        return status
    subject = f'ReplicaSet "{meta.name(new)}"' if new is not None else f'Deployment "{meta.name(deployment)}"'
    if is_complete(deployment, status):
        message = f"{subject} has successfully progressed."
        return with_condition(status, PROGRESSING, "True", COMPLETE, message, now)
    if _progressed(deployment.get("status") or {}, status):
        return _renewed(status, PROGRESSING, "True", UPDATED, f"{subject} is progressing.", now)
    left = deadline_in(deployment, status, now)
    if left is not None and left < 0:
        return with_condition(status, PROGRESSING, "False", TIMED_OUT, f"{subject} has timed out progressing.", now)
    return status


def with_failures(status: Obj, replica_sets: Sequence[Obj], new: Obj | None) -> Obj:
    """With the condition ReplicaFailure of a ReplicaSet, of the new one if it has it."""
    for replica_set in (*([new] if new is not None else ()), *replica_sets):
        failure = meta.get_condition((replica_set.get("status") or {}).get("conditions"), REPLICA_FAILURE)
        if failure is not None:
            since = parse_time(failure["lastTransitionTime"])
            return with_condition(
                status, REPLICA_FAILURE, failure["status"], failure.get("reason", ""), failure.get("message", ""), since
            )
    return without_condition(status, REPLICA_FAILURE)


def with_pause(deployment: Obj, now: float) -> Obj:
    """Return the status with the condition Progressing for a rollout that was paused or resumed."""
    status: Obj = deployment.get("status") or {}
    reason = progress_reason(status)
    if deadline(deployment) is None or reason == TIMED_OUT:
        return status
    if deployment["spec"].get("paused"):
        return with_condition(status, PROGRESSING, "Unknown", PAUSED, "Deployment is paused", now)
    if reason == PAUSED:
        return with_condition(status, PROGRESSING, "Unknown", RESUMED, "Deployment is resumed", now)
    return status
