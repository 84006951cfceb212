"""Policies change and go."""

from __future__ import annotations

import pytest

from karmada.admission.limits import LIMITS
from karmada.api.policy import ClusterOverridePolicy, OverridePolicy
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import CLUSTER_ROLES, CONFIG_MAPS, DEPLOYMENTS
from karmada.kube.objects.types import Obj
from tests.support.cases import cases
from tests.support.propagation import (
    BINDINGS,
    CLUSTER_BINDINGS,
    CLUSTER_POLICIES,
    POLICIES,
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

ALL = selecting("ConfigMap")
BY_NAME = selecting("ConfigMap", name="settings")


@cases(
    {"placement": placed("m2", "m3")},
    {"placement": {"replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"}}},
    {"placement": {"spreadConstraints": [{"spreadByField": "cluster", "maxGroups": 2, "minGroups": 1}]}},
    {"conflictResolution": "Overwrite"},
    {"preserveResourcesOnDeletion": True},
    {"suspension": {"dispatchingOnClusters": {"clusterNames": ["m1"]}}},
    {"failover": {"cluster": {"purgeMode": "Directly"}}},
    {"propagateDeps": True},
)
async def test_a_changed_field_changes_the_binding_with_one_write(changes: Obj, plane: Propagation) -> None:
    await plane.apply(deployment(), policy())
    plane.writes.clear()
    changed = await plane.change(POLICIES, "pp", {"spec": changes})
    spec = (await plane.get(BINDINGS, "nginx-deployment"))["spec"]
    for field in changes:
        assert spec[field] == changed["spec"][field]
    assert plane.writes == ["PUT resourcebindings nginx-deployment"]
    plane.writes.clear()
    await plane.change(POLICIES, "pp", {"metadata": {"labels": {"a": "b"}}})
    assert plane.writes == []


async def test_a_change_back_is_not_taken_for_none(plane: Propagation) -> None:
    await plane.apply(config_map(), policy("pp", ALL))
    for clusters in (["m2"], ["m1"], ["m3"], ["m1"]):
        await plane.client.patch(POLICIES, "pp", "default", {"spec": {"placement": placed(*clusters)}})
    await plane.rest()
    assert await plane.clusters("settings-configmap") == ["m1"]


async def test_a_policy_releases_what_it_no_longer_selects(plane: Propagation) -> None:
    await plane.apply(config_map(), config_map("kept"), policy("pp", ALL))
    binding = await plane.change(BINDINGS, "settings-configmap", {"spec": {"clusters": [{"name": "m1"}]}})
    plane.writes.clear()
    await plane.change(POLICIES, "pp", {"spec": {"resourceSelectors": [selecting("ConfigMap", name="kept")]}})
    assert await plane.claim(CONFIG_MAPS, "settings") is None
    assert await plane.claim(BINDINGS, "settings-configmap") is None
    assert (await plane.get(BINDINGS, "settings-configmap"))["spec"] == binding["spec"]
    assert await plane.claim(CONFIG_MAPS, "kept") == "default/pp"
    assert plane.writes == ["PATCH configmaps settings", "PATCH resourcebindings settings-configmap"]


async def test_a_released_template_may_match_another_policy(plane: Propagation) -> None:
    await plane.apply(config_map(), policy("first", BY_NAME))
    await plane.apply(
        policy("second", ALL, placement=placed("m2")), cluster_policy("wide", ALL, placement=placed("m3"))
    )
    await plane.change(POLICIES, "first", {"spec": {"resourceSelectors": [selecting("ConfigMap", name="other")]}})
    assert await plane.claim(CONFIG_MAPS, "settings") == "default/second"
    assert await plane.claim(BINDINGS, "settings-configmap") == "default/second"
    await plane.delete(POLICIES, "second")
    assert await plane.claim(CONFIG_MAPS, "settings") == "wide"
    assert await plane.claim(BINDINGS, "settings-configmap") == "wide"
    assert await plane.clusters("settings-configmap") == ["m3"]


async def test_a_cluster_policy_releases_namespaced_and_cluster_scoped_templates(plane: Propagation) -> None:
    await plane.apply(
        config_map(), cluster_role("mine"), cluster_policy("wide", ALL, selecting("ClusterRole", name="mine"))
    )
    assert await plane.claim(CLUSTER_ROLES, "mine", "") == "wide"
    patch = {"spec": {"resourceSelectors": [selecting("Secret")]}}
    await plane.change(CLUSTER_POLICIES, "wide", patch, "")
    for kind, name, namespace in (
        (CONFIG_MAPS, "settings", "default"),
        (BINDINGS, "settings-configmap", "default"),
        (CLUSTER_ROLES, "mine", ""),
        (CLUSTER_BINDINGS, "mine-clusterrole", ""),
    ):
        assert await plane.claim(kind, name, namespace) is None


@cases(ALL, BY_NAME)
async def test_a_deleted_policy_leaves_everything_but_its_claim(selector: Obj, plane: Propagation) -> None:
    await plane.apply(config_map(), policy("pp", selector))
    before = await plane.get(BINDINGS, "settings-configmap")
    await plane.delete(POLICIES, "pp")
    assert await plane.find(POLICIES, "pp") is None
    assert await plane.claim(CONFIG_MAPS, "settings") is None
    assert await plane.claim(BINDINGS, "settings-configmap") is None
    assert (await plane.get(BINDINGS, "settings-configmap"))["spec"] == before["spec"]
    await plane.apply(policy("next", ALL, placement=placed("m2")))
    assert await plane.claim(BINDINGS, "settings-configmap") == "default/next"
    assert await plane.clusters("settings-configmap") == ["m2"]


async def test_a_deleted_cluster_policy_goes_although_a_kind_it_selects_is_unknown(plane: Propagation) -> None:
    unknown = {"apiVersion": "nowhere.io/v1", "kind": "Nothing"}
    selectors = [unknown, ALL, selecting("ClusterRole", name="mine"), selecting("ConfigMap", name="settings")]
    await plane.apply(config_map(), cluster_role("mine"), cluster_policy("wide", *selectors))
    await plane.delete(CLUSTER_POLICIES, "wide", "")
    assert await plane.find(CLUSTER_POLICIES, "wide", "") is None
    for kind, name, namespace in ((CONFIG_MAPS, "settings", "default"), (CLUSTER_ROLES, "mine", "")):
        assert await plane.claim(kind, name, namespace) is None


async def test_a_policy_does_not_take_a_claim_off_that_is_not_its_own(plane: Propagation) -> None:
    await plane.apply(config_map(), policy("pp", ALL))
    plane.writes.clear()
    await plane.apply(policy("idle", ALL))
    await plane.delete(POLICIES, "idle")
    assert await plane.claim(CONFIG_MAPS, "settings") == "default/pp"
    assert plane.writes == ["PATCH propagationpolicies idle"]


OVERRIDES = [
    (policy("pp", ALL, dependentOverrides=["o"]), OverridePolicy, "default", "default/pp"),
    (cluster_policy("wide", ALL, dependentOverrides=["o"]), ClusterOverridePolicy, "", "wide"),
]


@pytest.mark.parametrize(("waits", "kind", "namespace", "winner"), OVERRIDES)
@pytest.mark.parametrize("template_first", [True, False])
async def test_a_policy_waits_for_the_overrides_it_depends_on(
    plane: Propagation, waits: Obj, kind: type[OverridePolicy], namespace: str, winner: str, template_first: bool
) -> None:
    for obj in (config_map(), waits) if template_first else (waits, config_map()):
        await plane.apply(obj)
    assert await plane.binding("settings-configmap") is None
    metadata = {"name": "o", **({"namespace": namespace} if namespace else {})}
    override = {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": kind.gvk.kind,
        "metadata": metadata,
        "spec": {"overrideRules": [{"overriders": {}}]},
    }
    await plane.client.create(kind.gvr, override)
    await plane.rest(10)
    assert await plane.claim(BINDINGS, "settings-configmap") == winner


async def test_a_claimed_template_waits_for_overrides_too(plane: Propagation) -> None:
    await plane.apply(config_map(), policy("pp", ALL))
    patch = {"spec": {"dependentOverrides": ["o"], "placement": placed("m2")}}
    await plane.change(POLICIES, "pp", patch)
    assert await plane.clusters("settings-configmap") == ["m1"]


async def test_many_templates_of_a_deleted_policy_are_released(plane: Propagation) -> None:
    names = [f"c{number}" for number in range(40)]
    await plane.apply(*(config_map(name) for name in names), policy("pp", ALL))
    plane.writes.clear()
    await plane.delete(POLICIES, "pp")
    assert sorted(plane.writes) == sorted(
        ["PATCH propagationpolicies pp"]
        + [f"PATCH configmaps {name}" for name in names]
        + [f"PATCH resourcebindings {name}-configmap" for name in names]
    )


async def test_a_failed_write_is_reported_and_retried(plane: Propagation) -> None:
    long = "a" * 250
    roles = GVR("rbac.authorization.k8s.io", "v1", "clusterroles")
    await plane.apply(cluster_policy("wide", selecting("ClusterRole", name=long)), cluster_role(long))
    emitted = await plane.events(long)
    failures = {(kind, reason) for kind, reason, _ in emitted}
    assert failures == {("Warning", "ApplyPolicyFailed")}
    assert emitted[0][2].startswith("Apply cluster policy(wide) failed: ClusterResourceBinding")
    assert await plane.claim(roles, long, "") == "wide"
    assert await plane.find(DEPLOYMENTS, "nginx") is None


async def test_a_policy_over_a_limit_from_before_can_be_changed_is_handled_and_reported(
    plane: Propagation, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("settings", "other", "third")
    await plane.apply(config_map("settings"), policy("pp", *(selecting("ConfigMap", name=name) for name in names)))
    monkeypatch.setitem(LIMITS, "resourceSelectors", 2)
    await plane.change(POLICIES, "pp", {"spec": {"placement": placed("m2")}})
    assert (await plane.get(BINDINGS, "settings-configmap"))["spec"]["placement"] == placed("m2")
    text = "spec.resourceSelectors: Too many: 3: must have at most 2 items to be handled in good time."
    assert ("Warning", "OverLimit", text) in await plane.events("pp")
