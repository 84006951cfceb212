"""What a MultiClusterService shows of one controller's work on it: a condition in its status, and events."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass

from karmada.api.networking import MultiClusterService
from karmada.kube.client.client import Client
from karmada.kube.objects import meta
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.errors import ApiError, Conflict, NotFound
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.events import NORMAL, WARNING, EventRecorder
from karmada.kube.runtime.writes import retry_on_conflict, set_status


@dataclass(frozen=True, slots=True)
class Report:
    condition: str
    """Its type; the reasons are that with Succeed and Failed behind it."""
    event: str
    """The reason of events without Succeed and Failed."""
    success: str
    """The message of both when the work succeeded."""


async def reported(
    report: Report, service: Obj, work: Awaitable[bool], *, client: Client, clock: Clock, recorder: EventRecorder
) -> None:
    """Await the work, which returns whether it wrote anything, and report how it ended. A conflict is no failure."""
    try:
        changed = await work
    except Conflict:
        raise
    except ApiError as error:
        await _set(_condition(report, "False", "Failed", str(error)), service, client, clock)
        recorder.event(service, WARNING, f"{report.event}Failed", str(error))
        raise
    if await _set(_condition(report, "True", "Succeed", report.success), service, client, clock) or changed:
        recorder.event(service, NORMAL, f"{report.event}Succeed", report.success)


def _condition(report: Report, status: str, outcome: str, message: str) -> Obj:
    return {"type": report.condition, "status": status, "reason": f"{report.condition}{outcome}", "message": message}


async def _set(condition: Obj, service: Obj, client: Client, clock: Clock) -> bool:
    """Return whether the condition is another than before."""

    async def once() -> bool:
        try:
            current = await client.get(MultiClusterService.gvr, meta.name(service), meta.namespace(service))
        except NotFound:
            return False
        status = current.get("status") or {}
        conditions = meta.set_condition(status.get("conditions"), condition, clock.now())
        written = await set_status(client, MultiClusterService.gvr, current, {**status, "conditions": conditions})
        return written.outcome != "unchanged"

    return await retry_on_conflict(once, clock=clock)
