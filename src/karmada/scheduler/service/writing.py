"""How a decision is written down: first where to (annotation and spec), then how it went (status), then events.

Only differences are written. The status has the generation that the decision itself made, so that the reconcile which
its own change triggers finds nothing to do. If the binding was changed between the decision and its write, the decision
is not about what the binding says now: then the status has the generation that was decided on.
"""

from __future__ import annotations

from collections.abc import Sequence

from karmada.api import well_known
from karmada.kube.client.client import Client
from karmada.kube.objects import meta
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.patch.mergepatch import create_merge_patch
from karmada.scheduler.decision import Verdict, verdict
from karmada.scheduler.placement import Plan
from karmada.scheduler.service.schedule_type import applied_text

SCHEDULED = "Scheduled"


def result_patch(binding: Obj, plan: Plan, targets: Sequence[Obj]) -> Obj:
    """Return annotation and clusters, where they are to become others."""
    text, clusters = applied_text(plan), list(targets)
    patch: Obj = {}
    if meta.annotations(binding).get(well_known.APPLIED_PLACEMENT) != text:
        patch["metadata"] = {"annotations": {well_known.APPLIED_PLACEMENT: text}}
    if (binding["spec"].get("clusters") or []) != clusters:
        patch["spec"] = {"clusters": clusters or None}
    return patch


async def write(client: Client, gvr: GVR, binding: Obj, patch: Obj) -> Obj:
    """Return the binding as it is afterwards. ApiError when it is refused."""
    metadata = binding["metadata"]
    return await client.patch(gvr, metadata["name"], metadata.get("namespace", ""), patch, type="merge")


def is_about(binding: Obj, written: Obj) -> bool:
    """Return whether a decision is about the binding that it was written into: nothing but clusters differ."""
    return binding is written or (
        meta.uid(binding) == meta.uid(written)
        and {**binding["spec"], "clusters": ()} == {**written["spec"], "clusters": ()}
    )


async def write_status(
    client: Client,
    gvr: GVR,
    binding: Obj,
    report: Verdict,
    now: float,
    *,
    observed: int,
    affinity_name: str = "",
    again: bool = False,
) -> Obj:
    """Write `reported_status`."""
    status: Obj = binding.get("status") or {}
    new = reported_status(status, report, now, observed=observed, affinity_name=affinity_name, again=again)
    return await _patch_status(client, gvr, binding, status, new)


def reported_status(
    status: Obj, report: Verdict, now: float, *, observed: int, affinity_name: str = "", again: bool = False
) -> Obj:
    """Return the condition, and on success what was observed; `again`: the time is new even if nothing else changed."""
    condition = {"type": SCHEDULED, "status": report.status, "reason": report.reason, "message": report.message}
    new = {**status, "conditions": meta.set_condition(status.get("conditions"), condition, now)}
    if affinity_name:
        new["schedulerObservingAffinityName"] = affinity_name
    if report.status == "True":
        new["schedulerObservedGeneration"] = observed
        if again or new != status or not status.get("lastScheduledTime"):
            new["lastScheduledTime"] = rfc3339(now)
    return new


async def write_observed(client: Client, gvr: GVR, binding: Obj, now: float) -> Obj:
    """Write that nothing has to be scheduled: this generation is as good as scheduled.

    The condition is written, too, if there is none yet, or if it says that scheduling failed: then the status of the
    clusters was not written, or the binding no longer wants what failed.
    """
    status: Obj = binding.get("status") or {}
    scheduled = meta.has_condition(status.get("conditions"), SCHEDULED)
    if binding["spec"].get("clusters") and not (scheduled and status.get("lastScheduledTime")):
        success = verdict(None)
        return await write_status(client, gvr, binding, success, now, observed=meta.generation(binding))
    new = {**status, "schedulerObservedGeneration": meta.generation(binding)}
    return await _patch_status(client, gvr, binding, status, new)


async def _patch_status(client: Client, gvr: GVR, binding: Obj, old: Obj, new: Obj) -> Obj:
    if new == old:
        return binding
    metadata, patch = binding["metadata"], {"status": create_merge_patch(old, new)}
    return await client.patch(
        gvr, metadata["name"], metadata.get("namespace", ""), patch, type="merge", subresource="status"
    )


def is_namespace_ending(error: ApiError) -> bool:
    return error.has_cause("NamespaceTerminating")


def result_text(targets: Sequence[Obj]) -> str:
    return "{" + ", ".join(f"{target['name']}:{target.get('replicas') or 0}" for target in targets) + "}"
