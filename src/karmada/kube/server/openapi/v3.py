"""OpenAPI v3: one document for each group-version, built when it is first requested and kept compressed.

A document's hash is computed from its sources (the Kubernetes version, the resources, the custom schemas), so the index
is cheap: a client that has the hash already never causes a document to be built.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterable
from email.utils import formatdate
from typing import Any

import orjson

from karmada.kube.kinds.resource import Resource
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.errors import NotAcceptable
from karmada.kube.objects.gvk import GroupVersion
from karmada.kube.objects.types import Obj
from karmada.kube.schema.builtin import Definitions
from karmada.kube.server.http.negotiation import parse_accept
from karmada.kube.server.http.request import Request
from karmada.kube.server.http.results import PAGE_NOT_FOUND, RawResult, Result
from karmada.kube.server.openapi.paths import PARAMETER_TYPES, Operation, Path, base_path, paths_of
from karmada.kube.server.openapi.schemas import (
    DELETE_OPTIONS,
    PATCH,
    RESOURCE_LIST,
    STATUS,
    WATCH_EVENT,
    custom_definitions,
    gvk_extension,
    kinds_of,
    operation_schemas,
    reachable,
)
from karmada.kube.server.openapi.v2 import BEARER_TOKEN
from karmada.kube.server.registry import Registry

_YEAR = 365 * 24 * 3600
_ROOT = "/openapi/v3"
_META = "io.k8s.apimachinery.pkg.apis.meta.v1."


class OpenApiV3:
    def __init__(self, registry: Registry, definitions: Definitions, clock: Clock, git_version: str) -> None:
        self._registry = registry
        self._definitions = definitions
        self._clock = clock
        self._git_version = git_version
        self._documents: dict[str, tuple[str, bytes]] = {}
        self.remote: Callable[[], dict[str, tuple[str, bytes]]] = dict
        """Documents of aggregated servers: key → (hash, compressed document)."""

    async def handle(self, request: Request) -> Result:
        path = request.info.path.rstrip("/")
        if not _accepts_json(request.headers.get("Accept", "")):
            raise NotAcceptable("only the following media types are accepted: application/json")
        if path == _ROOT:
            return RawResult(orjson.dumps({"paths": self._index()}))
        return self._document(request, path.removeprefix(_ROOT + "/"))

    def _index(self) -> dict[str, Obj]:
        remote = self.remote()
        keys = {_key(version): self._hash(version) for version in self._registry.versions()}
        keys |= {key: self._page_hash(key) for key in self._pages()}
        keys |= {key: tag for key, (tag, _) in remote.items()}
        return {key: {"serverRelativeURL": f"{_ROOT}/{key}?hash={tag}"} for key, tag in sorted(keys.items())}

    def _document(self, request: Request, key: str) -> Result:
        remote = self.remote().get(key)
        if remote is not None:
            tag, packed = remote
        else:
            found = self._own(key)
            if found is None:
                return PAGE_NOT_FOUND
            tag, packed = found
        headers = {"ETag": f'"{tag}"', "Vary": "Accept"}
        requested = request.query.get("hash")
        if requested and requested != tag:
            headers["Location"] = f"{_ROOT}/{key}?hash={tag}"
            return RawResult(b"", "text/plain; charset=utf-8", 301, headers)
        if requested:
            headers["Cache-Control"] = "public, immutable"
            headers["Expires"] = formatdate(self._clock.now() + _YEAR, usegmt=True)
        if request.headers.get("If-None-Match") == f'"{tag}"':
            return RawResult(b"", "application/json", 304, headers)
        if "gzip" in request.headers.get("Accept-Encoding", ""):
            headers["Content-Encoding"] = "gzip"
            return RawResult(packed, "application/json", 200, headers)
        return RawResult(zlib.decompress(packed, 31), "application/json", 200, headers)

    def _own(self, key: str) -> tuple[str, bytes] | None:
        version = _version(key)
        if version is not None and self._registry.serves(version):
            tag = self._hash(version)
            return tag, self._packed(key, version, tag)
        page = self._pages().get(key)
        if page is None:
            return None
        return self._page_hash(key), _pack(build_page(*page, self._definitions, self._git_version))

    def _pages(self) -> dict[str, tuple[str, str]]:
        """Documents that are no group-version's: key → path and the definition of the answer."""
        groups = {version.group for version in self._registry.versions() if version.group}
        return {
            "api": ("/api/", _META + "APIVersions"),
            "apis": ("/apis/", _META + "APIGroupList"),
            "version": ("/version/", "io.k8s.apimachinery.pkg.version.Info"),
        } | {f"apis/{group}": (f"/apis/{group}/", _META + "APIGroup") for group in groups}

    def _page_hash(self, key: str) -> str:
        return hashlib.sha512(f"{self._definitions.version} {self._git_version} {key}".encode()).hexdigest().upper()

    def _hash(self, version: GroupVersion) -> str:
        parts = hashlib.sha512(f"{self._definitions.version} {self._git_version} {version}".encode())
        for resource in sorted(self._registry.in_version(version), key=lambda r: r.plural):
            parts.update(f"{resource.plural} {resource.gvk.kind} {sorted(resource.subresources)}".encode())
            if resource.custom:
                parts.update(orjson.dumps(resource.raw_schema))
        return parts.hexdigest().upper()

    def _packed(self, key: str, version: GroupVersion, tag: str) -> bytes:
        known = self._documents.get(key)
        if known is None or known[0] != tag:
            document = build(self._registry.in_version(version), self._definitions, self._git_version)
            known = self._documents[key] = (tag, _pack(document))
        return known[1]


def _pack(document: Obj) -> bytes:
    packer = zlib.compressobj(4, zlib.DEFLATED, 31)
    return packer.compress(orjson.dumps(document)) + packer.flush()


def _accepts_json(accept: str) -> bool:
    clauses = parse_accept(accept) if accept else ()
    return not accept or any(c.media in ("application/json", "*/*", "application/*") for c in clauses)


def _key(version: GroupVersion) -> str:
    return f"apis/{version}" if version.group else f"api/{version.version}"


def _version(key: str) -> GroupVersion | None:
    parts = key.split("/")
    if len(parts) == 2 and parts[0] == "api":
        return GroupVersion("", parts[1])
    return GroupVersion(parts[1], parts[2]) if len(parts) == 3 and parts[0] == "apis" else None


def build(resources: Iterable[Resource], definitions: Definitions, git_version: str) -> Obj:
    """Return the document of one group-version."""
    everything = dict(definitions.raws())
    wanted = {STATUS, DELETE_OPTIONS, PATCH, WATCH_EVENT}
    paths: Obj = {}
    for resource in sorted(resources, key=lambda r: r.plural):
        if resource.custom:
            everything |= custom_definitions(resource, everything)
        else:
            wanted.add(RESOURCE_LIST)
            root = f"{base_path(resource.gvk)}/"
            paths[root] = {"get": _page(f"get{_operation_name(root)}", RESOURCE_LIST)}
        wanted |= kinds_of(resource, definitions)
        for path in paths_of(resource):
            paths[path.path] = _path_item(path, definitions)
    return _document(paths, reachable(wanted, everything), git_version)


def build_page(path: str, answer: str, definitions: Definitions, git_version: str) -> Obj:
    """Return the document of one page that only answers GET."""
    paths = {path: {"get": _page(f"get{_operation_name(path)}", answer)}}
    return _document(paths, reachable([answer], dict(definitions.raws())), git_version)


def _page(operation_id: str, answer: str) -> Obj:
    answered = {"description": "OK", "content": {"application/json": {"schema": _ref(answer)}}}
    return {"operationId": operation_id, "responses": {"200": answered, "401": {"description": "Unauthorized"}}}


def _operation_name(path: str) -> str:
    return "".join(part.capitalize() for part in path.replace(".", "/").split("/"))


def _document(paths: Obj, definitions: dict[str, Obj], git_version: str) -> Obj:
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": git_version},
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": {name: _schema(schema) for name, schema in definitions.items()},
            "securitySchemes": {"BearerToken": BEARER_TOKEN},
        },
    }


def _path_item(path: Path, definitions: Definitions) -> Obj:
    item: Obj = {operation.method: _operation(operation, definitions) for operation in path.operations}
    in_path = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "uniqueItems": True}}
        for name in path.in_path
    ]
    parameters = in_path + [_query(name) for name in path.parameters]
    return {**item, "parameters": parameters} if parameters else item


def _query(name: str) -> Obj:
    return {"name": name, "in": "query", "schema": {"type": PARAMETER_TYPES.get(name, "string"), "uniqueItems": True}}


def _operation(operation: Operation, definitions: Definitions) -> Obj:
    body, answer = operation_schemas(operation, definitions)
    answered = _ref(answer) if answer is not None else {"type": "string"}
    content = {media: {"schema": answered} for media in operation.produces}
    statuses = {code: {"description": text, "content": content} for code, text in operation.statuses.items()}
    shown: Obj = {
        "tags": [operation.tag],
        "operationId": operation.operation_id,
        "parameters": [_query(name) for name in operation.parameters],
        "responses": {**statuses, "401": {"description": "Unauthorized"}},
        "x-kubernetes-action": operation.shown_action,
        "x-kubernetes-group-version-kind": gvk_extension(operation.gvk),
    }
    if body is not None:
        required = operation.action in ("create", "update", "patch")
        media = operation.media if operation.action == "patch" else ("*/*",)
        shown["requestBody"] = {"content": {each: {"schema": _ref(body)} for each in media}}
        if required:
            shown["requestBody"]["required"] = True
    return shown


def _ref(name: str) -> Obj:
    return {"$ref": f"#/components/schemas/{name}"}


def _schema(schema: Any) -> Any:
    """Return a v2 schema as v3 writes it: references under components, wrapped where something stands beside them."""
    if isinstance(schema, list):
        return [_schema(value) for value in schema]
    if not isinstance(schema, dict):
        return schema
    if isinstance(schema.get("$ref"), str):
        ref = _ref(schema["$ref"].rpartition("/")[2])
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        return {**beside, "allOf": [ref]} if beside else ref
    if schema.get("format") == "int-or-string" and schema.get("type") == "string":
        rest = {key: value for key, value in schema.items() if key != "type"}
        return {**rest, "oneOf": [{"type": "integer"}, {"type": "string"}]}
    return {key: _schema(value) for key, value in schema.items()}
