"""Server-side apply over the wire: ownership, conflicts and their texts, pruning, creation, subresources."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from karmada.kube.server.app import ApiServer
from tests.integration.samples import (
    APPLY,
    CONFIGMAPS,
    DEPLOYMENTS,
    PODS,
    WIDGETS,
    apply,
    configmap,
    crd,
    deployment,
    install,
    interleave,
    ok,
    patch,
    pod,
    refused,
    revision,
    widget,
)
from tests.support.cases import cases
from tests.support.objects import kube_object
from tests.support.wire import Http


def managers(obj: Any) -> dict[tuple[str, str, str], Any]:
    entries = obj["metadata"].get("managedFields", [])
    return {(e["manager"], e["operation"], e.get("subresource", "")): e["fieldsV1"] for e in entries}


def scaled(replicas: int, **meta: Any) -> Any:
    """A Deployment of which nothing but the replicas is meant."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", **meta},
        "spec": {"replicas": replicas},
    }


async def test_an_apply_of_something_new_creates_it(http: Http) -> None:
    created = ok(await apply(http, f"{CONFIGMAPS}/c", configmap()), 201)
    assert managers(created) == {("me", "Apply", ""): {"f:data": {"f:a": {}}}}
    assert ok(await apply(http, f"{CONFIGMAPS}/c", configmap())) == created


async def test_an_apply_may_be_yaml(http: Http) -> None:
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\ndata:\n  a: 'yes'\n"
    assert ok(await apply(http, f"{CONFIGMAPS}/c", text), 201)["data"] == {"a": "yes"}


async def test_an_apply_must_name_its_manager(http: Http) -> None:
    answer = await http("PATCH", f"{CONFIGMAPS}/c", configmap(), content_type=APPLY)
    status = refused(answer, 422, "Invalid")
    assert status["message"] == (
        'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch'
    )
    assert (await http("GET", f"{CONFIGMAPS}/c")).code == 404


@cases(
    (configmap() | {"apiVersion": "v2"}, 400, "invalid object type: /v2, Kind=ConfigMap"),
    (configmap() | {"kind": "Secret"}, 400, "invalid object type: /v1, Kind=Secret"),
    (configmap("other"), 400, "the name of the object (other) does not match the name on the URL (c)"),
    (configmap(namespace="other"), 400, "the namespace of the provided object does not match"),
    (configmap(managedFields=[{"manager": "x"}]), 400, "metadata.managedFields must be nil"),
    (b"[1]", 400, "error decoding YAML"),
    (b"a: {", 400, "error decoding YAML"),
    (b"", 400, "invalid object type: /, Kind="),
)
async def test_an_apply_that_does_not_fit_is_refused_and_changes_nothing(
    body: Any, code: int, text: str, http: Http
) -> None:
    before = await revision(http)
    refused(await apply(http, f"{CONFIGMAPS}/c", body), code, "BadRequest", text)
    assert await revision(http) == before


async def test_a_conflict_names_the_manager_and_the_field(http: Http) -> None:
    ok(await http("POST", f"{DEPLOYMENTS}?fieldManager=owner", deployment()), 201)
    before = await revision(http)
    status = refused(await apply(http, f"{DEPLOYMENTS}/web", scaled(5)), 409, "Conflict")
    assert status["message"] == ('Apply failed with 1 conflict: conflict with "owner" using apps/v1: .spec.replicas')
    assert status["details"]["causes"] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "owner" using apps/v1', "field": ".spec.replicas"}
    ]
    assert await revision(http) == before


async def test_several_conflicts_are_listed_by_manager(http: Http) -> None:
    ok(await http("POST", f"{CONFIGMAPS}?fieldManager=a", configmap(data={"x": "1", "y": "1"})), 201)
    ok(await apply(http, f"{CONFIGMAPS}/c", configmap(data={"z": "1"}), "b"))
    status = refused(
        await apply(http, f"{CONFIGMAPS}/c", configmap(data={"x": "2", "y": "2", "z": "2"})), 409, "Conflict"
    )
    assert status["message"] == (
        'Apply failed with 3 conflicts: conflicts with "a" using v1:\n- .data.x\n- .data.y\n'
        'conflicts with "b":\n- .data.z'
    )
    assert [cause["field"] for cause in status["details"]["causes"]] == [".data.x", ".data.y", ".data.z"]


async def test_conflicts_in_lists_show_their_keys(http: Http) -> None:
    ok(await http("POST", f"{DEPLOYMENTS}?fieldManager=owner", deployment()), 201)
    body = scaled(2)
    body["spec"] = {"template": {"spec": {"containers": [{"name": "c", "image": "nginx:9"}]}}}
    refused(
        await apply(http, f"{DEPLOYMENTS}/web", body),
        409,
        "Conflict",
        '.spec.template.spec.containers[name="c"].image',
    )


async def test_force_takes_the_field_over(http: Http) -> None:
    ok(await http("POST", f"{DEPLOYMENTS}?fieldManager=owner", deployment()), 201)
    forced = ok(await apply(http, f"{DEPLOYMENTS}/web", scaled(5), query="&force=true"))
    assert (forced["spec"]["replicas"], forced["metadata"]["generation"]) == (5, 2)
    owners = managers(forced)
    assert owners["me", "Apply", ""] == {"f:spec": {"f:replicas": {}}}
    assert "f:replicas" not in owners["owner", "Update", ""]["f:spec"]


async def test_equal_values_are_owned_together_and_stay_while_one_owner_remains(http: Http) -> None:
    ok(await apply(http, f"{CONFIGMAPS}/c", configmap(data={"a": "1", "b": "1"}), "one"), 201)
    ok(await apply(http, f"{CONFIGMAPS}/c", configmap(data={"b": "1"}), "two"))
    left = ok(await apply(http, f"{CONFIGMAPS}/c", configmap(data={}), "one"))
    assert left["data"] == {"b": "1"}
    gone = ok(await apply(http, f"{CONFIGMAPS}/c", configmap(data={}), "two"))
    assert "data" not in gone


async def test_an_update_takes_ownership_so_that_the_applier_no_longer_prunes_it(http: Http) -> None:
    ok(await apply(http, f"{CONFIGMAPS}/c", configmap(data={"a": "1", "b": "1"})), 201)
    ok(await patch(http, f"{CONFIGMAPS}/c", {"data": {"a": "2"}}, query="?fieldManager=other"))
    left = ok(await apply(http, f"{CONFIGMAPS}/c", configmap(data={})))
    assert left["data"] == {"a": "2"}


async def test_the_first_apply_credits_unknown_fields_to_before_first_apply(http: Http) -> None:
    ok(await http("POST", CONFIGMAPS, configmap()), 201)
    ok(await http("PUT", f"{CONFIGMAPS}/c", configmap(managedFields=[{}])))
    applied = ok(await apply(http, f"{CONFIGMAPS}/c", configmap(data={"b": "2"})))
    assert managers(applied)["before-first-apply", "Update", ""] == {"f:data": {".": {}, "f:a": {}}}


async def test_an_apply_that_changes_nothing_stores_nothing(http: Http) -> None:
    first = ok(await apply(http, f"{DEPLOYMENTS}/web", deployment()), 201)
    before = await revision(http)
    assert ok(await apply(http, f"{DEPLOYMENTS}/web", deployment())) == first
    assert await revision(http) == before


async def test_fields_unknown_to_the_schema_fail_whatever_the_validation(http: Http) -> None:
    body = deployment(namespace="default")
    body["spec"]["foo"] = 1
    before = await revision(http)
    for directive in ("Ignore", "Warn", "Strict"):
        answer = await apply(http, f"{DEPLOYMENTS}/web", body, query=f"&fieldValidation={directive}")
        status = refused(answer, 500, "")
        assert status["message"] == (
            "failed to create typed patch object (default/web; apps/v1, Kind=Deployment): "
            ".spec.foo: field not declared in schema"
        )
    assert await revision(http) == before


async def test_two_list_items_of_one_key_fail(http: Http) -> None:
    body = deployment(namespace="default")
    body["spec"]["template"]["spec"]["containers"] *= 2
    status = refused(await apply(http, f"{DEPLOYMENTS}/web", body), 500, "")
    assert "failed to create typed patch object" in status["message"]
    assert "duplicate entries for key" in status["message"]


@cases(
    b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"a":"1","a":"2"}}',
    b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  a: '1'\n  a: '2'\n",
)
async def test_repeated_keys_are_an_error_a_warning_or_nothing(text: bytes, http: Http) -> None:
    strict = await apply(http, f"{CONFIGMAPS}/c", text, query="&fieldValidation=Strict")
    refused(strict, 400, "BadRequest", "error strict decoding YAML: ", 'key "a" already set in map')
    assert (await http("GET", f"{CONFIGMAPS}/c")).code == 404
    warned = await apply(http, f"{CONFIGMAPS}/c", text)
    assert ok(warned, 201)["data"] == {"a": "2"}
    assert any('key \\"a\\" already set in map' in warning for warning in warned.warnings)
    assert (await apply(http, f"{CONFIGMAPS}/c", text, query="&fieldValidation=Ignore")).warnings == []


async def test_a_version_in_the_configuration_is_a_precondition(http: Http) -> None:
    created = ok(await apply(http, f"{CONFIGMAPS}/c", configmap()), 201)
    version = created["metadata"]["resourceVersion"]
    ok(await apply(http, f"{CONFIGMAPS}/c", configmap(data={"a": "2"}, resourceVersion=version)))
    answer = await apply(http, f"{CONFIGMAPS}/c", configmap(data={"a": "3"}, resourceVersion=version))
    refused(answer, 409, "Conflict", "the object has been modified")


async def test_status_applied_to_a_deployment_owns_neither_spec_nor_labels(http: Http) -> None:
    ok(await http("POST", DEPLOYMENTS, deployment(labels={"a": "1"})), 201)
    body = scaled(9, labels={"a": "2"}, annotations={"n": "1"}) | {"status": {"replicas": 3}}
    applied = ok(await apply(http, f"{DEPLOYMENTS}/web/status", body, "ctl"))
    assert (applied["spec"]["replicas"], applied["status"]) == (2, {"replicas": 3})
    assert (applied["metadata"]["labels"], applied["metadata"]["annotations"]) == ({"a": "1"}, {"n": "1"})
    assert managers(applied)["ctl", "Apply", "status"] == {
        "f:metadata": {"f:annotations": {"f:n": {}}},
        "f:status": {"f:replicas": {}},
    }
    assert applied["metadata"]["generation"] == 1


async def test_status_applied_to_a_pod_keeps_its_owners_but_takes_labels(http: Http) -> None:
    ok(await http("POST", CONFIGMAPS, configmap("o")), 201)
    uid = ok(await http("GET", f"{CONFIGMAPS}/o"))["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": uid}
    ok(await http("POST", PODS, pod(ownerReferences=[owner])), 201)
    body = kube_object(
        "v1", "Pod", "p", labels={"x": "y"}, ownerReferences=[owner | {"controller": True}], status={"message": "hello"}
    )
    applied = ok(await apply(http, f"{PODS}/p/status", body, "kubelet"))
    assert applied["metadata"]["ownerReferences"] == [owner]
    assert (applied["metadata"]["labels"], applied["status"]["message"]) == ({"x": "y"}, "hello")
    assert managers(applied)["kubelet", "Apply", "status"] == {
        "f:metadata": {"f:labels": {"f:x": {}}},
        "f:status": {"f:message": {}},
    }


async def test_a_status_cannot_be_applied_to_nothing(http: Http) -> None:
    refused(await apply(http, f"{DEPLOYMENTS}/web/status", scaled(1)), 404, "NotFound")


async def test_a_scale_applied_owns_the_replicas_of_its_parent(http: Http) -> None:
    created = ok(await apply(http, f"{DEPLOYMENTS}/web", deployment(), "owner"), 201)
    scale = kube_object("autoscaling/v1", "Scale", "web", spec={"replicas": 6})
    refused(
        await apply(http, f"{DEPLOYMENTS}/web/scale", scale, "hpa"),
        409,
        "Conflict",
        'conflict with "owner": .spec.replicas',
    )
    answer = ok(await apply(http, f"{DEPLOYMENTS}/web/scale", scale, "hpa", "&force=true"))
    assert (answer["kind"], answer["spec"]["replicas"]) == ("Scale", 6)
    parent = ok(await http("GET", f"{DEPLOYMENTS}/web"))
    assert parent["spec"]["replicas"] == 6
    assert managers(parent)["hpa", "Apply", "scale"] == {"f:spec": {"f:replicas": {}}}
    stale = {**scale, "metadata": {"resourceVersion": created["metadata"]["resourceVersion"]}}
    refused(await apply(http, f"{DEPLOYMENTS}/web/scale", stale, "hpa", "&force=true"), 409, "Conflict")
    bad = {**scale, "spec": {"replicas": -1}}
    refused(
        await apply(http, f"{DEPLOYMENTS}/web/scale", bad, "hpa"), 422, "Invalid", "must be greater than or equal to 0"
    )
    wrong = {**scale, "spec": {"replicas": "x"}}
    assert (await apply(http, f"{DEPLOYMENTS}/web/scale", wrong, "hpa")).code == 400


async def test_custom_resources_are_applied_by_their_topology(http: Http) -> None:
    await install(http, crd())
    one = widget(spec={"size": 1, "parts": [{"name": "a", "n": 1}]})
    ok(await apply(http, f"{WIDGETS}/w", one, "one"), 201)
    two = widget(spec={"parts": [{"name": "b", "n": 2}]})
    both = ok(await apply(http, f"{WIDGETS}/w", two, "two"))
    assert both["spec"]["parts"] == [{"name": "a", "n": 1}, {"name": "b", "n": 2}]
    assert managers(both)["two", "Apply", ""]["f:spec"]["f:parts"] == {
        'k:{"name":"b"}': {".": {}, "f:n": {}, "f:name": {}}
    }
    refused(
        await apply(http, f"{WIDGETS}/w", widget(spec={"parts": [{"name": "a", "n": 9}]}), "two"),
        409,
        "Conflict",
        '.spec.parts[name="a"].n',
    )
    left = ok(await apply(http, f"{WIDGETS}/w", widget(spec={"size": 1}), "one"))
    assert left["spec"]["parts"] == [{"name": "b", "n": 2}]


async def test_kubectl_takes_over_what_it_applied_from_the_client(http: Http) -> None:
    body = configmap(data={"a": "1"})
    last = json.dumps(body) + "\n"
    body["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": last}
    ok(await http("POST", f"{CONFIGMAPS}?fieldManager=kubectl-client-side-apply", body), 201)
    applied = ok(await apply(http, f"{CONFIGMAPS}/c", configmap(data={"a": "2"}), "kubectl"))
    assert applied["data"] == {"a": "2"}
    annotation = applied["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"]
    assert json.loads(annotation)["data"] == {"a": "2"}


async def test_creating_by_apply_needs_the_right_to_create(http: Http) -> None:
    rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["patch"]}]
    ok(await http("POST", f"{rbac}/roles", {"metadata": {"name": "patcher"}, "rules": rules}), 201)
    binding = {
        "metadata": {"name": "patcher"},
        "roleRef": {"kind": "Role", "name": "patcher"},
        "subjects": [{"kind": "User", "name": "bob"}],
    }
    ok(await http("POST", f"{rbac}/rolebindings", binding), 201)
    path, bob = f"{CONFIGMAPS}/c?fieldManager=bob", {"Impersonate-User": "bob"}
    answer = await http("PATCH", path, configmap(), content_type=APPLY, headers=bob)
    refused(answer, 403, "Forbidden", 'User "bob" cannot create resource "configmaps"')
    ok(await http("POST", CONFIGMAPS, configmap(data={})), 201)
    ok(await http("PATCH", path, configmap(), content_type=APPLY, headers=bob))


async def test_concurrent_applies_by_different_managers_all_count(http: Http, server: ApiServer) -> None:
    interleave(server)
    bodies = [(f"m{i}", configmap(data={f"k{i}": "1"})) for i in range(12)]
    answers = await asyncio.gather(*(apply(http, f"{CONFIGMAPS}/c", body, manager) for manager, body in bodies))
    assert {answer.code for answer in answers} <= {200, 201}, [a.body for a in answers]
    final = ok(await http("GET", f"{CONFIGMAPS}/c"))
    assert set(final["data"]) == {f"k{i}" for i in range(12)}
    assert managers(final) == {(f"m{i}", "Apply", ""): {"f:data": {f"f:k{i}": {}}} for i in range(12)}


async def test_more_than_ten_updaters_are_folded_into_one(http: Http) -> None:
    ok(await http("POST", f"{CONFIGMAPS}?fieldManager=m0", configmap(data={"k0": "1"})), 201)
    for index in range(1, 13):
        ok(await patch(http, f"{CONFIGMAPS}/c", {"data": {f"k{index}": "1"}}, query=f"?fieldManager=m{index}"))
    entries = ok(await http("GET", f"{CONFIGMAPS}/c"))["metadata"]["managedFields"]
    assert len(entries) == 10
    assert "ancient-changes" in [entry["manager"] for entry in entries]
