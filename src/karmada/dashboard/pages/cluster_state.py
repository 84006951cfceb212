"""The state of a Cluster for pages: its state in a word, why, and how much of it is in use. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from karmada.api.taints import taint_text
from karmada.controllers.cluster_state import ready_condition
from karmada.dashboard.formatting import percent
from karmada.kube.objects.quantity import Quantity
from karmada.kube.objects.types import Obj

GOOD, WARN, BAD, IDLE = "good", "warn", "bad", "idle"
ORDER: Final = (BAD, WARN, IDLE, GOOD)
_KEEPS_OFF: Final = ("NoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True)
class State:
    kind: str
    """good, warn, bad or idle: the colour."""
    label: str
    why: str = ""
    since: str | None = None


def state_of(cluster: Obj) -> State:
    if cluster["metadata"].get("deletionTimestamp"):
        return State(IDLE, "Leaving", "It is being removed from the control plane.")
    condition = ready_condition(cluster)
    if condition is None:
        return State(IDLE, "Joining", "Its first health check is still to come.")
    since = condition.get("lastTransitionTime")
    why = condition.get("message") or condition.get("reason") or ""
    if condition.get("status") == "False":
        return State(BAD, "Not ready", why, since)
    if condition.get("status") != "True":
        return State(BAD, "Unknown", why, since)
    taints = [taint for taint in cluster["spec"].get("taints") or () if taint.get("effect") in _KEEPS_OFF]
    if taints:
        added = max((taint.get("timeAdded") or "" for taint in taints), default="") or None
        return State(WARN, "Tainted", ", ".join(taint_text(taint) for taint in taints), added)
    return State(GOOD, "Ready", why, since)


@dataclass(frozen=True, slots=True)
class Usage:
    """How much of a resource is allocated to pods; in cores, bytes or pods."""

    used: float = 0.0
    total: float = 0.0

    @property
    def share(self) -> int:
        return percent(self.used, self.total)

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.used + other.used, self.total + other.total)


def usage_of(cluster: Obj, resource: str) -> Usage:
    summary = (cluster.get("status") or {}).get("resourceSummary") or {}
    used = _amount(summary.get("allocated"), resource) + _amount(summary.get("allocating"), resource)
    return Usage(used, _amount(summary.get("allocatable"), resource))


def _amount(resources: Obj | None, name: str) -> float:
    text = (resources or {}).get(name)
    if text is None:
        return 0.0
    try:
        return Quantity.parse(text).nano / 1e9
    except ValueError:
        return 0.0


def zones_of(cluster: Obj) -> Sequence[str]:
    spec = cluster["spec"]
    return spec.get("zones") or ([spec["zone"]] if spec.get("zone") else [])
