"""Objects as bytes: a stored object is sent as the bytes it was stored as. Lists are in list_encoding.py.

Only Tables, PartialObjectMetadata, YAML, protobuf, pretty-printing and converted versions are serialised anew.
"""

from __future__ import annotations

import orjson

from karmada.kube.kinds.resource import Resource
from karmada.kube.kinds.tables import Printer, printer_for, printer_of_kind, table_of
from karmada.kube.objects.errors import BadRequest, invalid
from karmada.kube.objects.types import Obj
from karmada.kube.server.http.negotiation import JSON, PROTOBUF, YAML, Form
from karmada.kube.server.http.protobuf_form import ProtobufForm
from karmada.kube.server.http.results import ObjectResult

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


def type_prefix(resource: Resource) -> bytes:
    """Return how every stored object of this kind begins."""
    return b'{"apiVersion":"%b","kind":"%b",' % (resource.storage.api_version.encode(), resource.storage.kind.encode())


def finish(value: object, form: Form, pretty: bool) -> bytes:
    """Return a JSON value as JSON or YAML."""
    if form.media == YAML:
        from karmada.kube.schema.yamlio import dump_yaml

        return dump_yaml(orjson.loads(orjson.dumps(value)))  # plain dicts, none of them twice
    return dumps(value, pretty=pretty)
