"""The built-in admission plug-ins, one by one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.errors import Forbidden, NotFound
from karmada.kube.server.admission.default_ingress_class import DefaultIngressClass
from karmada.kube.server.admission.default_toleration_seconds import DefaultTolerationSeconds
from karmada.kube.server.admission.limit_ranger import ANNOTATION, LimitRanger
from karmada.kube.server.admission.namespace_lifecycle import NamespaceLifecycle
from karmada.kube.server.admission.plugin import BuiltinPlugin
from karmada.kube.server.admission.priority import Priority
from karmada.kube.server.admission.runtime_class import RuntimeClass
from karmada.kube.server.admission.service_account import MOUNT_PATH, ServiceAccount
from karmada.kube.server.admission.storage import (
    NOT_EXPANDABLE,
    DefaultStorageClass,
    PersistentVolumeClaimResize,
    StorageObjectInUseProtection,
)
from karmada.kube.server.admission.taint_nodes import TaintNodesByCondition
from tests.support.cases import cases

AttributesOf = Callable[..., Any]


async def run(plugin: BuiltinPlugin, attributes: Any) -> Any:
    """What the chain does with one plug-in."""
    if plugin.handles(attributes):
        await plugin.admit(attributes)
        await plugin.validate(attributes)
    return attributes.obj


async def refusal(plugin: BuiltinPlugin, attributes: Any) -> Forbidden:
    with pytest.raises(Forbidden) as caught:
        await run(plugin, attributes)
    return caught.value


def pod(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"metadata": {}, "spec": {"containers": list(containers) or [{"name": "c", "image": "x"}], **spec}}


# --- NamespaceLifecycle


async def test_nothing_is_created_in_a_namespace_that_is_not_there(reader: Any, attributes_of: AttributesOf) -> None:
    with pytest.raises(NotFound) as caught:
        await run(NamespaceLifecycle(reader), attributes_of("CREATE", "configmaps", {}, namespace="gone"))
    assert caught.value.message == 'namespaces "gone" not found'
    await run(NamespaceLifecycle(reader), attributes_of("CREATE", "configmaps", {}))


async def test_nothing_is_created_in_a_namespace_that_goes(reader: Any, attributes_of: AttributesOf) -> None:
    reader.put("", "namespaces", {"metadata": {"name": "old", "deletionTimestamp": "t"}})
    error = await refusal(NamespaceLifecycle(reader), attributes_of("CREATE", "deployments", {}, namespace="old"))
    assert error.message == (
        'deployments.apps "x" is forbidden: unable to create new content in namespace old because it is being '
        "terminated"
    )
    assert error.causes == [
        {
            "reason": "NamespaceTerminating",
            "message": "namespace old is being terminated",
            "field": "metadata.namespace",
        }
    ]
    assert error.details["kind"] == "deployments"
    await run(NamespaceLifecycle(reader), attributes_of("UPDATE", "deployments", {}, {}, namespace="old"))


async def test_some_namespaces_never_go(reader: Any, attributes_of: AttributesOf) -> None:
    error = await refusal(NamespaceLifecycle(reader), attributes_of("DELETE", "namespaces", None, {}, name="default"))
    assert error.message == 'namespaces "default" is forbidden: this namespace may not be deleted'
    await run(NamespaceLifecycle(reader), attributes_of("DELETE", "namespaces", None, {}, name="mine"))


async def test_access_is_reviewed_for_any_namespace(reader: Any, attributes_of: AttributesOf) -> None:
    await run(NamespaceLifecycle(reader), attributes_of("CREATE", "localsubjectaccessreviews", {}, namespace="gone"))


# --- LimitRanger


def limit_range(reader: Any, *limits: dict[str, Any]) -> None:
    reader.put("", "limitranges", {"metadata": {"name": "l", "namespace": "ns"}, "spec": {"limits": list(limits)}})


async def test_containers_get_the_namespaces_defaults(reader: Any, attributes_of: AttributesOf) -> None:
    limit_range(
        reader, {"type": "Container", "default": {"cpu": "1", "memory": "1Gi"}, "defaultRequest": {"cpu": "100m"}}
    )
    found = await run(
        LimitRanger(reader), attributes_of("CREATE", "pods", pod({"name": "c", "resources": {"limits": {"cpu": "2"}}}))
    )
    assert found["spec"]["containers"][0]["resources"] == {
        "limits": {"cpu": "2", "memory": "1Gi"},
        "requests": {"cpu": "100m"},
    }
    assert found["metadata"]["annotations"][ANNOTATION] == (
        "LimitRanger plugin set: cpu request for container c; memory limit for container c"
    )


@cases(
    (
        {"max": {"cpu": "1"}},
        {"limits": {"cpu": "2"}},
        'pods "x" is forbidden: maximum cpu usage per Container is 1, but limit is 2',
    ),
    ({"max": {"cpu": "1"}}, {}, "maximum cpu usage per Container is 1.  No limit is specified"),
    (
        {"min": {"cpu": "1"}},
        {"requests": {"cpu": "500m"}},
        "minimum cpu usage per Container is 1, but request is 500m",
    ),
    ({"min": {"cpu": "1"}}, {}, "minimum cpu usage per Container is 1.  No request is specified"),
    (
        {"maxLimitRequestRatio": {"cpu": "2"}},
        {"requests": {"cpu": "1"}, "limits": {"cpu": "3"}},
        "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000",
    ),
    (
        {"max": {"cpu": "1", "memory": "1Gi"}},
        {"limits": {"cpu": "2", "memory": "2Gi"}},
        "[maximum cpu usage per Container is 1, but limit is 2, maximum memory usage per Container is 1Gi, but "
        "limit is 2Gi]",
    ),
)
async def test_containers_stay_within_bounds(
    item: dict[str, Any], resources: dict[str, Any], wanted: str, reader: Any, attributes_of: AttributesOf
) -> None:
    limit_range(reader, {"type": "Container", **item})
    error = await refusal(
        LimitRanger(reader), attributes_of("CREATE", "pods", pod({"name": "c", "resources": resources}))
    )
    assert error.message.endswith(wanted)


async def test_pods_stay_within_bounds_as_a_whole(reader: Any, attributes_of: AttributesOf) -> None:
    limit_range(reader, {"type": "Pod", "max": {"cpu": "1"}})
    half = {"limits": {"cpu": "600m"}}
    two = pod({"name": "a", "resources": half}, {"name": "b", "resources": half})
    error = await refusal(LimitRanger(reader), attributes_of("CREATE", "pods", two))
    assert "maximum cpu usage per Pod is 1, but limit is 1200m" in error.message


async def test_claims_stay_within_bounds(reader: Any, attributes_of: AttributesOf) -> None:
    limit_range(reader, {"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}})
    claim = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
    error = await refusal(LimitRanger(reader), attributes_of("CREATE", "persistentvolumeclaims", claim))
    assert "maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 2Gi" in error.message


# --- ServiceAccount


def account(reader: Any, name: str = "default", **fields: Any) -> None:
    reader.put("", "serviceaccounts", {"metadata": {"name": name, "namespace": "ns"}, **fields})


async def test_a_pod_runs_as_the_default_account_with_its_token(reader: Any, attributes_of: AttributesOf) -> None:
    account(reader, imagePullSecrets=[{"name": "pull"}])
    spec = (await run(ServiceAccount(reader), attributes_of("CREATE", "pods", pod())))["spec"]
    assert spec["serviceAccountName"] == spec["serviceAccount"] == "default"
    assert spec["imagePullSecrets"] == [{"name": "pull"}]
    [volume] = spec["volumes"]
    assert volume["name"].startswith("kube-api-access-")
    assert [next(iter(source)) for source in volume["projected"]["sources"]] == [
        "serviceAccountToken", "configMap", "downwardAPI",
    ]  # fmt: skip
    assert volume["projected"]["sources"][0]["serviceAccountToken"] == {"expirationSeconds": 3607, "path": "token"}
    assert spec["containers"][0]["volumeMounts"] == [
        {"name": volume["name"], "readOnly": True, "mountPath": MOUNT_PATH}
    ]


async def test_an_account_must_exist(reader: Any, attributes_of: AttributesOf) -> None:
    error = await refusal(ServiceAccount(reader), attributes_of("CREATE", "pods", pod(serviceAccountName="sa")))
    assert error.message == (
        'pods "x" is forbidden: error looking up service account ns/sa: serviceaccount "sa" not found'
    )


async def test_a_pod_waits_for_the_default_account_of_a_new_namespace(reader: Any, attributes_of: AttributesOf) -> None:
    clock = FakeClock()
    admitted = asyncio.create_task(run(ServiceAccount(reader, clock), attributes_of("CREATE", "pods", pod())))
    await clock.advance(0.5)
    assert not admitted.done()
    account(reader)
    await clock.advance(0.2)
    assert (await admitted)["spec"]["serviceAccountName"] == "default"


async def test_a_pod_whose_default_account_never_comes_is_refused_after_ten_lookups(
    reader: Any, attributes_of: AttributesOf
) -> None:
    clock = FakeClock()
    refused = asyncio.create_task(refusal(ServiceAccount(reader, clock), attributes_of("CREATE", "pods", pod())))
    await clock.advance(0.89)
    assert not refused.done()
    await clock.advance(0.92)
    assert (await refused).message.endswith('service account ns/default: serviceaccount "default" not found')


async def test_a_pod_without_a_name_is_refused_by_its_prefix(reader: Any, attributes_of: AttributesOf) -> None:
    found = {**pod(serviceAccountName="sa"), "metadata": {"generateName": "web-", "name": ""}}
    error = await refusal(ServiceAccount(reader), attributes_of("CREATE", "pods", found, name=""))
    assert error.message.startswith('pods "web-" is forbidden: ')


@cases((None, None, True), (False, None, False), (False, True, True), (True, False, False))
async def test_who_decides_about_the_token(
    of_account: bool | None, of_pod: bool | None, mounted: bool, reader: Any, attributes_of: AttributesOf
) -> None:
    account(reader, automountServiceAccountToken=of_account)
    spec = (
        await run(ServiceAccount(reader), attributes_of("CREATE", "pods", pod(automountServiceAccountToken=of_pod)))
    )["spec"]
    assert bool(spec.get("volumes")) is mounted


async def test_a_mount_of_ones_own_is_left_alone(reader: Any, attributes_of: AttributesOf) -> None:
    account(reader)
    own = {"name": "c", "volumeMounts": [{"name": "v", "mountPath": MOUNT_PATH}]}
    spec = (await run(ServiceAccount(reader), attributes_of("CREATE", "pods", pod(own))))["spec"]
    assert "volumes" not in spec


# --- Priority


def priority_class(reader: Any, name: str, value: int, **fields: Any) -> None:
    reader.put("scheduling.k8s.io", "priorityclasses", {"metadata": {"name": name}, "value": value, **fields})


async def test_priority_comes_from_the_class(reader: Any, attributes_of: AttributesOf) -> None:
    priority_class(reader, "high", 100, preemptionPolicy="Never")
    spec = (await run(Priority(reader), attributes_of("CREATE", "pods", pod(priorityClassName="high"))))["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (100, "Never")


async def test_without_a_class_the_default_holds_or_zero(reader: Any, attributes_of: AttributesOf) -> None:
    spec = (await run(Priority(reader), attributes_of("CREATE", "pods", pod())))["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (0, "PreemptLowerPriority")
    priority_class(reader, "usual", 7, globalDefault=True)
    spec = (await run(Priority(reader), attributes_of("CREATE", "pods", pod())))["spec"]
    assert (spec["priority"], spec["priorityClassName"]) == (7, "usual")


async def test_an_unknown_class_is_refused(reader: Any, attributes_of: AttributesOf) -> None:
    error = await refusal(Priority(reader), attributes_of("CREATE", "pods", pod(priorityClassName="x")))
    assert error.message == 'pods "x" is forbidden: no PriorityClass with name x was found'


async def test_a_priority_of_ones_own_is_refused(reader: Any, attributes_of: AttributesOf) -> None:
    error = await refusal(Priority(reader), attributes_of("CREATE", "pods", pod(priority=5)))
    assert "the integer value of priority (5) must not be provided in pod spec" in error.message


async def test_there_is_one_default_class(reader: Any, attributes_of: AttributesOf) -> None:
    priority_class(reader, "usual", 7, globalDefault=True)
    error = await refusal(
        Priority(reader), attributes_of("CREATE", "priorityclasses", {"globalDefault": True}, name="other")
    )
    assert "PriorityClass usual is already marked as default. Only one default can exist" in error.message


# --- tolerations, taints, classes, protection, growth


async def test_pods_tolerate_a_lost_node_for_five_minutes(reader: Any, attributes_of: AttributesOf) -> None:
    own = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
    spec = (await run(DefaultTolerationSeconds(reader), attributes_of("CREATE", "pods", pod(tolerations=[own]))))[
        "spec"
    ]
    added = {
        "key": "node.kubernetes.io/unreachable",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 300,
    }
    assert spec["tolerations"] == [own, added]
    anything = [{"operator": "Exists"}]
    spec = (await run(DefaultTolerationSeconds(reader), attributes_of("CREATE", "pods", pod(tolerations=anything))))[
        "spec"
    ]
    assert spec["tolerations"] == anything


async def test_new_nodes_take_no_pods_yet(reader: Any, attributes_of: AttributesOf) -> None:
    node = await run(TaintNodesByCondition(reader), attributes_of("CREATE", "nodes", {}))
    assert node["spec"]["taints"] == [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]
    again = await run(TaintNodesByCondition(reader), attributes_of("CREATE", "nodes", node))
    assert len(again["spec"]["taints"]) == 1


def storage_class(reader: Any, name: str, created: str, default: bool = True, **fields: Any) -> None:
    annotations = {"storageclass.kubernetes.io/is-default-class": "true" if default else "false"}
    meta = {"name": name, "creationTimestamp": created, "annotations": annotations}
    reader.put("storage.k8s.io", "storageclasses", {"metadata": meta, **fields})


async def test_claims_without_a_class_get_the_newest_default(reader: Any, attributes_of: AttributesOf) -> None:
    storage_class(reader, "old", "2026-01-01T00:00:00Z")
    storage_class(reader, "b", "2026-01-02T00:00:00Z")
    storage_class(reader, "a", "2026-01-02T00:00:00Z")
    storage_class(reader, "new", "2026-01-03T00:00:00Z", default=False)
    plugin = DefaultStorageClass(reader)
    claim = await run(plugin, attributes_of("CREATE", "persistentvolumeclaims", {"spec": {}}))
    assert claim["spec"]["storageClassName"] == "a"
    claim = await run(plugin, attributes_of("CREATE", "persistentvolumeclaims", {"spec": {"storageClassName": ""}}))
    assert claim["spec"]["storageClassName"] == ""


@cases(("persistentvolumeclaims", "kubernetes.io/pvc-protection"), ("persistentvolumes", "kubernetes.io/pv-protection"))
async def test_storage_in_use_is_protected(
    plural: str, finalizer: str, reader: Any, attributes_of: AttributesOf
) -> None:
    found = await run(StorageObjectInUseProtection(reader), attributes_of("CREATE", plural, {}))
    assert found["metadata"]["finalizers"] == [finalizer]


@cases((True, "Bound"), (False, "Bound"), (True, "Pending"))
async def test_claims_grow_where_their_class_allows(
    expandable: bool, phase: str, reader: Any, attributes_of: AttributesOf
) -> None:
    storage_class(reader, "s", "t", allowVolumeExpansion=expandable)

    def claim(size: str) -> dict[str, Any]:
        spec = {"storageClassName": "s", "resources": {"requests": {"storage": size}}}
        return {"metadata": {}, "spec": spec, "status": {"phase": phase}}

    plugin = PersistentVolumeClaimResize(reader)
    attributes = attributes_of("UPDATE", "persistentvolumeclaims", claim("2Gi"), claim("1Gi"))
    if expandable and phase == "Bound":
        await run(plugin, attributes)
    else:
        why = NOT_EXPANDABLE if phase == "Bound" else "Only bound persistent volume claims can be expanded"
        assert why in (await refusal(plugin, attributes)).message
    await run(plugin, attributes_of("UPDATE", "persistentvolumeclaims", claim("1Gi"), claim("1Gi")))


async def test_an_ingress_without_a_class_gets_the_default(reader: Any, attributes_of: AttributesOf) -> None:
    meta = {"name": "nginx", "annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}}
    reader.put("networking.k8s.io", "ingressclasses", {"metadata": meta})
    plugin = DefaultIngressClass(reader)
    assert (await run(plugin, attributes_of("CREATE", "ingresses", {"spec": {}})))["spec"] == {
        "ingressClassName": "nginx"
    }
    old_style = {"metadata": {"annotations": {"kubernetes.io/ingress.class": "x"}}, "spec": {}}
    assert (await run(plugin, attributes_of("CREATE", "ingresses", old_style)))["spec"] == {}


# --- RuntimeClass


async def test_a_runtime_class_brings_its_overhead_and_places(reader: Any, attributes_of: AttributesOf) -> None:
    reader.put(
        "node.k8s.io",
        "runtimeclasses",
        {
            "metadata": {"name": "vm"},
            "overhead": {"podFixed": {"cpu": "100m"}},
            "scheduling": {"nodeSelector": {"vm": "yes"}, "tolerations": [{"key": "vm"}]},
        },
    )
    plugin = RuntimeClass(reader)
    spec = (await run(plugin, attributes_of("CREATE", "pods", pod(runtimeClassName="vm", nodeSelector={"a": "b"}))))[
        "spec"
    ]
    assert spec["overhead"] == {"cpu": "100m"}
    assert spec["nodeSelector"] == {"a": "b", "vm": "yes"}
    assert spec["tolerations"] == [{"key": "vm"}]
    conflict = attributes_of("CREATE", "pods", pod(runtimeClassName="vm", nodeSelector={"vm": "no"}))
    assert "conflict: runtimeClass.scheduling.nodeSelector[vm] = yes" in (await refusal(plugin, conflict)).message


async def test_an_unknown_runtime_class_is_refused(reader: Any, attributes_of: AttributesOf) -> None:
    error = await refusal(RuntimeClass(reader), attributes_of("CREATE", "pods", pod(runtimeClassName="vm")))
    assert error.message == 'pods "x" is forbidden: pod rejected: RuntimeClass "vm" not found'
    error = await refusal(RuntimeClass(reader), attributes_of("CREATE", "pods", pod(overhead={"cpu": "1"})))
    assert "Pod Overhead set without corresponding RuntimeClass defined Overhead" in error.message


async def test_an_updated_pod_gets_the_tolerations_that_it_lacks(reader: Any, attributes_of: AttributesOf) -> None:
    old = pod()
    updated = await run(DefaultTolerationSeconds(reader), attributes_of("UPDATE", "pods", pod(), old))
    assert [t["key"] for t in updated["spec"]["tolerations"]] == [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ]
    assert not DefaultTolerationSeconds(reader).handles(
        attributes_of("UPDATE", "pods", pod(), old, subresource="status")
    )
