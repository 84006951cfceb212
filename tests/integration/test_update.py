"""PUT: versions, what a body may and may not change, no-ops, generation, create-on-update."""

from __future__ import annotations

import asyncio
from typing import Any

from karmada.kube.server.app import ApiServer
from tests.integration.samples import (
    APPS,
    CONFIGMAPS,
    CORE,
    DEPLOYMENTS,
    PODS,
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
from tests.support.wire import Http

STALE = "the object has been modified; please apply your changes to the latest version and try again"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


async def test_a_put_replaces_the_object_and_moves_its_version(http: Http) -> None:
    created = ok(await http("POST", CONFIGMAPS, configmap()), 201)
    updated = ok(await http("PUT", f"{CONFIGMAPS}/c", configmap(data={"b": "2"})))
    assert updated["data"] == {"b": "2"}
    assert int(updated["metadata"]["resourceVersion"]) > int(created["metadata"]["resourceVersion"])
    for key in ("uid", "creationTimestamp"):
        assert updated["metadata"][key] == created["metadata"][key]
    assert ok(await http("GET", f"{CONFIGMAPS}/c")) == updated


async def test_a_stale_version_is_a_conflict_and_changes_nothing(http: Http) -> None:
    created = ok(await http("POST", DEPLOYMENTS, deployment()), 201)
    ok(await http("PUT", f"{DEPLOYMENTS}/web", deployment(replicas=3)))
    before = await revision(http)
    created["spec"]["replicas"] = 9
    status = refused(await http("PUT", f"{DEPLOYMENTS}/web", created), 409, "Conflict")
    assert status["message"] == f'Operation cannot be fulfilled on deployments.apps "web": {STALE}'
    assert status["details"] == {"name": "web", "group": "apps", "kind": "deployments"}
    assert await revision(http) == before


@cases("", "0")
async def test_a_put_without_a_version_is_unconditional(version: str, http: Http) -> None:
    ok(await http("POST", CONFIGMAPS, configmap()), 201)
    ok(await http("PUT", f"{CONFIGMAPS}/c", configmap(data={"x": "1"}, resourceVersion=version)))


async def test_the_uid_is_a_precondition(http: Http) -> None:
    created = ok(await http("POST", CONFIGMAPS, configmap()), 201)
    uid = created["metadata"]["uid"]
    status = refused(await http("PUT", f"{CONFIGMAPS}/c", configmap(uid="other")), 409, "Conflict")
    assert status["message"].startswith('Operation cannot be fulfilled on configmaps "c": StorageError: invalid object')
    assert f"Precondition failed: UID in precondition: other, UID in object meta: {uid}" in status["message"]
    ok(await http("PUT", f"{CONFIGMAPS}/c", configmap(uid=uid)))


async def test_name_and_namespace_of_the_body_must_be_those_of_the_url(http: Http) -> None:
    ok(await http("POST", CONFIGMAPS, configmap()), 201)
    before = await revision(http)
    status = refused(await http("PUT", f"{CONFIGMAPS}/c", configmap("d")), 400, "BadRequest")
    assert status["message"] == "the name of the object (d) does not match the name on the URL (c)"
    refused(
        await http("PUT", f"{CONFIGMAPS}/c", configmap(namespace="kube-system")),
        400,
        "BadRequest",
        "the namespace of the provided object does not match the namespace sent on the request",
    )
    assert await revision(http) == before


async def test_the_body_must_have_a_name(http: Http) -> None:
    ok(await http("POST", CONFIGMAPS, configmap()), 201)
    status = refused(await http("PUT", f"{CONFIGMAPS}/c", {"data": {}}), 400, "BadRequest")
    assert status["message"] == ("the name of the object (c based on URL) was undeterminable: name must be provided")


async def test_what_does_not_exist_cannot_be_updated(http: Http) -> None:
    status = refused(await http("PUT", f"{DEPLOYMENTS}/web", deployment()), 404, "NotFound")
    assert status["message"] == 'deployments.apps "web" not found'
    assert status["details"] == {"name": "web", "group": "apps", "kind": "deployments"}


async def test_server_set_metadata_cannot_be_changed(http: Http) -> None:
    created = ok(await http("POST", DEPLOYMENTS, deployment()), 201)
    body = deployment(
        creationTimestamp="2001-01-01T00:00:00Z", generation=50, deletionTimestamp="2001-01-01T00:00:00Z", selfLink="/x"
    )
    updated = ok(await http("PUT", f"{DEPLOYMENTS}/web", body))
    assert updated == created


async def test_a_put_that_changes_nothing_keeps_the_version_and_is_no_event(http: Http) -> None:
    ok(await http("POST", DEPLOYMENTS, deployment()), 201)
    stored = ok(await http("GET", f"{DEPLOYMENTS}/web"))
    since = await quiet_revision(http)
    async with watching(http, DEPLOYMENTS, since) as following:
        assert ok(await http("PUT", f"{DEPLOYMENTS}/web", stored)) == stored
        assert ok(await http("PUT", f"{DEPLOYMENTS}/web", deployment())) == stored
        assert ok(await patch(http, f"{DEPLOYMENTS}/web", {"spec": {"replicas": 2}})) == stored
        assert await revision(http) == since
        marker = ok(await http("POST", DEPLOYMENTS, deployment("marker")), 201)
        assert (await following())["object"] == marker


async def test_the_main_endpoint_keeps_the_stored_status(http: Http) -> None:
    ok(await http("POST", DEPLOYMENTS, deployment()), 201)
    ok(await http("PUT", f"{DEPLOYMENTS}/web/status", deployment() | {"status": {"replicas": 2}}))
    updated = ok(await http("PUT", f"{DEPLOYMENTS}/web", deployment(replicas=5) | {"status": {"replicas": 77}}))
    assert (updated["spec"]["replicas"], updated["status"]) == (5, {"replicas": 2})


CREATE_ON_UPDATE: list[tuple[str, Any]] = [
    (f"{CORE}/endpoints", {}),
    (f"{CORE}/events", {"involvedObject": {"namespace": "default"}}),
    (LEASES, {"spec": {"holderIdentity": "me", "leaseDurationSeconds": 5}}),
    (f"{CORE}/limitranges", {}),
    (f"{CORE}/services", {"spec": {"ports": [{"port": 80}]}}),
    ("/apis/node.k8s.io/v1/runtimeclasses", {"handler": "h"}),
    ("/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles", {}),
    (
        "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings",
        {"roleRef": {"kind": "ClusterRole", "name": "view"}},
    ),
    ("/apis/rbac.authorization.k8s.io/v1/clusterroles", {}),
    ("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {"roleRef": {"kind": "ClusterRole", "name": "view"}}),
]


async def test_these_kinds_and_no_others_are_created_by_a_put(http: Http) -> None:
    for path, body in CREATE_ON_UPDATE:
        answer = await http("PUT", f"{path}/put", {**body, "metadata": {"name": "put"}})
        assert answer.code == 201, (path, answer.body)
        assert (await http("GET", f"{path}/put")).code == 200
    others = [(CONFIGMAPS, configmap("put")), (DEPLOYMENTS, deployment("put")), (PODS, pod("put"))]
    for path, body in others:
        refused(await http("PUT", f"{path}/put", body), 404, "NotFound")


async def test_creating_by_put_needs_the_right_to_create(http: Http) -> None:
    rules = [{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "update"]}]
    rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
    ok(await http("POST", f"{rbac}/roles", {"metadata": {"name": "renewer"}, "rules": rules}), 201)
    binding = {
        "metadata": {"name": "renewer"},
        "roleRef": {"kind": "Role", "name": "renewer"},
        "subjects": [{"kind": "User", "name": "bob"}],
    }
    ok(await http("POST", f"{rbac}/rolebindings", binding), 201)
    bob = {"Impersonate-User": "bob"}
    lease = {"metadata": {"name": "l"}, "spec": {"holderIdentity": "bob", "leaseDurationSeconds": 1}}
    refused(await http("PUT", f"{LEASES}/l", lease, headers=bob), 403, "Forbidden", 'User "bob" cannot create resource')
    stored = ok(await http("PUT", f"{LEASES}/l", lease), 201)
    ok(await http("PUT", f"{LEASES}/l", stored, headers=bob))


async def test_a_put_of_something_deleted_does_not_bring_back_another_object(http: Http) -> None:
    lease = {"metadata": {"name": "l"}, "spec": {"holderIdentity": "a", "leaseDurationSeconds": 1}}
    stored = ok(await http("PUT", f"{LEASES}/l", lease), 201)
    ok(await http("DELETE", f"{LEASES}/l"))
    refused(await http("PUT", f"{LEASES}/l", stored), 409, "Conflict", "UID in precondition: ", "UID in object meta: ")
    del stored["metadata"]["uid"]
    again = ok(await http("PUT", f"{LEASES}/l", stored), 201)
    assert again["metadata"]["resourceVersion"] != stored["metadata"]["resourceVersion"]


VERSION_NEEDED: list[tuple[str, Any]] = [
    (LEASES, {"spec": {"holderIdentity": "me", "leaseDurationSeconds": 5}}),
    (
        "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
        {"spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}},
    ),
    ("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", {}),
    ("/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", {}),
    ("/apis/storage.k8s.io/v1/csidrivers", {"spec": {}}),
    ("/apis/storage.k8s.io/v1/csinodes", {"spec": {"drivers": []}}),
    (
        "/apis/storage.k8s.io/v1/volumeattachments",
        {"spec": {"attacher": "a.io", "nodeName": "n", "source": {"persistentVolumeName": "pv"}}},
    ),
    ("/apis/node.k8s.io/v1/runtimeclasses", {"handler": "h"}),
]


async def test_these_kinds_are_only_updated_with_a_version(http: Http) -> None:
    for path, body in VERSION_NEEDED:
        stored = ok(await http("POST", path, {**body, "metadata": {"name": "x"}}), 201)
        answer = await http("PUT", f"{path}/x", {**body, "metadata": {"name": "x"}})
        refused(answer, 422, "Invalid", "metadata.resourceVersion: Invalid value: 0: must be specified for an update")
        ok(await http("PUT", f"{path}/x", stored))
        ok(await patch(http, f"{path}/x", {"metadata": {"labels": {"a": "b"}}}))


def _template(labels: dict[str, str], restart: str = "Always") -> Any:
    return {
        "metadata": {"labels": labels},
        "spec": {"restartPolicy": restart, "containers": [{"name": "c", "image": "i:1"}]},
    }


_SELECTED = {"selector": {"matchLabels": {"a": "b"}}, "template": _template({"a": "b"})}
GENERATIONS: list[tuple[str, Any, Any]] = [
    (DEPLOYMENTS, {"spec": _SELECTED}, {"spec": {"replicas": 5}}),
    (DEPLOYMENTS, {"spec": _SELECTED}, {"metadata": {"annotations": {"x": "y"}}}),
    (f"{APPS}/replicasets", {"spec": _SELECTED}, {"spec": {"replicas": 5}}),
    (f"{APPS}/statefulsets", {"spec": {**_SELECTED, "serviceName": "s"}}, {"spec": {"replicas": 5}}),
    (f"{APPS}/daemonsets", {"spec": _SELECTED}, {"spec": {"minReadySeconds": 5}}),
    (
        f"{CORE}/replicationcontrollers",
        {"spec": {"selector": {"a": "b"}, "template": _template({"a": "b"})}},
        {"spec": {"replicas": 5}},
    ),
    (
        "/apis/batch/v1/namespaces/default/jobs",
        {"spec": {"template": _template({}, "Never")}},
        {"spec": {"suspend": True}},
    ),
    (
        "/apis/batch/v1/namespaces/default/cronjobs",
        {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": _template({}, "Never")}}}},
        {"spec": {"suspend": True}},
    ),
    (PODS, {"spec": {"containers": [{"name": "c", "image": "i:1"}]}}, {"spec": {"activeDeadlineSeconds": 9}}),
    (
        "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies",
        {"spec": {"podSelector": {}}},
        {"spec": {"policyTypes": ["Egress"]}},
    ),
    (
        "/apis/networking.k8s.io/v1/namespaces/default/ingresses",
        {"spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}},
        {"spec": {"ingressClassName": "c"}},
    ),
    (
        "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
        {"spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}},
        {"spec": {"minAvailable": 2}},
    ),
    (
        "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
        {"addressType": "IPv4", "endpoints": []},
        {"metadata": {"labels": {"a": "b"}}},
    ),
]


async def test_the_generation_rises_by_one_when_the_kind_says_so(http: Http) -> None:
    for index, (collection, body, change) in enumerate(GENERATIONS):
        path = f"{collection}/x{index}"
        created = ok(await http("POST", collection, {**body, "metadata": {"name": f"x{index}"}}), 201)
        assert created["metadata"]["generation"] == 1
        finalizer = {"metadata": {"finalizers": ["example.io/hold"]}}
        assert ok(await patch(http, path, finalizer))["metadata"]["generation"] == 1
        assert ok(await patch(http, path, change))["metadata"]["generation"] == 2
        assert ok(await patch(http, path, change))["metadata"]["generation"] == 2
        deleted = ok(await http("DELETE", path, {"propagationPolicy": "Background"}))
        assert deleted["metadata"]["generation"] == 3


async def test_a_csi_driver_counts_from_its_first_change(http: Http) -> None:
    drivers = "/apis/storage.k8s.io/v1/csidrivers"
    created = ok(await http("POST", drivers, {"metadata": {"name": "d.example"}, "spec": {}}), 201)
    assert "generation" not in created["metadata"]
    changed = ok(await patch(http, f"{drivers}/d.example", {"spec": {"requiresRepublish": True}}))
    assert changed["metadata"]["generation"] == 1


NO_GENERATION: list[tuple[str, Any, Any]] = [
    (CONFIGMAPS, {}, {"data": {"a": "2"}}),
    (f"{CORE}/secrets", {}, {"data": {"a": "Mg=="}}),
    (f"{CORE}/services", {"spec": {"ports": [{"port": 80}]}}, {"spec": {"sessionAffinity": "ClientIP"}}),
    ("/api/v1/namespaces", {}, {"metadata": {"labels": {"a": "b"}}}),
    ("/api/v1/nodes", {}, {"spec": {"unschedulable": True}}),
    (f"{CORE}/serviceaccounts", {}, {"automountServiceAccountToken": False}),
    ("/apis/rbac.authorization.k8s.io/v1/clusterroles", {}, {"rules": []}),
    (LEASES, {"spec": {}}, {"spec": {"holderIdentity": "x", "leaseDurationSeconds": 3}}),
    (f"{CORE}/endpoints", {}, {"subsets": [{"addresses": [{"ip": "1.2.3.4"}]}]}),
    (f"{CORE}/resourcequotas", {"spec": {"hard": {"pods": "1"}}}, {"spec": {"hard": {"pods": "2"}}}),
]


async def test_other_kinds_have_no_generation(http: Http) -> None:
    for path, body, change in NO_GENERATION:
        ok(await http("POST", path, {**body, "metadata": {"name": "x"}}), 201)
        assert "generation" not in ok(await patch(http, f"{path}/x", change))["metadata"], path


async def test_concurrent_unconditional_puts_are_serialised_and_their_managers_kept(
    http: Http, server: ApiServer
) -> None:
    interleave(server)
    ok(await http("POST", f"{CONFIGMAPS}?fieldManager=first", configmap()), 201)
    writers = [f"m{i}" for i in range(8)]

    async def put(manager: str) -> Any:
        body = configmap(data={manager: "1"})
        return await http("PUT", f"{CONFIGMAPS}/c?fieldManager={manager}", body)

    answers = await asyncio.gather(*(put(manager) for manager in writers))
    assert [answer.code for answer in answers] == [200] * 8
    final = ok(await http("GET", f"{CONFIGMAPS}/c"))
    [last] = final["data"]
    owners = {entry["manager"]: entry["fieldsV1"] for entry in final["metadata"]["managedFields"]}
    assert "f:" + last in owners[last]["f:data"]
    for manager in set(writers) - {last}:
        assert "f:" + manager not in owners.get(manager, {}).get("f:data", {})


async def test_concurrent_conditional_puts_let_one_through(http: Http, server: ApiServer) -> None:
    interleave(server)
    created = ok(await http("POST", CONFIGMAPS, configmap(data={})), 201)
    bodies = [{**created, "data": {f"k{i}": "1"}} for i in range(8)]
    answers = await asyncio.gather(*(http("PUT", f"{CONFIGMAPS}/c", body) for body in bodies))
    assert sorted(answer.code for answer in answers) == [200] + [409] * 7


async def test_the_body_may_wipe_or_set_managed_fields(http: Http) -> None:
    ok(await http("POST", CONFIGMAPS, configmap()), 201)
    wipes: tuple[list[Any], ...] = ([], [{}])
    for wipe in wipes:
        updated = ok(await http("PUT", f"{CONFIGMAPS}/c", configmap(managedFields=wipe)))
        assert "managedFields" not in updated["metadata"]
    entry = {
        "manager": "x", "operation": "Apply", "apiVersion": "v1", "time": "2026-01-01T00:00:00Z",
        "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:a": {}}},
    }  # fmt: skip
    updated = ok(await http("PUT", f"{CONFIGMAPS}/c", configmap(managedFields=[entry])))
    assert updated["metadata"]["managedFields"] == [entry]
    kept = ok(await http("PUT", f"{CONFIGMAPS}/c", configmap()))
    assert kept["metadata"]["managedFields"] == [entry]
