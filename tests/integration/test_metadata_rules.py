"""ObjectMeta and the visible rules of built-in kinds, refused through the server with their exact texts."""

from __future__ import annotations

from typing import Any

from tests.integration.samples import (
    APPS,
    CONFIGMAPS,
    CORE,
    DEPLOYMENTS,
    PODS,
    SECRETS,
    SERVICES,
    configmap,
    deployment,
    ok,
    patch,
    pod,
    quiet_revision,
    refused,
    revision,
)
from tests.support.wire import Http

OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u"}
BAD_METADATA: list[tuple[Any, str]] = [
    ({"name": "Upper"}, 'metadata.name: Invalid value: "Upper": a lowercase RFC 1123 subdomain must consist of'),
    ({"name": "a" * 254}, "metadata.name: Invalid value"),
    ({"name": "c", "labels": {"a b": "1"}}, 'metadata.labels: Invalid value: "a b"'),
    ({"name": "c", "labels": {"a": "x y"}}, 'metadata.labels: Invalid value: "x y"'),
    ({"name": "c", "labels": {"a": "x" * 64}}, "metadata.labels: Invalid value"),
    ({"name": "c", "labels": {"UP.case/x": "1"}}, "metadata.labels: Invalid value"),
    ({"name": "c", "annotations": {"a b": "1"}}, 'metadata.annotations: Invalid value: "a b"'),
    ({"name": "c", "annotations": {"a": "x" * (256 * 1024)}}, "metadata.annotations: Too long"),
    ({"name": "c", "finalizers": ["bare"]}, 'metadata.finalizers[0]: Invalid value: "bare": name is neither'),
    ({"name": "c", "finalizers": ["a b/c"]}, "metadata.finalizers: Invalid value"),
    ({"name": "c", "ownerReferences": [{**OWNER, "uid": ""}]}, "metadata.ownerReferences.uid: Invalid value"),
    ({"name": "c", "ownerReferences": [{**OWNER, "name": ""}]}, "metadata.ownerReferences.name: Invalid value"),
    (
        {"name": "c", "ownerReferences": [{**OWNER, "controller": True}, {**OWNER, "uid": "v", "controller": True}]},
        "Only one reference can have Controller set to true",
    ),
]


async def test_bad_metadata_is_invalid_and_not_stored(http: Http) -> None:
    before = await quiet_revision(http)
    for meta, text in BAD_METADATA:
        status = refused(await http("POST", CONFIGMAPS, {"metadata": meta}), 422, "Invalid", text)
        assert status["details"]["kind"] == "ConfigMap"
        assert all(cause["field"].startswith("metadata.") for cause in status["details"]["causes"])
    assert await revision(http) == before


async def test_a_namespace_has_a_short_name(http: Http) -> None:
    for name in ("a.b", "a" * 64):
        answer = await http("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        refused(answer, 422, "Invalid", "metadata.name: Invalid value")


async def test_roles_may_be_named_by_any_path_segment(http: Http) -> None:
    path = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    ok(await http("POST", path, {"metadata": {"name": "system:Odd_Name"}}), 201)
    refused(await http("POST", path, {"metadata": {"name": "a/b"}}), 422, "Invalid")


async def test_several_errors_are_listed_and_each_is_a_cause(http: Http) -> None:
    body = deployment("web", replicas=-1)
    body["spec"]["template"]["metadata"]["labels"] = {"app": "other"}
    status = refused(await http("POST", DEPLOYMENTS, body), 422, "Invalid")
    assert status["message"].startswith('Deployment.apps "web" is invalid: [')
    fields = {cause["field"] for cause in status["details"]["causes"]}
    assert {"spec.replicas", "spec.template.metadata.labels"} <= fields
    assert status["details"]["group"] == "apps"


def _with(body: Any, path: str, value: Any) -> Any:
    target = body
    *parts, last = path.split(".")
    for part in parts:
        target = target[int(part)] if part.isdigit() else target.setdefault(part, {})
    if last.isdigit():
        target[int(last)] = value
    else:
        target[last] = value
    return body


def _secret(kind: str, data: Any) -> Any:
    return {"metadata": {"name": "s"}, "type": kind, "data": data}


RULES: list[tuple[str, Any, str]] = [
    (
        DEPLOYMENTS,
        _with(deployment(), "spec.template.metadata.labels", {"app": "x"}),
        'spec.template.metadata.labels: Invalid value: {"app":"x"}: `selector` does not match template `labels`',
    ),
    (
        DEPLOYMENTS,
        _with(deployment(), "spec.replicas", -1),
        "spec.replicas: Invalid value: -1: must be greater than or",
    ),
    (
        DEPLOYMENTS,
        _with(deployment(), "spec.template.spec.restartPolicy", "Never"),
        'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
    ),
    (PODS, {"metadata": {"name": "p"}, "spec": {"containers": []}}, "spec.containers: Required value"),
    (
        PODS,
        _with(
            pod(), "spec.containers.0", {"name": "c", "image": "i", "volumeMounts": [{"name": "v", "mountPath": "/x"}]}
        ),
        'spec.containers[0].volumeMounts[0].name: Not found: "v"',
    ),
    (
        PODS,
        _with(pod(), "spec.containers", [{"name": "c", "image": "i"}] * 2),
        'spec.containers[1].name: Duplicate value: "c"',
    ),
    (
        PODS,
        _with(pod(), "spec.containers.0.resources", {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}),
        'spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1',
    ),
    (SERVICES, {"metadata": {"name": "s"}, "spec": {}}, "spec.ports: Required value"),
    (CONFIGMAPS, configmap(data={"a b": "1"}), "data[a b]: Invalid value"),
    (CONFIGMAPS, configmap(data={"a": "x" * (1024 * 1024 + 1)}), "Too long"),
    (SECRETS, _secret("kubernetes.io/tls", {}), "data[tls.crt]: Required value"),
    (SECRETS, _secret("kubernetes.io/dockerconfigjson", {}), "data[.dockerconfigjson]: Required value"),
    (
        "/apis/batch/v1/namespaces/default/cronjobs",
        {
            "metadata": {"name": "c"},
            "spec": {
                "schedule": "never",
                "jobTemplate": {"spec": {"template": {"spec": pod()["spec"] | {"restartPolicy": "Never"}}}},
            },
        },
        'spec.schedule: Invalid value: "never"',
    ),
    (
        "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
        {"metadata": {"name": "p"}, "spec": {"minAvailable": 1, "maxUnavailable": 1}},
        "minAvailable and maxUnavailable cannot be both set",
    ),
    (
        "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers",
        {
            "metadata": {"name": "h"},
            "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "d"}, "minReplicas": 5, "maxReplicas": 2},
        },
        "spec.maxReplicas: Invalid value: 2",
    ),
]


async def test_what_breaks_a_rule_of_its_kind_is_not_stored(http: Http) -> None:
    before = await quiet_revision(http)
    for path, body, text in RULES:
        refused(await http("POST", path, body), 422, "Invalid", text)
    assert await revision(http) == before


_STS = _with(deployment(), "spec.serviceName", "s")
IMMUTABLE: list[tuple[str, Any, Any, str]] = [
    (
        DEPLOYMENTS,
        deployment(),
        {"spec": {"selector": {"matchLabels": {"app": "x"}}, "template": {"metadata": {"labels": {"app": "x"}}}}},
        'spec.selector: Invalid value: {"matchLabels":{"app":"x"}}: field is immutable',
    ),
    (
        f"{APPS}/statefulsets",
        _STS | {"kind": "StatefulSet"},
        {"spec": {"serviceName": "t"}},
        "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
        "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are "
        "forbidden",
    ),
    (
        PODS,
        pod("web"),
        {"spec": {"hostNetwork": True}},
        "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
        "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing "
        "tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
    ),
    (
        CONFIGMAPS,
        configmap("web") | {"immutable": True},
        {"data": {"a": "2"}},
        "data: Forbidden: field is immutable when `immutable` is set",
    ),
    (SECRETS, {"metadata": {"name": "web"}}, {"type": "x/y"}, "type: Invalid value"),
    (
        "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings",
        {"metadata": {"name": "web"}, "roleRef": {"kind": "ClusterRole", "name": "view"}},
        {"roleRef": {"name": "edit"}},
        "cannot change roleRef",
    ),
    (
        "/apis/storage.k8s.io/v1/storageclasses",
        {"metadata": {"name": "web"}, "provisioner": "a"},
        {"reclaimPolicy": "Retain"},
        "reclaimPolicy",
    ),
    (
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        {"metadata": {"name": "web"}, "value": 5},
        {"value": 6},
        "value: Forbidden: may not be changed in an update.",
    ),
    (
        f"{CORE}/persistentvolumeclaims",
        {
            "metadata": {"name": "web"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        },
        {"spec": {"accessModes": ["ReadWriteMany"]}},
        "spec: Forbidden: spec is immutable after creation except resources.requests",
    ),
]


async def test_what_may_not_change_does_not(http: Http) -> None:
    for path, body, change, text in IMMUTABLE:
        ok(await http("POST", path, body), 201)
        stored = ok(await http("GET", f"{path}/web"))
        refused(await patch(http, f"{path}/web", change), 422, "Invalid", text)
        assert ok(await http("GET", f"{path}/web")) == stored


async def test_defaults_and_canonical_forms_of_common_kinds(http: Http) -> None:
    secret = ok(await http("POST", SECRETS, {"metadata": {"name": "s"}, "stringData": {"a": "x"}}), 201)
    assert (secret["type"], secret["data"]) == ("Opaque", {"a": "eA=="})
    assert "stringData" not in secret
    namespace = ok(await http("POST", "/api/v1/namespaces", {"metadata": {"name": "n"}}), 201)
    assert namespace["metadata"]["labels"] == {"kubernetes.io/metadata.name": "n"}
    assert (namespace["spec"], namespace["status"]) == ({"finalizers": ["kubernetes"]}, {"phase": "Active"})
    body = pod()
    body["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "1000m", "memory": "1024Mi"}}
    made = ok(await http("POST", PODS, body), 201)
    assert made["spec"]["containers"][0]["resources"] == {
        "limits": {"cpu": "1", "memory": "1Gi"},
        "requests": {"cpu": "1", "memory": "1Gi"},
    }
    assert made["status"]["qosClass"] == "Guaranteed"
    job = {"metadata": {"name": "j"}, "spec": {"template": {"spec": {**pod()["spec"], "restartPolicy": "Never"}}}}
    made = ok(await http("POST", "/apis/batch/v1/namespaces/default/jobs", job), 201)
    uid = made["metadata"]["uid"]
    assert made["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    assert made["spec"]["template"]["metadata"]["labels"] == {
        "controller-uid": uid,
        "batch.kubernetes.io/controller-uid": uid,
        "job-name": "j",
        "batch.kubernetes.io/job-name": "j",
    }
    assert (made["spec"]["completions"], made["spec"]["parallelism"], made["spec"]["backoffLimit"]) == (1, 1, 6)
