"""The rules of the statuses of workloads; those of ReplicaSets are those of ReplicationControllers, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from karmada.kube.kinds import checks
from karmada.kube.objects.errors import FieldError, FieldErrors, invalid
from karmada.kube.objects.types import Obj

UpdateRule: TypeAlias = Callable[[Obj, Obj], list[FieldError]]


def _status_rules(*counters: str, within: tuple[str, ...] = (), available: str = "") -> UpdateRule:
    """Validate counters: none is negative, those in `within` are at most the replicas, collisions only grow.

    `available` is what the ready replicas are called where the available ones must not be more.
    """

    def validate(obj: Obj, old: Obj) -> list[FieldError]:
        errors = FieldErrors()
        status = obj.get("status") or {}
        checks.non_negative(errors, "status", status, *counters)
        count = {key: status.get(key) or 0 for key in ("replicas", *within)}
        detail = "cannot be greater than status.replicas"
        errors.extend(invalid(f"status.{k}", count[k], detail) for k in within if count[k] > count["replicas"])
        if available and count["availableReplicas"] > count["readyReplicas"]:
            detail = f"cannot be greater than {available}"
            errors.append(invalid("status.availableReplicas", count["availableReplicas"], detail))
        before, collisions = (old.get("status") or {}).get("collisionCount"), status.get("collisionCount")
        if before is not None and (collisions is None or collisions < before):
            errors.append(invalid("status.collisionCount", collisions or 0, "cannot be decremented"))
        return errors

    return validate


DEPLOYMENT_STATUS = _status_rules(
    "observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas",
    "terminatingReplicas", "collisionCount",
    within=("updatedReplicas", "readyReplicas", "availableReplicas"), available="readyReplicas",
)  # fmt: skip
REPLICASET_STATUS = _status_rules(
    "replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "terminatingReplicas",
    "observedGeneration",
    within=("fullyLabeledReplicas", "readyReplicas", "availableReplicas"), available="readyReplicas",
)  # fmt: skip
STATEFULSET_STATUS = _status_rules(
    "replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas", "observedGeneration",
    "collisionCount",
    within=("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"),
    available="status.readyReplicas",
)  # fmt: skip
DAEMONSET_STATUS = _status_rules(
    "currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady", "observedGeneration",
    "updatedNumberScheduled", "numberAvailable", "numberUnavailable", "collisionCount",
)  # fmt: skip
