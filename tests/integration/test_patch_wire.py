"""PATCH over the wire: JSON, merge and strategic merge patches, their errors, and that none is lost."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from karmada.kube.server.app import ApiServer
from tests.integration.samples import (
    CONFIGMAPS,
    DEPLOYMENTS,
    JSON_PATCH,
    MERGE,
    SERVICES,
    STRATEGIC,
    WIDGETS,
    configmap,
    crd,
    deployment,
    install,
    interleave,
    ok,
    patch,
    quiet_revision,
    refused,
    revision,
    widget,
)
from tests.support.cases import cases
from tests.support.wire import Http

REJECTED = "the server rejected our request due to an error in our request"
STALE = "the object has been modified; please apply your changes to the latest version and try again"


async def test_a_json_patch_adds_tests_moves_and_removes(http: Http) -> None:
    ok(await http("POST", CONFIGMAPS, configmap(data={"a": "1", "b": "2"})), 201)
    ops = [
        {"op": "test", "path": "/data/a", "value": "1"},
        {"op": "add", "path": "/data/x~1y", "value": "3"},
        {"op": "move", "from": "/data/a", "path": "/data/m"},
        {"op": "copy", "from": "/data/b", "path": "/data/c"},
        {"op": "remove", "path": "/data/b"},
    ]
    # A key with a slash is no key of a ConfigMap: the whole patch is refused by validation.
    refused(await patch(http, f"{CONFIGMAPS}/c", ops, JSON_PATCH), 422, "Invalid", "data[x/y]: Invalid value")
    ops[1]["path"] = "/data/x"
    assert ok(await patch(http, f"{CONFIGMAPS}/c", ops, JSON_PATCH))["data"] == {"m": "1", "c": "2", "x": "3"}


@cases(
    [{"op": "remove", "path": "/data/missing"}],
    [{"op": "add", "path": "", "value": {}}],
    [{"op": "test", "path": "/data/a", "value": "other"}],
    [{"op": "replace", "path": "/data/a", "value": "2"}, {"op": "test", "path": "/data/a", "value": "1"}],
    [{"op": "add", "path": "/nowhere/at/all", "value": 1}],
)
async def test_a_json_patch_that_fails_anywhere_changes_nothing(ops: list[Any], http: Http) -> None:
    ok(await http("POST", CONFIGMAPS, configmap()), 201)
    before = await revision(http)
    status = refused(await patch(http, f"{CONFIGMAPS}/c", ops, JSON_PATCH), 422, "Invalid")
    assert status["message"] == REJECTED
    assert not status.get("details")
    assert await revision(http) == before


async def test_a_json_patch_of_too_many_operations_is_refused(http: Http) -> None:
    ok(await http("POST", CONFIGMAPS, configmap()), 201)
    one = {"op": "test", "path": "/data/a", "value": "1"}
    ok(await patch(http, f"{CONFIGMAPS}/c", [one] * 10_000, JSON_PATCH))
    status = refused(await patch(http, f"{CONFIGMAPS}/c", [one] * 10_001, JSON_PATCH), 413, "RequestEntityTooLarge")
    assert status["message"] == "The allowed maximum operations in a JSON patch is 10000, got 10001"


NO_PATCHES: list[tuple[str, bytes]] = [
    (JSON_PATCH, b"{not json"),
    (JSON_PATCH, b'{"op":"add"}'),
    (JSON_PATCH, b'[{"op":"frobnicate","path":"/data/a"}]'),
    (JSON_PATCH, b"[1]"),
    (JSON_PATCH, b'[{"op":"add","path":7,"value":1}]'),
    (MERGE, b"[1,2]"),
    (MERGE, b'"text"'),
    (MERGE, b"null"),
    (MERGE, b"{"),
    (MERGE, b""),
    (STRATEGIC, b"[]"),
    (STRATEGIC, b"\xff\xfe"),
]


async def test_a_patch_that_is_no_patch_is_a_bad_request(http: Http) -> None:
    ok(await http("POST", CONFIGMAPS, configmap()), 201)
    before = await quiet_revision(http)
    for kind, body in NO_PATCHES:
        answer = await patch(http, f"{CONFIGMAPS}/c", body, kind)
        assert answer.code in (400, 422), (kind, body, answer.body)
        assert await revision(http) == before, (kind, body)


async def test_a_merge_patch_merges_objects_and_null_deletes(http: Http) -> None:
    ok(await http("POST", DEPLOYMENTS, deployment(labels={"a": "1", "b": "2"})), 201)
    change = {"metadata": {"labels": {"a": None, "c": "3"}}, "spec": {"replicas": 7}}
    patched = ok(await patch(http, f"{DEPLOYMENTS}/web", change))
    assert (patched["metadata"]["labels"], patched["spec"]["replicas"]) == ({"b": "2", "c": "3"}, 7)
    lists = {"spec": {"template": {"spec": {"containers": [{"name": "n", "image": "i:1"}]}}}}
    patched = ok(await patch(http, f"{DEPLOYMENTS}/web", lists))
    assert [c["name"] for c in patched["spec"]["template"]["spec"]["containers"]] == ["n"]
    assert patched["spec"]["template"]["spec"]["containers"][0]["imagePullPolicy"] == "IfNotPresent"


async def test_null_brings_the_default_back(http: Http) -> None:
    ok(await http("POST", DEPLOYMENTS, deployment(replicas=5)), 201)
    assert ok(await patch(http, f"{DEPLOYMENTS}/web", {"spec": {"replicas": None}}))["spec"]["replicas"] == 1


async def test_a_strategic_patch_merges_lists_by_key(http: Http) -> None:
    ok(await http("POST", DEPLOYMENTS, deployment()), 201)
    containers = [{"name": "side", "image": "s:1"}, {"name": "c", "image": "nginx:2"}]
    change = {"spec": {"template": {"spec": {"containers": containers}}}}
    patched = ok(await patch(http, f"{DEPLOYMENTS}/web", change, STRATEGIC))
    found = patched["spec"]["template"]["spec"]["containers"]
    assert {c["name"]: c["image"] for c in found} == {"c": "nginx:2", "side": "s:1"}
    gone = {"spec": {"template": {"spec": {"containers": [{"name": "side", "$patch": "delete"}]}}}}
    patched = ok(await patch(http, f"{DEPLOYMENTS}/web", gone, STRATEGIC))
    assert [c["name"] for c in patched["spec"]["template"]["spec"]["containers"]] == ["c"]


async def test_a_strategic_patch_keeps_to_its_directives(http: Http) -> None:
    ok(await http("POST", DEPLOYMENTS, deployment(labels={"old": "1"})), 201)
    order = {
        "spec": {
            "template": {
                "spec": {
                    "$setElementOrder/containers": [{"name": "b"}, {"name": "c"}],
                    "containers": [{"name": "b", "image": "b:1"}],
                }
            }
        }
    }
    patched = ok(await patch(http, f"{DEPLOYMENTS}/web", order, STRATEGIC))
    assert [c["name"] for c in patched["spec"]["template"]["spec"]["containers"]] == ["b", "c"]
    retain = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    assert ok(await patch(http, f"{DEPLOYMENTS}/web", retain, STRATEGIC))["spec"]["strategy"] == {"type": "Recreate"}
    replaced = {"metadata": {"labels": {"$patch": "replace", "only": "this"}}}
    patched = ok(await patch(http, f"{DEPLOYMENTS}/web", replaced, STRATEGIC))
    assert patched["metadata"]["labels"] == {"only": "this"}
    held = {"metadata": {"finalizers": ["example.io/a", "example.io/b"]}}
    ok(await patch(http, f"{DEPLOYMENTS}/web", held, STRATEGIC))
    less = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.io/a"]}}
    patched = ok(await patch(http, f"{DEPLOYMENTS}/web", less, STRATEGIC))
    assert patched["metadata"]["finalizers"] == ["example.io/b"]


@cases(
    ({"spec": {"$patch": "shrink"}}, 500, "unknown patch type"),
    (
        {"spec": {"template": {"spec": {"containers": [{"image": "x"}]}}}},
        500,
        "does not contain declared merge key: name",
    ),
    ({"spec": {"strategy": {"$retainKeys": ["type"], "rollingUpdate": {}}}}, 400, "retainKeys"),
)
async def test_a_strategic_patch_that_makes_no_sense_changes_nothing(
    change: Any, code: int, text: str, http: Http
) -> None:
    ok(await http("POST", DEPLOYMENTS, deployment()), 201)
    before = await revision(http)
    answer = await patch(http, f"{DEPLOYMENTS}/web", change, STRATEGIC)
    status = refused(answer, code, "" if code == 500 else "BadRequest")
    assert text in status["message"]
    assert await revision(http) == before


@cases(STRATEGIC, "application/json", "text/plain", "application/apply-patch+cbor", "")
async def test_custom_resources_take_three_sorts_of_patches(kind: str, http: Http) -> None:
    await install(http, crd())
    ok(await http("POST", WIDGETS, widget()), 201)
    status = refused(await patch(http, f"{WIDGETS}/w", {}, kind), 415, "UnsupportedMediaType")
    assert status["message"] == (
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    )


async def test_built_in_kinds_take_four_sorts_of_patches(http: Http) -> None:
    ok(await http("POST", CONFIGMAPS, configmap()), 201)
    for kind in ("application/json", "text/plain", "application/apply-patch+cbor"):
        answer = await patch(http, f"{CONFIGMAPS}/c", {}, kind)
        status = refused(answer, 415, "UnsupportedMediaType", "415: Unsupported Media Type")
        assert status["details"] == {}
    for kind in (MERGE, STRATEGIC):
        ok(await patch(http, f"{CONFIGMAPS}/c", {}, kind))
    ok(await patch(http, f"{CONFIGMAPS}/c", [], JSON_PATCH))
    applied = {"apiVersion": "v1", "kind": "ConfigMap"}
    ok(await patch(http, f"{CONFIGMAPS}/c?fieldManager=me", applied, "application/apply-patch+yaml"))


@cases(MERGE, STRATEGIC, JSON_PATCH)
async def test_what_does_not_exist_cannot_be_patched(kind: str, http: Http) -> None:
    body: Any = [] if kind == JSON_PATCH else {"data": {}}
    refused(await patch(http, f"{CONFIGMAPS}/ghost", body, kind), 404, "NotFound", 'configmaps "ghost" not found')


@cases(MERGE, STRATEGIC)
async def test_a_version_in_a_patch_is_a_precondition(kind: str, http: Http) -> None:
    created = ok(await http("POST", CONFIGMAPS, configmap()), 201)
    version = created["metadata"]["resourceVersion"]
    ok(await patch(http, f"{CONFIGMAPS}/c", {"metadata": {"resourceVersion": version}, "data": {"b": "2"}}, kind))
    before = await revision(http)
    answer = await patch(http, f"{CONFIGMAPS}/c", {"metadata": {"resourceVersion": version}, "data": {}}, kind)
    refused(answer, 409, "Conflict", STALE)
    assert await revision(http) == before


async def test_a_patch_cannot_change_the_uid(http: Http) -> None:
    ok(await http("POST", CONFIGMAPS, configmap()), 201)
    answer = await patch(http, f"{CONFIGMAPS}/c", {"metadata": {"uid": "x"}})
    refused(answer, 422, "Invalid", 'metadata.uid: Invalid value: "x": field is immutable')


@cases(
    {"apiVersion": "v2"},
    {"kind": "Secret"},
    {"metadata": {"name": "other"}},
    {"metadata": {"namespace": "kube-system"}},
)
async def test_a_patch_cannot_make_it_another_object(change: Any, http: Http) -> None:
    ok(await http("POST", CONFIGMAPS, configmap()), 201)
    before = await revision(http)
    answer = await patch(http, f"{CONFIGMAPS}/c", change)
    assert answer.code in (400, 422)
    assert answer.json()["reason"] in ("BadRequest", "Invalid")
    assert await revision(http) == before


async def test_a_patch_cannot_take_away_what_the_server_set(http: Http) -> None:
    created = ok(await http("POST", DEPLOYMENTS, deployment()), 201)
    wipe = {
        "metadata": {
            "uid": None,
            "creationTimestamp": None,
            "generation": None,
            "deletionTimestamp": "2001-01-01T00:00:00Z",
        }
    }
    assert ok(await patch(http, f"{DEPLOYMENTS}/web", wipe)) == created


async def test_of_sixteen_concurrent_patches_none_is_lost(http: Http, server: ApiServer) -> None:
    interleave(server)
    ok(await http("POST", CONFIGMAPS, configmap(data={"base": "0"})), 201)

    async def change(index: int) -> Any:
        manager = f"?fieldManager=m{index}"
        if index % 2:
            return await patch(http, f"{CONFIGMAPS}/c", {"data": {f"k{index}": "1"}}, MERGE, manager)
        ops = [{"op": "add", "path": f"/data/k{index}", "value": "1"}]
        return await patch(http, f"{CONFIGMAPS}/c", ops, JSON_PATCH, manager)

    answers = await asyncio.gather(*(change(index) for index in range(16)))
    assert [answer.code for answer in answers] == [200] * 16
    assert len({answer.json()["metadata"]["resourceVersion"] for answer in answers}) == 16
    final = ok(await http("GET", f"{CONFIGMAPS}/c"))
    assert set(final["data"]) == {"base", *(f"k{i}" for i in range(16))}
    owned = [key for entry in final["metadata"]["managedFields"] for key in entry["fieldsV1"]["f:data"]]
    assert {f"f:k{i}" for i in range(16)} <= set(owned)


async def test_a_json_patch_counts_up_under_contention_by_testing_first(http: Http, server: ApiServer) -> None:
    interleave(server)
    ok(await http("POST", CONFIGMAPS, configmap(data={"n": "0"})), 201)

    async def count_up() -> None:
        while True:
            now = ok(await http("GET", f"{CONFIGMAPS}/c"))["data"]["n"]
            ops = [
                {"op": "test", "path": "/data/n", "value": now},
                {"op": "replace", "path": "/data/n", "value": str(int(now) + 1)},
            ]
            if (await patch(http, f"{CONFIGMAPS}/c", ops, JSON_PATCH)).code == 200:
                return

    await asyncio.gather(*(count_up() for _ in range(6)))
    assert ok(await http("GET", f"{CONFIGMAPS}/c"))["data"]["n"] == "6"


async def test_service_ports_are_merged_by_port_alone(http: Http) -> None:
    service = {"metadata": {"name": "s"}, "spec": {"ports": [{"name": "a", "port": 80}, {"name": "b", "port": 81}]}}
    ok(await http("POST", SERVICES, service), 201)
    change = {"spec": {"ports": [{"port": 81, "targetPort": 8081}]}}
    ports = ok(await patch(http, f"{SERVICES}/s", change, STRATEGIC))["spec"]["ports"]
    assert {(p["name"], p["port"], p["targetPort"]) for p in ports} == {("a", 80, 80), ("b", 81, 8081)}


async def test_the_content_type_may_have_parameters(http: Http) -> None:
    ok(await http("POST", CONFIGMAPS, configmap()), 201)
    body = json.dumps({"data": {"b": "2"}}).encode()
    patched = await http("PATCH", f"{CONFIGMAPS}/c", body, content_type=f"{MERGE}; charset=utf-8")
    assert ok(patched)["data"] == {"a": "1", "b": "2"}


async def test_a_patch_whose_result_has_a_wrong_type_is_invalid(http: Http) -> None:
    ok(await http("POST", DEPLOYMENTS, deployment()), 201)
    before = await revision(http)
    answer = await patch(http, f"{DEPLOYMENTS}/web", {"spec": {"replicas": "many"}})
    why = "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32"
    refused(answer, 422, "Invalid", ' "" is invalid: patch: Invalid value: "{', why)
    answer = await patch(
        http, f"{DEPLOYMENTS}/web", {"spec": {"template": {"spec": {"containers": "none"}}}}, STRATEGIC
    )
    why = '"map[spec:map[template:map[spec:map[containers:none]]]]": cannot restore slice from string'
    refused(answer, 422, "Invalid", why)
    assert await revision(http) == before


async def test_force_is_only_for_apply(http: Http) -> None:
    ok(await http("POST", CONFIGMAPS, configmap()), 201)
    status = refused(await patch(http, f"{CONFIGMAPS}/c", {}, MERGE, "?force=true"), 422, "Invalid")
    assert status["message"] == (
        'PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for non-apply patch'
    )
