"""Ingresses, their classes, and the ranges and addresses of the cluster's services."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karmada.cli.output.describing.services import endpoints_text, slices_of
from karmada.cli.output.describing.sheet import NONE, Sheet
from karmada.cli.output.describing.words import at, conditions, head, labels, meta, notes

if TYPE_CHECKING:
    from karmada.cli.output.describing.around import Around
    from karmada.kube.objects.types import Obj

_DEFAULT = "<default>"


async def ingress(sheet: Sheet, obj: Obj, around: Around) -> None:
    spec, namespace = obj["spec"], meta(obj, "namespace")
    sheet.field("Name", meta(obj, "name"))
    labels(sheet, "Labels", meta(obj, "labels", {}))
    sheet.field("Namespace", namespace)
    points = at(obj, "status.loadBalancer.ingress", [])
    sheet.field("Address", ",".join(point.get("ip") or point.get("hostname") or "" for point in points))
    sheet.field("Ingress Class", spec.get("ingressClassName") or NONE)
    default = await _backend(spec["defaultBackend"], namespace, around) if spec.get("defaultBackend") else _DEFAULT
    sheet.field("Default backend", default)
    if spec.get("tls"):
        sheet.row(0, "TLS:")
        for tls in spec["tls"]:
            hosts = ",".join(tls.get("hosts") or ())
            secret = tls.get("secretName")
            sheet.row(1, f"{secret} terminates {hosts}" if secret else f"SNI routes {hosts}")
    sheet.row(0, "Rules:")
    sheet.heads(1, "Host", "Path", "Backends")
    rules = [rule for rule in spec.get("rules") or () if rule.get("http")]
    for rule in rules:
        sheet.row(1, rule.get("host") or "*", "")
        for path in rule["http"].get("paths") or ():
            sheet.row(2, "", f"{path.get('path') or ''} ", await _backend(path["backend"], namespace, around))
    if not rules:
        sheet.row(1, "*", "*", default)
    notes(sheet, "Annotations", meta(obj, "annotations", {}))


async def _backend(backend: Obj, namespace: str, around: Around) -> str:
    if backend.get("service"):
        wanted = backend["service"]
        port = at(wanted, "port.number", 0) or at(wanted, "port.name")
        return f"{wanted['name']}:{port} ({await _behind(wanted, namespace, around)})"
    resource = backend.get("resource") or {}
    group = resource.get("apiGroup") or NONE
    return f"APIGroup: {group}, Kind: {resource.get('kind', '')}, Name: {resource.get('name', '')}"


async def _behind(wanted: Obj, namespace: str, around: Around) -> str:
    from karmada.kube.objects.errors import ApiError

    try:
        service = await around.get("services.v1", wanted["name"], namespace)
    except ApiError as error:
        return f"<error: {error.message}>"
    name, number = at(wanted, "port.name"), at(wanted, "port.number", 0)
    for port in at(service, "spec.ports", []):
        if number and port.get("port") == number:
            name = port.get("name") or ""
    return endpoints_text(await slices_of(wanted["name"], namespace, around), name)


async def ingress_class(sheet: Sheet, obj: Obj, _around: Around) -> None:
    head(sheet, obj, namespaced=False)
    sheet.field("Controller", at(obj, "spec.controller"))
    parameters = at(obj, "spec.parameters", {})
    if parameters:
        sheet.row(0, "Parameters:")
        sheet.optional("APIGroup", parameters.get("apiGroup"), 1)
        sheet.field("Kind", parameters.get("kind") or "", 1)
        sheet.field("Name", parameters.get("name") or "", 1)


async def service_cidr(sheet: Sheet, obj: Obj, _around: Around) -> None:
    head(sheet, obj, namespaced=False)
    sheet.field("CIDRs", ", ".join(at(obj, "spec.cidrs", [])))
    found = at(obj, "status.conditions", [])
    if found:
        sheet.row(0, "Status:")
    conditions(sheet, found, "LastTransitionTime", time=str, end=" ")


async def ip_address(sheet: Sheet, obj: Obj, _around: Around) -> None:
    head(sheet, obj, namespaced=False)
    parent = at(obj, "spec.parentRef", {})
    if parent:
        sheet.row(0, "Parent Reference:")
        for title, key in (("Group", "group"), ("Resource", "resource"), ("Namespace", "namespace"), ("Name", "name")):
            sheet.field(title, parent.get(key) or "", 1)
