"""POST: what a create answers, fills in, refuses and leaves undone."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from karmada.kube.objects import names
from karmada.kube.server.app import ApiServer
from tests.integration.samples import (
    CONFIGMAPS,
    CORE,
    DEPLOYMENTS,
    PODS,
    configmap,
    deployment,
    interleave,
    ok,
    pod,
    quiet_revision,
    refused,
    revision,
    watching,
)
from tests.support.cases import cases
from tests.support.eventually import eventually
from tests.support.wire import Http

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


async def test_a_create_answers_201_with_the_object_as_it_is_stored(http: Http) -> None:
    created = ok(await http("POST", DEPLOYMENTS, deployment()), 201)
    assert created == ok(await http("GET", f"{DEPLOYMENTS}/web"))
    meta = created["metadata"]
    assert UUID.fullmatch(meta["uid"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", meta["creationTimestamp"])
    assert (meta["namespace"], meta["generation"]) == ("default", 1)
    assert created["spec"]["revisionHistoryLimit"] == 10
    assert created["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": "25%", "maxUnavailable": "25%"}


async def test_metadata_that_only_the_server_sets_is_discarded(http: Http) -> None:
    body = deployment(
        uid="11111111-1111-4111-8111-111111111111",
        generation=7,
        creationTimestamp="2001-01-01T00:00:00Z",
        deletionTimestamp="2001-01-01T00:00:00Z",
        deletionGracePeriodSeconds=3,
        selfLink="/x",
    )
    meta = ok(await http("POST", DEPLOYMENTS, body), 201)["metadata"]
    assert meta["uid"] != body["metadata"]["uid"]
    assert meta["generation"] == 1
    assert not meta["creationTimestamp"].startswith("2001")
    assert not {"deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"} & meta.keys()


async def test_status_is_wiped_on_create(http: Http) -> None:
    created = ok(await http("POST", DEPLOYMENTS, deployment() | {"status": {"replicas": 9}}), 201)
    assert created["status"] == {}


async def test_a_create_with_a_resource_version_is_refused(http: Http) -> None:
    before = await revision(http)
    status = refused(await http("POST", CONFIGMAPS, configmap(resourceVersion="5")), 500, "")
    assert status["message"] == "resourceVersion should not be set on objects to be created"
    assert await revision(http) == before


async def test_what_exists_cannot_be_created_again(http: Http) -> None:
    ok(await http("POST", DEPLOYMENTS, deployment()), 201)
    status = refused(await http("POST", DEPLOYMENTS, deployment()), 409, "AlreadyExists")
    assert status["message"] == 'deployments.apps "web" already exists'
    assert status["details"] == {"name": "web", "group": "apps", "kind": "deployments"}


async def test_what_is_being_deleted_cannot_be_created_again_yet(http: Http) -> None:
    ok(await http("POST", CONFIGMAPS, configmap(finalizers=["example.io/hold"])), 201)
    ok(await http("DELETE", f"{CONFIGMAPS}/c"))
    status = refused(await http("POST", CONFIGMAPS, configmap()), 409, "AlreadyExists")
    assert status["message"] == 'object is being deleted: configmaps "c" already exists'


async def test_a_generated_name_is_the_prefix_and_five_characters(http: Http) -> None:
    meta = ok(await http("POST", CONFIGMAPS, configmap("", generateName="job-")), 201)["metadata"]
    assert re.fullmatch(r"job-[bcdfghjklmnpqrstvwxz2456789]{5}", meta["name"])
    assert meta["generateName"] == "job-"
    long = ok(await http("POST", CONFIGMAPS, configmap("", generateName="x" * 80)), 201)["metadata"]["name"]
    assert len(long) == 63
    assert long.startswith("x" * 58)


async def test_generated_names_are_tried_again_until_one_is_free(http: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    ok(await http("POST", CONFIGMAPS, configmap("job-taken")), 201)
    suffixes = iter(["taken"] * 7 + ["freed"])
    monkeypatch.setattr(names, "random_suffix", lambda: next(suffixes))
    created = ok(await http("POST", CONFIGMAPS, configmap("", generateName="job-")), 201)
    assert created["metadata"]["name"] == "job-freed"


async def test_after_eight_taken_names_the_client_gets_retry_after(http: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    ok(await http("POST", CONFIGMAPS, configmap("job-taken")), 201)
    tries: list[str] = []

    def taken() -> str:
        tries.append("taken")
        return "taken"

    monkeypatch.setattr(names, "random_suffix", taken)
    answer = await http("POST", CONFIGMAPS, configmap("", generateName="job-"))
    status = refused(answer, 409, "AlreadyExists")
    assert status["message"] == (
        'configmaps "job-taken" already exists, the server was not able to generate a unique name for the object'
    )
    assert status["details"]["retryAfterSeconds"] == 1
    assert len(tries) == 8


async def test_a_name_is_required(http: Http) -> None:
    status = refused(await http("POST", CONFIGMAPS, {"data": {}}), 422, "Invalid")
    assert status["message"] == (
        'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required'
    )


async def test_the_body_may_leave_out_type_and_namespace(http: Http) -> None:
    created = ok(await http("POST", CONFIGMAPS, {"metadata": {"name": "bare"}}), 201)
    assert (created["apiVersion"], created["kind"], created["metadata"]["namespace"]) == ("v1", "ConfigMap", "default")


async def test_the_namespace_of_the_body_must_be_that_of_the_url(http: Http) -> None:
    before = await revision(http)
    refused(
        await http("POST", CONFIGMAPS, configmap(namespace="other")),
        400,
        "BadRequest",
        "the namespace of the provided object does not match the namespace sent on the request",
    )
    assert await revision(http) == before


async def test_a_cluster_scoped_object_loses_its_namespace(http: Http) -> None:
    created = ok(await http("POST", "/api/v1/namespaces", {"metadata": {"name": "n", "namespace": "x"}}), 201)
    assert "namespace" not in created["metadata"]


async def test_nothing_can_be_created_in_a_namespace_that_does_not_exist(http: Http) -> None:
    before = await revision(http)
    path = "/api/v1/namespaces/nowhere/configmaps"
    status = refused(await http("POST", path, configmap()), 404, "NotFound")
    assert status["message"] == 'namespaces "nowhere" not found'
    assert await revision(http) == before


async def test_nothing_can_be_created_in_a_namespace_that_is_terminating(http: Http) -> None:
    ok(await http("POST", "/api/v1/namespaces", {"metadata": {"name": "ending"}}), 201)
    path = "/api/v1/namespaces/ending/configmaps"
    ok(await http("POST", path, configmap("held", finalizers=["example.io/hold"])), 201)
    gone = ok(await http("DELETE", "/api/v1/namespaces/ending"))
    assert gone["status"]["phase"] == "Terminating"
    status = refused(await http("POST", path, configmap("late")), 403, "Forbidden")
    assert status["message"] == (
        'configmaps "late" is forbidden: '
        "unable to create new content in namespace ending because it is being terminated"
    )
    [cause] = [c for c in status["details"]["causes"] if c["reason"] == "NamespaceTerminating"]
    assert cause["field"] == "metadata.namespace"
    assert (await http("GET", f"{path}/late")).code == 404
    # An update of what is there is still possible, and lets the namespace go.
    held = ok(await http("GET", f"{path}/held"))
    del held["metadata"]["finalizers"]
    ok(await http("PUT", f"{path}/held", held))

    async def no_namespace() -> bool:
        return (await http("GET", "/api/v1/namespaces/ending")).code == 404

    await eventually(no_namespace)


async def test_concurrent_creates_of_one_name_let_exactly_one_through(http: Http, server: ApiServer) -> None:
    interleave(server)
    answers = await asyncio.gather(*(http("POST", CONFIGMAPS, configmap(data={"n": str(i)})) for i in range(8)))
    codes = sorted(answer.code for answer in answers)
    assert codes == [201] + [409] * 7
    [winner] = [answer.json() for answer in answers if answer.code == 201]
    assert ok(await http("GET", f"{CONFIGMAPS}/c")) == winner


async def test_distinct_names_never_conflict(http: Http, server: ApiServer) -> None:
    interleave(server)
    answers = await asyncio.gather(*(http("POST", CONFIGMAPS, configmap(f"c{i}")) for i in range(40)))
    assert [answer.code for answer in answers] == [201] * 40
    versions = {int(answer.json()["metadata"]["resourceVersion"]) for answer in answers}
    assert len(versions) == 40


@cases(("PUT", 405), ("PATCH", 405), ("POST", 405), ids=["put", "patch", "post-to-name"])
async def test_methods_that_make_no_sense_here_are_refused(method: str, code: int, http: Http) -> None:
    path = f"{CONFIGMAPS}/c" if method == "POST" else CONFIGMAPS
    status = refused(await http(method, path, configmap()), code, "MethodNotAllowed")
    assert status["message"] == "the server does not allow this method on the requested resource"


async def test_a_create_needs_a_namespace_in_the_url(http: Http) -> None:
    refused(await http("POST", "/api/v1/configmaps", configmap(namespace="default")), 405, "MethodNotAllowed")


async def test_duplicate_owners_are_removed_with_a_warning(http: Http) -> None:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u"}
    ok(await http("POST", CONFIGMAPS, configmap("o")), 201)
    uid = ok(await http("GET", f"{CONFIGMAPS}/o"))["metadata"]["uid"]
    owner["uid"] = uid
    answer = await http("POST", CONFIGMAPS, configmap("owned", ownerReferences=[owner, owner]))
    assert ok(answer, 201)["metadata"]["ownerReferences"] == [owner]
    assert any("duplicate entries" in warning for warning in answer.warnings)


@cases(
    ("dryRun=Some", 'dryRun: Unsupported value: ["Some"]'),
    (f"fieldManager={'m' * 129}", "fieldManager: Too long: may not be more than 128 bytes"),
    ("fieldManager=a%0Ab", "fieldManager: Invalid value"),
    ("fieldValidation=Loud", 'fieldValidation: Unsupported value: "Loud"'),
)
async def test_options_that_make_no_sense_are_refused(query: str, field: str, http: Http) -> None:
    before = await revision(http)
    status = refused(await http("POST", f"{CONFIGMAPS}?{query}", configmap()), 422, "Invalid", field)
    assert status["message"].startswith('CreateOptions.meta.k8s.io "" is invalid: ')
    assert await revision(http) == before


async def test_the_writer_is_recorded_as_manager(http: Http) -> None:
    created = ok(await http("POST", f"{CONFIGMAPS}?fieldManager=me", configmap()), 201)
    [entry] = created["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"], entry["apiVersion"]) == ("me", "Update", "v1")
    assert entry["fieldsV1"] == {"f:data": {".": {}, "f:a": {}}}
    other = await http("POST", CONFIGMAPS, configmap("d"), headers={"User-Agent": "tool/v1 (linux)"})
    assert ok(other, 201)["metadata"]["managedFields"][0]["manager"] == "tool"


async def test_a_create_is_one_added_event(http: Http) -> None:
    since = await quiet_revision(http)
    async with watching(http, CONFIGMAPS, since) as following:
        created = ok(await http("POST", CONFIGMAPS, configmap()), 201)
        event = await following()
    assert (event["type"], event["object"]) == ("ADDED", created)


async def test_a_pod_gets_its_defaults_from_kind_and_admission(http: Http) -> None:
    async def account() -> bool:
        return (await http("GET", f"{CORE}/serviceaccounts/default")).code == 200

    await eventually(account)
    created: Any = ok(await http("POST", PODS, pod()), 201)
    spec = created["spec"]
    assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("default", "default")
    assert (spec["priority"], spec["preemptionPolicy"]) == (0, "PreemptLowerPriority")
    assert {t["key"] for t in spec["tolerations"]} == {
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    }
    assert created["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    [volume] = spec["volumes"]
    assert re.fullmatch("kube-api-access-.{5}", volume["name"])
    assert spec["containers"][0]["volumeMounts"][0]["mountPath"] == "/var/run/secrets/kubernetes.io/serviceaccount"


async def test_a_pod_of_an_unknown_account_or_class_is_forbidden(http: Http) -> None:
    body = pod()
    body["spec"]["serviceAccountName"] = "ghost"
    refused(
        await http("POST", PODS, body),
        403,
        "Forbidden",
        'pods "p" is forbidden: error looking up service account default/ghost: serviceaccount "ghost" not found',
    )
    body = pod()
    body["spec"]["priorityClassName"] = "ghost"
    refused(await http("POST", PODS, body), 403, "Forbidden", "no PriorityClass with name ghost was found")
    assert ok(await http("GET", PODS))["items"] == []
