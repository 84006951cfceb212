"""DELETE and deletecollection: answers, preconditions, finalizers, grace, dependents."""

from __future__ import annotations

import asyncio
from typing import Any

from karmada.kube.schema.protobuf import encode
from karmada.kube.server.app import ApiServer
from tests.integration.samples import (
    CONFIGMAPS,
    CORE,
    DEPLOYMENTS,
    PODS,
    PROTOBUF,
    SERVICES,
    configmap,
    deployment,
    interleave,
    ok,
    patch,
    pod,
    quiet_revision,
    refused,
    revision,
    watching,
)
from tests.support.cases import cases
from tests.support.eventually import eventually
from tests.support.wire import Http

HOLD = "example.io/hold"


async def test_most_kinds_answer_a_status_with_the_uid(http: Http) -> None:
    created = ok(await http("POST", DEPLOYMENTS, deployment()), 201)
    assert ok(await http("DELETE", f"{DEPLOYMENTS}/web")) == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {"name": "web", "group": "apps", "kind": "deployments", "uid": created["metadata"]["uid"]},
    }
    refused(await http("DELETE", f"{DEPLOYMENTS}/web"), 404, "NotFound", 'deployments.apps "web" not found')


ANSWERED: list[tuple[str, Any]] = [
    (PODS, pod("x")),
    (SERVICES, {"metadata": {"name": "x"}, "spec": {"ports": [{"port": 80}]}}),
    (f"{CORE}/serviceaccounts", {"metadata": {"name": "x"}}),
    ("/api/v1/namespaces", {"metadata": {"name": "x"}}),
    (f"{CORE}/podtemplates", {"metadata": {"name": "x"}, "template": {"spec": pod()["spec"]}}),
    (f"{CORE}/resourcequotas", {"metadata": {"name": "x"}}),
    ("/apis/storage.k8s.io/v1/storageclasses", {"metadata": {"name": "x"}, "provisioner": "p"}),
    ("/apis/storage.k8s.io/v1/csidrivers", {"metadata": {"name": "x"}, "spec": {}}),
    ("/apis/storage.k8s.io/v1/csinodes", {"metadata": {"name": "x"}, "spec": {"drivers": []}}),
]


async def test_some_kinds_answer_the_deleted_object(http: Http) -> None:
    for path, body in ANSWERED:
        created = ok(await http("POST", path, body), 201)
        deleted = ok(await http("DELETE", f"{path}/x"))
        assert (deleted["kind"], deleted["metadata"]["uid"]) == (created["kind"], created["metadata"]["uid"])


async def test_a_uid_precondition_that_fails_deletes_nothing(http: Http) -> None:
    created = ok(await http("POST", DEPLOYMENTS, deployment()), 201)
    uid = created["metadata"]["uid"]
    status = refused(await http("DELETE", f"{DEPLOYMENTS}/web", {"preconditions": {"uid": "x"}}), 409, "Conflict")
    assert status["message"] == (
        'Operation cannot be fulfilled on Deployment.apps "web": '
        f"the UID in the precondition (x) does not match the UID in record ({uid}). "
        "The object might have been deleted and then recreated"
    )
    assert ok(await http("GET", f"{DEPLOYMENTS}/web")) == created
    ok(await http("DELETE", f"{DEPLOYMENTS}/web", {"preconditions": {"uid": uid}}))


async def test_a_version_precondition_that_fails_deletes_nothing(http: Http) -> None:
    created = ok(await http("POST", CONFIGMAPS, configmap()), 201)
    version = created["metadata"]["resourceVersion"]
    newer = ok(await patch(http, f"{CONFIGMAPS}/c", {"data": {"b": "2"}}))["metadata"]["resourceVersion"]
    body = {"preconditions": {"resourceVersion": version}}
    status = refused(await http("DELETE", f"{CONFIGMAPS}/c", body), 409, "Conflict")
    assert status["message"] == (
        'Operation cannot be fulfilled on ConfigMap "c": '
        f"the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record ({newer}). "
        "The object might have been modified"
    )
    ok(await http("DELETE", f"{CONFIGMAPS}/c", {"preconditions": {"resourceVersion": newer}}))


@cases("v1", "meta.k8s.io/v1", "apps/v1", "policy/v1", None)
async def test_options_come_under_several_versions(version: str | None, http: Http) -> None:
    ok(await http("POST", DEPLOYMENTS, deployment()), 201)
    body: Any = {"propagationPolicy": "Background"}
    if version:
        body |= {"apiVersion": version, "kind": "DeleteOptions"}
    ok(await http("DELETE", f"{DEPLOYMENTS}/web", body))


async def test_options_come_as_yaml_or_protobuf_too(http: Http, server: ApiServer) -> None:
    for name in ("y", "p"):
        ok(await http("POST", CONFIGMAPS, configmap(name)), 201)
    refused(
        await http("DELETE", f"{CONFIGMAPS}/y", b"preconditions: {uid: x}\n", content_type="application/yaml"),
        409,
        "Conflict",
    )
    body = encode("v1", "DeleteOptions", {"preconditions": {"uid": "x"}}, server.definitions)
    refused(await http("DELETE", f"{CONFIGMAPS}/p", body, content_type=PROTOBUF), 409, "Conflict")
    body = encode("v1", "DeleteOptions", {"propagationPolicy": "Background"}, server.definitions)
    ok(await http("DELETE", f"{CONFIGMAPS}/p", body, content_type=PROTOBUF))


SENSELESS: list[Any] = [
    {"gracePeriodSeconds": "soon"},
    {"preconditions": []},
    {"preconditions": {"uid": 7}},
    {"kind": "Deployment", "apiVersion": "apps/v1"},
    {"apiVersion": "v9"},
    {"dryRun": "All"},
    {"propagationPolicy": 1},
    [1],
    b"{",
    b'"x"',
]


async def test_options_that_make_no_sense_delete_nothing(http: Http) -> None:
    created = ok(await http("POST", CONFIGMAPS, configmap()), 201)
    for body in SENSELESS:
        refused(await http("DELETE", f"{CONFIGMAPS}/c", body), 400, "BadRequest")
    assert ok(await http("GET", f"{CONFIGMAPS}/c")) == created


@cases(
    ("", {"orphanDependents": True, "propagationPolicy": "Orphan"}),
    ("", {"propagationPolicy": "Sideways"}),
    ("", {"dryRun": ["Some"]}),
    ("?propagationPolicy=Sideways", None),
    ("?dryRun=Some", None),
)
async def test_values_that_no_option_has_are_invalid(query: str, body: Any, http: Http) -> None:
    created = ok(await http("POST", CONFIGMAPS, configmap()), 201)
    status = refused(await http("DELETE", f"{CONFIGMAPS}/c{query}", body), 422, "Invalid")
    assert status["message"].startswith('DeleteOptions.meta.k8s.io "" is invalid: ')
    assert ok(await http("GET", f"{CONFIGMAPS}/c")) == created


async def test_a_query_that_is_no_number_is_a_bad_request(http: Http) -> None:
    ok(await http("POST", CONFIGMAPS, configmap()), 201)
    refused(await http("DELETE", f"{CONFIGMAPS}/c?gracePeriodSeconds=x"), 400, "BadRequest")
    ok(await http("GET", f"{CONFIGMAPS}/c"))


async def test_a_finalizer_holds_the_deletion_back(http: Http) -> None:
    created = ok(await http("POST", DEPLOYMENTS, deployment(finalizers=[HOLD])), 201)
    held = ok(await http("DELETE", f"{DEPLOYMENTS}/web"))
    meta = held["metadata"]
    assert meta["deletionTimestamp"]
    assert (meta["deletionGracePeriodSeconds"], meta["generation"], meta["finalizers"]) == (0, 2, [HOLD])
    assert int(meta["resourceVersion"]) > int(created["metadata"]["resourceVersion"])
    assert ok(await http("DELETE", f"{DEPLOYMENTS}/web")) == held


async def test_orphan_dependents_false_answers_202_while_something_holds(http: Http) -> None:
    ok(await http("POST", CONFIGMAPS, configmap(finalizers=[HOLD])), 201)
    ok(await http("DELETE", f"{CONFIGMAPS}/c", {"orphanDependents": False}), 202)


async def test_no_finalizer_is_added_while_deleting(http: Http) -> None:
    ok(await http("POST", CONFIGMAPS, configmap(finalizers=[HOLD])), 201)
    held = ok(await http("DELETE", f"{CONFIGMAPS}/c"))
    answer = await patch(http, f"{CONFIGMAPS}/c", {"metadata": {"finalizers": [HOLD, "example.io/more"]}})
    refused(
        answer,
        422,
        "Invalid",
        "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, "
        "found new finalizers",
        "example.io/more",
    )
    assert ok(await http("GET", f"{CONFIGMAPS}/c")) == held


@cases("put", "merge", "json")
async def test_the_last_finalizer_takes_the_object_with_it_in_one_event(way: str, http: Http) -> None:
    ok(await http("POST", CONFIGMAPS, configmap(finalizers=[HOLD])), 201)
    held = ok(await http("DELETE", f"{CONFIGMAPS}/c"))
    since = await quiet_revision(http)
    async with watching(http, CONFIGMAPS, since) as following:
        if way == "put":
            body = {**held, "metadata": {**held["metadata"], "finalizers": []}, "data": {"last": "words"}}
            final = ok(await http("PUT", f"{CONFIGMAPS}/c", body))
            assert final["data"] == {"last": "words"}
        elif way == "merge":
            final = ok(await patch(http, f"{CONFIGMAPS}/c", {"metadata": {"finalizers": None}}))
        else:
            ops = [{"op": "remove", "path": "/metadata/finalizers"}]
            final = ok(await patch(http, f"{CONFIGMAPS}/c", ops, "application/json-patch+json"))
        assert "finalizers" not in final["metadata"]
        ok(await http("POST", CONFIGMAPS, configmap("marker")), 201)
        first, second = await following(), await following()
    assert (first["type"], first["object"]["metadata"]["name"]) == ("DELETED", "c")
    assert int(first["object"]["metadata"]["resourceVersion"]) > int(since)
    assert (second["type"], second["object"]["metadata"]["name"]) == ("ADDED", "marker")
    assert (await http("GET", f"{CONFIGMAPS}/c")).code == 404


async def test_a_scheduled_pod_is_given_its_grace(http: Http) -> None:
    ok(await http("POST", PODS, pod(node="n1")), 201)
    marked = ok(await http("DELETE", f"{PODS}/p"))
    meta = marked["metadata"]
    assert (meta["deletionGracePeriodSeconds"], meta["generation"]) == (30, 2)
    assert ok(await http("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 60})) == marked
    shorter = ok(await http("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 5}))["metadata"]
    assert (shorter["deletionGracePeriodSeconds"], shorter["generation"]) == (5, 2)
    assert shorter["deletionTimestamp"] < meta["deletionTimestamp"]
    ok(await http("DELETE", f"{PODS}/p?gracePeriodSeconds=0"))
    assert (await http("GET", f"{PODS}/p")).code == 404


async def test_a_pod_nobody_runs_goes_at_once(http: Http) -> None:
    ok(await http("POST", PODS, pod("unscheduled")), 201)
    ok(await http("DELETE", f"{PODS}/unscheduled"))
    assert (await http("GET", f"{PODS}/unscheduled")).code == 404
    ok(await http("POST", PODS, pod("done", node="n1")), 201)
    ok(await patch(http, f"{PODS}/done/status", {"status": {"phase": "Succeeded"}}))
    ok(await http("DELETE", f"{PODS}/done"))
    assert (await http("GET", f"{PODS}/done")).code == 404


async def test_a_pod_with_a_finalizer_waits_for_it_after_its_grace(http: Http) -> None:
    ok(await http("POST", PODS, pod(node="n1", finalizers=[HOLD])), 201)
    ok(await http("DELETE", f"{PODS}/p"))
    ok(await patch(http, f"{PODS}/p", {"metadata": {"finalizers": None}}))
    assert ok(await http("GET", f"{PODS}/p"))["metadata"]["deletionGracePeriodSeconds"] == 30
    ok(await http("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 0}))
    assert (await http("GET", f"{PODS}/p")).code == 404


def _owned(name: str, owner: Any, **more: Any) -> Any:
    meta = owner["metadata"]
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": meta["name"], "uid": meta["uid"], **more}
    return configmap(name, ownerReferences=[reference])


async def _gone(http: Http, path: str) -> None:
    async def absent() -> bool:
        return (await http("GET", path)).code == 404

    await eventually(absent)


async def test_background_deletion_takes_dependents_after_their_owner(http: Http) -> None:
    owner = ok(await http("POST", CONFIGMAPS, configmap("owner")), 201)
    ok(await http("POST", CONFIGMAPS, _owned("child", owner)), 201)
    ok(await http("DELETE", f"{CONFIGMAPS}/owner", {"propagationPolicy": "Background"}))
    assert (await http("GET", f"{CONFIGMAPS}/owner")).code == 404
    await _gone(http, f"{CONFIGMAPS}/child")


async def test_foreground_deletion_takes_dependents_first(http: Http) -> None:
    owner = ok(await http("POST", CONFIGMAPS, configmap("owner")), 201)
    child = _owned("child", owner, blockOwnerDeletion=True)
    child["metadata"]["finalizers"] = [HOLD]
    ok(await http("POST", CONFIGMAPS, child), 201)
    held = ok(await http("DELETE", f"{CONFIGMAPS}/owner", {"propagationPolicy": "Foreground"}))
    assert held["metadata"]["finalizers"] == ["foregroundDeletion"]
    assert ok(await http("DELETE", f"{CONFIGMAPS}/owner")) == held, "a deletion without a policy leaves that in force"

    async def child_marked() -> bool:
        return "deletionTimestamp" in ok(await http("GET", f"{CONFIGMAPS}/child"))["metadata"]

    await eventually(child_marked)
    assert (await http("GET", f"{CONFIGMAPS}/owner")).code == 200
    ok(await patch(http, f"{CONFIGMAPS}/child", {"metadata": {"finalizers": None}}))
    await _gone(http, f"{CONFIGMAPS}/owner")


async def test_orphaning_leaves_dependents_without_their_owner(http: Http) -> None:
    owner = ok(await http("POST", CONFIGMAPS, configmap("owner")), 201)
    ok(await http("POST", CONFIGMAPS, _owned("child", owner)), 201)
    held = ok(await http("DELETE", f"{CONFIGMAPS}/owner", {"propagationPolicy": "Orphan"}))
    assert held["metadata"]["finalizers"] == ["orphan"]
    await _gone(http, f"{CONFIGMAPS}/owner")
    assert not ok(await http("GET", f"{CONFIGMAPS}/child"))["metadata"].get("ownerReferences")


async def test_jobs_and_replication_controllers_orphan_by_default(http: Http, server: ApiServer) -> None:
    jobs = "/apis/batch/v1/namespaces/default/jobs"
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    ok(await http("POST", jobs, {"metadata": {"name": "j", "finalizers": [HOLD]}, "spec": {"template": template}}), 201)
    assert set(ok(await http("DELETE", f"{jobs}/j"))["metadata"]["finalizers"]) == {HOLD, "orphan"}
    rc = {"metadata": {"name": "r", "finalizers": [HOLD]}, "spec": {"selector": {"a": "b"}, "template": pod()}}
    rc["spec"]["template"] = {"metadata": {"labels": {"a": "b"}}, "spec": pod()["spec"]}
    path = f"{CORE}/replicationcontrollers"
    ok(await http("POST", path, rc), 201)
    assert ok(await http("DELETE", f"{path}/r", {"propagationPolicy": "Background"}))["metadata"]["finalizers"] == [
        HOLD
    ]


async def test_a_collection_is_deleted_by_selector_and_listed(http: Http) -> None:
    for index in range(4):
        labels = {"group": "even" if index % 2 == 0 else "odd"}
        ok(await http("POST", CONFIGMAPS, configmap(f"c{index}", labels=labels)), 201)
    deleted = ok(await http("DELETE", f"{CONFIGMAPS}?labelSelector=group%3Deven"))
    assert deleted["kind"] == "ConfigMapList"
    assert [item["metadata"]["name"] for item in deleted["items"]] == ["c0", "c2"]
    ok(await http("DELETE", f"{CONFIGMAPS}?fieldSelector=metadata.name%3Dc1"))
    names = [item["metadata"]["name"] for item in ok(await http("GET", CONFIGMAPS))["items"]]
    assert "c3" in names
    assert not {"c0", "c1", "c2"} & set(names)


async def test_a_collection_keeps_the_options_for_each(http: Http) -> None:
    for name in ("a", "b"):
        ok(await http("POST", PODS, pod(name, node="n1", labels={"x": "y"})), 201)
    before = await revision(http)
    ok(await http("DELETE", f"{PODS}?labelSelector=x%3Dy", {"dryRun": ["All"]}))
    assert await revision(http) == before
    ok(await http("DELETE", f"{PODS}?labelSelector=x%3Dy", {"gracePeriodSeconds": 7}))
    for name in ("a", "b"):
        assert ok(await http("GET", f"{PODS}/{name}"))["metadata"]["deletionGracePeriodSeconds"] == 7


@cases("labelSelector=a%3D%3D%3Db", "fieldSelector=spec.foo%3Dx", "labelSelector=%21%21")
async def test_a_selector_that_is_none_deletes_nothing(query: str, http: Http) -> None:
    ok(await http("POST", CONFIGMAPS, configmap()), 201)
    refused(await http("DELETE", f"{CONFIGMAPS}?{query}"), 400, "BadRequest")
    ok(await http("GET", f"{CONFIGMAPS}/c"))


async def test_a_collection_in_another_version_is_answered_in_that_version(http: Http) -> None:
    path = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers"
    body = {
        "metadata": {"name": "h"},
        "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"}, "maxReplicas": 3},
    }
    ok(await http("POST", path, body), 201)
    deleted = ok(await http("DELETE", path))
    assert deleted["apiVersion"] == "autoscaling/v1"
    assert "metrics" not in deleted["items"][0]["spec"]


async def test_namespaces_are_not_deleted_by_the_collection(http: Http) -> None:
    refused(await http("DELETE", "/api/v1/namespaces"), 405, "MethodNotAllowed")


@cases("default", "kube-system", "kube-public")
async def test_some_namespaces_may_not_be_deleted(name: str, http: Http) -> None:
    status = refused(await http("DELETE", f"/api/v1/namespaces/{name}"), 403, "Forbidden")
    assert status["message"] == f'namespaces "{name}" is forbidden: this namespace may not be deleted'


async def test_of_concurrent_deletes_one_succeeds_and_a_patch_does_not_resurrect(http: Http, server: ApiServer) -> None:
    interleave(server)
    ok(await http("POST", CONFIGMAPS, configmap()), 201)
    answers = await asyncio.gather(
        *(http("DELETE", f"{CONFIGMAPS}/c") for _ in range(4)),
        *(patch(http, f"{CONFIGMAPS}/c", {"data": {"x": str(i)}}) for i in range(4)),
    )
    assert [answer.code for answer in answers[:4]].count(200) == 1
    assert {answer.code for answer in answers[:4]} <= {200, 404}
    assert {answer.code for answer in answers[4:]} <= {200, 404}
    assert (await http("GET", f"{CONFIGMAPS}/c")).code == 404
