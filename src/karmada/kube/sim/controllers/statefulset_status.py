"""A StatefulSet's status, counted from its pods."""

from __future__ import annotations

from collections.abc import Iterable

from karmada.kube.objects.meta import is_deleting
from karmada.kube.objects.podstate import available_in, is_ready, phase
from karmada.kube.objects.types import Obj
from karmada.kube.sim.controllers.revisions import revision_of
from karmada.kube.sim.controllers.statefulset_identity import replicas_of

_OMITTED_WHEN_ZERO = ("readyReplicas", "currentReplicas", "updatedReplicas")


def status_of(workload: Obj, pods: Iterable[Obj], current: str, newest: str, collisions: int, now: float) -> Obj:
    """Return the status; `current` and `newest` are revisions by name, the same once all pods are of the newest."""
    min_ready = workload["spec"].get("minReadySeconds") or 0
    counts = dict.fromkeys(("replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"), 0)
    for pod in pods:
        counts["replicas"] += 1
        if phase(pod) == "Running" and is_ready(pod):
            counts["readyReplicas"] += 1
            counts["availableReplicas"] += available_in(pod, min_ready, now) == 0
        if not is_deleting(pod):
            counts["currentReplicas"] += revision_of(pod) == current
            counts["updatedReplicas"] += revision_of(pod) == newest
    if _finished(workload, counts):
        current, counts["currentReplicas"] = newest, counts["updatedReplicas"]
    status: Obj = {
        "observedGeneration": workload["metadata"]["generation"],
        **{key: count for key, count in counts.items() if count or key not in _OMITTED_WHEN_ZERO},
        "currentRevision": current,
        "updateRevision": newest,
        "collisionCount": collisions,
    }
    conditions = (workload.get("status") or {}).get("conditions")
    return {**status, "conditions": conditions} if conditions else status


def _finished(workload: Obj, counts: dict[str, int]) -> bool:
    if (workload["spec"].get("updateStrategy") or {}).get("type") == "OnDelete":
        return False
    wanted = replicas_of(workload)
    return all(counts[key] == wanted for key in ("replicas", "readyReplicas", "updatedReplicas"))


def next_available(workload: Obj, pods: Iterable[Obj], now: float) -> float | None:
    """Seconds until the next ready pod has been ready for long enough."""
    min_ready = workload["spec"].get("minReadySeconds") or 0
    if not min_ready:
        return None
    waits = (available_in(pod, min_ready, now) for pod in pods)
    return min((wait for wait in waits if wait), default=None)
