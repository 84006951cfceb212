"""The reason why a binding needs to be scheduled, if it does: the first of those below that holds.

A workload whose replicas are divided stays where it is unless it has changed itself or loses a cluster; everything else
is scheduled anew at every reconcile, which is cheap and changes nothing if nothing else has changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from functools import lru_cache

import orjson

from karmada.api import well_known
from karmada.kube.objects import meta
from karmada.kube.objects.types import Obj
from karmada.scheduler.placement import Plan
from karmada.scheduler.request import Request

ORDER = (
    "clusterAffinity", "clusterAffinities", "clusterTolerations", "spreadConstraints", "replicaScheduling",
    "workloadAffinity",
)  # fmt: skip
_PARTS = ("clusterAffinity", "clusterTolerations", "spreadConstraints", "replicaScheduling")
"""The parts that always matter; of the others only the group of clusters that was taken does."""
_ESCAPES = str.maketrans({sign: f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"})


class ScheduleType(StrEnum):
    """The label schedule_type of the metrics; NONE: nothing is to be done."""

    NONE = ""
    RECONCILE = "ReconcileSchedule"
    SCALE = "ScaleSchedule"


def schedule_type_of(
    binding: Obj, request: Request, deleting: Iterable[str], *, components: bool = False
) -> ScheduleType:
    spec, status = binding["spec"], binding.get("status") or {}
    applied = meta.annotations(binding).get(well_known.APPLIED_PLACEMENT) or ""
    observed = status.get("schedulerObservingAffinityName") or ""
    if applied != applied_text(request.plan) and placement_changed(spec["placement"], applied, observed):
        return ScheduleType.RECONCILE
    if replicas_changed(spec, request, components=components):
        return ScheduleType.SCALE
    if request.fresh or not request.is_workload or not _is_divided(spec):
        return ScheduleType.RECONCILE
    targets = request.previous
    if request.plan.terms and targets and not observed:
        return ScheduleType.RECONCILE  # the clusters were written, the group that they are of was not
    return ScheduleType.RECONCILE if any(name in targets for name in deleting) else ScheduleType.NONE


def placement_changed(placement: Obj, applied: str, observed: str) -> bool:
    """Return whether the placement says something else than the one that was applied, as far as it matters here."""
    if not applied:
        return True
    try:
        before = orjson.loads(applied)
    except orjson.JSONDecodeError:
        return False
    if not isinstance(before, dict):
        return False
    now, before = said(placement), said(before)
    if now == before:
        return False
    if not observed or any(now.get(part) != before.get(part) for part in _PARTS):
        return True
    term = _term(now, observed)
    return term is None or term != _term(before, observed)


def placement_text(placement: Obj) -> str:
    """Return the placement as it is remembered in the annotation: compact, its parts in their usual order."""
    return orjson.dumps(said(placement)).decode().translate(_ESCAPES)


@lru_cache(maxsize=4096)
def applied_text(plan: Plan) -> str:
    """Return the text of a placement that was read, as it is remembered in the annotation."""
    return placement_text(plan.placement)


def said(placement: Obj) -> Obj:
    """Return the parts of a placement that say something, in their usual order: an empty list says nothing."""
    return {part: placement[part] for part in ORDER if placement.get(part) not in (None, [])}


def _term(placement: Obj, name: str) -> Obj | None:
    terms = placement.get("clusterAffinities") or ()
    return next((term for term in terms if term.get("affinityName") == name), None)


def replicas_changed(spec: Obj, request: Request, *, components: bool) -> bool:
    if (spec["placement"] or {}).get("replicaScheduling") is None:
        return False
    if components and request.components and not request.previous:
        return True
    given = request.previous.values()
    if not _is_divided(spec):
        return any(count != request.replicas for count in given)
    return sum(given) != request.replicas


def _is_divided(spec: Obj) -> bool:
    scheduling = (spec["placement"] or {}).get("replicaScheduling")
    return scheduling is not None and (scheduling.get("replicaSchedulingType") or "Divided") == "Divided"
