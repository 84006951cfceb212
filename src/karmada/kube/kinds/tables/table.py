"""The Table that kubectl requests: columns, and a row of cells for every object.

Built-in kinds are looked up by group and kind, whatever their version; custom resources have their own columns;
others show name and creation time. A row carries the object's metadata, the whole object or nothing, as requested.
"""

from __future__ import annotations

from collections.abc import Iterable

from karmada.kube.kinds.resource import Resource
from karmada.kube.kinds.tables import cluster, custom, network, pods, storage, workloads
from karmada.kube.kinds.tables.columns import PLAIN, Printer
from karmada.kube.objects.types import Obj

_BUILT_IN: dict[tuple[str, str], Printer] = {
    **workloads.PRINTERS,
    **pods.PRINTERS,
    **network.PRINTERS,
    **storage.PRINTERS,
    **cluster.PRINTERS,
}
_MOST_CACHED = 1024
_custom: dict[int, tuple[Resource, Printer]] = {}
"""Printers of custom resources by the identity of their Resource, which is made anew when a CRD changes."""


def printer_of_kind(group: str, kind: str) -> Printer:
    """For what is no resource of its own, such as Scale (autoscaling) and Status (core)."""
    return _BUILT_IN.get((group, kind), PLAIN)


def printer_for(resource: Resource) -> Printer:
    if resource.printer is not None:
        return resource.printer
    if not resource.custom:
        return printer_of_kind(resource.gvk.group, resource.gvk.kind)
    cached = _custom.get(id(resource))
    if cached is not None and cached[0] is resource:
        return cached[1]
    if len(_custom) >= _MOST_CACHED:
        _custom.clear()
    made = custom.printer(resource.columns)
    _custom[id(resource)] = (resource, made)
    return made


def table(
    resource: Resource,
    rows: Iterable[Obj],
    *,
    now: float,
    list_meta: Obj,
    include: str = "Metadata",
    columns: bool = True,
    api_version: str = "meta.k8s.io/v1",
) -> Obj:
    """Return a Table of objects; `columns` False leaves out the definitions, as in all but the first event of a watch.

    The result shares the objects and the definitions it is made from: encode it, do not mutate it.
    """
    return table_of(
        printer_for(resource),
        rows,
        now=now,
        list_meta=list_meta,
        include=include,
        columns=columns,
        api_version=api_version,
    )


def table_of(
    printer: Printer,
    rows: Iterable[Obj],
    *,
    now: float,
    list_meta: Obj,
    include: str = "Metadata",
    columns: bool = True,
    api_version: str = "meta.k8s.io/v1",
) -> Obj:
    return {
        "kind": "Table",
        "apiVersion": api_version,
        "metadata": list_meta,
        "columnDefinitions": printer.columns if columns else None,
        "rows": [_row(printer, obj, now, include, api_version) for obj in rows],
    }


def _row(printer: Printer, obj: Obj, now: float, include: str, api_version: str) -> Obj:
    row: Obj = {"cells": printer.cells(obj, now)}
    conditions = printer.conditions(obj)
    if conditions:
        row["conditions"] = conditions
    if include == "Metadata":
        metadata = obj.get("metadata") or {}
        row["object"] = {"kind": "PartialObjectMetadata", "apiVersion": api_version, "metadata": metadata}
    elif include == "Object":
        row["object"] = obj
    return row
