"""How a decision is written down: first where to (annotation and spec), then how it went (status), then events.

Only differences are written. The status tells the generation that the decision itself made, so that looking at the
binding again, which its own change brings about, finds nothing left to do.
"""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from karmada.api import well_known
from karmada.kube.client.client import Client
from karmada.kube.objects import meta
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.patch.mergepatch import create_merge_patch
from karmada.scheduler.failures import Verdict

SCHEDULED = "Scheduled"
_ORDER = (
    "clusterAffinity", "clusterAffinities", "clusterTolerations", "spreadConstraints", "replicaScheduling",
    "workloadAffinity",
)  # fmt: skip
_ESCAPED = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


def placement_text(placement: Obj) -> str:
    """The placement as it is remembered in the annotation: compact, its parts in their usual order."""
    parts = {name: placement[name] for name in _ORDER if placement.get(name)}
    text = orjson.dumps(parts).decode()
    for sign, escape in _ESCAPED.items():
        text = text.replace(sign, escape)
    return text


async def write_result(client: Client, gvr: GVR, binding: Obj, targets: Sequence[Obj]) -> Obj:
    """Annotation and clusters; the binding as it is afterwards. ApiError when it is refused."""
    spec, text = binding["spec"], placement_text(binding["spec"]["placement"])
    patch: Obj = {}
    if meta.annotations(binding).get(well_known.APPLIED_PLACEMENT) != text:
        patch["metadata"] = {"annotations": {well_known.APPLIED_PLACEMENT: text}}
    if list(spec.get("clusters") or ()) != list(targets):
        patch["spec"] = {"clusters": list(targets) or None}
    if not patch:
        return binding
    metadata = binding["metadata"]
    return await client.patch(gvr, metadata["name"], metadata.get("namespace", ""), patch, type="merge")


async def write_status(
    client: Client, gvr: GVR, binding: Obj, verdict: Verdict, now: float, *, affinity_name: str, again: bool
) -> Obj:
    """The condition, and on success what was observed; `again`: the time is told even if nothing else changed."""
    status: Obj = binding.get("status") or {}
    condition = {"type": SCHEDULED, "status": verdict.status, "reason": verdict.reason, "message": verdict.message}
    new = {**status, "conditions": meta.set_condition(status.get("conditions"), condition, now)}
    if affinity_name:
        new["schedulerObservingAffinityName"] = affinity_name
    if verdict.status == "True":
        new["schedulerObservedGeneration"] = meta.generation(binding)
    if verdict.status == "True" and (again or new != status or not status.get("lastScheduledTime")):
        new["lastScheduledTime"] = rfc3339(now)
    return await _patch_status(client, gvr, binding, status, new)


async def write_observed(client: Client, gvr: GVR, binding: Obj) -> None:
    """Nothing had to be scheduled: this generation is as good as scheduled."""
    status: Obj = binding.get("status") or {}
    await _patch_status(
        client, gvr, binding, status, {**status, "schedulerObservedGeneration": meta.generation(binding)}
    )


async def _patch_status(client: Client, gvr: GVR, binding: Obj, old: Obj, new: Obj) -> Obj:
    patch = create_merge_patch(old, new)
    if not patch:
        return binding
    metadata = binding["metadata"]
    return await client.patch(
        gvr, metadata["name"], metadata.get("namespace", ""), {"status": patch}, type="merge", subresource="status"
    )


def is_namespace_ending(error: ApiError) -> bool:
    return any(cause.get("reason") == "NamespaceTerminating" for cause in error.causes)


def result_text(targets: Sequence[Obj]) -> str:
    return "{" + ", ".join(f"{target['name']}:{target.get('replicas') or 0}" for target in targets) + "}"
