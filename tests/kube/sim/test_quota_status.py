from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karmada.kube.kinds import quota as quotas
from karmada.kube.kinds import quota_ledger
from karmada.kube.kinds.pod_amounts import Usage
from karmada.kube.kinds.quota_ledger import Ledger, resource_of
from karmada.kube.objects.errors import Forbidden
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.objects.gvrs import CLAIMS, CONFIG_MAPS, PODS, QUOTAS, SERVICES
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Reconciler
from karmada.kube.sim.context import Context
from karmada.kube.sim.controllers.quota import RESYNC_SECONDS, ResourceQuotas
from tests.kube.sim.harness import Harness, running
from tests.kube.sim.passing import after, settled
from tests.kube.sim.service_objects import service
from tests.support.cases import cases

PACE = 0.081


def parts(context: Context) -> list[Reconciler]:
    return [ResourceQuotas(context)]


def quota(hard: dict[str, str], **spec: Any) -> Obj:
    metadata = {"name": "q", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard, **spec}}


def pod(name: str, cpu: str = "100m", memory: str = "64Mi", **spec: Any) -> Obj:
    container = {"name": "c", "image": "nginx", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], **spec}}


async def status(cluster: Harness) -> Obj:
    await settled(cluster)
    found: Obj = (await cluster.client.get(QUOTAS, "q", "default"))["status"]
    return found


async def used(cluster: Harness) -> dict[str, str]:
    await after(cluster, PACE)
    found: dict[str, str] = (await status(cluster))["used"]
    return found


async def test_a_new_quota_says_at_once_what_is_used(tmp_path: Path) -> None:
    async with running(tmp_path, parts) as cluster:
        await cluster.client.create(PODS, pod("a"))
        await cluster.client.create(PODS, pod("b", "1", "1Gi"))
        hard = {"pods": "5", "requests.cpu": "2", "memory": "4Gi", "services": "3", "count/deployments.apps": "4"}
        await cluster.client.create(QUOTAS, quota(hard))
        found = await status(cluster)
        assert found["hard"] == hard
        assert found["used"] == {
            "pods": "2",
            "requests.cpu": "1100m",
            "memory": "1088Mi",
            "services": "1",
            "count/deployments.apps": "0",
        }


async def test_usage_grows_at_admission_and_shrinks_with_pods_that_end(tmp_path: Path) -> None:
    async with running(tmp_path, parts) as cluster:
        await cluster.client.create(QUOTAS, quota({"pods": "30", "requests.cpu": "9"}))
        await settled(cluster)
        made = [await cluster.client.create(PODS, pod(f"p{number}")) for number in range(20)]
        counted = await cluster.client.get(QUOTAS, "q", "default")
        assert counted["status"]["used"] == {"pods": "20", "requests.cpu": "2"}
        await settled(cluster)
        assert await used(cluster) == {"pods": "20", "requests.cpu": "2"}
        await cluster.set_pod_status(made[0], {"phase": "Succeeded"})
        await cluster.client.delete(PODS, "p1", "default", grace_period=0)
        assert await used(cluster) == {"pods": "18", "requests.cpu": "1800m"}


async def test_a_deleted_object_frees_its_place(tmp_path: Path) -> None:
    async with running(tmp_path, parts) as cluster:
        await cluster.client.create(QUOTAS, quota({"pods": "1"}))
        await settled(cluster)
        await cluster.client.create(PODS, pod("a"))
        await after(cluster, PACE)
        with pytest.raises(Forbidden, match="exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"):
            await cluster.client.create(PODS, pod("b"))
        await cluster.client.delete(PODS, "a", "default", grace_period=0)
        await after(cluster, 0.1)
        await cluster.client.create(PODS, pod("b"))


async def test_changing_the_limits_changes_the_status(tmp_path: Path) -> None:
    async with running(tmp_path, parts) as cluster:
        await cluster.client.create(QUOTAS, quota({"pods": "1"}))
        await cluster.client.create(CONFIG_MAPS, config_map("one"))
        await settled(cluster)
        change = {"spec": {"hard": {"pods": None, "configmaps": "10", "count/secrets": "3"}}}
        await cluster.client.patch(QUOTAS, "q", "default", change)
        found = await status(cluster)
        assert found["hard"] == {"configmaps": "10", "count/secrets": "3"}
        assert found["used"] == {"configmaps": "2", "count/secrets": "0"}
        await cluster.client.create(CONFIG_MAPS, config_map("two"))
        assert (await used(cluster))["configmaps"] == "3"


def config_map(name: str) -> Obj:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}


async def test_services_and_claims_count_by_what_they_request(tmp_path: Path) -> None:
    async with running(tmp_path, parts) as cluster:
        gold = "gold.storageclass.storage.k8s.io/requests.storage"
        hard = {"services.loadbalancers": "2", "services.nodeports": "5", "requests.storage": "10Gi", gold: "5Gi"}
        await cluster.client.create(QUOTAS, quota(hard))
        await settled(cluster)
        await cluster.client.create(SERVICES, service("lb", type="LoadBalancer"))
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}}
        claim: Obj = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
        for name, more in (("a", {}), ("b", {"storageClassName": "gold"})):
            metadata = {"name": name, "namespace": "default"}
            await cluster.client.create(CLAIMS, {**claim, "metadata": metadata, "spec": {**spec, **more}})
        expected = {"services.loadbalancers": "1", "services.nodeports": "1", "requests.storage": "4Gi", gold: "2Gi"}
        assert await used(cluster) == expected
        await cluster.client.patch(SERVICES, "lb", "default", {"spec": {"type": "ClusterIP"}})
        assert (await used(cluster))["services.loadbalancers"] == "0"


async def test_a_scoped_quota_counts_only_what_is_in_its_scope(tmp_path: Path) -> None:
    async with running(tmp_path, parts) as cluster:
        await cluster.client.create(QUOTAS, quota({"pods": "5"}, scopes=["Terminating"]))
        await settled(cluster)
        await cluster.client.create(PODS, pod("a"))
        await cluster.client.create(PODS, pod("b", activeDeadlineSeconds=60))
        assert await used(cluster) == {"pods": "1"}


async def test_everything_is_counted_again_every_five_minutes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(tmp_path, parts) as cluster:
        await cluster.client.create(QUOTAS, quota({"pods": "5"}))
        await settled(cluster)
        monkeypatch.setattr(Ledger, "change", lambda *_: False)
        await cluster.client.create(PODS, pod("missed"))
        assert await used(cluster) == {"pods": "0"}
        await after(cluster, RESYNC_SECONDS)
        assert await used(cluster) == {"pods": "1"}


async def test_pods_that_only_change_their_status_are_not_counted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path, parts) as cluster:
        await cluster.client.create(QUOTAS, quota({"pods": "5"}))
        await settled(cluster)
        made = await cluster.client.create(PODS, pod("a"))
        await after(cluster, PACE)
        counted: list[Obj] = []

        def counting(resource: GroupResource, obj: Obj) -> Usage:
            counted.append(obj)
            return quotas.usage(resource, obj)

        monkeypatch.setattr(quota_ledger, "usage", counting)
        await cluster.make_ready(made)
        await after(cluster, PACE)
        assert counted == []
        await cluster.client.create(PODS, pod("b"))
        await after(cluster, PACE)
        assert counted[-1]["metadata"]["name"] == "b"


async def test_a_cluster_without_quotas_follows_nothing(tmp_path: Path) -> None:
    async with running(tmp_path, parts) as cluster:
        await settled(cluster)
        assert [informer.gvr for informer in cluster.manager.informers.all()] == [QUOTAS]


async def test_an_unknown_resource_is_simply_unused(tmp_path: Path) -> None:
    async with running(tmp_path, parts) as cluster:
        await cluster.client.create(QUOTAS, quota({"count/widgets.example.com": "5", "pods": "1"}))
        assert (await status(cluster))["used"] == {"count/widgets.example.com": "0", "pods": "0"}


async def test_a_deleted_quota_made_anew_starts_anew(tmp_path: Path) -> None:
    async with running(tmp_path, parts) as cluster:
        await cluster.client.create(QUOTAS, quota({"pods": "5"}))
        await settled(cluster)
        await cluster.client.create(PODS, pod("a"))
        await after(cluster, PACE)
        await cluster.client.delete(QUOTAS, "q", "default")
        await settled(cluster)
        await cluster.client.delete(PODS, "a", "default", grace_period=0)
        await cluster.client.create(QUOTAS, quota({"pods": "5"}))
        assert (await status(cluster))["used"] == {"pods": "0"}


@cases(
    ("pods", ("", "pods")),
    ("cpu", ("", "pods")),
    ("limits.memory", ("", "pods")),
    ("requests.nvidia.com/gpu", ("", "pods")),
    ("hugepages-2Mi", ("", "pods")),
    ("requests.storage", ("", "persistentvolumeclaims")),
    ("gold.storageclass.storage.k8s.io/persistentvolumeclaims", ("", "persistentvolumeclaims")),
    ("services.nodeports", ("", "services")),
    ("secrets", ("", "secrets")),
    ("count/pods", ("", "pods")),
    ("count/deployments.apps", ("apps", "deployments")),
    ("count/widgets.example.com", ("example.com", "widgets")),
    ("bananas", None),
)
def test_the_names_in_a_quota_select_the_objects_that_count(name: str, resource: tuple[str, str] | None) -> None:
    assert resource_of(name) == (GroupResource(*resource) if resource else None)


changes = st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["100m", "1", "gone"]), st.booleans()), max_size=30)


@given(changes)
def test_a_ledger_updated_with_every_change_equals_a_full_count(steps: list[tuple[int, str, bool]]) -> None:
    limits = {**quota({"pods": "9", "cpu": "9", "count/pods": "9"})}
    limits["metadata"] = {**limits["metadata"], "uid": "u"}
    ledger, live = Ledger(limits, {}, 0), dict[int, Obj]()
    for number, cpu, ended in steps:
        old = live.pop(number, None)
        new = (
            None if cpu == "gone" else {**pod(str(number), cpu), "status": {"phase": "Failed" if ended else "Running"}}
        )
        if new is not None:
            live[number] = new
        if old is not None or new is not None:
            ledger.change(quotas.PODS, old, new)
    assert ledger.used() == Ledger(limits, {quotas.PODS: live.values()}, 0).used()
