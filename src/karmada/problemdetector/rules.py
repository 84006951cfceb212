"""What a node and a cluster report of name resolution, as pure rules.

A node's condition follows what is observed there only once that has been so for a while; the cluster's follows from
those of its ready nodes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from karmada.kube.objects import meta
from karmada.kube.objects.times import parse_time, rfc3339
from karmada.kube.objects.types import Obj

CONDITION: Final = "ServiceDomainNameResolutionReady"
READY: Final = "ServiceDomainNameResolutionReady"
FAILED: Final = "ServiceDomainNameResolutionFailed"


class Thresholds(NamedTuple):
    """Seconds: how long names must (not) be resolved before that counts, and how long what a node says is believed."""

    success: float = 30.0
    failure: float = 30.0
    stale: float = 60.0


class Observation(NamedTuple):
    status: str
    reason: str
    message: str


class Seen(NamedTuple):
    """The last observation, and since when it holds."""

    status: str
    since: float


def damped(
    seen: Seen | None, observed: Observation, current: Obj | None, now: float, thresholds: Thresholds
) -> tuple[Seen, Observation]:
    """Return what is seen now, and what the node's condition should be; `seen` None: this is the first observation.

    `current` is the condition that the node has. Another status replaces it once it was observed for the threshold.
    """
    same = seen is not None and seen.status == observed.status
    seen_now = Seen(observed.status, seen.since if seen is not None and same else now)
    if seen is None or current is None or (observed.status == "True") == (current.get("status") == "True"):
        return seen_now, observed
    threshold = thresholds.success if observed.status == "True" else thresholds.failure
    if now - seen_now.since >= threshold:
        return seen_now, observed
    kept = Observation(current.get("status") or "", current.get("reason") or "", current.get("message") or "")
    return seen_now, kept


def node_condition(current: Obj | None, wanted: Observation, now: float) -> Obj:
    """Return a condition of a Node; its time of transition changes with its status only."""
    same = current is not None and current.get("status") == wanted.status
    transition = current.get("lastTransitionTime") if current is not None and same else None
    return {
        "type": CONDITION,
        "status": wanted.status,
        "reason": wanted.reason,
        "message": wanted.message,
        "lastHeartbeatTime": rfc3339(now),
        "lastTransitionTime": transition or rfc3339(now),
    }


def cluster_condition(nodes: Iterable[Obj], now: float, stale: float) -> Obj | None:
    """Return the condition of the Cluster; None when nothing can be said: no node is ready and reports."""
    statuses = [_status(node, now, stale) for node in nodes if _is_ready(node)]
    if not statuses or any(status not in ("True", "False") for status in statuses):
        return None
    if all(status == "False" for status in statuses):
        return _condition("False", FAILED, "service domain name resolution is unready")
    return _condition("True", READY, "service domain name resolution is ready")


def _condition(status: str, reason: str, message: str) -> Obj:
    return {"type": CONDITION, "status": status, "reason": reason, "message": message}


def _conditions(node: Obj) -> list[Obj]:
    found: list[Obj] = (node.get("status") or {}).get("conditions") or []
    return found


def _is_ready(node: Obj) -> bool:
    return meta.has_condition(_conditions(node), "Ready")


def _status(node: Obj, now: float, stale: float) -> str:
    condition = meta.get_condition(_conditions(node), CONDITION)
    heartbeat = (condition or {}).get("lastHeartbeatTime")
    if condition is None or not heartbeat or now - parse_time(heartbeat) > stale:
        return "Unknown"
    return str(condition.get("status"))
