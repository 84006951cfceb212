"""Admission webhooks through the server: allow, deny, change, fail; nothing is stored that they stopped."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.integration.hooks import Hook, patching
from tests.integration.samples import (
    APPLY,
    CONFIGMAPS,
    DEPLOYMENTS,
    apply,
    configmap,
    deployment,
    ok,
    patch,
    quiet_revision,
    refused,
    revision,
)
from tests.support.wire import Http


@pytest.fixture
async def hook() -> AsyncIterator[Hook]:
    async with Hook() as hook:
        yield hook


def add(path: str, value: Any) -> Any:
    return {"op": "add", "path": path, "value": value}


async def test_a_webhook_sees_every_write_and_lets_it_through(http: Http, hook: Hook) -> None:
    await hook.install(http, "validating", ["configmaps"])
    created = ok(await http("POST", f"{CONFIGMAPS}?fieldManager=me", configmap()), 201)
    ok(await patch(http, f"{CONFIGMAPS}/c", {"data": {"a": "2"}}))
    ok(await apply(http, f"{CONFIGMAPS}/n", configmap("n")), 201)
    ok(await http("DELETE", f"{CONFIGMAPS}/c"))
    assert [r["operation"] for r in hook.seen] == ["CREATE", "UPDATE", "CREATE", "DELETE"]
    create, update, _, delete = hook.seen
    assert create["object"]["data"] == {"a": "1"}
    assert create["oldObject"] is None
    assert create["options"]["kind"] == "CreateOptions"
    assert (create["name"], create["namespace"], create["dryRun"]) == ("c", "default", False)
    assert create["kind"] == {"group": "", "version": "v1", "kind": "ConfigMap"}
    assert "system:masters" in create["userInfo"]["groups"]
    assert (update["object"]["data"], update["oldObject"]["data"]) == ({"a": "2"}, {"a": "1"})
    assert delete["object"] is None
    assert delete["oldObject"]["metadata"]["uid"] == created["metadata"]["uid"]


@pytest.mark.parametrize(
    ("status", "code", "reason", "message"),
    [
        ({"message": "no", "code": 403, "reason": "Forbidden"}, 403, "Forbidden", "denied the request: no"),
        ({"message": "no", "code": 422, "reason": "Invalid"}, 422, "Invalid", "denied the request: no"),
        (None, 400, "", "denied the request without explanation"),
        ({"message": "no", "code": 200}, 400, "", "denied the request: no"),
    ],
)
@pytest.mark.parametrize("kind", ["mutating", "validating"])
async def test_what_a_webhook_denies_is_not_stored(
    http: Http, hook: Hook, kind: str, status: Any, code: int, reason: str, message: str
) -> None:
    stored = ok(await http("POST", CONFIGMAPS, configmap("there")), 201)
    await hook.install(http, kind, ["configmaps"])
    hook.verdict = lambda _r: {"allowed": False, **({"status": status} if status else {})}
    before = await quiet_revision(http)
    answers = [
        await http("POST", CONFIGMAPS, configmap()),
        await http("PUT", f"{CONFIGMAPS}/there", configmap("there", data={})),
        await patch(http, f"{CONFIGMAPS}/there", {"data": {"x": "y"}}),
        await http("PATCH", f"{CONFIGMAPS}/new?fieldManager=m", configmap("new"), content_type=APPLY),
        await http("DELETE", f"{CONFIGMAPS}/there"),
    ]
    for answer in answers:
        assert answer.code == code
        assert answer.json().get("reason", "") == reason
        assert answer.json()["message"] == f'admission webhook "hook.example.io" {message}'
    assert ok(await http("GET", f"{CONFIGMAPS}/there")) == stored
    assert await revision(http) == before


async def test_what_a_webhook_changes_is_stored(http: Http, hook: Hook) -> None:
    await hook.install(http, "mutating", ["deployments"])
    hook.verdict = lambda _r: patching(add("/metadata/labels", {"by": "hook"}), add("/spec/replicas", 7))
    created = ok(await http("POST", DEPLOYMENTS, deployment()), 201)
    assert (created["metadata"]["labels"], created["spec"]["replicas"]) == ({"by": "hook"}, 7)
    assert created["spec"]["revisionHistoryLimit"] == 10
    assert created == ok(await http("GET", f"{DEPLOYMENTS}/web"))


async def test_warnings_of_a_webhook_reach_the_client(http: Http, hook: Hook) -> None:
    await hook.install(http, "validating", ["configmaps"])
    hook.verdict = lambda _r: {"allowed": True, "warnings": ["mind the gap"]}
    answer = await http("POST", CONFIGMAPS, configmap())
    ok(answer, 201)
    assert answer.warnings == ['299 - "mind the gap"']


async def test_a_webhook_cannot_change_what_only_the_server_sets(http: Http, hook: Hook) -> None:
    stored = ok(await http("POST", DEPLOYMENTS, deployment()), 201)
    await hook.install(http, "mutating", ["deployments", "deployments/status"])
    hook.verdict = lambda _r: patching(
        add("/metadata/uid", "x"), add("/metadata/name", "other"), add("/metadata/generation", 99),
        add("/status", {"replicas": 42}), add("/metadata/resourceVersion", "1"),
    )  # fmt: skip
    updated = ok(await patch(http, f"{DEPLOYMENTS}/web", {"spec": {"replicas": 3}}))
    assert updated["metadata"]["uid"] == stored["metadata"]["uid"]
    assert (updated["metadata"]["name"], updated["metadata"]["generation"]) == ("web", 2)
    assert updated["status"] == {}
    hook.verdict = lambda _r: patching(add("/spec/replicas", 50), add("/status", {"replicas": 4}))
    updated = ok(await patch(http, f"{DEPLOYMENTS}/web/status", {"status": {"replicas": 1}}))
    assert (updated["spec"]["replicas"], updated["status"]) == (3, {"replicas": 4})
    assert updated["metadata"]["generation"] == 2


async def test_ownership_that_a_webhook_broke_is_put_back_with_a_warning(http: Http, hook: Hook) -> None:
    await hook.install(http, "mutating", ["configmaps"])
    hook.verdict = lambda _r: patching(add("/metadata/managedFields", [{"manager": "x", "operation": "Nonsense"}]))
    answer = await http("POST", f"{CONFIGMAPS}?fieldManager=me", configmap())
    [entry] = ok(answer, 201)["metadata"]["managedFields"]
    assert entry["manager"] == "me"
    [warning] = answer.warnings
    assert ".metadata.managedFields was in an invalid state after admission" in warning


@pytest.mark.parametrize("kind", ["mutating", "validating"])
async def test_a_webhook_that_does_not_answer_stops_the_write_or_not(http: Http, hook: Hook, kind: str) -> None:
    hook.verdict = lambda _r: None
    await hook.install(http, kind, ["configmaps"])
    before = await quiet_revision(http)
    status = refused(await http("POST", CONFIGMAPS, configmap()), 500, "InternalError")
    assert status["message"] == (
        'Internal error occurred: failed calling webhook "hook.example.io": failed to call webhook: '
        f'Post "https://127.0.0.1:{hook.port}/check?timeout=1s": context deadline exceeded'
    )
    assert await revision(http) == before
    path = f"/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations/{kind}-hook"
    ops = [{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"}]
    ok(await patch(http, path, ops, "application/json-patch+json"))
    ok(await http("POST", CONFIGMAPS, configmap()), 201)


async def test_the_clients_own_deadline_may_come_first(http: Http, hook: Hook) -> None:
    hook.verdict = lambda _r: None
    await hook.install(http, "validating", ["configmaps"], timeoutSeconds=30)
    before = await quiet_revision(http)
    refused(await http("POST", f"{CONFIGMAPS}?timeout=200ms", configmap()), 504, "Timeout", "Timeout: request did not")
    assert await revision(http) == before


async def test_a_webhook_with_side_effects_is_no_part_of_a_dry_run(http: Http, hook: Hook) -> None:
    await hook.install(http, "validating", ["configmaps"], sideEffects="NoneOnDryRun")
    ok(await http("POST", f"{CONFIGMAPS}?dryRun=All", configmap()), 201)
    assert hook.seen[0]["dryRun"] is True


async def test_a_scale_reaches_the_webhook_as_a_scale(http: Http, hook: Hook) -> None:
    ok(await http("POST", DEPLOYMENTS, deployment()), 201)
    await hook.install(http, "mutating", ["deployments/scale"])
    hook.verdict = lambda _r: patching(add("/spec/replicas", 4))
    scaled = ok(await patch(http, f"{DEPLOYMENTS}/web/scale", {"spec": {"replicas": 9}}))
    assert scaled["spec"] == {"replicas": 4}
    [request] = hook.seen
    assert (request["object"]["kind"], request["subResource"]) == ("Scale", "scale")
    assert (request["object"]["spec"], request["oldObject"]["spec"]) == ({"replicas": 9}, {"replicas": 2})
    assert ok(await http("GET", f"{DEPLOYMENTS}/web"))["spec"]["replicas"] == 4


async def test_a_collection_is_reviewed_one_by_one(http: Http, hook: Hook) -> None:
    for name in ("a", "b"):
        ok(await http("POST", CONFIGMAPS, configmap(name, labels={"x": "y"})), 201)
    await hook.install(http, "validating", ["configmaps"])
    ok(await http("DELETE", f"{CONFIGMAPS}?labelSelector=x%3Dy"))
    assert [(r["operation"], r["name"]) for r in hook.seen] == [("DELETE", "a"), ("DELETE", "b")]


async def test_a_connection_is_reviewed_as_such(http: Http, hook: Hook) -> None:
    await hook.install(http, "validating", ["pods/exec"])
    ok(await http("POST", "/api/v1/namespaces/default/pods", pod()), 201)
    path = "/api/v1/namespaces/default/pods/p/exec?command=ls&command=-l&container=c&stdout=true"
    hook.verdict = lambda _request: {"allowed": False, "status": {"message": "no shells", "code": 403}}
    answer = await http("POST", path)
    assert (answer.code, "no shells" in answer.json()["message"]) == (403, True)
    [seen] = hook.seen
    assert (seen["operation"], seen["subResource"], seen["name"]) == ("CONNECT", "exec", "p")
    assert seen["kind"] == {"group": "", "version": "v1", "kind": "PodExecOptions"}
    assert seen["object"]["command"] == ["ls", "-l"]
    assert seen["object"]["stdout"] is True


async def test_an_eviction_is_reviewed_once(http: Http, hook: Hook) -> None:
    ok(await http("POST", "/api/v1/namespaces/default/pods", pod()), 201)
    await hook.install(http, "validating", ["pods", "pods/*"])
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p", "namespace": "default"}}
    ok(await http("POST", "/api/v1/namespaces/default/pods/p/eviction", eviction), 201)
    assert [(r["operation"], r.get("subResource")) for r in hook.seen] == [("CREATE", "eviction")]
    assert hook.seen[0]["kind"] == {"group": "policy", "version": "v1", "kind": "Eviction"}


def pod() -> dict[str, Any]:
    spec = {"containers": [{"name": "c", "image": "x:1"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
