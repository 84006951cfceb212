"""Through a real server in memory: with the rules inside, and with the rules behind webhook configurations."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from karmada.admission.context import Settings
from karmada.admission.plugin import admission_plugins
from karmada.admission.registration import webhook_configurations
from karmada.api.older_forms import present_policy
from karmada.api.resources import karmada_resources
from karmada.components.webhook import WebhookServer, serving_context
from karmada.features import default_gates
from karmada.kube.client.client import Client
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.errors import ApiError, BadRequest, Forbidden, Invalid
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import CONFIG_MAPS
from karmada.kube.objects.types import Obj
from karmada.kube.server.app import ApiServer
from karmada.kube.server.config import ServerConfig

POLICY, WORK, CONFIG = (f"{group}.karmada.io" for group in ("policy", "work", "config"))
POLICIES = GVR(POLICY, "v1alpha1", "propagationpolicies")
OVERRIDES = GVR(POLICY, "v1alpha1", "overridepolicies")
QUOTAS = GVR(POLICY, "v1alpha1", "federatedresourcequotas")
BINDINGS = GVR(WORK, "v1alpha2", "resourcebindings")
OLD_BINDINGS = GVR(WORK, "v1alpha1", "resourcebindings")
WORKS = GVR(WORK, "v1alpha1", "works")
CUSTOMIZATIONS = GVR(CONFIG, "v1alpha1", "resourceinterpretercustomizations")
PROTECTED = {"resourcetemplate.karmada.io/deletion-protected": "Always"}
NGINX = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "nginx"}


@pytest.fixture(params=["in-process", "webhook"])
async def client(request: pytest.FixtureRequest, folder: Path) -> AsyncIterator[Client]:
    server = ApiServer(ServerConfig(data_dir=folder, storage="memory://", port=0, controllers=False))
    server.registry.add(karmada_resources())
    gates = default_gates()
    gates.set("FederatedQuotaEnforcement=true")
    found = server.client(user_agent="tests")
    settings = Settings(client=found, gates=gates, lua_problem=lambda _: "")
    webhook = WebhookServer(settings, serving_context(folder / "hooks", "tls.crt", "tls.key", "1.3"), host="127.0.0.1")
    if request.param == "in-process":
        for plugin in admission_plugins(settings):
            server.admission.add(plugin)
    await server.start()
    await webhook.start()
    if request.param == "webhook":
        bundle = (folder / "hooks" / "ca.crt").read_bytes()
        for configuration in webhook_configurations(f"https://127.0.0.1:{webhook.port}", bundle):
            plural = f"{configuration['kind'].lower()}s"
            await found.create(GVR("admissionregistration.k8s.io", "v1", plural), configuration)
    yield found
    await webhook.stop()
    await server.stop()


def made(gvr: GVR, kind: str, name: str, spec: Any, *, namespace: str = "default", **meta: Any) -> Obj:
    where = {"namespace": namespace} if namespace else {}
    head = {"apiVersion": f"{gvr.group}/{gvr.version}".lstrip("/"), "kind": kind}
    return {**head, "metadata": {"name": name, **where, **meta}, "spec": spec}


def policy(**spec: Any) -> Obj:
    return made(POLICIES, "PropagationPolicy", "web", {"resourceSelectors": [NGINX], **spec})


async def test_a_policy_is_completed(client: Client) -> None:
    stored = await client.create(POLICIES, policy(propagateDeps=False))
    assert stored["metadata"]["finalizers"] == ["karmada.io/propagation-policy-controller"]
    assert len(stored["metadata"]["labels"]["propagationpolicy.karmada.io/permanent-id"]) == 36
    assert stored["spec"] == {
        "resourceSelectors": [{**NGINX, "namespace": "default"}],
        "placement": {},
        "priority": 0,
        "preemption": "Never",
        "schedulerName": "default-scheduler",
        "conflictResolution": "Abort",
    }


async def test_an_older_form_is_stored_as_it_was_sent(client: Client) -> None:
    scheduling = {"replicaDivisionPreference": "Dynamic", "dynamicWeight": "AvailableReplicas"}
    failover: dict[str, Any] = {"applicationMigrationPolicy": {"decisionConditions": {}}}
    placement = {"replicaScheduling": scheduling, "spreadConstraints": [{"spreadByField": "region"}]}
    spec = (await client.create(POLICIES, policy(placement=placement, failover=failover)))["spec"]
    assert spec["placement"] == {
        "replicaScheduling": {"replicaSchedulingType": "Divided", **scheduling},
        "spreadConstraints": [{"spreadByField": "region", "minGroups": 1}],
    }
    meant = present_policy(spec)
    assert meant["placement"] == {
        "replicaScheduling": {
            "replicaSchedulingType": "Divided",
            "replicaDivisionPreference": "Weighted",
            "weightPreference": {"dynamicWeight": "AvailableReplicas"},
        },
        "spreadConstraints": [
            {"spreadByField": "region", "minGroups": 1},
            {"spreadByField": "cluster", "minGroups": 1},
        ],
    }
    assert meant["failover"] == {
        "application": {
            "decisionConditions": {"tolerationSeconds": 300},
            "purgeMode": "Gracefully",
            "gracePeriodSeconds": 600,
        },
        "cluster": {"purgeMode": "Gracefully"},
    }


async def test_an_older_form_sent_again_changes_nothing(client: Client) -> None:
    placement = {
        "replicaScheduling": {"replicaDivisionPreference": "Dynamic", "dynamicWeight": "AvailableReplicas"},
        "spreadConstraints": [{"spreadByField": "region", "minGroups": 2}],
    }
    given = {"spec": {"placement": placement, "failover": {"applicationMigrationPolicy": {"purgePolicy": "Directly"}}}}
    stored = await client.create(POLICIES, policy(**given["spec"]))
    again = await client.patch(POLICIES, "web", "default", given)
    assert again["metadata"]["resourceVersion"] == stored["metadata"]["resourceVersion"]
    assert again["spec"] == stored["spec"]


async def test_a_capital_in_a_field_name_is_refused_with_the_name_that_is_meant(client: Client) -> None:
    toleration = {"key": "k", "operator": "Exists", "Effect": "NoSchedule"}
    sent = policy(placement={"clusterTolerations": [toleration]})
    with pytest.raises(BadRequest) as refusal:
        await client.create(POLICIES, sent, field_validation="Strict")
    unknown = 'unknown field "spec.placement.clusterTolerations[0].Effect" (did you mean "effect"?)'
    assert refusal.value.message.endswith(f"strict decoding error: {unknown}")


async def test_a_rule_refuses_after_the_schema(client: Client) -> None:
    both = {"clusterAffinity": {}, "clusterAffinities": [{"affinityName": "a"}]}
    with pytest.raises(Invalid):
        await client.create(POLICIES, policy(placement=both, preemption="Sometimes"))
    with pytest.raises(Forbidden) as refusal:
        await client.create(POLICIES, policy(placement=both))
    assert refusal.value.message == (
        'admission webhook "propagationpolicy.karmada.io" denied the request: spec.placement: Invalid value: '
        '{"clusterAffinity":{},"clusterAffinities":[{"affinityName":"a"}]}: '
        "clusterAffinities cannot co-exist with clusterAffinity"
    )
    assert (await client.list_all(POLICIES)).items == []


async def test_what_has_no_shape_is_a_bad_request(client: Client) -> None:
    with pytest.raises(ApiError) as refusal:
        await client.create(POLICIES, policy(placement="everywhere"))
    assert refusal.value.http_code == 400
    assert 'admission webhook "propagationpolicy.karmada.io" denied the request: Expected' in refusal.value.message


async def test_an_id_cannot_be_taken_away(client: Client) -> None:
    await client.create(POLICIES, policy())
    with pytest.raises(Forbidden, match="is immutable, it can only be set by the system during creation"):
        await client.patch(POLICIES, "web", "default", {"metadata": {"labels": None}})
    with pytest.raises(Forbidden, match="the schedulerName should not be updated"):
        await client.patch(POLICIES, "web", "default", {"spec": {"schedulerName": "mine"}})


async def test_a_patch_is_completed_too(client: Client) -> None:
    await client.create(POLICIES, policy())
    constraints = {"spec": {"placement": {"spreadConstraints": [{"maxGroups": 2}]}}}
    stored = await client.patch(POLICIES, "web", "default", constraints)
    assert stored["spec"]["placement"]["spreadConstraints"] == [
        {"spreadByField": "cluster", "maxGroups": 2, "minGroups": 1}
    ]


async def test_manifests_of_a_work_are_pruned(client: Client) -> None:
    await client.create(GVR("", "v1", "namespaces"), {"metadata": {"name": "karmada-es-m1"}})
    manifest = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "uid": "u"}}
    spec = {"workload": {"manifests": [{**manifest, "spec": {"clusterIP": "10.0.0.1"}}]}}
    stored = await client.create(WORKS, made(WORKS, "Work", "w", spec, namespace="karmada-es-m1"))
    [sent] = stored["spec"]["workload"]["manifests"]
    identity = stored["metadata"]["labels"]["work.karmada.io/permanent-id"]
    assert sent["metadata"]["labels"] == {"work.karmada.io/permanent-id": identity}
    assert "uid" not in sent["metadata"]
    assert sent["spec"] == {}
    again = await client.update(WORKS, copy_json(stored))
    assert again["metadata"]["resourceVersion"] == stored["metadata"]["resourceVersion"]


async def test_a_question_about_a_kind_is_answered_once(client: Client) -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment"}
    spec = {"target": target, "customizations": {"retention": {"luaScript": "x"}}}
    kind = "ResourceInterpreterCustomization"
    await client.create(CUSTOMIZATIONS, made(CUSTOMIZATIONS, kind, "one", spec, namespace=""))
    with pytest.raises(Forbidden, match=r"conflicting with InterpreterOperation\(Retain\) of existing .*\(one\)"):
        await client.create(CUSTOMIZATIONS, made(CUSTOMIZATIONS, kind, "two", spec, namespace=""))


def binding(replicas: int, name: str = "b") -> Obj:
    spec = {
        "resource": NGINX,
        "clusters": [{"name": "m1", "replicas": replicas}],
        "replicaRequirements": {"resourceRequest": {"cpu": "1"}},
    }
    return made(BINDINGS, "ResourceBinding", name, spec)


async def test_a_binding_is_charged_to_the_quota(client: Client) -> None:
    await client.create(QUOTAS, made(QUOTAS, "FederatedResourceQuota", "q", {"overall": {"cpu": "3"}}))
    stored = await client.create(BINDINGS, binding(2))
    assert len(stored["metadata"]["labels"]["resourcebinding.karmada.io/permanent-id"]) == 36
    assert (await client.get(QUOTAS, "q", "default"))["status"]["overallUsed"] == {"cpu": "2"}
    with pytest.raises(ApiError) as refusal:
        await client.create(BINDINGS, binding(2, "c"))
    assert (refusal.value.http_code, refusal.value.status_reason) == (403, "QuotaExceeded")
    assert refusal.value.message == (
        'admission webhook "resourcebinding.karmada.io" denied the request: '
        "FederatedResourceQuota(default/q) exceeded for resource cpu: requested sum 4, limit 3."
    )
    await client.create(BINDINGS, binding(1, "d"), dry_run=True)
    assert (await client.get(QUOTAS, "q", "default"))["status"]["overallUsed"] == {"cpu": "2"}


async def test_a_binding_of_the_first_version_gets_an_id(client: Client) -> None:
    obj = made(OLD_BINDINGS, "ResourceBinding", "b", {"resource": NGINX})
    stored = await client.create(OLD_BINDINGS, obj)
    assert stored["apiVersion"] == "work.karmada.io/v1alpha1"
    assert "resourcebinding.karmada.io/permanent-id" in stored["metadata"]["labels"]


async def test_a_status_is_nobodys_business(client: Client) -> None:
    quota = await client.create(QUOTAS, made(QUOTAS, "FederatedResourceQuota", "q", {"overall": {"cpu": "3"}}))
    stored = await client.update_status(QUOTAS, {**quota, "status": {"overallUsed": {"apples": "3"}}})
    assert stored["status"]["overallUsed"] == {"apples": "3"}


async def test_protected_objects_stay(client: Client) -> None:
    def config_map(name: str, **labels: str) -> Obj:
        return {"metadata": {"name": name, "namespace": "default", "labels": {"mine": "yes", **labels}}}

    await client.create(CONFIG_MAPS, config_map("free"))
    await client.create(CONFIG_MAPS, config_map("kept", **PROTECTED))
    text = (
        'admission webhook "resourcedeletionprotection.karmada.io" denied the request: This resource is protected, '
        "please make sure to remove the label: resourcetemplate.karmada.io/deletion-protected"
    )
    with pytest.raises(Forbidden) as refusal:
        await client.delete(CONFIG_MAPS, "kept", "default")
    assert refusal.value.message == text
    with pytest.raises(Forbidden) as refusal:
        await client.delete_collection(CONFIG_MAPS, "default", label_selector="mine")
    assert refusal.value.message == text
    label = {"metadata": {"labels": {"resourcetemplate.karmada.io/deletion-protected": None}}}
    await client.patch(CONFIG_MAPS, "kept", "default", label)
    await client.delete(CONFIG_MAPS, "kept", "default")


async def test_a_selector_outside_is_refused(client: Client) -> None:
    spec = {"resourceSelectors": [{**NGINX, "namespace": "other"}], "overrideRules": []}
    with pytest.raises(Forbidden, match="must be the same as the namespace of the policy"):
        await client.create(OVERRIDES, made(OVERRIDES, "OverridePolicy", "o", spec))
