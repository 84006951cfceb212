"""The OpenAPI documents: what kubectl, helm and code generators read of them."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import pytest
import pytest_asyncio
import yaml

from karmada.kube.server.app import ApiServer
from tests.integration.streams import served
from tests.support.cases import cases
from tests.support.wire import Answer, Http

on_module_loop = pytest.mark.asyncio(loop_scope="module")

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
V2_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
V2_ACCEPTED = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
STRATEGIC = "application/strategic-merge-patch+json"
SHIRT = {
    "metadata": {"name": "shirts.example.com"},
    "spec": {
        "group": "example.com", "scope": "Namespaced", "names": {"plural": "shirts", "kind": "Shirt"},
        "versions": [{
            "name": "v1", "served": True, "storage": True, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {
                "type": "object", "description": "Something to wear.", "required": ["spec"],
                "properties": {
                    "spec": {
                        "type": "object",
                        "properties": {
                            "size": {"x-kubernetes-int-or-string": True,
                                     "anyOf": [{"type": "integer"}, {"type": "string"}]},
                            "colour": {"type": "string", "nullable": True, "enum": ["red", "blue"]},
                            "extra": {"type": "object", "x-kubernetes-preserve-unknown-fields": True,
                                      "properties": {"a": {"type": "string"}}},
                            "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
                        },
                    },
                    "status": {"type": "object", "additionalProperties": {"type": "integer"}},
                },
            }},
        }],
    },
}  # fmt: skip


class Plain(Http):
    """Documents as they are, not compressed unless requested."""

    async def __call__(
        self, method: str, path: str, body: Any = None, *, headers: Mapping[str, str] | None = None, **kwargs: Any
    ) -> Answer:
        sent = {"Accept-Encoding": "identity", **(headers or {})}
        return await super().__call__(method, path, body, headers=sent, **kwargs)


@pytest.fixture
async def http(server: ApiServer) -> AsyncIterator[Http]:
    http = Plain(server)
    yield http
    await http.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def idle(idle_server: ApiServer) -> AsyncIterator[Http]:
    http = Plain(idle_server)
    yield http
    await http.close()


async def add_shirts(http: Http) -> None:
    assert (await http("POST", CRDS, SHIRT)).code == 201
    await served(http, "/openapi/v3/apis/example.com/v1")


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, part in value.items():
            if key == "$ref" and isinstance(part, str):
                yield part
            else:
                yield from references(part)
    elif isinstance(value, list):
        for part in value:
            yield from references(part)


# v3


@on_module_loop
async def test_the_index_names_a_document_for_every_group_version(idle: Http) -> None:
    paths = (await idle("GET", "/openapi/v3")).json()["paths"]
    assert {"api/v1", "apis/apps/v1", "apis/batch/v1", "apis/apiextensions.k8s.io/v1"} <= set(paths)
    assert {"api", "apis", "apis/apps", "version"} <= set(paths)
    for key, entry in paths.items():
        url, _, tag = entry["serverRelativeURL"].partition("?hash=")
        assert url == f"/openapi/v3/{key}"
        assert len(tag) == 128
        assert tag == tag.upper()
        assert (await idle("GET", entry["serverRelativeURL"])).code == 200


@on_module_loop
async def test_a_document_requested_by_its_hash_may_be_kept_for_ever(idle: Http) -> None:
    url = (await idle("GET", "/openapi/v3")).json()["paths"]["apis/apps/v1"]["serverRelativeURL"]
    answer = await idle("GET", url)
    assert answer.headers["Cache-Control"] == "public, immutable"
    assert answer.headers["Expires"].endswith("GMT")
    assert answer.headers["Vary"] == "Accept"
    tag = answer.headers["ETag"]
    assert tag.strip('"') == url.partition("hash=")[2]
    again = await idle("GET", url, headers={"If-None-Match": tag})
    assert (again.code, again.body) == (304, b"")
    plain = await idle("GET", "/openapi/v3/apis/apps/v1")
    assert plain.json() == answer.json()
    assert "immutable" not in plain.headers["Cache-Control"]
    assert "Expires" not in plain.headers
    stale = await idle("GET", "/openapi/v3/apis/apps/v1?hash=ABC")
    assert (stale.code, stale.headers["Location"]) == (301, url)


@on_module_loop
@cases(
    ("application/json", 200), ("*/*", 200), ("", 200), ("text/html", 406),
    ("application/com.github.proto-openapi.spec.v3@v1.0+protobuf,application/json", 200),
)  # fmt: skip
async def test_v3_is_json(header: str, code: int, idle: Http) -> None:
    answer = await idle("GET", "/openapi/v3/api/v1", headers={"Accept": header})
    assert answer.code == code
    if code == 200:
        assert answer.headers["Content-Type"] == "application/json"
        assert answer.json()["openapi"].startswith("3.0.")


async def test_every_v3_document_is_complete_in_itself(http: Http) -> None:
    await add_shirts(http)
    for key in (await http("GET", "/openapi/v3")).json()["paths"]:
        document = (await http("GET", f"/openapi/v3/{key}")).json()
        assert document["info"]["title"] == "Kubernetes"
        schemas = document.get("components", {}).get("schemas", {})
        for reference in references(document):
            assert reference.startswith("#/components/schemas/"), (key, reference)
            assert reference.removeprefix("#/components/schemas/") in schemas, (key, reference)
        identifiers = [
            operation["operationId"]
            for item in document["paths"].values()
            for method, operation in item.items()
            if method != "parameters"
        ]
        assert len(identifiers) == len(set(identifiers)), key


@cases(
    ("apis/apps/v1", "/apis/apps/v1/namespaces/{namespace}/deployments", ("apps", "v1", "Deployment"),
     "io.k8s.api.apps.v1.Deployment", True),
    ("api/v1", "/api/v1/namespaces", ("", "v1", "Namespace"), "io.k8s.api.core.v1.Namespace", True),
    ("apis/example.com/v1", "/apis/example.com/v1/namespaces/{namespace}/shirts", ("example.com", "v1", "Shirt"),
     "com.example.v1.Shirt", False),
)  # fmt: skip
async def test_what_kubectl_needs_of_a_kind(
    key: str, path: str, gvk: tuple[str, str, str], schema: str, strategic: bool, http: Http
) -> None:
    await add_shirts(http)
    document = (await http("GET", f"/openapi/v3/{key}")).json()
    extension = {"group": gvk[0], "version": gvk[1], "kind": gvk[2]}
    patch = document["paths"][path + "/{name}"]["patch"]
    assert patch["x-kubernetes-group-version-kind"] == extension
    assert {"name": "fieldValidation", "in": "query"}.items() <= next(
        p for p in patch["parameters"] if p["name"] == "fieldValidation"
    ).items()
    media = set(patch["requestBody"]["content"])
    assert {"application/merge-patch+json", "application/json-patch+json", "application/apply-patch+yaml"} <= media
    assert (STRATEGIC in media) is strategic
    collection = document["paths"][path]["get"]
    assert collection["x-kubernetes-group-version-kind"] == extension
    assert collection["x-kubernetes-action"] == "list"
    listed = collection["responses"]["200"]["content"]["application/json"]["schema"]["$ref"]
    assert listed.endswith("List")
    assert extension in document["components"]["schemas"][schema]["x-kubernetes-group-version-kind"]
    assert document["components"]["schemas"][schema]["properties"]["metadata"]


async def test_the_paths_of_a_group_version_are_those_that_are_routed(http: Http) -> None:
    await add_shirts(http)
    batch = (await http("GET", "/openapi/v3/apis/batch/v1")).json()["paths"]
    base, within = "/apis/batch/v1", "namespaces/{namespace}/jobs"
    assert {path for path in batch if "cronjobs" not in path} == {
        f"{base}/", f"{base}/jobs", f"{base}/{within}", f"{base}/{within}/{{name}}", f"{base}/{within}/{{name}}/status",
        f"{base}/watch/jobs", f"{base}/watch/{within}", f"{base}/watch/{within}/{{name}}",
    }  # fmt: skip
    reviews = (await http("GET", "/openapi/v3/apis/authentication.k8s.io/v1")).json()["paths"]
    base = "/apis/authentication.k8s.io/v1"
    assert set(reviews) == {f"{base}/", f"{base}/selfsubjectreviews", f"{base}/tokenreviews"}
    shirts = (await http("GET", "/openapi/v3/apis/example.com/v1")).json()["paths"]
    assert not [path for path in shirts if "/watch/" in path]
    core = (await http("GET", "/openapi/v3/api/v1")).json()["paths"]
    proxied = "/api/v1/namespaces/{namespace}/services/{name}/proxy"
    assert set(core[proxied]) - {"parameters"} == {"get", "put", "post", "delete", "options", "head", "patch"}
    assert set(core[f"{proxied}/{{path}}"]) == set(core[proxied])


@on_module_loop
@cases(
    ("/apis/apps/v1/watch/deployments", "get", "watchAppsV1DeploymentListForAllNamespaces", "watchlist"),
    ("/apis/apps/v1/watch/namespaces/{namespace}/deployments", "get", "watchAppsV1NamespacedDeploymentList",
     "watchlist"),
    ("/apis/apps/v1/watch/namespaces/{namespace}/deployments/{name}", "get", "watchAppsV1NamespacedDeployment",
     "watch"),
    ("/apis/apps/v1/namespaces/{namespace}/deployments", "delete", "deleteAppsV1CollectionNamespacedDeployment",
     "deletecollection"),
    ("/apis/apps/v1/namespaces/{namespace}/deployments", "post", "createAppsV1NamespacedDeployment", "post"),
    ("/apis/apps/v1/namespaces/{namespace}/deployments/{name}/status", "put",
     "replaceAppsV1NamespacedDeploymentStatus", "put"),
    ("/apis/rbac.authorization.k8s.io/v1/clusterroles", "get", "listRbacAuthorizationV1ClusterRole", "list"),
    ("/api/v1/namespaces/{namespace}/pods/{name}/proxy/{path}", "head",
     "connectCoreV1HeadNamespacedPodProxyWithPath", "connect"),
)  # fmt: skip
async def test_operations_have_the_names_that_generated_clients_use(
    path: str, method: str, name: str, action: str, idle: Http
) -> None:
    version = path.removeprefix("/").split("/")[: 2 if path.startswith("/api/") else 3]
    document = (await idle("GET", f"/openapi/v3/{'/'.join(version)}")).json()
    operation = document["paths"][path][method]
    assert (operation["operationId"], operation["x-kubernetes-action"]) == (name, action)


async def test_a_custom_schema_is_published_as_its_crd_has_it_and_removed_with_it(http: Http) -> None:
    await add_shirts(http)
    schemas = (await http("GET", "/openapi/v3/apis/example.com/v1")).json()["components"]["schemas"]
    shirt = schemas["com.example.v1.Shirt"]
    assert shirt["description"] == "Something to wear."
    assert shirt["required"] == ["spec"]
    assert set(shirt["properties"]) == {"apiVersion", "kind", "metadata", "spec", "status"}
    assert shirt["properties"]["spec"]["properties"]["size"]["x-kubernetes-int-or-string"] is True
    assert shirt["properties"]["spec"]["properties"]["colour"]["nullable"] is True
    assert "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta" in schemas
    assert (await http("DELETE", f"{CRDS}/shirts.example.com")).code == 200
    await served(http, "/openapi/v3/apis/example.com/v1", 404)
    assert "apis/example.com/v1" not in (await http("GET", "/openapi/v3")).json()["paths"]


async def test_a_changed_crd_changes_its_hash(http: Http) -> None:
    await add_shirts(http)
    before = (await http("GET", "/openapi/v3")).json()["paths"]
    patch = [{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema/description", "value": "Clothes."}]
    answer = await http("PATCH", f"{CRDS}/shirts.example.com", patch, content_type="application/json-patch+json")
    assert answer.code == 200
    key = "apis/example.com/v1"
    while (after := (await http("GET", "/openapi/v3")).json()["paths"])[key] == before[key]:
        pass
    assert after["apis/apps/v1"] == before["apis/apps/v1"]
    document = (await http("GET", after[key]["serverRelativeURL"])).json()
    assert document["components"]["schemas"]["com.example.v1.Shirt"]["description"] == "Clothes."


# v2


async def test_v2_is_one_complete_document(http: Http) -> None:
    await add_shirts(http)
    answer = await http("GET", "/openapi/v2", headers={"Accept": "application/json"})
    assert answer.headers["Content-Type"] == "application/json"
    tag = hashlib.sha512(answer.body).hexdigest().upper()
    assert answer.headers["ETag"] == f'"{tag}"'
    assert (await http("GET", "/openapi/v2", headers={"If-None-Match": f'"{tag}"'})).code == 304
    document = answer.json()
    assert document["swagger"] == "2.0"
    assert document["info"]["title"] == "Kubernetes"
    for reference in references(document):
        _, part, name = reference.split("/")
        assert name in document[part], reference
    assert document["security"] == [{"BearerToken": []}]
    assert document["securityDefinitions"]["BearerToken"]["in"] == "header"
    deployment = document["definitions"]["io.k8s.api.apps.v1.Deployment"]
    assert deployment["x-kubernetes-group-version-kind"] == [{"group": "apps", "kind": "Deployment", "version": "v1"}]
    containers = document["definitions"]["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]
    assert containers["x-kubernetes-patch-merge-key"] == "name"
    patch = document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"]
    assert STRATEGIC in patch["consumes"]
    shared = [document["parameters"][p["$ref"].rpartition("/")[2]] for p in patch["parameters"] if "$ref" in p]
    assert {"name": "fieldValidation", "in": "query", "type": "string", "uniqueItems": True} in shared
    assert list(patch["responses"]) == ["200", "201", "401"]
    custom = document["paths"]["/apis/example.com/v1/namespaces/{namespace}/shirts/{name}"]["patch"]
    assert STRATEGIC not in custom["consumes"]
    assert custom["x-kubernetes-group-version-kind"] == {"group": "example.com", "kind": "Shirt", "version": "v1"}


async def test_v2_publishes_only_the_kind_of_a_definition_whose_root_preserves_unknown_fields(http: Http) -> None:
    root = {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "description": "Anything."}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": root}}
    spec = {
        "group": "example.com",
        "scope": "Cluster",
        "names": {"plural": "hats", "kind": "Hat"},
        "versions": [version],
    }
    crd = {"metadata": {"name": "hats.example.com"}, "spec": spec}
    assert (await http("POST", CRDS, crd)).code == 201
    await served(http, "/apis/example.com/v1/hats")
    kind = {"group": "example.com", "kind": "Hat", "version": "v1"}
    published = (await http("GET", "/openapi/v2")).json()["definitions"]["com.example.v1.Hat"]
    assert published == {"type": "object", "x-kubernetes-group-version-kind": [kind]}
    own = (await http("GET", "/openapi/v3/apis/example.com/v1")).json()["components"]["schemas"]["com.example.v1.Hat"]
    core = (await http("GET", "/openapi/v3/api/v1")).json()["components"]["schemas"]["io.k8s.api.core.v1.ConfigMap"]
    for key in ("apiVersion", "kind", "metadata"):
        assert own["properties"][key]["description"] == core["properties"][key]["description"] != ""


async def test_v2_says_nothing_of_a_custom_schema_that_old_clients_would_misread(http: Http) -> None:
    await add_shirts(http)
    definitions = (await http("GET", "/openapi/v2")).json()["definitions"]
    spec = definitions["com.example.v1.Shirt"]["properties"]["spec"]["properties"]
    assert "type" not in spec["colour"]
    assert "nullable" not in spec["colour"]
    assert "anyOf" not in spec["size"]
    assert "properties" not in spec["extra"]
    assert spec["tags"] == {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}


@on_module_loop
@cases(
    ("", "application/json"), ("*/*", "application/json"), (V2_ACCEPTED, V2_PROTOBUF), (V2_PROTOBUF, V2_PROTOBUF),
    (f"{V2_ACCEPTED},application/json", V2_PROTOBUF),
)  # fmt: skip
async def test_v2_in_the_form_requested(header: str, media: str, idle: Http) -> None:
    answer = await idle("GET", "/openapi/v2", headers={"Accept": header})
    assert (answer.code, answer.headers["Content-Type"]) == (200, media)


@on_module_loop
async def test_v2_in_another_form_is_a_bare_refusal(idle: Http) -> None:
    answer = await idle("GET", "/openapi/v2", headers={"Accept": "application/yaml"})
    assert (answer.code, answer.body) == (406, b"")


@on_module_loop
async def test_v2_is_compressed_on_request(idle: Http) -> None:
    plain = await idle("GET", "/openapi/v2", headers={"Accept-Encoding": "identity"})
    packed = await idle("GET", "/openapi/v2", headers={"Accept-Encoding": "gzip"})
    assert packed.headers["Content-Encoding"] == "gzip"
    assert zlib.decompress(packed.body, 31) == plain.body


# the protobuf form, read back with nothing but the numbers of its fields


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """(number, value) of one message; fails on anything that is no message."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        assert number > 0
        if wire == 0:
            value, at = _varint(data, at)
            yield number, value
        else:
            assert wire == 2, f"wire type {wire}"
            length, at = _varint(data, at)
            assert at + length <= len(data), "a field runs over the end of its message"
            yield number, data[at : at + length]
            at += length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def every(message: bytes, number: int) -> list[Any]:
    return [value for found, value in fields(message) if found == number]


def one(message: bytes, number: int) -> Any:
    [value] = every(message, number)
    return value


def named(message: bytes, number: int = 1) -> dict[str, bytes]:
    return {one(entry, 1).decode(): one(entry, 2) for entry in every(message, number)}


def extensions(message: bytes, number: int) -> dict[str, Any]:
    return {name: yaml.safe_load(one(value, 2)) for name, value in named(message, number).items()}


def schema_of(message: bytes) -> Any:
    """A Schema message as the JSON it was made from."""
    shown: dict[str, Any] = {}
    texts = {1: "$ref", 2: "format", 4: "description"}
    for number, value in fields(message):
        if number in texts:
            shown[texts[number]] = value.decode()
        elif number == 5:
            shown["default"] = yaml.safe_load(one(value, 2))
        elif number == 19:
            shown.setdefault("required", []).append(value.decode())
        elif number == 20:
            shown.setdefault("enum", []).append(yaml.safe_load(one(value, 2)))
        elif number == 21:
            kind, inner = next(fields(value))
            shown["additionalProperties"] = schema_of(inner) if kind == 1 else bool(inner)
        elif number == 22:
            [shown["type"]] = [text.decode() for text in every(value, 1)]
        elif number == 23:
            [shown["items"]] = [schema_of(inner) for inner in every(value, 1)]
        elif number == 25:
            shown["properties"] = {name: schema_of(inner) for name, inner in named(value).items()}
        else:
            assert number == 31, number
    return shown | extensions(message, 31)


async def test_the_protobuf_form_says_the_same_as_the_json_form(http: Http) -> None:
    await add_shirts(http)
    document = (await http("GET", "/openapi/v2", headers={"Accept": "application/json"})).json()
    message = (await http("GET", "/openapi/v2", headers={"Accept": V2_ACCEPTED})).body
    assert one(message, 1) == b"2.0"
    assert one(one(message, 2), 1) == b"Kubernetes"
    definitions = named(one(message, 9))
    known = {
        "$ref", "format", "description", "default", "required", "enum", "additionalProperties", "type", "items",
        "properties",
    }  # fmt: skip
    for name, schema in document["definitions"].items():
        assert schema_of(definitions[name]) == _only(schema, known), name
    assert set(definitions) == set(document["definitions"])
    paths = named(one(message, 8), 2)
    assert set(paths) == set(document["paths"])
    item = paths["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]
    patch = one(item, 8)
    assert extensions(patch, 13)["x-kubernetes-group-version-kind"] == {
        "group": "apps", "kind": "Deployment", "version": "v1",
    }  # fmt: skip
    assert STRATEGIC.encode() in every(patch, 7)
    shared = named(one(message, 10))
    assert set(shared) == set(document["parameters"])
    queries = [shared[name] for name in referred(every(patch, 8))]
    assert b"fieldValidation" in [one(one(one(query, 2), 3), 4) for query in queries]
    assert {b"query"} == {one(one(one(query, 2), 3), 2) for query in queries}
    kinds = {name.partition("-")[0]: one(shared[name], 2) for name in referred(every(item, 9))}
    assert kinds.keys() == {"name", "namespace", "pretty"}
    assert [one(one(kinds[name], 4), 4) for name in ("name", "namespace")] == [b"name", b"namespace"]
    assert set(named(one(patch, 9))) == {"200", "201", "401"}
    assert list(named(one(message, 12))) == ["BearerToken"]
    assert one(one(named(one(message, 13))["BearerToken"], 2), 2) == b"authorization"


def referred(items: list[bytes]) -> list[str]:
    """The names of the shared parameters among ParametersItems."""
    return [one(reference, 1).decode().rpartition("/")[2] for item in items for reference in every(item, 2)]


def _only(schema: Any, known: set[str]) -> Any:
    """What of a schema has a place in the message."""
    shown = {key: value for key, value in schema.items() if key in known or key.startswith("x-")}
    if "properties" in shown:
        shown["properties"] = {name: _only(value, known) for name, value in shown["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(shown.get(key), dict):
            shown[key] = _only(shown[key], known)
    return shown
