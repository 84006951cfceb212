"""Results as bytes. Stored objects are sent as the bytes they were stored as; lists are those bytes joined.

Only Tables, PartialObjectMetadata, YAML, protobuf, pretty-printing and converted versions are serialised anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import orjson

from karmada.kube.kinds.resource import Resource
from karmada.kube.kinds.tables import Printer, printer_for, printer_of_kind, table, table_of
from karmada.kube.objects.doc import Doc
from karmada.kube.objects.errors import BadRequest, invalid
from karmada.kube.objects.types import Obj
from karmada.kube.server.http.negotiation import JSON, PROTOBUF, YAML, Form
from karmada.kube.server.http.protobuf_form import ProtobufForm
from karmada.kube.server.http.results import ListResult, ObjectResult

_INCLUDES = ("", "Metadata", "Object", "None")


def dumps(value: object, *, pretty: bool = False) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2 if pretty else 0)


def included(wanted: str, form: Form) -> str:
    """Return how much of each object a Table's rows carry."""
    if form.transform == "Table" and wanted not in _INCLUDES:
        why = invalid("includeObject", wanted, "must be 'Metadata', 'Object', 'None', or empty")
        raise BadRequest(f"Unable to convert to Table as requested: {why}")
    return wanted or "Metadata"


def partial(obj: Obj, version: str = "v1") -> Obj:
    return {"kind": "PartialObjectMetadata", "apiVersion": f"meta.k8s.io/{version}", "metadata": obj["metadata"]}


def encode_object(
    result: ObjectResult, form: Form, include: str, pretty: bool, now: float, protobuf: ProtobufForm
) -> bytes:
    if form.media == PROTOBUF:
        obj = result.object()
        whole = not form.transform or obj.get("kind") == "Status"
        return protobuf.object(obj) if whole else protobuf.metadata(obj, form.version)
    if form.transform:
        obj = result.object()
        if obj.get("kind") != "Status":
            obj = _transform(_printer(result), obj, form, include, now)
        return finish(obj, form, pretty)
    if result.entry is not None and form.media == JSON and not pretty:
        return result.entry.raw
    return finish(result.object(), form, pretty)


def _printer(result: ObjectResult) -> Printer:
    if result.resource is not None:
        return printer_for(result.resource)
    group, slash, _ = result.object()["apiVersion"].partition("/")
    return printer_of_kind(group if slash else "", result.object()["kind"])


def _transform(printer: Printer, obj: Obj, form: Form, include: str, now: float) -> Obj:
    if form.transform == "Table":
        meta = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
        version = f"meta.k8s.io/{form.version}"
        return table_of(printer, [obj], now=now, list_meta=meta, include=include, api_version=version)
    return partial(obj, form.version)


async def encode_list(
    result: ListResult, form: Form, include: str, pretty: bool, now: float, protobuf: ProtobufForm
) -> bytes:
    resource = result.resource
    version = f"meta.k8s.io/{form.version}"
    if form.media == PROTOBUF:
        if form.transform:
            return await protobuf.metadata_list(result.metadata, _objects(result), form.version)
        return await protobuf.list(result, _objects(result))
    if form.transform == "Table":
        rows = _objects(result)
        shown = table(resource, rows, now=now, list_meta=result.metadata, include=include, api_version=version)
        return finish(shown, form, pretty)
    if form.transform:
        items = [partial(obj, form.version) for obj in _objects(result)]
        whole = {
            "kind": "PartialObjectMetadataList",
            "apiVersion": version,
            "metadata": result.metadata,
            "items": items,
        }
        return finish(whole, form, pretty)
    return plain_list(result) if form.media == JSON and not pretty else finish(list_object(result), form, pretty)


def plain_list(result: ListResult) -> bytes:
    """In JSON: of stored objects the bytes as they are."""
    if result.objects is not None:
        return dumps(list_object(result))
    return _join(result.resource, _list_meta(result.resource, result.metadata), result.entries)


def _objects(result: ListResult) -> Iterable[Obj]:
    """Return one at a time, so that a long Table does not hold every parsed object at once."""
    return (entry.object() for entry in result.entries) if result.objects is None else result.objects


def list_object(result: ListResult) -> Obj:
    """Return the list as one JSON value; items of built-in kinds go without apiVersion and kind, as clients expect."""
    resource, items = result.resource, result.items()
    if not resource.custom:
        items = [{key: value for key, value in obj.items() if key not in ("apiVersion", "kind")} for obj in items]
    return list_of(result, items)


def list_of(result: ListResult, items: Sequence[Obj]) -> Obj:
    """Return a list with these items."""
    resource = result.resource
    return {
        "kind": resource.list_kind,
        "apiVersion": resource.gvk.api_version,
        "metadata": _list_meta(resource, result.metadata),
        "items": items,
    }


def _list_meta(resource: Resource, metadata: Obj) -> Obj:
    """Lists of custom resources have a continue token even when it is empty."""
    return {"continue": "", **metadata} if resource.custom and not resource.native else metadata


def _join(resource: Resource, metadata: Obj, entries: list[Doc]) -> bytes:
    head = orjson.dumps({"kind": resource.list_kind, "apiVersion": resource.gvk.api_version, "metadata": metadata})
    opening, cut = (b"", 0) if resource.custom else (b"{", len(type_prefix(resource)))
    pieces: list[bytes | memoryview] = [head[:-1], b',"items":[']
    for entry in entries:
        pieces += (opening, memoryview(entry.raw)[cut:], b",")
    if entries:
        pieces.pop()
    pieces.append(b"]}")
    return b"".join(pieces)


def type_prefix(resource: Resource) -> bytes:
    """Return how every stored object of this kind begins."""
    return b'{"apiVersion":"%b","kind":"%b",' % (resource.storage.api_version.encode(), resource.storage.kind.encode())


def finish(value: Obj, form: Form, pretty: bool) -> bytes:
    """Return a JSON value as JSON or YAML."""
    if form.media == YAML:
        from karmada.kube.schema.yamlio import dump_yaml

        return dump_yaml(orjson.loads(orjson.dumps(value)))  # plain dicts, none of them twice
    return dumps(value, pretty=pretty)
