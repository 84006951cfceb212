"""Aggregates the Works of a binding into its status: pure functions of plain objects."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import lru_cache
from operator import itemgetter
from typing import Final, NamedTuple

import orjson

from karmada.api.cluster_bounds import bounded_text
from karmada.api.well_known import cluster_of_namespace
from karmada.controllers.execution.status import APPLIED, LONGEST_MESSAGE, UNKNOWN, identifier
from karmada.controllers.works import manifests_of
from karmada.kube.objects import meta
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.types import Obj

FULLY_APPLIED: Final = "FullyApplied"
_YES = ("True", "FullyAppliedSuccess", "All works have been successfully applied")
_NO = ("False", "FullyAppliedFailed", "Failed to apply all works, see status.aggregatedStatus for details")
_SHORT, _ALIKE = 512, 4_096
"""Bytes of JSON of contents that are shared, and how many are."""


class Report(NamedTuple):
    """The report of a Work about the template in its cluster."""

    cluster: str
    is_reported: bool
    """True if it says if it was applied."""
    contents: Obj | None
    """Its item of the status without the cluster; None when the template is not in it."""
    size: int = 0
    """Bytes of the contents as JSON, once it is to be kept."""


def report_of(work: Obj, reference: Obj) -> Report:
    """Return the report of a Work; `reference` is the spec.resource of the binding."""
    cluster = cluster_of_namespace(work["metadata"]["namespace"]) or ""
    condition = meta.get_condition((work.get("status") or {}).get("conditions"), APPLIED)
    return Report(cluster, condition is not None, _contents(work, condition, reference))


def to_keep(report: Report) -> Report:
    """Return the report with its size; equal ones share their contents."""
    if report.contents is None:
        return report
    text = orjson.dumps(report.contents)
    contents = _shared(text) if len(text) <= _SHORT else report.contents
    return report._replace(contents=contents, size=len(text))


def aggregate(reports: Iterable[Report]) -> list[Obj]:
    """Return one item for every Work, by cluster; ApiError for one that does not have the template's manifest."""
    items: list[Obj] = []
    for report in reports:
        if report.contents is None:
            raise ApiError("no such manifest exist")
        items.append({"clusterName": report.cluster, **report.contents})
    items.sort(key=itemgetter("clusterName"))
    return items


def _contents(work: Obj, condition: Obj | None, reference: Obj) -> Obj | None:
    found = _manifest(work, reference)
    if found is None:
        return None
    contents: Obj = {"health": UNKNOWN}
    if condition is None:
        return contents
    if condition.get("status") != "True":
        message = bounded_text(str(condition.get("message") or ""), LONGEST_MESSAGE)
        return {**contents, "appliedMessage": message} if message else contents
    contents["applied"] = True
    wanted = identifier(*found)
    for report in work["status"].get("manifestStatuses") or ():
        if report["identifier"] == wanted:
            if report.get("status") is not None:
                contents["status"] = report["status"]
            if report.get("health"):
                contents["health"] = report["health"]
    return contents


def _manifest(work: Obj, reference: Obj) -> tuple[int, Obj] | None:
    """Return the identity of the template, and its place in the Work."""
    wanted = identity_of(reference)
    for ordinal, manifest in enumerate(manifests_of(work)):
        if isinstance(manifest, dict) and _identity_of_object(manifest) == wanted:
            return ordinal, manifest
    return None


def _identity_of_object(manifest: Obj) -> tuple[object, ...]:
    return manifest.get("apiVersion"), manifest.get("kind"), *meta.key(manifest)


def identity_of(reference: Obj) -> tuple[str, str, str, str]:
    """Return what a report depends on of the spec.resource of a binding."""
    return reference["apiVersion"], reference["kind"], reference.get("namespace") or "", reference["name"]


@lru_cache(maxsize=_ALIKE)
def _shared(contents: bytes) -> Obj:
    """Most clusters report the same."""
    shared: Obj = orjson.loads(contents)
    return shared


def fully_applied(items: Collection[Obj], expected: Collection[str]) -> Obj:
    """Return the condition: every cluster that should have the template has it, and no other."""
    done = bool(expected) and len(items) == len(expected)
    done = done and all(item.get("applied") and item["clusterName"] in expected for item in items)
    status, reason, message = _YES if done else _NO
    return {"type": FULLY_APPLIED, "status": status, "reason": reason, "message": message}
