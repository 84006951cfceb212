"""The schemas that OpenAPI documents show: those of the built-in kinds, and of custom resources from their CRDs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.types import Obj
from karmada.kube.schema.builtin import OBJECT_META, Definitions, openapi_name
from karmada.kube.server.resource import Resource

LIST_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta"
STATUS = "io.k8s.apimachinery.pkg.apis.meta.v1.Status"
PATCH = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch"
DELETE_OPTIONS = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"
_PREFIX = "#/definitions/"
_DESCRIPTIONS = {
    "apiVersion": "The group and version of this object's schema.",
    "kind": "The type of this object, in CamelCase.",
    "metadata": "Standard object metadata.",
}


def definition_name(definitions: Definitions, gvk: GVK, *, custom: bool) -> str:
    return openapi_name(gvk) if custom else definitions.kinds().get(gvk, openapi_name(gvk))


def gvk_extension(gvk: GVK) -> Obj:
    return {"group": gvk.group, "kind": gvk.kind, "version": gvk.version}


def custom_definitions(resource: Resource) -> dict[str, Obj]:
    """The kind and its list, in the form of v2 definitions."""
    gvk = resource.gvk
    schema = dict(resource.raw_schema or {"x-kubernetes-preserve-unknown-fields": True})
    properties = dict(schema.get("properties") or {})
    for key in ("apiVersion", "kind"):
        properties[key] = {"type": "string", "description": _DESCRIPTIONS[key]}
    properties["metadata"] = {"$ref": _PREFIX + OBJECT_META, "description": _DESCRIPTIONS["metadata"]}
    schema |= {"type": "object", "properties": properties, "x-kubernetes-group-version-kind": [gvk_extension(gvk)]}
    listed = {
        "type": "object",
        "description": f"A list of {gvk.kind}.",
        "required": ["items"],
        "properties": {
            "apiVersion": properties["apiVersion"],
            "kind": properties["kind"],
            "metadata": {"$ref": _PREFIX + LIST_META, "description": "Standard list metadata."},
            "items": {"type": "array", "items": {"$ref": _PREFIX + openapi_name(gvk)}, "description": "The objects."},
        },
        "x-kubernetes-group-version-kind": [gvk_extension(GVK(gvk.group, gvk.version, resource.list_kind))],
    }
    return {openapi_name(gvk): schema, openapi_name(GVK(gvk.group, gvk.version, resource.list_kind)): listed}


def references(schema: Any) -> Iterator[str]:
    """The names of the definitions a schema refers to."""
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key == "$ref" and isinstance(value, str):
                yield value.rpartition("/")[2]
            else:
                yield from references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from references(value)


def reachable(names: Iterable[str], definitions: dict[str, Obj]) -> dict[str, Obj]:
    """These definitions and all they refer to, by name."""
    found: dict[str, Obj] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in found or name not in definitions:
            continue
        found[name] = definitions[name]
        waiting.extend(references(definitions[name]))
    return dict(sorted(found.items()))
