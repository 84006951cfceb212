"""With enforcement, a quota's total is that of the stored bindings, whatever happens on the way."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from karmada.api.work import ResourceBinding
from karmada.controllers.federated_resource_quota.charges import SETTLE_SECONDS, Recount
from karmada.kube.objects.gvrs import DEPLOYMENTS
from karmada.kube.objects.types import Obj
from tests.controllers.federated_resource_quota.quota_fleet import QUOTAS, QuotaFleet, quota
from tests.support.played_fleet import cleared, started

GATES = "FederatedQuotaEnforcement=true"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QuotaFleet]:
    yield from started(QuotaFleet(tmp_path_factory.mktemp("enforced"), gates=GATES))


@pytest.fixture
def quotas(shared: QuotaFleet) -> Iterator[QuotaFleet]:
    yield from cleared(shared)


def placed_replicas(quotas: QuotaFleet, name: str) -> int:
    spec: Obj = quotas.stored(ResourceBinding.gvr)[f"{name}-deployment"]["spec"]
    return sum(cluster.get("replicas", 0) for cluster in spec.get("clusters") or ())


async def delete(quotas: QuotaFleet, name: str) -> None:
    await quotas.client.delete(DEPLOYMENTS, name, "default")
    await quotas.run()


def test_bindings_that_exist_already_are_counted(quotas: QuotaFleet) -> None:
    async def scenario() -> None:
        await quotas.deploy("web", 3)
        await quotas.limit(quota({"cpu": "10", "memory": "1Gi"}))

    quotas.play(scenario())
    assert quotas.status() == {
        "overall": {"cpu": "10", "memory": "1Gi"}, "overallUsed": {"cpu": "3"}, "aggregatedStatus": [],
    }  # fmt: skip
    text = "Collect status of FederatedResourceQuota(default/team) succeed."
    assert quotas.reasons()["CollectOverallStatusSucceed"] == text


def test_what_a_quota_refuses_is_placed_once_another_workload_has_gone(quotas: QuotaFleet) -> None:
    async def scenario() -> None:
        await quotas.limit(quota({"cpu": "4"}))
        await quotas.deploy("first", 3)
        await quotas.deploy("second", 2)

    quotas.play(scenario())
    assert quotas.scheduled("second") == (
        "QuotaExceeded",
        'admission webhook "resourcebinding.karmada.io" denied the request: '
        "FederatedResourceQuota(default/team) exceeded for resource cpu: requested sum 5, limit 4.",
    )
    assert (placed_replicas(quotas, "first"), placed_replicas(quotas, "second")) == (3, 0)
    assert quotas.status()["overallUsed"] == {"cpu": "3"}
    quotas.play(delete(quotas, "first"))
    assert quotas.scheduled("second")[0] == "Success"
    assert quotas.status()["overallUsed"] == {"cpu": "2"}


def test_a_workload_that_may_not_grow_keeps_what_it_has_until_the_limit_is_raised(quotas: QuotaFleet) -> None:
    async def scenario() -> None:
        await quotas.limit(quota({"cpu": "4"}))
        await quotas.deploy("web", 3)
        await quotas.scale("web", 6)
        await quotas.run(600)  # its pauses are long by now

    quotas.play(scenario())
    assert quotas.scheduled("web")[0] == "QuotaExceeded"
    assert placed_replicas(quotas, "web") == 3
    quotas.play(quotas.change({"spec": {"overall": {"cpu": "6"}}}))
    assert quotas.scheduled("web")[0] == "Success"
    assert quotas.status() == {"overall": {"cpu": "6"}, "overallUsed": {"cpu": "6"}, "aggregatedStatus": []}


def test_requests_that_exceed_a_quota_are_not_bound_until_it_is_raised(quotas: QuotaFleet) -> None:
    async def scenario() -> None:
        await quotas.limit(quota({"cpu": "4"}))
        await quotas.deploy("web", 3)
        container = [{"op": "replace", "path": "/spec/template/spec/containers/0/resources/requests/cpu", "value": "2"}]
        await quotas.client.patch(DEPLOYMENTS, "web", "default", container, type="json")
        await quotas.run()

    quotas.play(scenario())
    assert quotas.reasons("web")["ApplyPolicyFailed"].endswith(
        "FederatedResourceQuota(default/team) exceeded for resource cpu: requested sum 6, limit 4."
    )
    assert quotas.status()["overallUsed"] == {"cpu": "3"}
    quotas.play(quotas.change({"spec": {"overall": {"cpu": "6"}}}))
    quotas.play(quotas.run(60))
    assert quotas.status()["overallUsed"] == {"cpu": "6"}


def test_a_charge_without_a_binding_is_taken_back(quotas: QuotaFleet) -> None:
    async def scenario() -> None:
        await quotas.limit(quota({"cpu": "9"}))
        await quotas.deploy("web", 3)
        await quotas.client.patch(
            QUOTAS, "team", "default", {"status": {"overallUsed": {"cpu": "8"}}}, subresource="status"
        )
        await quotas.run(SETTLE_SECONDS / 2)

    quotas.play(scenario())
    assert quotas.status()["overallUsed"] == {"cpu": "8"}
    quotas.play(quotas.run(SETTLE_SECONDS))
    assert quotas.status()["overallUsed"] == {"cpu": "3"}


def test_a_total_that_lacks_a_binding_is_raised(quotas: QuotaFleet) -> None:
    async def scenario() -> None:
        await quotas.limit(quota({"cpu": "9"}))
        await quotas.deploy("web", 3)
        await quotas.fleet.stop_controllers()
        await quotas.client.patch(
            QUOTAS, "team", "default", {"status": {"overallUsed": {"cpu": None}}}, subresource="status"
        )
        await quotas.fleet.start_controllers()
        await quotas.run(1)

    quotas.play(scenario())
    assert quotas.status()["overallUsed"] == {"cpu": "3"}


def test_a_resync_counts_the_bindings_themselves(quotas: QuotaFleet, monkeypatch: pytest.MonkeyPatch) -> None:
    async def miss() -> None:
        await quotas.limit(quota({"cpu": "9"}))
        monkeypatch.setattr(Recount, "_add", lambda *_: None)
        await quotas.deploy("web", 3)
        monkeypatch.undo()

    quotas.play(miss())
    assert quotas.status()["overallUsed"] == {}
    quotas.play(quotas.run(quotas.fleet.settings.federated_resource_quota_sync_period))
    assert quotas.status()["overallUsed"] == {"cpu": "3"}


def test_clusters_with_a_share_report_without_touching_the_total(quotas: QuotaFleet) -> None:
    async def scenario() -> None:
        await quotas.limit(quota({"cpu": "10"}, m1={"cpu": "6"}))
        await quotas.deploy("web", 3)

    quotas.play(scenario())
    assert quotas.status() == {
        "overall": {"cpu": "10"},
        "overallUsed": {"cpu": "3"},
        "aggregatedStatus": [{"clusterName": "m1", "hard": {"cpu": "6"}, "used": {"cpu": "3"}}],
    }
