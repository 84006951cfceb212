"""OpenAPI v2 (Swagger), as JSON and as the protobuf message that older clients require.

The whole API is one document. It is built when a client requests it (new ones use v3), kept compressed, and built again
when the registry changes.
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Iterable
from typing import Any

import orjson

from karmada.kube.kinds.resource import Resource
from karmada.kube.objects.types import Obj
from karmada.kube.schema.builtin import Definitions
from karmada.kube.server.handlers.discovery import etag
from karmada.kube.server.http.negotiation import parse_accept
from karmada.kube.server.http.request import Request
from karmada.kube.server.http.results import RawResult, Result
from karmada.kube.server.openapi.gnostic import encode_document
from karmada.kube.server.openapi.paths import PARAMETER_TYPES, Operation, Path, paths_of
from karmada.kube.server.openapi.schemas import (
    DELETE_OPTIONS,
    PATCH,
    STATUS,
    WATCH_EVENT,
    custom_definitions,
    gvk_extension,
    kinds_of,
    operation_schemas,
    reachable,
)
from karmada.kube.server.registry import Registry

PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_PROTOBUF_NAMES = (PROTOBUF, "application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
_BEYOND_SWAGGER = frozenset({"nullable", "oneOf", "anyOf", "allOf", "not"})
_ABOUT_MEMBERS = frozenset({"properties", "items", "additionalProperties", "required"})
_JSON_NAMES = ("application/json", "*/*", "application/*")
BEARER_TOKEN = {"description": "Bearer Token authentication", "type": "apiKey", "name": "authorization", "in": "header"}


class OpenApiV2:
    def __init__(self, registry: Registry, definitions: Definitions, git_version: str) -> None:
        self._registry = registry
        self._definitions = definitions
        self._git_version = git_version
        self._made: tuple[int, dict[str, tuple[str, bytes]]] = (-1, {})

    async def handle(self, request: Request) -> Result:
        media = _media(request.headers.get("Accept", ""))
        if not media:
            return RawResult(b"", "text/plain; charset=utf-8", 406)
        tag, packed = self._document(media)
        headers = {"ETag": f'"{tag}"', "Vary": "Accept", "Cache-Control": "public"}
        if request.headers.get("If-None-Match") == f'"{tag}"':
            return RawResult(b"", media, 304, headers)
        if "gzip" in request.headers.get("Accept-Encoding", ""):
            headers["Content-Encoding"] = "gzip"
            return RawResult(packed, media, 200, headers)
        return RawResult(zlib.decompress(packed, 31), media, 200, headers)

    def _document(self, media: str) -> tuple[str, bytes]:
        generation, made = self._made
        if generation != self._registry.generation:
            made = {}
            self._made = (self._registry.generation, made)
        if media not in made:
            document = build(self._registry, self._definitions, self._git_version)
            body = encode_document(document) if media == PROTOBUF else orjson.dumps(document)
            packer = zlib.compressobj(4, zlib.DEFLATED, 31)
            made[media] = (etag(body), packer.compress(body) + packer.flush())
        return made[media]


def _media(accept: str) -> str:
    if not accept:
        return "application/json"
    for clause in parse_accept(accept):
        if clause.media in _PROTOBUF_NAMES:
            return PROTOBUF
        if clause.media in _JSON_NAMES:
            return "application/json"
    return ""


def build(resources: Iterable[Resource], definitions: Definitions, git_version: str) -> Obj:
    everything = dict(definitions.raws())
    wanted = {STATUS, DELETE_OPTIONS, PATCH, WATCH_EVENT}
    shared: dict[str, Obj] = {}
    paths: Obj = {}
    for resource in resources:
        if resource.custom:
            made = custom_definitions(resource, everything)
            everything |= {name: _reduced_root(schema) for name, schema in made.items()}
        wanted |= kinds_of(resource, definitions)
        for path in paths_of(resource):
            paths[path.path] = _path_item(path, definitions, shared)
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": git_version},
        "paths": dict(sorted(paths.items())),
        "definitions": reachable(wanted, everything),
        "parameters": dict(sorted(shared.items())),
        "securityDefinitions": {"BearerToken": BEARER_TOKEN},
        "security": [{"BearerToken": []}],
    }


def _reduced_root(schema: Obj) -> Obj:
    """Return the schema of a custom resource; only the kind of one whose root takes unknown members."""
    if not schema.get("x-kubernetes-preserve-unknown-fields"):
        reduced: Obj = _reduced(schema)
        return reduced
    return {key: schema[key] for key in ("type", "x-kubernetes-group-version-kind")}


def _reduced(schema: Any) -> Any:
    """Return a custom resource's schema in the words of Swagger, which knows neither null nor alternatives.

    Where unknown members or null are welcome nothing is said of the members, or old clients would refuse them.
    """
    if not isinstance(schema, dict):
        return schema
    shown = {key: value for key, value in schema.items() if key not in _BEYOND_SWAGGER}
    if schema.get("nullable"):
        return {key: value for key, value in shown.items() if key not in _ABOUT_MEMBERS and key != "type"}
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return {key: value for key, value in shown.items() if key not in _ABOUT_MEMBERS}
    if "properties" in shown:
        shown["properties"] = {name: _reduced(value) for name, value in shown["properties"].items()}
    for key in ("items", "additionalProperties"):
        if key in shown:
            shown[key] = _reduced(shown[key])
    return shown


def _path_item(path: Path, definitions: Definitions, shared: dict[str, Obj]) -> Obj:
    item: Obj = {operation.method: _operation(operation, definitions, shared) for operation in path.operations}
    in_path = [{"name": name, "in": "path", "required": True, "type": "string"} for name in path.in_path]
    parameters = [_shared(parameter, shared) for parameter in (*in_path, *map(_query, path.parameters))]
    return {**item, "parameters": parameters} if parameters else item


def _query(name: str) -> Obj:
    return {"name": name, "in": "query", "type": PARAMETER_TYPES.get(name, "string"), "uniqueItems": True}


def _shared(parameter: Obj, shared: dict[str, Obj]) -> Obj:
    """Return a reference to a parameter, which is defined once for all operations that have it."""
    digest = hashlib.sha256(orjson.dumps(parameter, option=orjson.OPT_SORT_KEYS)).digest()
    name = f"{parameter['name']}-{base64.urlsafe_b64encode(digest)[:8].decode()}"
    shared[name] = parameter
    return {"$ref": f"#/parameters/{name}"}


def _operation(operation: Operation, definitions: Definitions, shared: dict[str, Obj]) -> Obj:
    body, answer = operation_schemas(operation, definitions)
    answered = {"$ref": f"#/definitions/{answer}"} if answer is not None else {"type": "string"}
    parameters: list[Obj] = [_shared(_query(name), shared) for name in operation.parameters]
    if body is not None:
        required = operation.action in ("create", "update", "patch")
        schema = {"$ref": f"#/definitions/{body}"}
        parameters.append({"name": "body", "in": "body", "required": required, "schema": schema})
    statuses = {code: {"description": text, "schema": answered} for code, text in operation.statuses.items()}
    return {
        "tags": [operation.tag],
        "operationId": operation.operation_id,
        "schemes": ["https"],
        "consumes": list(operation.media) if operation.action == "patch" else ["*/*"],
        "produces": list(operation.produces),
        "parameters": parameters,
        "responses": {**statuses, "401": {"description": "Unauthorized"}},
        "x-kubernetes-action": operation.shown_action,
        "x-kubernetes-group-version-kind": gvk_extension(operation.gvk),
    }
