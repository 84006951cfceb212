"""The status of a Job that runs in several clusters.

It has failed as soon as it has in one cluster, and is complete when it is in all. What is finished stays so: nothing
that clusters report later changes it. A complete Job has met its success criteria; clusters before 1.31 do not report
that, but the control plane's API refuses the one condition without the other.
"""

from __future__ import annotations

from collections.abc import Sequence

from karmada.interpreter.native.aggregation import reported, times, total
from karmada.interpreter.native.fields import entries, section
from karmada.interpreter.operations import Report
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj

_COMPLETE, _FAILED, _CRITERIA_MET = "Complete", "Failed", "SuccessCriteriaMet"


def job_status(obj: Obj, reports: Sequence[Report], now: float) -> Obj | None:
    old = section(obj, "status")
    if _finished(old):
        return None
    statuses = reported(reports)
    new: Obj = {}
    for field in ("active", "succeeded", "failed"):
        count = total(statuses, field)
        if count:
            new[field] = count
    conditions = _conditions(reports, rfc3339(now))
    if conditions:
        new["conditions"] = conditions
    started, ended = times(statuses, "startTime"), times(statuses, "completionTime")
    if old.get("startTime"):
        new["startTime"] = old["startTime"]
    elif started and len(started) == len(reports):
        new["startTime"] = started[0]
    if ended and len(ended) == len(reports):
        new["completionTime"] = ended[-1]
    return new


def _finished(status: Obj) -> str:
    """Return how a Job has ended, if it has."""
    for condition in entries(status, "conditions"):
        if condition.get("type") in (_COMPLETE, _FAILED) and condition.get("status") == "True":
            return str(condition["type"])
    return ""


def _conditions(reports: Sequence[Report], now: str) -> list[Obj]:
    ends = [_finished(report.status or {}) for report in reports]
    failed = [report.cluster for report, end in zip(reports, ends, strict=True) if end == _FAILED]
    conditions = []
    if failed:
        message = f"Job executed failed in member clusters {','.join(failed)}"
        conditions.append(_condition(_FAILED, "JobFailed", message, now))
    if reports and all(end == _COMPLETE for end in ends):
        conditions.append(_condition(_COMPLETE, "Completed", "Job completed", now))
        message = "All member clusters have met success criteria"
        conditions.append(_condition(_CRITERIA_MET, "CompletionsReached", message, now))
    return conditions


def _condition(kind: str, reason: str, message: str, now: str) -> Obj:
    return {
        "type": kind,
        "status": "True",
        "lastProbeTime": now,
        "lastTransitionTime": now,
        "reason": reason,
        "message": message,
    }
