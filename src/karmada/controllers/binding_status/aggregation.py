"""Aggregates the Works of a binding into its status: pure functions of plain objects."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from karmada.api.well_known import cluster_of_namespace
from karmada.controllers.execution.member_kinds import manifests_of
from karmada.controllers.execution.reflection import UNKNOWN, identifier
from karmada.controllers.execution.status import APPLIED
from karmada.kube.objects import meta
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.types import Obj

FULLY_APPLIED: Final = "FullyApplied"
_YES = ("True", "FullyAppliedSuccess", "All works have been successfully applied")
_NO = ("False", "FullyAppliedFailed", "Failed to apply all works, see status.aggregatedStatus for details")


def aggregate(works: Iterable[Obj], reference: Obj) -> list[Obj]:
    """One item for every Work, by cluster; ApiError for one that does not have the template's manifest."""
    items = [_item(work, reference) for work in works]
    items.sort(key=lambda item: str(item["clusterName"]))
    return items


def has_report(work: Obj) -> bool:
    """Whether the Work reports if it was applied."""
    return meta.get_condition((work.get("status") or {}).get("conditions"), APPLIED) is not None


def _item(work: Obj, reference: Obj) -> Obj:
    ordinal, manifest = _manifest(work, reference)
    item: Obj = {"clusterName": cluster_of_namespace(work["metadata"]["namespace"]) or "", "health": UNKNOWN}
    status = work.get("status") or {}
    condition = meta.get_condition(status.get("conditions"), APPLIED)
    if condition is None:
        return item
    if condition.get("status") != "True":
        return {**item, "appliedMessage": condition["message"]} if condition.get("message") else item
    item["applied"] = True
    wanted = identifier(ordinal, manifest)
    for report in status.get("manifestStatuses") or ():
        if report["identifier"] == wanted:
            if report.get("status") is not None:
                item["status"] = report["status"]
            if report.get("health"):
                item["health"] = report["health"]
    return item


def _manifest(work: Obj, reference: Obj) -> tuple[int, Obj]:
    wanted = (reference["apiVersion"], reference["kind"], reference.get("namespace") or "", reference["name"])
    for ordinal, manifest in enumerate(manifests_of(work)):
        if (manifest.get("apiVersion"), manifest.get("kind"), *meta.key(manifest)) == wanted:
            return ordinal, manifest
    raise ApiError("no such manifest exist")


def fully_applied(items: Collection[Obj], expected: Collection[str]) -> Obj:
    """The condition: every cluster that should have the template has it, and no other."""
    done = bool(expected) and len(items) == len(expected)
    done = done and all(item.get("applied") and item["clusterName"] in expected for item in items)
    status, reason, message = _YES if done else _NO
    return {"type": FULLY_APPLIED, "status": status, "reason": reason, "message": message}
