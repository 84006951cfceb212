"""A Job's status, step by step: record uids of ended pods, count them, set the final condition."""

from __future__ import annotations

from collections.abc import Sequence

from karmada.kube.objects.meta import get_condition, is_deleting, set_condition
from karmada.kube.objects.podstate import is_ready
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.sim.controllers.job_indexes import format_indexes
from karmada.kube.sim.controllers.job_rules import Verdict
from karmada.kube.sim.controllers.job_tally import Tally, is_indexed, limits_per_index


def uncounted_uids(status: Obj) -> set[str]:
    lists = status.get("uncountedTerminatedPods") or {}
    return {*(lists.get("succeeded") or ()), *(lists.get("failed") or ())}


def note_ends(job: Obj, found: Tally, end: Verdict | None, *, made: int, removed: Sequence[Obj], now: float) -> Obj:
    """Return the status with all ended pods recorded, not yet counted; `made` and `removed` are of this reconcile."""
    status: Obj = dict(job.get("status") or {})
    _number(status, "active", len(found.active) + made - len(removed))
    status["ready"] = found.ready - sum(map(is_ready, removed))
    status["terminating"] = len(found.terminating) + len(removed)
    lists = {"succeeded": found.uncounted_succeeded, "failed": found.uncounted_failed}
    status["uncountedTerminatedPods"] = {kind: uids for kind, uids in lists.items() if uids}
    if is_indexed(job):
        _number(status, "succeeded", len(found.completed))
        if found.completed or status.get("completedIndexes"):
            status["completedIndexes"] = format_indexes(found.completed)
        if limits_per_index(job):
            status["failedIndexes"] = format_indexes(found.failed_indexes)
    if end is not None:
        kind = "SuccessCriteriaMet" if end.succeeded else "FailureTarget"
        status["conditions"] = _with(status, kind, end.reason, end.message, now)
    elif not is_deleting(job):
        _suspend_or_resume(status, bool(job["spec"].get("suspend")), now)
    if not status.get("startTime") and not job["spec"].get("suspend"):
        status["startTime"] = rfc3339(now)
    return status


def _suspend_or_resume(status: Obj, suspended: bool, now: float) -> None:
    before = get_condition(status.get("conditions"), "Suspended")
    if suspended:
        status["conditions"] = _with(status, "Suspended", "JobSuspended", "Job suspended", now)
    elif before is not None and before["status"] == "True":
        status["conditions"] = _with(status, "Suspended", "JobResumed", "Job resumed", now, value="False")
        status["startTime"] = rfc3339(now)


def must_be_stored_first(old: Obj, noted: Obj) -> bool:
    """Return whether a crash after this would lose an end or a decision."""
    keys = ("completedIndexes", "failedIndexes")
    if any((old.get(key) or "") != (noted.get(key) or "") for key in keys) or not uncounted_uids(
        noted
    ) <= uncounted_uids(old):
        return True
    return any(
        get_condition(noted.get("conditions"), kind) and not get_condition(old.get("conditions"), kind)
        for kind in ("SuccessCriteriaMet", "FailureTarget")
    )


def count_ends(noted: Obj, gone: set[str], *, indexed: bool) -> Obj:
    """Return the status after pods lost their finalizers: their ends are in the numbers now."""
    status, left = dict(noted), {}
    for kind, uids in (noted.get("uncountedTerminatedPods") or {}).items():
        counted = [uid for uid in uids if uid in gone]
        if kind == "failed" or not indexed:
            _number(status, kind, status.get(kind, 0) + len(counted))
        rest = [uid for uid in uids if uid not in gone]
        if rest:
            left[kind] = rest
    status["uncountedTerminatedPods"] = left
    return status


def declare_end(status: Obj, end: Verdict, now: float) -> Obj:
    kind = "Complete" if end.succeeded else "Failed"
    ended = {**status, "conditions": _with(status, kind, end.reason, end.message, now)}
    return {**ended, "completionTime": rfc3339(now)} if end.succeeded else ended


def _with(status: Obj, kind: str, reason: str, message: str, now: float, *, value: str = "True") -> list[Obj]:
    before = get_condition(status.get("conditions"), kind)
    if before is not None and before["status"] == value:
        return list(status["conditions"])
    condition = {"type": kind, "status": value, "lastProbeTime": rfc3339(now), "reason": reason, "message": message}
    return set_condition(status.get("conditions"), condition, now)


def _number(status: Obj, key: str, value: int) -> None:
    """Leave out counts of nothing."""
    if value:
        status[key] = value
    else:
        status.pop(key, None)
