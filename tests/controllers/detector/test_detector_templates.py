"""Templates find their policy and get a binding."""

from __future__ import annotations

from typing import Any

import pytest

from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import CLUSTER_ROLES, CONFIG_MAPS, DEPLOYMENTS
from karmada.kube.objects.types import Obj
from tests.support.cases import cases
from tests.support.objects import kube_object
from tests.support.propagation import (
    BINDINGS,
    CLUSTER_BINDINGS,
    CLUSTER_POLICIES,
    CLUSTER_POLICY_ID,
    POLICIES,
    POLICY_ID,
    Propagation,
    cluster_policy,
    cluster_role,
    config_map,
    deployment,
    placed,
    policy,
    selecting,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")

CRDS = GVR("apiextensions.k8s.io", "v1", "customresourcedefinitions")
GUESTBOOKS = GVR("webapp.my.domain", "v1", "guestbooks")
NAMESPACES = GVR("", "v1", "namespaces")


async def test_a_template_and_a_policy_make_a_binding(plane: Propagation) -> None:
    pod = {"containers": [{"name": "web", "image": "nginx", "resources": {"requests": {"cpu": "100m"}}}]}
    await plane.apply(deployment(pod=pod), policy("web", propagateDeps=True, preserveResourcesOnDeletion=True))
    template, pp = await plane.get(DEPLOYMENTS, "nginx"), await plane.get(POLICIES, "web")
    binding = await plane.get(BINDINGS, "nginx-deployment")
    marks = {
        "propagationpolicy.karmada.io/namespace": "default",
        "propagationpolicy.karmada.io/name": "web",
    }
    assert template["metadata"]["labels"][POLICY_ID] == pp["metadata"]["labels"][POLICY_ID]
    assert template["metadata"]["annotations"] == marks
    metadata = binding["metadata"]
    assert metadata["annotations"] == marks
    assert metadata["labels"][POLICY_ID] == pp["metadata"]["labels"][POLICY_ID]
    assert metadata["labels"]["resourcebinding.karmada.io/permanent-id"]
    assert metadata["finalizers"] == ["karmada.io/binding-controller"]
    assert metadata["ownerReferences"] == [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "name": "nginx",
            "uid": template["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    assert binding["spec"] == {
        "resource": {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "namespace": "default",
            "name": "nginx",
            "uid": template["metadata"]["uid"],
            "resourceVersion": template["metadata"]["resourceVersion"],
        },
        "replicas": 2,
        "replicaRequirements": {"resourceRequest": {"cpu": "100m"}},
        "propagateDeps": True,
        "schedulerName": "default-scheduler",
        "placement": placed("m1"),
        "conflictResolution": "Abort",
        "preserveResourcesOnDeletion": True,
    }
    assert await plane.events("nginx") == [
        ("Normal", "GetReplicasSucceed", "Get replicas of resource template successfully."),
        ("Normal", "ApplyPolicySucceed", "Apply policy(default/web) succeed"),
    ]
    assert plane.writes == ["PATCH deployments nginx", "POST resourcebindings nginx-deployment"]


async def test_a_template_without_a_namespace_gets_a_cluster_wide_binding(plane: Propagation) -> None:
    await plane.apply(cluster_policy("roles", selecting("ClusterRole", name="my:reader")), cluster_role("my:reader"))
    template = await plane.get(CLUSTER_ROLES, "my:reader", "")
    binding = await plane.get(CLUSTER_BINDINGS, "my.reader-clusterrole", "")
    assert binding["metadata"]["finalizers"] == ["karmada.io/cluster-resource-binding-controller"]
    assert binding["metadata"]["annotations"] == {"clusterpropagationpolicy.karmada.io/name": "roles"}
    assert binding["metadata"]["labels"][CLUSTER_POLICY_ID] == template["metadata"]["labels"][CLUSTER_POLICY_ID]
    assert binding["metadata"]["labels"]["clusterresourcebinding.karmada.io/permanent-id"]
    assert binding["spec"] == {
        "resource": {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "name": "my:reader",
            "uid": template["metadata"]["uid"],
            "resourceVersion": template["metadata"]["resourceVersion"],
        },
        "schedulerName": "default-scheduler",
        "placement": placed("m1"),
        "conflictResolution": "Abort",
    }
    assert await plane.events("my:reader") == [("Normal", "ApplyPolicySucceed", "Apply cluster policy(roles) succeed")]


ALL = selecting("ConfigMap")
BY_NAME = selecting("ConfigMap", name="settings")
BY_LABEL = selecting("ConfigMap", labelSelector={"matchLabels": {"app": "a"}})


@cases(
    ([policy("low", ALL), policy("high", ALL, priority=5)], "default/high"),
    ([policy("a", ALL), policy("labelled", BY_LABEL), policy("b", ALL)], "default/labelled"),
    ([policy("labelled", BY_LABEL), policy("named", BY_NAME)], "default/named"),
    ([policy("b", BY_NAME), policy("a", BY_NAME)], "default/a"),
    ([cluster_policy("wide", BY_NAME, priority=9), policy("small", ALL)], "default/small"),
    ([cluster_policy("wide", ALL), cluster_policy("named", BY_NAME)], "named"),
    ([cluster_policy("here", selecting("ConfigMap", namespace="default"))], "here"),
    ([cluster_policy("there", selecting("ConfigMap", namespace="elsewhere"))], None),
    ([policy("others", selecting("Secret"))], None),
)
async def test_of_several_policies_one_counts(policies: list[Obj], winner: str | None, plane: Propagation) -> None:
    await plane.apply(*policies)
    await plane.apply(config_map(labels={"app": "a"}))
    assert await plane.claim(CONFIG_MAPS, "settings") == winner
    assert (await plane.binding("settings-configmap") is not None) is (winner is not None)


async def test_a_policy_of_another_namespace_selects_nothing_here(plane: Propagation) -> None:
    await plane.client.create(NAMESPACES, kube_object("v1", "Namespace", "other"))
    await plane.apply(config_map(), policy("pp", ALL, namespace="other"))
    assert await plane.claim(CONFIG_MAPS, "settings") is None


async def test_a_waiting_template_is_found_by_the_policy_that_comes_later(plane: Propagation) -> None:
    await plane.apply(config_map("a"), config_map("b", labels={"app": "a"}), config_map("c"))
    assert plane.writes == []
    await plane.apply(policy("pp", BY_LABEL))
    assert plane.writes == ["PATCH configmaps b", "POST resourcebindings b-configmap"]


async def test_a_template_that_gets_a_label_is_found(plane: Propagation) -> None:
    await plane.apply(config_map(), policy("pp", BY_LABEL))
    assert await plane.claim(CONFIG_MAPS, "settings") is None
    await plane.change(CONFIG_MAPS, "settings", {"metadata": {"labels": {"app": "a"}}})
    assert await plane.claim(CONFIG_MAPS, "settings") == "default/pp"


async def test_a_claimed_template_stays_with_its_policy_when_a_better_one_comes(plane: Propagation) -> None:
    await plane.apply(config_map(), policy("first", ALL))
    await plane.apply(policy("better", BY_NAME, priority=9))
    await plane.change(CONFIG_MAPS, "settings", {"data": {"k": "new"}})
    assert await plane.claim(CONFIG_MAPS, "settings") == "default/first"


@cases(("kube-system", "a"), ("karmada-system", "a"), ("karmada-cluster", "a"), ("karmada-es-m1", "a"))
async def test_reserved_and_skipped_namespaces_are_left_alone(namespace: str, name: str, plane: Propagation) -> None:
    if await plane.find(NAMESPACES, namespace, "") is None:
        body = kube_object("v1", "Namespace", namespace)
        await plane.client.create(NAMESPACES, body)
    await plane.apply(cluster_policy("wide", ALL), config_map(namespace=namespace))
    assert await plane.claim(CONFIG_MAPS, "settings", namespace) is None
    assert await plane.binding("settings-configmap", namespace) is None


async def test_a_template_with_a_claim_by_hand_is_not_changed(plane: Propagation) -> None:
    label = "resourcetemplate.karmada.io/claimed-by"
    await plane.apply(config_map(labels={label: "MultiClusterService"}), policy("pp", ALL))
    assert await plane.binding("settings-configmap") is None
    await plane.change(CONFIG_MAPS, "settings", {"metadata": {"labels": {label: None}}})
    assert await plane.binding("settings-configmap") is not None


async def test_a_changed_template_changes_its_binding_once(plane: Propagation) -> None:
    await plane.apply(deployment(), policy())
    plane.writes.clear()
    changed = await plane.change(DEPLOYMENTS, "nginx", {"spec": {"replicas": 7}})
    binding = await plane.get(BINDINGS, "nginx-deployment")
    assert binding["spec"]["replicas"] == 7
    assert binding["spec"]["resource"]["resourceVersion"] == changed["metadata"]["resourceVersion"]
    assert plane.writes == ["PUT resourcebindings nginx-deployment"]


async def test_a_templates_status_is_nothing_to_the_detector(plane: Propagation) -> None:
    await plane.apply(deployment(), policy())
    plane.writes.clear()
    body = {"status": {"replicas": 2, "observedGeneration": 1}}
    await plane.client.patch(DEPLOYMENTS, "nginx", "default", body, subresource="status")
    await plane.rest()
    assert plane.writes == []


async def test_what_others_put_into_a_binding_stays(plane: Propagation) -> None:
    await plane.apply(deployment(), policy())
    theirs: Obj = {"clusters": [{"name": "m1", "replicas": 2}], "suspension": {"scheduling": True}}
    await plane.change(BINDINGS, "nginx-deployment", {"spec": theirs})
    await plane.change(POLICIES, "pp", {"spec": {"placement": placed("m2"), "suspension": {"dispatching": True}}})
    spec = (await plane.get(BINDINGS, "nginx-deployment"))["spec"]
    assert spec["clusters"] == theirs["clusters"]
    assert spec["suspension"] == {"dispatching": True, "scheduling": True}
    assert spec["placement"] == placed("m2")
    await plane.change(POLICIES, "pp", {"spec": {"suspension": None}})
    assert (await plane.get(BINDINGS, "nginx-deployment"))["spec"]["suspension"] == {"scheduling": True}


async def test_a_binding_goes_with_its_template(plane: Propagation) -> None:
    await plane.apply(deployment(), policy())
    await plane.delete(DEPLOYMENTS, "nginx")
    binding = await plane.get(BINDINGS, "nginx-deployment")
    assert binding["metadata"]["deletionTimestamp"]
    await plane.change(BINDINGS, "nginx-deployment", {"metadata": {"finalizers": None}})
    assert await plane.binding("nginx-deployment") is None


async def test_a_template_that_is_made_anew_waits_until_the_old_binding_is_gone(plane: Propagation) -> None:
    await plane.apply(config_map(), policy("pp", ALL))
    await plane.delete(CONFIG_MAPS, "settings")
    (template,) = await plane.apply(config_map())
    text = (
        "failed to update binding due to different owner reference UID, will try again later after binding is "
        "garbage collected, see https://github.com/karmada-io/karmada/issues/2090"
    )
    assert ("Warning", "ApplyPolicyFailed", f"Apply policy(default/pp) failed: {text}") in await plane.events(
        "settings"
    )
    await plane.change(BINDINGS, "settings-configmap", {"metadata": {"finalizers": None}})
    await plane.rest(5)
    binding = await plane.get(BINDINGS, "settings-configmap")
    assert binding["spec"]["resource"]["uid"] == template["metadata"]["uid"]


async def test_a_binding_that_was_deleted_by_hand_comes_back_with_the_next_change(plane: Propagation) -> None:
    await plane.apply(config_map(), policy("pp", ALL))
    await plane.change(BINDINGS, "settings-configmap", {"metadata": {"finalizers": None}})
    await plane.delete(BINDINGS, "settings-configmap")
    assert await plane.binding("settings-configmap") is None
    await plane.change(CONFIG_MAPS, "settings", {"data": {"k": "new"}})
    assert await plane.binding("settings-configmap") is not None


async def test_a_claim_of_a_policy_that_never_was_is_taken_off(plane: Propagation) -> None:
    claim: dict[str, Any] = {
        "labels": {POLICY_ID: "old"},
        "annotations": {
            "propagationpolicy.karmada.io/namespace": "default",
            "propagationpolicy.karmada.io/name": "gone",
        },
    }
    await plane.apply(policy("pp", ALL))
    await plane.apply(config_map(**claim))
    assert await plane.claim(CONFIG_MAPS, "settings") == "default/pp"


async def test_a_policy_of_the_same_name_renews_the_claim(plane: Propagation) -> None:
    await plane.apply(config_map(), policy("pp", ALL))
    await plane.change(POLICIES, "pp", {"metadata": {"finalizers": None}})
    await plane.client.delete(POLICIES, "pp", "default")
    (again,) = await plane.apply(policy("pp", ALL))
    await plane.change(CONFIG_MAPS, "settings", {"data": {"k": "new"}})
    for kind, name in ((CONFIG_MAPS, "settings"), (BINDINGS, "settings-configmap")):
        found = await plane.get(kind, name)
        assert found["metadata"]["labels"][POLICY_ID] == again["metadata"]["labels"][POLICY_ID]


def guestbook_crd() -> Obj:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": "Guestbook", "plural": "guestbooks", "singular": "guestbook", "listKind": "GuestbookList"}
    return kube_object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "guestbooks.webapp.my.domain") | {
        "spec": {"group": "webapp.my.domain", "scope": "Namespaced", "names": names, "versions": [version]}
    }


def guestbook(name: str = "d8") -> Obj:
    return kube_object("webapp.my.domain/v1", "Guestbook", name, "default", spec={"size": 2})


async def test_a_kind_that_appears_is_propagated_at_once_and_again_after_it_was_gone(plane: Propagation) -> None:
    await plane.apply(policy("books", {"apiVersion": "webapp.my.domain/v1", "kind": "Guestbook"}))
    for _ in range(2):
        await plane.client.create(CRDS, guestbook_crd())
        await plane.rest()
        await plane.client.create(GUESTBOOKS, guestbook())
        await plane.rest()
        binding = await plane.get(BINDINGS, "d8-guestbook")
        assert binding["spec"]["resource"]["apiVersion"] == "webapp.my.domain/v1"
        await plane.delete(CRDS, "guestbooks.webapp.my.domain", "")
        await plane.change(BINDINGS, "d8-guestbook", {"metadata": {"finalizers": None}})
        await plane.rest(3)
        assert await plane.binding("d8-guestbook") is None


async def test_a_cluster_policy_also_claims_templates_in_namespaces(plane: Propagation) -> None:
    await plane.apply(config_map(), cluster_policy("wide", ALL))
    assert await plane.claim(CONFIG_MAPS, "settings") == "wide"
    assert await plane.claim(BINDINGS, "settings-configmap") == "wide"
    assert await plane.find(CLUSTER_POLICIES, "wide", "") is not None
