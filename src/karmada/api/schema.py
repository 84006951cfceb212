"""From a Struct to the openAPIV3Schema that says the same.

Types become types, Literals enums, bounds and patterns of `msgspec.Meta` their keywords, and fields without a default
are required. A dict of anything is a free JSON object, Any is free JSON, int | str is Kubernetes' int-or-string.
Built-in Kubernetes types are copied from their OpenAPI definitions, with references resolved and put the way a CRD must
have them.

The schema of a Struct is made once and shared by every place that uses it: what is returned here is never changed.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from karmada.api import common
from karmada.api.descriptions import class_description, field_description
from karmada.api.kind import Resource
from karmada.kube.objects.types import Obj
from karmada.kube.schema.builtin import Definitions

PRESERVE = "x-kubernetes-preserve-unknown-fields"
INT_OR_STRING = "x-kubernetes-int-or-string"
_EITHER: Obj = {"anyOf": [{"type": "integer"}, {"type": "string"}], INT_OR_STRING: True}
_SCALARS: dict[Any, Obj] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    bool: {"type": "boolean"},
    float: {"type": "number"},
    Any: {PRESERVE: True},
}
_BOUNDS = {"ge": "minimum", "le": "maximum", "pattern": "pattern"}
_LENGTHS = {
    "string": {"min_length": "minLength", "max_length": "maxLength"},
    "array": {"min_length": "minItems", "max_length": "maxItems"},
    "object": {"min_length": "minProperties", "max_length": "maxProperties"},
}


def kind_schema(cls: type[Resource]) -> Obj:
    """The schema of a kind, as a CRD's version has it."""
    schema = struct_schema(cls)
    metadata = {"type": "object", "description": field_description(cls, "metadata")}
    return {**schema, "properties": {**schema["properties"], "metadata": metadata}}


@cache
def struct_schema(cls: type[msgspec.Struct]) -> Obj:
    hints = get_type_hints(cls, include_extras=True)
    properties: Obj = {}
    required: list[str] = []
    for field in msgspec.structs.fields(cls):
        place = _with_default(place_schema(hints[field.name]), field)
        text = field_description(cls, field.name)
        properties[field.encode_name] = {**place, "description": text} if text else place
        if field.required:
            required.append(field.encode_name)
    schema: Obj = {"type": "object", "properties": properties}
    if required:
        schema["required"] = sorted(required)
    text = class_description(cls)
    return {"description": text, **schema} if text else schema


def _with_default(place: Obj, field: msgspec.structs.FieldInfo) -> Obj:
    """What is not empty is filled in; what is empty is how Python says that nothing is there."""
    if field.default is msgspec.NODEFAULT or not field.default:
        return place
    return {**place, "default": field.default}


def place_schema(hint: Any) -> Obj:
    """The schema of one place, from its type."""
    origin = get_origin(hint)
    if origin is Annotated:
        base, *metas = get_args(hint)
        return _annotated(base, [meta for meta in metas if isinstance(meta, Meta)])
    if origin in (Union, types.UnionType):
        return _union([arm for arm in get_args(hint) if arm is not types.NoneType])
    if origin is Literal:
        return {"type": "string", "enum": list(get_args(hint))}
    if origin is list:
        return {"type": "array", "items": place_schema(get_args(hint)[0])}
    if origin is dict:
        values = get_args(hint)[1]
        if values is Any:
            return {"type": "object", PRESERVE: True}
        return {"type": "object", "additionalProperties": place_schema(values)}
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return struct_schema(hint)
    if hint in _SCALARS:
        return _SCALARS[hint]
    raise TypeError(f"no schema for {hint!r}")


def _union(arms: list[Any]) -> Obj:
    if len(arms) == 1:
        return place_schema(arms[0])
    if set(arms) == {int, str}:
        return _EITHER
    raise TypeError(f"no schema for a union of {arms}")


def _annotated(base: Any, metas: list[Meta]) -> Obj:
    for meta in metas:
        if meta.extra and "definition" in meta.extra:
            return definition(meta.extra["definition"])
    schema = place_schema(base)
    for meta in metas:
        schema = {**schema, **dict(_keywords(meta, schema.get("type", "")))}
    return schema


def _keywords(meta: Meta, kind: str) -> Iterator[tuple[str, Any]]:
    for attribute, keyword in (_BOUNDS | _LENGTHS.get(kind, {})).items():
        value = getattr(meta, attribute)
        if value is not None:
            yield keyword, value
    yield from (meta.extra_json_schema or {}).items()


# Built-in types.

_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
_CLIENT_ONLY = ("x-kubernetes-patch-strategy", "x-kubernetes-patch-merge-key", "x-kubernetes-group-version-kind")


@cache
def definition(name: str) -> Obj:
    """A built-in type as part of a CRD: whole, without references.

    The definitions are parsed for this, and again for the next unless somebody holds on to `Definitions.raws`.
    """
    if name == _QUANTITY:
        return place_schema(common.Quantity)
    if name == _INT_OR_STRING:
        return _EITHER
    return _resolved(Definitions.load().raws()[name])


def _resolved(schema: Obj) -> Obj:
    made = {key: value for key, value in schema.items() if key not in _CLIENT_ONLY}
    reference = made.pop("$ref", None)
    if reference is not None:
        return {**definition(reference.rpartition("/")[2]), **made}
    if "properties" in made:
        made["properties"] = {name: _resolved(child) for name, child in made["properties"].items()}
    for keyword in ("items", "additionalProperties"):
        if keyword in made:
            made[keyword] = _resolved(made[keyword])
    return made
