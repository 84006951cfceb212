"""Responses of the metrics APIs: NodeMetrics and PodMetrics are resources like any other, also as Table or YAML."""

from __future__ import annotations

from collections.abc import Callable

from karmada.kube.kinds.resource import Resource
from karmada.kube.kinds.tables.columns import Column, Printer
from karmada.kube.kinds.tables.table import table_of
from karmada.kube.objects import meta
from karmada.kube.objects.gvk import GVK, GroupResource, GroupVersion
from karmada.kube.objects.quantity import Format, Quantity
from karmada.kube.objects.types import Obj
from karmada.kube.schema.node import Node
from karmada.kube.server.http.encoding import dumps
from karmada.kube.server.http.negotiation import JSON, Offer, negotiate
from karmada.kube.server.http.request import Request
from karmada.kube.server.http.results import ListResult, ObjectResult, RawResult, Result

GROUP = "metrics.k8s.io"


def list_of(version: GroupVersion, kind: str, items: list[Obj]) -> ObjectResult:
    return ObjectResult(obj={"kind": kind, "apiVersion": str(version), "metadata": {}, "items": items})


def _resource(plural: str, kind: str, *, namespaced: bool) -> Resource:
    gvk = GVK(GROUP, "v1beta1", kind)
    return Resource(
        gvk=gvk,
        plural=plural,
        namespaced=namespaced,
        verbs=("get", "list"),
        schema=lambda: Node(type="object", preserve=True),
        storage=gvk,
        storage_resource=GroupResource(GROUP, plural),
    )


def _summed(resource: str) -> Callable[[Obj, float], str]:
    def cell(obj: Obj, _now: float) -> str:
        parts = obj.get("containers") or (obj,)
        total = sum(Quantity.parse(part["usage"][resource]).nano for part in parts)
        return str(Quantity(total, Format.BINARY_SI if resource == "memory" else Format.DECIMAL_SI))

    return cell


_RESOURCES = {
    "nodes": _resource("nodes", "NodeMetrics", namespaced=False),
    "pods": _resource("pods", "PodMetrics", namespaced=True),
}
_PRINTER = Printer(
    (
        Column("Name", lambda obj, _: meta.name(obj), "The name of what was measured.", format="name"),
        Column("cpu", _summed("cpu"), "How many cores were used on average."),
        Column("memory", _summed("memory"), "How much memory was in use."),
        Column("Window", lambda obj, _: obj["window"], "Over how long it was measured."),
    )
)


def rendered(request: Request, plural: str, items: list[Obj], now: float, *, single: bool) -> Result:
    if not request.in_process:
        form = negotiate(request.headers.get("Accept", ""), Offer("object" if single else "list", protobuf=False))
        if form.transform == "Table" and form.media == JSON:
            include = request.query.get("includeObject") or "Metadata"
            version = f"meta.k8s.io/{form.version}"
            return RawResult(
                dumps(table_of(_PRINTER, items, now=now, list_meta={}, include=include, api_version=version))
            )
    resource = _RESOURCES[plural]
    if single:
        return ObjectResult(obj=items[0], resource=resource)
    return ListResult(resource, {}, objects=items)
