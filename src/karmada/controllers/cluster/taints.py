"""Which taints follow from a cluster's condition Ready.

A cluster whose Ready is False, or missing, is not ready; one whose Ready is Unknown is unreachable. Both taints have
the effect NoSchedule. Taints with another effect or other keys are not changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from karmada.api.well_known import NO_SCHEDULE, TAINT_NOT_READY, TAINT_UNREACHABLE
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj


class _Change(NamedTuple):
    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()


_CHANGES = {
    "": _Change(add=(TAINT_NOT_READY,)),
    "False": _Change(add=(TAINT_NOT_READY,), remove=(TAINT_UNREACHABLE,)),
    "Unknown": _Change(add=(TAINT_UNREACHABLE,), remove=(TAINT_NOT_READY,)),
    "True": _Change(remove=(TAINT_NOT_READY, TAINT_UNREACHABLE)),
}
"""Changes of taints by the status of the condition Ready; "" when there is none."""


def taints_for(taints: Sequence[Obj], ready: Obj | None, now: float) -> list[Obj]:
    """Return the taints of a cluster with this condition Ready: those that stay, then the added ones."""
    change = _CHANGES.get(ready.get("status") or "" if ready else "", _Change())
    kept = [t for t in taints if not (t.get("effect") == NO_SCHEDULE and t.get("key") in change.remove)]
    there = {t.get("key") for t in kept if t.get("effect") == NO_SCHEDULE}
    added = [{"key": key, "effect": NO_SCHEDULE, "timeAdded": rfc3339(now)} for key in change.add if key not in there]
    return [*kept, *added]


def describe(taints: Sequence[Obj]) -> str:
    """Return the message of the event about a cluster's taints."""
    if not taints:
        return "cluster now does not have taints"
    return f"cluster now has taints([{','.join(map(_describe_one, taints))}])"


def _describe_one(taint: Obj) -> str:
    value = f"Value:{taint['value']}," if taint.get("value") else ""
    return f"{{Key:{taint.get('key')},{value}Effect:{taint.get('effect')}}}"
