"""status, scale, binding, finalize, ephemeralcontainers, approval: each changes its part and no other."""

from __future__ import annotations

import base64
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.integration.samples import (
    CONFIGMAPS,
    CORE,
    DEPLOYMENTS,
    PODS,
    configmap,
    deployment,
    ok,
    patch,
    pod,
    quiet_revision,
    refused,
    revision,
)
from tests.support.cases import cases
from tests.support.eventually import eventually
from tests.support.wire import Http

CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"


def managed(obj: Any, subresource: str) -> Any:
    return [e for e in obj["metadata"]["managedFields"] if e.get("subresource", "") == subresource]


async def test_a_status_write_takes_status_and_keeps_the_rest(http: Http) -> None:
    created = ok(await http("POST", DEPLOYMENTS, deployment(labels={"a": "1"})), 201)
    body = deployment(replicas=9, labels={"a": "2"}, annotations={"rev": "1"}) | {"status": {"replicas": 2}}
    updated = ok(await http("PUT", f"{DEPLOYMENTS}/web/status", body))
    assert (updated["spec"], updated["status"]) == (created["spec"], {"replicas": 2})
    assert (updated["metadata"]["labels"], updated["metadata"]["annotations"]) == ({"a": "1"}, {"rev": "1"})
    assert updated["metadata"]["generation"] == 1
    [entry] = managed(updated, "status")
    assert entry["fieldsV1"]["f:status"] == {"f:replicas": {}}
    assert "f:labels" not in entry["fieldsV1"].get("f:metadata", {})
    assert ok(await http("GET", f"{DEPLOYMENTS}/web/status")) == updated
    stale = body | {"metadata": {"name": "web", "resourceVersion": created["metadata"]["resourceVersion"]}}
    refused(await http("PUT", f"{DEPLOYMENTS}/web/status", stale), 409, "Conflict")


@cases("application/merge-patch+json", "application/strategic-merge-patch+json")
async def test_a_status_patch_takes_status_alone(kind: str, http: Http) -> None:
    created = ok(await http("POST", DEPLOYMENTS, deployment()), 201)
    change = {"spec": {"replicas": 9}, "status": {"replicas": 1, "readyReplicas": 1}}
    patched = ok(await patch(http, f"{DEPLOYMENTS}/web/status", change, kind))
    assert (patched["spec"], patched["status"]) == (created["spec"], {"replicas": 1, "readyReplicas": 1})


async def test_a_status_write_that_changes_nothing_is_none(http: Http) -> None:
    ok(await http("POST", DEPLOYMENTS, deployment()), 201)
    stored = ok(await patch(http, f"{DEPLOYMENTS}/web/status", {"status": {"replicas": 2}}))
    before = await quiet_revision(http)
    assert ok(await http("PUT", f"{DEPLOYMENTS}/web/status", stored)) == stored
    assert ok(await patch(http, f"{DEPLOYMENTS}/web/status", {"status": {"replicas": 2}})) == stored
    assert await revision(http) == before


async def test_a_pod_status_takes_labels_but_keeps_owners(http: Http) -> None:
    ok(await http("POST", CONFIGMAPS, configmap("o")), 201)
    uid = ok(await http("GET", f"{CONFIGMAPS}/o"))["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": uid}
    stored = ok(await http("POST", PODS, pod(ownerReferences=[owner])), 201)
    body = {**stored, "metadata": {**stored["metadata"], "labels": {"x": "y"}, "ownerReferences": []}}
    body["status"] = {**stored["status"], "phase": "Running", "podIP": "10.0.0.1"}
    updated = ok(await http("PUT", f"{PODS}/p/status", body))
    assert updated["metadata"]["ownerReferences"] == [owner]
    assert (updated["metadata"]["labels"], updated["status"]["phase"]) == ({"x": "y"}, "Running")


async def test_a_node_status_takes_labels(http: Http) -> None:
    ok(await http("POST", "/api/v1/nodes", {"metadata": {"name": "n"}}), 201)
    change = {
        "metadata": {"labels": {"a": "b"}},
        "status": {"capacity": {"cpu": "4"}},
        "spec": {"podCIDR": "1.2.3.0/24"},
    }
    patched = ok(await patch(http, "/api/v1/nodes/n/status", change))
    assert patched["metadata"]["labels"]["a"] == "b"
    assert patched["status"]["capacity"] == {"cpu": "4"}
    assert "podCIDR" not in patched["spec"]


async def test_what_does_not_exist_has_no_status(http: Http) -> None:
    refused(await patch(http, f"{DEPLOYMENTS}/web/status", {}), 404, "NotFound", 'deployments.apps "web" not found')
    refused(await http("PUT", f"{DEPLOYMENTS}/web/status", deployment()), 404, "NotFound")
    refused(await http("GET", f"{DEPLOYMENTS}/web/scale"), 404, "NotFound")


async def test_a_scale_shows_and_sets_the_replicas(http: Http) -> None:
    body = deployment()
    body["spec"]["selector"]["matchExpressions"] = [{"key": "app", "operator": "In", "values": ["web", "api"]}]
    created = ok(await http("POST", DEPLOYMENTS, body), 201)
    ok(await patch(http, f"{DEPLOYMENTS}/web/status", {"status": {"replicas": 1}}))
    path = f"{DEPLOYMENTS}/web/scale"
    scale = ok(await http("GET", path))
    meta = created["metadata"]
    assert (scale["kind"], scale["apiVersion"], scale["spec"]) == ("Scale", "autoscaling/v1", {"replicas": 2})
    assert scale["status"] == {"replicas": 1, "selector": "app=web,app in (api,web)"}
    assert {k: scale["metadata"][k] for k in ("name", "namespace", "uid", "creationTimestamp")} == {
        k: meta[k] for k in ("name", "namespace", "uid", "creationTimestamp")
    }
    answer = ok(await http("PUT", path, {**scale, "spec": {"replicas": 5}}))
    assert answer["spec"] == {"replicas": 5}
    parent = ok(await http("GET", f"{DEPLOYMENTS}/web"))
    assert (parent["spec"]["replicas"], parent["metadata"]["generation"]) == (5, 2)
    [entry] = managed(parent, "scale")
    assert entry["fieldsV1"] == {"f:spec": {"f:replicas": {}}}
    refused(await http("PUT", path, {**scale, "spec": {"replicas": 6}}), 409, "Conflict")
    assert ok(await patch(http, path, {"spec": {"replicas": 0}}))["spec"] in ({}, {"replicas": 0})
    assert ok(await http("GET", f"{DEPLOYMENTS}/web"))["spec"]["replicas"] == 0
    ops = [{"op": "add", "path": "/spec/replicas", "value": 4}]
    assert ok(await patch(http, path, ops, "application/json-patch+json"))["spec"] == {"replicas": 4}


@cases(
    ({"spec": {"replicas": -1}}, 422, "spec.replicas: Invalid value: -1: must be greater than or equal to 0"),
    ({"metadata": {"name": "other"}, "spec": {"replicas": 3}}, 400, "does not match the name on the URL"),
    ({"metadata": {"uid": "other"}, "spec": {"replicas": 3}}, 409, "Precondition failed"),
    ({"kind": "Deployment", "apiVersion": "apps/v1"}, 400, ""),
)
async def test_a_scale_that_makes_no_sense_changes_nothing(body: Any, code: int, text: str, http: Http) -> None:
    stored = ok(await http("POST", DEPLOYMENTS, deployment()), 201)
    reason = {422: "Invalid", 400: "BadRequest", 409: "Conflict"}[code]
    refused(await http("PUT", f"{DEPLOYMENTS}/web/scale", body), code, reason, text)
    refused(await patch(http, f"{DEPLOYMENTS}/web/scale", body), code, reason, text)
    assert ok(await http("GET", f"{DEPLOYMENTS}/web")) == stored


async def test_replicas_that_are_no_number_do_not_decode(http: Http) -> None:
    ok(await http("POST", DEPLOYMENTS, deployment()), 201)
    why = "json: cannot unmarshal string into Go struct field ScaleSpec.spec.replicas of type int32"
    body = {"spec": {"replicas": "x"}}
    refused(await http("PUT", f"{DEPLOYMENTS}/web/scale", body), 400, "BadRequest", why)
    refused(await patch(http, f"{DEPLOYMENTS}/web/scale", body), 422, "Invalid", why)


async def test_scaling_to_what_it_is_stores_nothing(http: Http) -> None:
    ok(await http("POST", DEPLOYMENTS, deployment()), 201)
    before = await quiet_revision(http)
    ok(await patch(http, f"{DEPLOYMENTS}/web/scale", {"spec": {"replicas": 2}}))
    assert await revision(http) == before


@cases(f"{PODS}/p/binding", f"{CORE}/bindings")
async def test_a_binding_puts_a_pod_on_a_node(path: str, http: Http) -> None:
    ok(await http("POST", PODS, pod()), 201)
    binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}}
    answer = ok(await http("POST", path, binding), 201)
    assert (answer["kind"], answer["status"]) == ("Status", "Success")
    bound = ok(await http("GET", f"{PODS}/p"))
    assert bound["spec"]["nodeName"] == "n1"
    [condition] = bound["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("PodScheduled", "True")
    refused(await http("POST", path, binding), 409, "Conflict", 'pod p is already assigned to node "n1"')
    for wrong in ({"metadata": {"name": "p"}}, {"metadata": {"name": "p"}, "target": {"kind": "Pod", "name": "n"}}):
        assert (await http("POST", path, wrong)).json()["message"].startswith("target.")
    elsewhere = {"metadata": {"name": "p", "namespace": "kube-system"}, "target": {"name": "n"}}
    refused(await http("POST", path, elsewhere), 400, "BadRequest")


async def test_a_binding_of_nothing_is_not_found(http: Http) -> None:
    refused(await http("POST", f"{PODS}/p/binding", {"target": {"name": "n"}}), 404, "NotFound", 'pods "p" not found')


async def test_ephemeral_containers_can_be_added_and_nothing_else(http: Http) -> None:
    stored = ok(await http("POST", PODS, pod(node="n")), 201)
    debug = {"name": "d", "image": "busybox:1", "targetContainerName": "c"}
    change = {"spec": {"ephemeralContainers": [debug], "activeDeadlineSeconds": 5}}
    patched = ok(await patch(http, f"{PODS}/p/ephemeralcontainers", change))
    assert [c["name"] for c in patched["spec"]["ephemeralContainers"]] == ["d"]
    assert "activeDeadlineSeconds" not in patched["spec"]
    assert patched["metadata"]["generation"] == stored["metadata"]["generation"] + 1
    refused(await patch(http, f"{PODS}/p/ephemeralcontainers", {"spec": {"ephemeralContainers": []}}), 422, "Invalid")


async def test_finalize_lets_a_namespace_go(http: Http) -> None:
    ok(await http("POST", "/api/v1/namespaces", {"metadata": {"name": "n"}}), 201)
    stored = ok(await http("GET", "/api/v1/namespaces/n"))
    body = {**stored, "spec": {"finalizers": ["example.io/mine", "kubernetes"]}}
    kept = ok(await http("PUT", "/api/v1/namespaces/n/finalize", body))
    assert set(kept["spec"]["finalizers"]) == {"example.io/mine", "kubernetes"}
    ok(await http("DELETE", "/api/v1/namespaces/n"))

    async def only_mine() -> bool:
        return ok(await http("GET", "/api/v1/namespaces/n"))["spec"].get("finalizers") == ["example.io/mine"]

    await eventually(only_mine)
    live = ok(await http("GET", "/api/v1/namespaces/n"))
    ok(await http("PUT", "/api/v1/namespaces/n/finalize", {**live, "spec": {}}))
    assert (await http("GET", "/api/v1/namespaces/n")).code == 404


def _request(name: str = "jane", organisation: str = "devs") -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name(
        [x509.NameAttribute(NameOID.COMMON_NAME, name), x509.NameAttribute(NameOID.ORGANIZATION_NAME, organisation)]
    )
    csr = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    return base64.b64encode(csr.public_bytes(serialization.Encoding.PEM)).decode()


def _csr(**spec: Any) -> Any:
    return {
        "metadata": {"name": "r"},
        "spec": {
            "request": _request(),
            "signerName": "kubernetes.io/kube-apiserver-client",
            "usages": ["client auth"],
            **spec,
        },
    }


async def test_an_approved_request_is_signed(http: Http) -> None:
    made = ok(await http("POST", CSRS, _csr(username="fake", groups=["system:masters"]) | {"status": {"x": 1}}), 201)
    assert made["spec"]["username"] != "fake"
    assert not made.get("status")
    assert ok(await patch(http, f"{CSRS}/r", {"spec": {"usages": ["server auth"]}}))["spec"] == made["spec"]
    condition = {"type": "Approved", "status": "True", "reason": "Tests", "message": "yes"}
    body = {**made, "status": {"conditions": [condition]}}
    approved = ok(await http("PUT", f"{CSRS}/r/approval", body))
    assert approved["status"]["conditions"][0]["type"] == "Approved"
    assert approved["status"]["conditions"][0]["lastTransitionTime"]

    async def certificate() -> Any:
        return ok(await http("GET", f"{CSRS}/r"))["status"].get("certificate")

    pem = base64.b64decode(await eventually(certificate))
    subject = x509.load_pem_x509_certificate(pem).subject
    assert subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value == "jane"


async def test_a_request_is_not_approved_and_denied(http: Http) -> None:
    made = ok(await http("POST", CSRS, _csr(signerName="example.io/mine")), 201)
    conditions = [{"type": kind, "status": "True", "reason": "x", "message": ""} for kind in ("Approved", "Denied")]
    body = {**made, "status": {"conditions": conditions}}
    refused(await http("PUT", f"{CSRS}/r/approval", body), 422, "Invalid")


@cases({"expirationSeconds": 5}, {"request": "eA=="}, {"signerName": "x"}, {"usages": []})
async def test_a_request_that_makes_no_sense_is_invalid(spec: Any, http: Http) -> None:
    refused(await http("POST", CSRS, _csr(**spec)), 422, "Invalid")


async def test_who_may_not_approve_for_a_signer_is_forbidden(http: Http) -> None:
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    rules = [{"apiGroups": ["certificates.k8s.io"], "resources": ["*"], "verbs": ["*"]}]
    rules[0]["resources"] = ["certificatesigningrequests", "certificatesigningrequests/approval"]
    ok(await http("POST", f"{rbac}/clusterroles", {"metadata": {"name": "csr"}, "rules": rules}), 201)
    binding = {
        "metadata": {"name": "csr"},
        "roleRef": {"kind": "ClusterRole", "name": "csr"},
        "subjects": [{"kind": "User", "name": "bob"}],
    }
    ok(await http("POST", f"{rbac}/clusterrolebindings", binding), 201)
    made = ok(await http("POST", CSRS, _csr()), 201)
    condition = {"type": "Approved", "status": "True", "reason": "x", "message": ""}
    body = {**made, "status": {"conditions": [condition]}}
    bob = {"Impersonate-User": "bob"}
    refused(await http("PUT", f"{CSRS}/r/approval", body, headers=bob), 403, "Forbidden")
    assert not ok(await http("GET", f"{CSRS}/r")).get("status")


async def test_access_reviews_decide_who_may_do_what(http: Http) -> None:
    base = "/apis/authorization.k8s.io/v1"
    spec = {"resourceAttributes": {"verb": "create", "resource": "pods", "namespace": "default"}}
    mine = ok(await http("POST", f"{base}/selfsubjectaccessreviews", {"spec": spec}), 201)
    assert mine["status"]["allowed"] is True
    eve = ok(await http("POST", f"{base}/subjectaccessreviews", {"spec": {**spec, "user": "eve"}}), 201)
    assert eve["status"]["allowed"] is False
    local = f"{base}/namespaces/default/localsubjectaccessreviews"
    answer = ok(await http("POST", local, {"metadata": {"namespace": "default"}, "spec": {**spec, "user": "eve"}}), 201)
    assert answer["status"]["allowed"] is False
    rules = ok(await http("POST", f"{base}/selfsubjectrulesreviews", {"spec": {"namespace": "default"}}), 201)
    assert rules["status"]["resourceRules"]
    who = ok(await http("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}), 201)
    assert who["status"]["userInfo"]["username"]
    assert "system:masters" in who["status"]["userInfo"]["groups"]
    before = await quiet_revision(http)
    nothing: tuple[Any, ...] = ({}, {"resourceAttributes": {}, "nonResourceAttributes": {}}, [])
    for bad in ({"spec": spec} for spec in nothing):
        answer = await http("POST", f"{base}/subjectaccessreviews", bad)
        assert answer.code in (400, 422), answer.body
    assert await revision(http) == before
