"""Taints of clusters and the tolerations of placements: which taint is tolerated, and for how long.

Pure functions of plain objects. A toleration may hold for a limited time, counted from the moment the taint was added;
the scheduler ignores that limit, the taint manager does not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

from karmada.api.well_known import NO_EXECUTE
from karmada.kube.objects.times import parse_time
from karmada.kube.objects.types import Obj

FOREVER: Final = math.inf


def is_tolerated(taint: Obj, tolerations: Iterable[Obj]) -> bool:
    return any(tolerates(toleration, taint) for toleration in tolerations)


def tolerates(toleration: Obj, taint: Obj) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint.get("key"):
        return False
    operator = toleration.get("operator") or "Equal"
    if operator == "Equal":
        return (toleration.get("value") or "") == (taint.get("value") or "")
    return bool(operator == "Exists")


def taint_text(taint: Obj) -> str:
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint.get('key', '')}{value}:{taint.get('effect', '')}"


def no_execute_taints(cluster: Obj) -> list[Obj]:
    return [taint for taint in (cluster.get("spec") or {}).get("taints") or () if taint.get("effect") == NO_EXECUTE]


def tolerated_until(taints: Sequence[Obj], tolerations: Sequence[Obj]) -> float:
    """The time at which these taints evict: FOREVER when never, -FOREVER when one of them is not tolerated at all.

    Of each taint the first toleration that matches counts; its limit then holds for every taint that it matches.
    """
    used: list[Obj] = []
    for taint in taints:
        first = next((toleration for toleration in tolerations if tolerates(toleration, taint)), None)
        if first is None:
            return -FOREVER
        used.append(first)
    return min(
        (
            parse_time(taint["timeAdded"]) + toleration["tolerationSeconds"]
            for toleration in used
            if toleration.get("tolerationSeconds") is not None
            for taint in taints
            if taint.get("timeAdded") and tolerates(toleration, taint)
        ),
        default=FOREVER,
    )
