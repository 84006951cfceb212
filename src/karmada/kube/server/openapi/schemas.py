"""The schemas in OpenAPI documents: those of the built-in kinds, and of custom resources from their CRDs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from karmada.kube.kinds.resource import Resource
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.types import Obj
from karmada.kube.schema.builtin import OBJECT_META, Definitions, openapi_name
from karmada.kube.server.openapi.paths import Operation

LIST_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta"
STATUS = "io.k8s.apimachinery.pkg.apis.meta.v1.Status"
WATCH_EVENT = "io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent"
RESOURCE_LIST = "io.k8s.apimachinery.pkg.apis.meta.v1.APIResourceList"
PATCH = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch"
DELETE_OPTIONS = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"
_PREFIX = "#/definitions/"
_DESCRIBED = "io.k8s.api.core.v1.ConfigMap"
"""A built-in kind: every kind describes apiVersion, kind and metadata in the same words."""


def definition_name(definitions: Definitions, gvk: GVK, *, custom: bool) -> str:
    return openapi_name(gvk) if custom else definitions.kinds().get(gvk, openapi_name(gvk))


def gvk_extension(gvk: GVK) -> Obj:
    return {"group": gvk.group, "kind": gvk.kind, "version": gvk.version}


def custom_definitions(resource: Resource, builtin: Mapping[str, Obj]) -> dict[str, Obj]:
    """Return the kind and its list, in the form of v2 definitions; `builtin` are those of the built-in kinds."""
    gvk = resource.gvk
    schema = dict(resource.raw_schema or {"x-kubernetes-preserve-unknown-fields": True})
    properties = dict(schema.get("properties") or {})
    described = {key: known.get("description", "") for key, known in builtin[_DESCRIBED]["properties"].items()}
    for key in ("apiVersion", "kind"):
        properties[key] = {"type": "string", "description": described[key]}
    properties["metadata"] = {"$ref": _PREFIX + OBJECT_META, "description": described["metadata"]}
    schema |= {"type": "object", "properties": properties, "x-kubernetes-group-version-kind": [gvk_extension(gvk)]}
    name, listed_as = openapi_name(gvk), list_kind(resource)
    listed = {
        "type": "object",
        "description": f"A list of {gvk.kind}.",
        "required": ["items"],
        "properties": {
            "apiVersion": properties["apiVersion"],
            "kind": properties["kind"],
            "metadata": {"$ref": _PREFIX + LIST_META, "description": "Standard list metadata."},
            "items": {"type": "array", "items": {"$ref": _PREFIX + name}, "description": "The objects."},
        },
        "x-kubernetes-group-version-kind": [gvk_extension(listed_as)],
    }
    return {name: schema, openapi_name(listed_as): listed}


def list_kind(resource: Resource) -> GVK:
    return GVK(resource.gvk.group, resource.gvk.version, resource.list_kind)


def kinds_of(resource: Resource, definitions: Definitions) -> set[str]:
    """Return the names of the definitions a resource's operations take and answer."""
    names = {definition_name(definitions, kind, custom=resource.custom) for kind in (resource.gvk, list_kind(resource))}
    subs = (sub.kind for sub in resource.subresources.values() if sub.kind is not None)
    return names | {definition_name(definitions, kind, custom=False) for kind in subs}


class OperationSchemas(NamedTuple):
    """The request body and the response of an operation: names of definitions, None for no body or a plain string."""

    body: str | None
    answer: str | None


def operation_schemas(operation: Operation, definitions: Definitions) -> OperationSchemas:
    resource, action = operation.resource, operation.action
    own = operation.gvk == resource.gvk
    name = definition_name(definitions, operation.gvk, custom=resource.custom and own)
    if not own and operation.gvk not in definitions.kinds():
        return OperationSchemas(None, None)  # a connection: its options are in the query
    answer = name
    if action == "connect":
        return OperationSchemas(None, None)
    if action in ("watch", "watchlist"):
        return OperationSchemas(None, WATCH_EVENT)
    if action == "list":
        answer = definition_name(definitions, list_kind(resource), custom=resource.custom)
    elif action in ("delete", "deletecollection"):
        answer = STATUS
    bodies = {"get": None, "list": None, "patch": PATCH, "delete": DELETE_OPTIONS, "deletecollection": DELETE_OPTIONS}
    return OperationSchemas(bodies.get(action, name), answer)


def references(schema: Any) -> Iterator[str]:
    """Yield the names of the definitions a schema refers to."""
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
    """Return these definitions and all they refer to, by name."""
    found: dict[str, Obj] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in found or name not in definitions:
            continue
        found[name] = definitions[name]
        waiting.extend(references(definitions[name]))
    return dict(sorted(found.items()))
