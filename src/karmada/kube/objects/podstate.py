"""Predicates on a pod's status that controllers share."""

from __future__ import annotations

from karmada.kube.objects.meta import get_condition, is_deleting
from karmada.kube.objects.times import parse_time
from karmada.kube.objects.types import Obj


def phase(pod: Obj) -> str:
    return str((pod.get("status") or {}).get("phase") or "Pending")


def is_terminal(pod: Obj) -> bool:
    return phase(pod) in ("Succeeded", "Failed")


def is_active(pod: Obj) -> bool:
    """Return whether a pod counts as a replica: neither finished nor being deleted."""
    return not is_terminal(pod) and not is_deleting(pod)


def node_name(pod: Obj) -> str:
    return str((pod.get("spec") or {}).get("nodeName") or "")


def is_ready(pod: Obj) -> bool:
    return ready_since(pod) is not None


def ready_since(pod: Obj) -> float | None:
    """When it became ready; None while it is not."""
    ready = get_condition((pod.get("status") or {}).get("conditions"), "Ready")
    if ready is None or ready.get("status") != "True":
        return None
    since = ready.get("lastTransitionTime")
    return parse_time(since) if since else 0.0


def is_available(pod: Obj, min_ready_seconds: int, now: float) -> bool:
    return available_in(pod, min_ready_seconds, now) == 0


def available_in(pod: Obj, min_ready_seconds: int, now: float) -> float | None:
    """Seconds until a ready pod counts as available, 0 when it does; None while it is not ready."""
    since = ready_since(pod)
    if since is None:
        return None
    return max(0.0, since + min_ready_seconds - now) if min_ready_seconds else 0.0


def restarts(pod: Obj) -> int:
    return sum(status.get("restartCount", 0) for status in (pod.get("status") or {}).get("containerStatuses") or ())
