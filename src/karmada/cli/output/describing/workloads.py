"""Workloads: Deployments, ReplicaSets, ReplicationControllers, StatefulSets, DaemonSets."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from karmada.cli.output.describing.claims import storage_class
from karmada.cli.output.describing.pods import template
from karmada.cli.output.describing.sheet import NONE, Sheet
from karmada.cli.output.describing.words import (
    at,
    controlled_by,
    labels,
    marks,
    meta,
    moment,
    names,
    pairs_text,
    selector_text,
)

if TYPE_CHECKING:
    from karmada.cli.output.describing.around import Around
    from karmada.kube.objects.types import Obj

_HASH = "pod-template-hash"


async def deployment(sheet: Sheet, obj: Obj, around: Around) -> None:
    spec, status = obj["spec"], obj.get("status") or {}
    names(sheet, obj)
    sheet.field("CreationTimestamp", moment(meta(obj, "creationTimestamp")))
    marks(sheet, obj)
    sheet.field("Selector", selector_text(spec.get("selector")))
    counts = " | ".join(
        f"{count or 0} {word}"
        for count, word in (
            (spec.get("replicas"), "desired"),
            (status.get("updatedReplicas"), "updated"),
            (status.get("replicas"), "total"),
            (status.get("availableReplicas"), "available"),
            (status.get("unavailableReplicas"), "unavailable"),
        )
    )
    sheet.field("Replicas", counts)
    sheet.field("StrategyType", at(spec, "strategy.type"))
    sheet.field("MinReadySeconds", spec.get("minReadySeconds") or 0)
    rolling = at(spec, "strategy.rollingUpdate", {})
    if rolling:
        text = f"{rolling.get('maxUnavailable', 0)} max unavailable, {rolling.get('maxSurge', 0)} max surge"
        sheet.field("RollingUpdateStrategy", text)
    template(sheet, spec.get("template"))
    _conditions(sheet, status.get("conditions") or [])
    await _replica_sets(sheet, obj, around)


def _conditions(sheet: Sheet, conditions: list[Obj]) -> None:
    if not conditions:
        return
    sheet.row(0, "Conditions:")
    sheet.heads(1, "Type", "Status", "Reason")
    for condition in conditions:
        sheet.row(1, f"{condition['type']} ", condition["status"], condition.get("reason") or "")


async def _replica_sets(sheet: Sheet, obj: Obj, around: Around) -> None:
    """Describe the ReplicaSets of the present template and of earlier ones; nothing when they cannot be listed."""
    selector = selector_text(at(obj, "spec.selector", None))
    found = await around.if_allowed("replicasets.v1.apps", meta(obj, "namespace"), labels=_parameter(selector))
    owned = [replica_set for replica_set in found or () if _controls(obj, replica_set)]
    if not owned:
        return
    wanted = _plain(at(obj, "spec.template", {}))
    same = [one for one in owned if _plain(at(one, "spec.template", {})) == wanted]
    current = min(same, key=lambda one: (meta(one, "creationTimestamp"), meta(one, "name")), default=None)
    sheet.field("OldReplicaSets", ", ".join(_created(one) for one in owned if one is not current) or NONE)
    sheet.field("NewReplicaSet", _created(current) if current is not None else NONE)


def _parameter(selector: str) -> str:
    return "" if selector == NONE else selector


def _plain(found: Obj) -> Obj:
    """Return a template without what the controller added to it."""
    metadata = {key: value for key, value in (found.get("metadata") or {}).items() if value}
    metadata["labels"] = {key: value for key, value in (metadata.get("labels") or {}).items() if key != _HASH}
    return {**found, "metadata": metadata}


def _created(replica_set: Obj) -> str:
    total, wanted = at(replica_set, "status.replicas", 0), at(replica_set, "spec.replicas", 0)
    return f"{meta(replica_set, 'name')} ({total}/{wanted} replicas created)"


async def replica_set(sheet: Sheet, obj: Obj, around: Around) -> None:
    """ReplicaSets, and ReplicationControllers, whose selector is a plain map."""
    selector = at(obj, "spec.selector", {})
    text = selector_text(selector) if obj["kind"] == "ReplicaSet" else pairs_text(selector)
    names(sheet, obj)
    sheet.field("Selector", text)
    marks(sheet, obj)
    controlled_by(sheet, obj)
    sheet.field("Replicas", f"{at(obj, 'status.replicas', 0)} current / {at(obj, 'spec.replicas', 0)} desired")
    sheet.row(0, "Pods Status:", await _pods_status(obj, text, around))
    template(sheet, at(obj, "spec.template", {}))
    _conditions(sheet, at(obj, "status.conditions", []))


async def _pods_status(obj: Obj, selector: str, around: Around) -> str:
    from karmada.kube.objects.errors import ApiError

    try:
        pods = await around.listed("pods.v1", meta(obj, "namespace"), labels=_parameter(selector))
    except ApiError as error:
        return f"error in fetching pods: {error.message}"
    phases = Counter(at(pod, "status.phase") for pod in pods if _controls(obj, pod))
    words = (("Running", "Running"), ("Pending", "Waiting"), ("Succeeded", "Succeeded"), ("Failed", "Failed"))
    return " / ".join(f"{phases[phase]} {word}" for phase, word in words)


def _controls(owner: Obj, obj: Obj) -> bool:
    from karmada.kube.objects.meta import controller_of

    reference = controller_of(obj)
    return reference is not None and reference.get("uid") == meta(owner, "uid")


async def stateful_set(sheet: Sheet, obj: Obj, around: Around) -> None:
    spec, selector = obj["spec"], selector_text(at(obj, "spec.selector", None))
    names(sheet, obj)
    sheet.field("CreationTimestamp", moment(meta(obj, "creationTimestamp")))
    sheet.field("Selector", selector)
    marks(sheet, obj)
    sheet.field("Replicas", f"{spec.get('replicas') or 0} desired | {at(obj, 'status.replicas', 0)} total")
    sheet.field("Update Strategy", at(spec, "updateStrategy.type"))
    rolling = at(spec, "updateStrategy.rollingUpdate", {})
    sheet.known("Partition", rolling.get("partition"), 1)
    sheet.known("MaxUnavailable", rolling.get("maxUnavailable"), 1)
    sheet.field("Pods Status", await _pods_status(obj, selector, around))
    template(sheet, spec.get("template"))
    _claims(sheet, spec.get("volumeClaimTemplates") or [])


def _claims(sheet: Sheet, templates: list[Obj]) -> None:
    from karmada.kube.objects.quantity import canonical

    if not templates:
        sheet.field("Volume Claims", NONE)
        return
    sheet.row(0, "Volume Claims:")
    for found in templates:
        sheet.field("Name", meta(found, "name"), 1)
        sheet.field("StorageClass", storage_class(found), 1)
        labels(sheet, "Labels", meta(found, "labels", {}), 1)
        labels(sheet, "Annotations", meta(found, "annotations", {}), 1)
        capacity = at(found, "spec.resources.requests.storage", None)
        sheet.field("Capacity", canonical(capacity) if capacity is not None else "<default>", 1)
        sheet.field("Access Modes", at(found, "spec.accessModes", []), 1)


async def daemon_set(sheet: Sheet, obj: Obj, around: Around) -> None:
    spec, selector = obj["spec"], selector_text(at(obj, "spec.selector", None))
    names(sheet, obj)
    sheet.field("Selector", selector)
    sheet.field("Node-Selector", pairs_text(at(spec, "template.spec.nodeSelector", {})))
    marks(sheet, obj)
    for title, key in (
        ("Desired Number of Nodes Scheduled", "desiredNumberScheduled"),
        ("Current Number of Nodes Scheduled", "currentNumberScheduled"),
        ("Number of Nodes Scheduled with Up-to-date Pods", "updatedNumberScheduled"),
        ("Number of Nodes Scheduled with Available Pods", "numberAvailable"),
        ("Number of Nodes Misscheduled", "numberMisscheduled"),
    ):
        sheet.row(0, f"{title}: {at(obj, f'status.{key}', 0)}")
    sheet.field("Pods Status", await _pods_status(obj, selector, around))
    template(sheet, spec.get("template"))
