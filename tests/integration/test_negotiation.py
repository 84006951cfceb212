"""What form an answer has: JSON, YAML, Tables, metadata only, indented, compressed; and what is refused."""

from __future__ import annotations

import json
import zlib
from typing import Any

import pytest
import yaml

from karmada.kube.client.client import Client
from karmada.kube.objects.gvrs import CONFIG_MAPS
from karmada.kube.schema.builtin import Definitions
from karmada.kube.schema.protobuf import decode
from tests.integration.streams import CONFIGMAPS, config_map, create, put, revision, served, watching
from tests.support.cases import cases
from tests.support.custom_kinds import definition
from tests.support.wire import Http

on_module_loop = pytest.mark.asyncio(loop_scope="module")

ACCEPTED = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
PROTOBUF = "application/vnd.kubernetes.protobuf"
STREAMS = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
TABLE = (
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
)
PARTIAL = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
METADATA_CLIENT = (
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata{0};g=meta.k8s.io;v=v1,"
    "application/json;as=PartialObjectMetadata{0};g=meta.k8s.io;v=v1,application/json"
)


def accept(text: str) -> dict[str, str]:
    return {"Accept": text}


@cases(
    ("", "application/json"),
    ("*/*", "application/json"),
    ("application/json", "application/json"),
    ("application/yaml", "application/yaml"),
    ("application/yaml;q=0.2, application/json;q=0.9", "application/json"),
    ("application/json;q=0.2, application/yaml;q=0.9", "application/yaml"),
    ("*/*, application/yaml", "application/yaml"),
    ("application/vnd.kubernetes.protobuf,application/json", PROTOBUF),
    ("application/vnd.kubernetes.protobuf, */*", PROTOBUF),
    ("application/json, application/vnd.kubernetes.protobuf", "application/json"),
    ("application/cbor, application/json;q=0.9", "application/json"),
    ("application/json;as=Unicorn;g=meta.k8s.io;v=v1,application/yaml", "application/yaml"),
    ("application/json;as=Table;g=meta.k8s.io;v=v7,application/json", "application/json"),
    ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "application/json"),
)
async def test_the_best_form_that_client_and_server_share(header: str, media: str, http: Http) -> None:
    await create(http, "a", x="y")
    for path in (f"{CONFIGMAPS}/a", CONFIGMAPS):
        answer = await http("GET", path, headers=accept(header))
        assert (answer.code, answer.headers["Content-Type"]) == (200, media)
        assert parsed(answer.body, media)["kind"] in ("ConfigMap", "ConfigMapList")


def parsed(body: bytes, media: str) -> Any:
    if media == PROTOBUF:
        return decode(body, Definitions.load())[2]
    return yaml.safe_load(body) if media.endswith("yaml") else json.loads(body)


@cases(
    (f"{CONFIGMAPS}/a", "application/json;q=0"),
    (f"{CONFIGMAPS}/a", "application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1"),
    (f"{CONFIGMAPS}/a", "application/json;stream=logs"),
    (CONFIGMAPS, "application/json;as=Unicorn;g=meta.k8s.io;v=v1"),
    (CONFIGMAPS, "application/json;as=Table;g=example.com;v=v1"),
    (CONFIGMAPS, "application/json;as=Table"),
    ("/apis", "text/html"),
)
async def test_a_form_that_the_endpoint_lacks_is_not_acceptable(path: str, header: str, http: Http) -> None:
    await create(http, "a")
    answer = await http("GET", path, headers=accept(header))
    status = answer.json()
    assert (answer.code, status["reason"], answer.headers["Content-Type"]) == (406, "NotAcceptable", "application/json")
    assert status["message"] == f"only the following media types are accepted: {ACCEPTED}"
    assert "details" not in status


@on_module_loop
@pytest.mark.parametrize("header", ["text/html", "application/cbor", "application/*", "text/plain;q=0.5, image/png"])
@pytest.mark.parametrize(
    ("path", "produced"),
    [
        (f"{CONFIGMAPS}/a", ACCEPTED),
        (CONFIGMAPS, f"{ACCEPTED}, {STREAMS}"),
        (f"{CONFIGMAPS}?watch=1", f"{ACCEPTED}, {STREAMS}"),
        ("/api/v1", ACCEPTED),
        ("/version", "application/json"),
    ],
)
async def test_a_media_type_that_no_route_produces_is_refused_before_any_handler(
    idle: Http, path: str, produced: str, header: str
) -> None:
    status = (await idle("GET", path, headers=accept(header))).json()
    assert status["message"] == f"406: Not Acceptable\n\nAvailable representations: {produced}"
    assert (status["code"], status["reason"], status["details"]) == (406, "NotAcceptable", {})


@cases(
    (CONFIGMAPS, PARTIAL, "PartialObjectMetadata, but the requested object is a list (*core.ConfigMapList)"),
    (f"{CONFIGMAPS}/a", PARTIAL_LIST,
     "PartialObjectMetadataList, but the requested object is not a list (*core.ConfigMap)"),
    ("/apis/apps/v1/deployments", f"{PARTIAL},application/json",
     "PartialObjectMetadata, but the requested object is a list (*apps.DeploymentList)"),
    ("/apis/events.k8s.io/v1/events", PARTIAL,
     "PartialObjectMetadata, but the requested object is a list (*core.EventList)"),
)  # fmt: skip
async def test_metadata_of_lists_and_of_objects_are_different_forms(
    path: str, header: str, message: str, http: Http
) -> None:
    await create(http, "a")
    answer = await http("GET", path, headers=accept(header))
    assert (answer.code, answer.json()["message"]) == (406, f"you requested {message}")


@on_module_loop
async def test_a_watch_in_yaml_is_not_acceptable(idle: Http) -> None:
    answer = await idle("GET", f"{CONFIGMAPS}?watch=1", headers=accept("application/yaml,application/json"))
    status = yaml.safe_load(answer.body)
    assert (answer.code, status["message"]) == (406, f"only the following media types are accepted: {STREAMS}")


@on_module_loop
@cases(
    ("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "SelfSubjectAccessReview",
     {"resourceAttributes": {"verb": "get", "resource": "pods"}}),
    ("/apis/authentication.k8s.io/v1/tokenreviews", "TokenReview", {"token": "x"}),
    ("/api/v1/namespaces/default/serviceaccounts/default/token", "TokenRequest", {}),
)  # fmt: skip
async def test_what_cannot_be_read_has_no_table(path: str, kind: str, spec: Any, idle: Http) -> None:
    table_only = accept("application/json;as=Table;v=v1;g=meta.k8s.io")
    answer = await idle("POST", path, {"kind": kind, "spec": spec}, headers=table_only)
    assert answer.code == 406
    assert answer.json()["message"] == f"only the following media types are accepted: {ACCEPTED}"
    plain = await idle("POST", path, {"kind": kind, "spec": spec}, headers=accept(TABLE))
    assert (plain.code, plain.json()["kind"]) == (201, kind)


@on_module_loop
@pytest.mark.parametrize("media", ["application/yaml", PROTOBUF])
@pytest.mark.parametrize(
    ("path", "code", "anonymous"),
    [(f"{CONFIGMAPS}/none", 404, False), ("/api/v9", 404, False), (f"{CONFIGMAPS}?limit=x", 400, False),
     (CONFIGMAPS, 403, True)],
)  # fmt: skip
async def test_errors_come_in_the_form_that_the_client_accepts(
    idle: Http, media: str, path: str, code: int, anonymous: bool
) -> None:
    as_json = (await idle("GET", path, anonymous=anonymous)).json()
    answer = await idle("GET", path, headers=accept(media), anonymous=anonymous)
    assert (answer.code, answer.headers["Content-Type"]) == (code, media)
    assert without_empty(parsed(answer.body, media)) == without_empty(as_json)


def without_empty(status: Any) -> Any:
    return {key: value for key, value in status.items() if value != {}}


@on_module_loop
async def test_an_error_is_not_hidden_behind_a_header_that_cannot_be_served(idle: Http) -> None:
    answer = await idle("GET", CONFIGMAPS, headers=accept("text/html"), anonymous=True)
    assert (answer.code, answer.headers["Content-Type"]) == (403, "application/json")
    answer = await idle("GET", f"{CONFIGMAPS}/none", headers=accept(TABLE.partition(",")[0]))
    assert (answer.code, answer.json()["kind"]) == (404, "Status")


async def test_nothing_is_written_when_the_answer_would_not_be_acceptable(http: Http) -> None:
    answer = await http("POST", CONFIGMAPS, config_map("a"), headers=accept("text/html"))
    assert answer.code == 406
    assert (await http("GET", f"{CONFIGMAPS}/a")).code == 404
    await create(http, "b", x="1")
    assert (await http("PUT", f"{CONFIGMAPS}/b", config_map("b", x="2"), headers=accept("text/html"))).code == 406
    assert (await http("DELETE", f"{CONFIGMAPS}/b", headers=accept("text/html"))).code == 406
    assert (await http("GET", f"{CONFIGMAPS}/b")).json()["data"] == {"x": "1"}


async def test_yaml_says_the_same_as_json(http: Http) -> None:
    await create(http, "a", text="yes", number="007", lines="one\ntwo\n")
    for path in (f"{CONFIGMAPS}/a", f"{CONFIGMAPS}?fieldSelector=metadata.name%3Da"):
        as_json = (await http("GET", path)).json()
        as_yaml = yaml.safe_load((await http("GET", path, headers=accept("application/yaml"))).body)
        assert json.loads(json.dumps(as_yaml, default=str)) == as_json
    made = await http("POST", CONFIGMAPS, config_map("b"), headers=accept("application/yaml"))
    assert (made.code, made.headers["Content-Type"]) == (201, "application/yaml")


# Tables


def cells(table: Any) -> list[dict[str, Any]]:
    names = [column["name"] for column in table["columnDefinitions"]]
    return [dict(zip(names, row["cells"], strict=True)) for row in table["rows"]]


async def test_a_list_as_a_table(http: Http) -> None:
    await create(http, "a", labels={"mine": "1"}, x="1", y="2")
    await create(http, "b", labels={"mine": "1"})
    answer = await http("GET", f"{CONFIGMAPS}?labelSelector=mine&limit=1", headers=accept(TABLE))
    table = answer.json()
    assert answer.headers["Content-Type"] == "application/json"
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert set(table["metadata"]) == {"resourceVersion", "continue"}
    assert [(c["name"], c["type"], c["format"], c["priority"]) for c in table["columnDefinitions"]] == [
        ("Name", "string", "name", 0), ("Data", "string", "", 0), ("Age", "string", "", 0),
    ]  # fmt: skip
    assert all(column["description"] for column in table["columnDefinitions"])
    [row] = table["rows"]
    assert row["cells"][:2] == ["a", 2]
    partial = row["object"]
    assert (partial["kind"], partial["apiVersion"]) == ("PartialObjectMetadata", "meta.k8s.io/v1")
    assert partial["metadata"]["labels"] == {"mine": "1"}
    assert set(partial) == {"kind", "apiVersion", "metadata"}
    more = f"{CONFIGMAPS}?labelSelector=mine&limit=1&continue={table['metadata']['continue']}"
    assert [row["Name"] for row in cells((await http("GET", more, headers=accept(TABLE))).json())] == ["b"]


@cases(CONFIGMAPS + "?labelSelector=mine", CONFIGMAPS + "/a?")
async def test_a_row_carries_as_much_of_the_object_as_requested(path: str, http: Http) -> None:
    await create(http, "a", labels={"mine": "1"}, x="1")
    shown = {}
    for include in ("None", "Metadata", "Object", ""):
        [row] = (await http("GET", f"{path}&includeObject={include}", headers=accept(TABLE))).json()["rows"]
        shown[include] = row.get("object")
    assert shown["None"] is None
    assert shown["Metadata"]["kind"] == shown[""]["kind"] == "PartialObjectMetadata"
    assert shown["Object"]["data"] == {"x": "1"}
    assert (shown["Object"]["kind"], shown["Object"]["apiVersion"]) == ("ConfigMap", "v1")
    refused = await http("GET", f"{path}&includeObject=Half", headers=accept(TABLE))
    assert (refused.code, refused.json()["reason"]) == (400, "BadRequest")


async def test_a_single_object_as_a_table_of_one_row(http: Http) -> None:
    made = await create(http, "a", x="1")
    table = (await http("GET", f"{CONFIGMAPS}/a", headers=accept(TABLE))).json()
    assert table["metadata"] == {"resourceVersion": made["metadata"]["resourceVersion"]}
    assert [row["Name"] for row in cells(table)] == ["a"]


async def test_an_older_client_gets_the_older_version_of_a_table(http: Http) -> None:
    await create(http, "a")
    old = "application/json;g=meta.k8s.io;v=v1beta1;as=Table, application/json"
    table = (await http("GET", f"{CONFIGMAPS}/a", headers=accept(old))).json()
    assert table["apiVersion"] == "meta.k8s.io/v1beta1"
    assert table["rows"][0]["object"]["apiVersion"] == "meta.k8s.io/v1beta1"


async def test_a_watch_as_tables_names_the_columns_once(http: Http) -> None:
    await create(http, "a", labels={"mine": "1"}, x="1")
    path = f"{CONFIGMAPS}?watch=1&labelSelector=mine"
    async with watching(http, path, accept(TABLE)) as events:
        first = await events.next()
        assert (first["type"], first["object"]["kind"]) == ("ADDED", "Table")
        assert [column["name"] for column in first["object"]["columnDefinitions"]] == ["Name", "Data", "Age"]
        assert first["object"]["rows"][0]["cells"][:2] == ["a", 1]
        changed = await put(http, "a", labels={"mine": "1"}, x="1", y="2")
        second = await events.next()
        assert second["type"] == "MODIFIED"
        assert not second["object"]["columnDefinitions"]
        assert second["object"]["rows"][0]["cells"][:2] == ["a", 2]
        assert second["object"]["metadata"]["resourceVersion"] == changed["metadata"]["resourceVersion"]
        await http("DELETE", f"{CONFIGMAPS}/a")
        assert (await events.next())["type"] == "DELETED"


@on_module_loop
@cases(
    ("/api/v1/pods", "Name Ready Status Restarts Age IP Node|Nominated Node|Readiness Gates"),
    ("/apis/apps/v1/deployments", "Name Ready Up-to-date Available Age Containers Images Selector"),
    ("/apis/batch/v1/jobs", "Name Status Completions Duration Age Containers Images Selector"),
    ("/apis/autoscaling/v1/horizontalpodautoscalers", "Name Reference Targets MinPods MaxPods Replicas Age"),
    ("/apis/autoscaling/v2/horizontalpodautoscalers", "Name Reference Targets MinPods MaxPods Replicas Age"),
    ("/api/v1/nodes", "Name Status Roles Age Version Internal-IP External-IP OS-Image Kernel-Version"
     " Container-Runtime"),
    ("/api/v1/events", "Last Seen|Type Reason Object Subobject Source Message First Seen|Count Name"),
    ("/apis/events.k8s.io/v1/events", "Last Seen|Type Reason Object Subobject Source Message First Seen|Count"
     " Name"),
    ("/apis/rbac.authorization.k8s.io/v1/clusterroles", "Name Created At"),
    ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "Name Created At"),
)  # fmt: skip
async def test_the_columns_of_some_kinds(path: str, columns: str, idle: Http) -> None:
    table = (await idle("GET", path, headers=accept(TABLE))).json()
    words = columns.replace("|", " ").split()
    assert " ".join(column["name"] for column in table["columnDefinitions"]).split() == words


async def test_a_scale_has_a_table_of_its_own(http: Http) -> None:
    deployment = {
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        },
    }
    path = "/apis/apps/v1/namespaces/default/deployments"
    assert (await http("POST", path, deployment)).code == 201
    table = (await http("GET", f"{path}/web/scale", headers=accept(TABLE))).json()
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Desired", "Available", "Age"]
    assert table["rows"][0]["cells"][:3] == ["web", 3, 0]
    partial = (await http("GET", f"{path}/web/scale", headers=accept(PARTIAL))).json()
    assert (partial["kind"], partial["metadata"]["name"]) == ("PartialObjectMetadata", "web")


async def test_a_deletion_requested_as_a_table_still_answers_its_status(http: Http) -> None:
    await create(http, "a")
    answer = await http("DELETE", f"{CONFIGMAPS}/a", headers=accept(TABLE))
    assert (answer.code, answer.json()["kind"], answer.json()["status"]) == (200, "Status", "Success")


# Metadata only


async def test_metadata_only_of_objects_lists_and_watches(http: Http) -> None:
    made = await create(http, "a", labels={"mine": "1"}, x="1")
    answer = await http("GET", f"{CONFIGMAPS}/a", headers=accept(METADATA_CLIENT.format("")))
    assert answer.headers["Content-Type"] == PROTOBUF
    shown = (await http("GET", f"{CONFIGMAPS}/a", headers=accept(PARTIAL))).json()
    expected = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": made["metadata"]}
    assert shown == expected
    path = f"{CONFIGMAPS}?labelSelector=mine&limit=1"
    listed = (await http("GET", path, headers=accept(PARTIAL_LIST))).json()
    assert (listed["kind"], listed["apiVersion"]) == ("PartialObjectMetadataList", "meta.k8s.io/v1")
    assert listed["items"] == [expected]
    assert revision(listed) >= revision(made)
    query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    async with watching(http, f"{CONFIGMAPS}?{query}&labelSelector=mine", accept(PARTIAL)) as events:
        assert await events.next() == {"type": "ADDED", "object": expected}
        bookmark = await events.next()
        assert bookmark["type"] == "BOOKMARK"
        assert bookmark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


async def test_an_error_in_a_transformed_watch_is_a_plain_status(http: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("karmada.kube.server.handlers.reads.FRESHNESS_SECONDS", 0.05)
    for form in (PARTIAL, TABLE):
        query = "watch=1&resourceVersion=99999999&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
        async with watching(http, f"{CONFIGMAPS}?{query}", accept(form)) as events:
            [event] = await events.rest()
        assert (event["type"], event["object"]["kind"]) == ("ERROR", "Status")


async def test_patches_and_creates_answer_in_the_form_requested(http: Http) -> None:
    made = (await http("POST", CONFIGMAPS, config_map("a"), headers=accept(PARTIAL))).json()
    assert made["kind"] == "PartialObjectMetadata"
    patch = {"metadata": {"labels": {"x": "y"}}}
    answer = await http(
        "PATCH", f"{CONFIGMAPS}/a", patch, headers=accept(PARTIAL), content_type="application/merge-patch+json"
    )
    assert answer.json()["metadata"]["labels"] == {"x": "y"}
    assert set(answer.json()) == {"kind", "apiVersion", "metadata"}


# Indented and compressed


@cases(
    ("", "kubectl/v1.36.0", False),
    ("?pretty=1", "kubectl/v1.36.0", True),
    ("?pretty=true", "kubectl/v1.36.0", True),
    ("?pretty=false", "curl/8.0", False),
    ("", "curl/8.0", True),
    ("", "Wget/1.21", True),
    ("", "Mozilla/5.0 (X11)", True),
)
async def test_json_is_indented_for_people(query: str, agent: str, indented: bool, http: Http) -> None:
    await create(http, "a")
    for path in (f"{CONFIGMAPS}/a", CONFIGMAPS, f"{CONFIGMAPS}/missing", "/version", "/api/v1", "/apis"):
        body = (await http("GET", path + query, headers={"User-Agent": agent})).body
        assert body.startswith(b'{\n  "') is indented, path


async def test_only_large_answers_are_compressed_and_only_on_request(http: Http, client: Client) -> None:
    await client.create(CONFIG_MAPS, config_map("small", x="y" * 100_000), namespace="default")
    await client.create(CONFIG_MAPS, config_map("large", x="y" * 140_000), namespace="default")
    requested = {"Accept-Encoding": "gzip"}
    small = await http("GET", f"{CONFIGMAPS}/small", headers=requested)
    assert "Content-Encoding" not in small.headers
    plain = await http("GET", f"{CONFIGMAPS}/large", headers={"Accept-Encoding": "identity"})
    assert "Content-Encoding" not in plain.headers
    for path in (f"{CONFIGMAPS}/large", CONFIGMAPS):
        packed = await http("GET", path, headers=requested)
        assert packed.headers["Content-Encoding"] == "gzip"
        assert len(packed.body) < 20_000
        whole = await http("GET", path, headers={"Accept-Encoding": "identity"})
        assert json.loads(zlib.decompress(packed.body, 31)) == whole.json()
    changed: dict[str, Any] = {"x": "z" * 140_000}
    answer = await http("PUT", f"{CONFIGMAPS}/large", config_map("large", **changed), headers=requested)
    assert "Content-Encoding" not in answer.headers


async def test_every_answer_carries_the_usual_headers(http: Http) -> None:
    for path in (CONFIGMAPS, f"{CONFIGMAPS}/missing", "/version", "/nowhere"):
        headers = (await http("GET", path)).headers
        assert headers["Cache-Control"] == "no-cache, private"
        assert len(headers["Audit-Id"]) == 36
        assert headers["Date"].endswith("GMT")
        assert headers["X-Kubernetes-Pf-Flowschema-Uid"]
        assert headers["X-Kubernetes-Pf-Prioritylevel-Uid"]


# Routing


async def test_head_is_for_pages_and_not_for_built_in_resources(http: Http) -> None:
    await create(http, "a")
    for path in ("/apis", "/healthz"):
        got, head = await http("GET", path), await http("HEAD", path)
        assert (head.code, head.body) == (200, b"")
        assert head.headers["Content-Type"] == got.headers["Content-Type"]
    for path in (f"{CONFIGMAPS}/a", CONFIGMAPS, f"{CONFIGMAPS}/missing", f"{CONFIGMAPS}?watch=1"):
        assert (await http("HEAD", path)).code == 405, path


@on_module_loop
@cases(
    "/nowhere", "/apis/nothing.io", "/apis/nothing.io/v1", "/apis/nothing.io/v1/things", "/openapi/v4",
    "/openapi/v3/apis/nothing.io/v1", "/healthz/unicorn", "/swagger.json", "/debug/pprof",
)  # fmt: skip
async def test_a_path_outside_every_group_is_a_plain_page(path: str, idle: Http) -> None:
    answer = await idle("GET", path)
    assert (answer.code, answer.body) == (404, b"404 page not found\n")
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"


@cases(
    "/api/v1/unicorns", "/api/v1/namespaces/default/unicorns", "/apis/apps/v1/namespaces/default/unicorns/x",
    "/api/v2", "/api/v2/pods", "/apis/apps/v9", "/apis/apps/v9/deployments",
    "/apis/apps/v9/namespaces/x/deployments/y", "/api/v1/pods/p", "/api/v1/configmaps/a/status",
    "/api/v1/namespaces/default/configmaps/a/unicorn", "/apis/apps/v1/pods",
)  # fmt: skip
async def test_an_unknown_path_of_a_group_of_built_in_kinds_is_a_status(path: str, http: Http) -> None:
    await create(http, "a")
    answer = await http("GET", path)
    assert answer.code == 404
    assert answer.json() == {
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "the server could not find the requested resource", "reason": "NotFound", "details": {},
        "code": 404,
    }  # fmt: skip


@on_module_loop
@cases(
    ("PUT", CONFIGMAPS), ("PATCH", CONFIGMAPS), ("POST", f"{CONFIGMAPS}/a"),
    ("POST", "/api/v1/configmaps"), ("DELETE", "/api/v1/configmaps"),
    ("DELETE", "/api/v1/namespaces"), ("PUT", "/api/v1/namespaces"),
    ("GET", "/apis/authorization.k8s.io/v1/subjectaccessreviews"),
    ("GET", "/apis/authentication.k8s.io/v1/tokenreviews"),
    ("DELETE", "/apis/apps/v1/namespaces/default/deployments/x/status"),
    ("OPTIONS", CONFIGMAPS),
)  # fmt: skip
async def test_a_method_a_resource_does_not_know_is_refused(method: str, path: str, idle: Http) -> None:
    answer = await idle(method, path, {} if method != "GET" else None)
    status = answer.json()
    assert (answer.code, status["reason"], status["code"]) == (405, "MethodNotAllowed", 405)
    assert status["message"] == "the server does not allow this method on the requested resource"


async def test_only_lists_and_watches_reach_over_all_namespaces(http: Http) -> None:
    crd = definition("example.com", "Gadget")
    assert (await http("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)).code == 201
    await served(http, "/apis/example.com/v1/gadgets")
    body = {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "x"}}
    assert (await http("POST", "/apis/example.com/v1/gadgets", body)).code == 404
    assert (await http("GET", "/apis/example.com/v1/gadgets/x")).code == 404
    assert (await http("GET", "/api/v1/configmaps/x")).code == 404
    reviews = "/apis/authorization.k8s.io/v1/localsubjectaccessreviews"
    assert (await http("POST", reviews, {"spec": {"user": "ann"}})).code == 404


@on_module_loop
async def test_nobody_learns_which_paths_exist_without_rights(idle: Http) -> None:
    for path in ("/nowhere", "/api/v1", "/apis/nothing.io/v1", "/openapi/v2", "/metrics", "/"):
        answer = await idle("GET", path, anonymous=True)
        status = answer.json()
        assert (answer.code, status["reason"]) == (403, "Forbidden")
        assert status["message"] == f'forbidden: User "system:anonymous" cannot get path "{path}"'
    answer = await idle("GET", "/api/v1/unicorns", anonymous=True)
    assert answer.code == 403
    assert answer.json()["message"] == (
        'unicorns is forbidden: User "system:anonymous" cannot list resource "unicorns" in API group "" at the cluster'
        " scope"
    )
    assert answer.json()["details"] == {"kind": "unicorns"}
    for path in ("/version", "/healthz", "/livez", "/readyz", "/healthz/ping"):
        assert (await idle("GET", path, anonymous=True)).code == 200, path


async def test_a_list_of_one_name_is_allowed_to_who_may_list_that_name(http: Http) -> None:
    rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "watch"], "resourceNames": ["a"]}
    role = {"metadata": {"name": "one"}, "rules": [rule]}
    subject = {"kind": "User", "name": "ann", "apiGroup": "rbac.authorization.k8s.io"}
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "one"}
    binding = {"metadata": {"name": "one"}, "roleRef": ref, "subjects": [subject]}
    assert (await http("POST", f"{rbac}/roles", role)).code == 201
    assert (await http("POST", f"{rbac}/rolebindings", binding)).code == 201
    ann = {"Impersonate-User": "ann"}
    for query, code in (
        ("?fieldSelector=metadata.name%3Da", 200), ("?fieldSelector=metadata.name%3Db&watch=1", 403),
        ("?fieldSelector=metadata.name%3Db", 403), ("", 403),
    ):  # fmt: skip
        assert (await http("GET", CONFIGMAPS + query, headers=ann)).code == code, query
    await create(http, "a")
    async with watching(http, f"{CONFIGMAPS}?watch=1&fieldSelector=metadata.name%3Da", ann) as events:
        assert (await events.next())["object"]["metadata"]["name"] == "a"


@on_module_loop
@cases(
    (f"{CONFIGMAPS}/none", 'configmaps "none" not found', {"name": "none", "kind": "configmaps"}),
    ("/apis/apps/v1/namespaces/default/deployments/none", 'deployments.apps "none" not found',
     {"name": "none", "group": "apps", "kind": "deployments"}),
    ("/api/v1/namespaces/none", 'namespaces "none" not found', {"name": "none", "kind": "namespaces"}),
)  # fmt: skip
async def test_a_missing_object(path: str, message: str, details: dict[str, str], idle: Http) -> None:
    answer = await idle("GET", path)
    assert answer.code == 404
    assert answer.json() == {
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
        "reason": "NotFound", "details": details, "code": 404,
    }  # fmt: skip
