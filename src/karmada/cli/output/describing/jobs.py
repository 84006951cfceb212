"""Jobs and CronJobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karmada.cli.output.describing.pods import template
from karmada.cli.output.describing.sheet import NONE, UNSET, Sheet
from karmada.cli.output.describing.words import (
    at,
    controlled_by,
    head,
    marks,
    moment,
    names,
    selector_text,
    title_case,
)

if TYPE_CHECKING:
    from karmada.cli.output.describing.around import Around
    from karmada.kube.objects.types import Obj

_LONG_LIST = 50


async def job(sheet: Sheet, obj: Obj, _around: Around) -> None:
    spec, status = obj["spec"], obj.get("status") or {}
    names(sheet, obj)
    if spec.get("selector") is not None:
        sheet.field("Selector", selector_text(spec["selector"]))
    marks(sheet, obj)
    controlled_by(sheet, obj)
    _plan(sheet, spec)
    _times(sheet, spec, status)
    ready = f" ({status['ready']} Ready)" if status.get("ready") is not None else ""
    ended = f"{status.get('succeeded') or 0} Succeeded / {status.get('failed') or 0} Failed"
    sheet.field("Pods Statuses", f"{status.get('active') or 0} Active{ready} / {ended}")
    if spec.get("completionMode") == "Indexed":
        sheet.field("Completed Indexes", _indexes(status.get("completedIndexes") or ""))
    template(sheet, spec.get("template"))


def _plan(sheet: Sheet, spec: Obj) -> None:
    sheet.known("Parallelism", spec.get("parallelism"))
    sheet.field("Completions", spec["completions"] if spec.get("completions") is not None else UNSET)
    sheet.optional("Completion Mode", spec.get("completionMode"))
    sheet.known("Suspend", spec.get("suspend"))
    sheet.known("Backoff Limit", spec.get("backoffLimit"))
    sheet.known("TTL Seconds After Finished", spec.get("ttlSecondsAfterFinished"))


def _times(sheet: Sheet, spec: Obj, status: Obj) -> None:
    from karmada.kube.objects.times import human_duration, parse_time

    started, completed = status.get("startTime"), status.get("completionTime")
    if started:
        sheet.field("Start Time", moment(started))
    if completed:
        sheet.field("Completed At", moment(completed))
    if started and completed:
        sheet.field("Duration", human_duration(parse_time(completed) - parse_time(started)))
    if spec.get("activeDeadlineSeconds") is not None:
        sheet.field("Active Deadline Seconds", f"{spec['activeDeadlineSeconds']}s")


def _indexes(text: str) -> str:
    """Return the list of indexes; a long one ends at the next comma."""
    if not text:
        return NONE
    cut = text.find(",", _LONG_LIST)
    return text if cut < 0 else f"{text[: cut + 1]}..."


async def cron_job(sheet: Sheet, obj: Obj, _around: Around) -> None:
    spec, status = obj["spec"], obj.get("status") or {}
    head(sheet, obj)
    sheet.field("Schedule", spec.get("schedule") or "")
    sheet.field("Concurrency Policy", spec.get("concurrencyPolicy") or "")
    sheet.field("Suspend", title_case(bool(spec.get("suspend"))))
    for title, key in (
        ("Successful Job History Limit", "successfulJobsHistoryLimit"),
        ("Failed Job History Limit", "failedJobsHistoryLimit"),
    ):
        sheet.field(title, spec[key] if spec.get(key) is not None else UNSET)
    deadline = spec.get("startingDeadlineSeconds")
    sheet.field("Starting Deadline Seconds", f"{deadline}s" if deadline is not None else UNSET)
    _job_template(sheet, at(spec, "jobTemplate.spec", {}))
    last = status.get("lastScheduleTime")
    sheet.field("Last Schedule Time", moment(last) if last else UNSET)
    sheet.field("Active Jobs", ", ".join(active.get("name") or "" for active in status.get("active") or ()) or NONE)


def _job_template(sheet: Sheet, spec: Obj) -> None:
    sheet.field("Selector", selector_text(spec["selector"]) if spec.get("selector") else UNSET)
    for title, key in (("Parallelism", "parallelism"), ("Completions", "completions")):
        sheet.field(title, spec[key] if spec.get(key) is not None else UNSET)
    if spec.get("activeDeadlineSeconds") is not None:
        sheet.field("Active Deadline Seconds", f"{spec['activeDeadlineSeconds']}s")
    template(sheet, spec.get("template"))
