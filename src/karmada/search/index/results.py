"""A found object as it is shown: where it is, what it is, and its status as `kubectl get` shows it."""

from __future__ import annotations

from typing import Any, Final

from karmada.api.well_known import CACHED_FROM_CLUSTER
from karmada.kube.kinds.tables import printer_of_kind
from karmada.kube.objects import meta
from karmada.kube.objects.types import Obj
from karmada.search.index.searching import Hit

_STATUSES: Final = ("Status", "Ready", "Completions")
_NOT_DETAILS: Final = frozenset(("Name", "Age", "Status", "Created At", "Labels", "Selector"))
_CONDITIONS: Final = ("Ready", "Available", "Healthy", "Established", "Synced")


def result(hit: Hit, obj: Obj, now: float, *, whole: bool = False) -> Obj:
    cells = _cells(hit, obj, now)
    metadata = obj.get("metadata") or {}
    found: Obj = {
        "cluster": hit.source.cluster,
        "apiVersion": hit.source.gvr.api_version,
        "kind": hit.kind,
        "resource": hit.source.gvr.resource,
        "namespace": hit.namespace,
        "name": hit.name,
        "status": _status(cells, obj),
        "creationTimestamp": metadata.get("creationTimestamp"),
        "details": _details(cells),
    }
    if whole:
        found["object"] = _marked(obj, hit.source.cluster)
    return found


def _marked(obj: Obj, cluster: str) -> Obj:
    metadata = obj.get("metadata") or {}
    annotations = {**(metadata.get("annotations") or {}), CACHED_FROM_CLUSTER: cluster}
    return {**obj, "metadata": {**metadata, "annotations": annotations}}


def gone(hit: Hit) -> Obj:
    """Return the result for an object that is not there any more, or does not match any more."""
    return {
        "cluster": hit.source.cluster,
        "apiVersion": hit.source.gvr.api_version,
        "kind": hit.kind,
        "resource": hit.source.gvr.resource,
        "namespace": hit.namespace,
        "name": hit.name,
    }


def _cells(hit: Hit, obj: Obj, now: float) -> dict[str, Any]:
    printer = printer_of_kind(hit.source.gvr.group, hit.kind)
    return dict(zip((column["name"] for column in printer.columns), printer.cells(obj, now), strict=True))


def _status(cells: dict[str, Any], obj: Obj) -> str:
    if meta.is_deleting(obj) and cells.get("Status") is None:
        return "Terminating"
    for name in _STATUSES:
        if name in cells:
            value = cells[name]
            wanted = cells.get("Desired")
            return f"{value}/{wanted}" if isinstance(value, int) and wanted is not None else str(value)
    return _of_status(obj.get("status"))


def _of_status(status: Any) -> str:
    """Return the phase, else the condition that says whether it works, for kinds without columns of their own."""
    if not isinstance(status, dict):
        return ""
    if isinstance(status.get("phase"), str):
        return str(status["phase"])
    found = {c.get("type"): c for c in status.get("conditions") or () if isinstance(c, dict)}
    for name in _CONDITIONS:
        if name in found:
            holds, reason = found[name].get("status") == "True", found[name].get("reason")
            return name if holds else f"Not{name}" + (f" ({reason})" if reason else "")
    return ""


def _details(cells: dict[str, Any]) -> str:
    shown = ((name, value) for name, value in cells.items() if name not in _NOT_DETAILS)
    return ", ".join(f"{name}: {value}" for name, value in shown if value not in (None, "", "<none>"))
