"""A Work's status as a draft: only what differs from the stored one is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from karmada.api.cluster_bounds import bounded_text
from karmada.kube.objects import meta
from karmada.kube.objects.types import Obj

APPLIED: Final = "Applied"
DISPATCHING: Final = "Dispatching"
LONGEST_MESSAGE: Final = 4096
"""Characters of a condition's message: it has a member's errors, and the binding has those of all clusters."""
_SUSPENDED = ("False", "SuspendDispatching", "Work dispatching is in a suspended state.")
_DISPATCHED = ("True", "Dispatching", "Work is being dispatched to member clusters.")


class Draft:
    def __init__(self, work: Obj, now: float) -> None:
        status = work.get("status") or {}
        self._now = now
        self._stored: list[Obj] = status.get("conditions") or []
        self._reported: list[Obj] = status.get("manifestStatuses") or []
        self.conditions = self._stored
        self.manifests = self._reported

    def status_of(self, kind: str) -> str:
        condition = meta.get_condition(self.conditions, kind)
        return "" if condition is None else str(condition.get("status", ""))

    def set(self, kind: str, status: str, reason: str, message: str) -> None:
        condition = {
            "type": kind,
            "status": status,
            "reason": reason,
            "message": bounded_text(message, LONGEST_MESSAGE),
        }
        self.conditions = meta.set_condition(self.conditions, condition, self._now)

    def dispatching(self, suspended: bool) -> str:
        """Set whether the Work is dispatched; returns the message if that changed, else an empty one."""
        status, reason, message = _SUSPENDED if suspended else _DISPATCHED
        if self.status_of(DISPATCHING) == status:
            return ""
        self.set(DISPATCHING, status, reason, message)
        return message

    def report(self, entry: Obj) -> bool:
        """Set the status of one manifest; whether that changed."""
        identifier = entry["identifier"]
        others = [kept for kept in self.manifests if kept["identifier"]["ordinal"] != identifier["ordinal"]]
        if len(others) + 1 == len(self.manifests) and entry in self.manifests:
            return False
        self.manifests = sorted([*others, entry], key=lambda kept: int(kept["identifier"]["ordinal"]))
        return True

    def keep(self, identifiers: Sequence[Obj]) -> None:
        """Drop reports on manifests that the Work no longer has."""
        if any(kept["identifier"] not in identifiers for kept in self.manifests):
            self.manifests = [kept for kept in self.manifests if kept["identifier"] in identifiers]

    def patch(self) -> Obj:
        """Return the fields of the status that changed."""
        changed: Obj = {}
        if self.conditions != self._stored:
            changed["conditions"] = self.conditions
        if self.manifests != self._reported:
            changed["manifestStatuses"] = self.manifests
        return changed
