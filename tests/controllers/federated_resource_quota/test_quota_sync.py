"""Static assignments are ResourceQuotas in their clusters, and what is used there is the status of the whole."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from karmada.api.well_known import execution_namespace, work_name
from karmada.api.work import Work
from karmada.controllers.federated_resource_quota.status import cluster_status, sum_of
from karmada.controllers.federated_resource_quota.sync import assignments_of
from karmada.kube.objects import meta
from karmada.kube.objects.types import Obj
from tests.controllers.federated_resource_quota.quota_fleet import QUOTAS, QuotaFleet, quota
from tests.support.cases import cases
from tests.support.played_fleet import cleared, started


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QuotaFleet]:
    yield from started(QuotaFleet(tmp_path_factory.mktemp("quotas")))


@pytest.fixture
def quotas(shared: QuotaFleet) -> Iterator[QuotaFleet]:
    yield from cleared(shared)


def test_of_several_assignments_of_a_cluster_the_first_counts() -> None:
    spec = {"staticAssignments": [{"clusterName": "m1", "hard": {"cpu": n}} for n in ("1", "2")]}
    assert assignments_of({"spec": spec}) == {"m1": {"cpu": "1"}}


def test_an_assignment_is_a_resource_quota_in_its_cluster(quotas: QuotaFleet) -> None:
    quotas.play(quotas.limit(quota({"cpu": "10"}, m1={"cpu": "6"})))
    [(name, work)] = quotas.works("m1").items()
    assert name == work_name("ResourceQuota", "team", "default")
    assert meta.finalizers(work) == ["karmada.io/execution-controller"]
    assert meta.labels(work)["federatedresourcequota.karmada.io/namespace"] == "default"
    assert quotas.hard("m1") == {"team": {"cpu": "6"}}
    assert quotas.hard("m2") == quotas.works("m2") == {}
    assert quotas.reasons()["SyncWorkSucceed"] == "Sync works for FederatedResourceQuota(default/team) succeed."


def test_assignments_that_change_or_go_are_followed(quotas: QuotaFleet) -> None:
    quotas.play(quotas.limit(quota({"cpu": "10"}, m1={"cpu": "6"})))
    both = [{"clusterName": name, "hard": {"cpu": "2"}} for name in ("m2", "m1")]
    quotas.play(quotas.change({"spec": {"staticAssignments": both}}))
    assert quotas.hard("m1") == quotas.hard("m2") == {"team": {"cpu": "2"}}
    quotas.play(quotas.change({"spec": {"staticAssignments": both[:1]}}))
    assert quotas.hard("m1") == quotas.works("m1") == {}

    async def delete() -> None:
        await quotas.client.delete(QUOTAS, "team", "default")
        await quotas.run()

    quotas.play(delete())
    assert quotas.hard("m2") == quotas.works("m2") == {}


def test_a_work_that_somebody_changed_or_deleted_is_restored(quotas: QuotaFleet) -> None:
    quotas.play(quotas.limit(quota({"cpu": "10"}, m1={"cpu": "6"})))
    [name] = quotas.works("m1")

    async def delete() -> None:
        await quotas.client.delete(Work.gvr, name, execution_namespace("m1"))
        await quotas.run()

    quotas.play(delete())
    assert quotas.hard("m1") == {"team": {"cpu": "6"}}


def test_what_was_deleted_while_no_controller_ran_goes_at_the_next_start(quotas: QuotaFleet) -> None:
    quotas.play(quotas.limit(quota({"cpu": "10"}, m1={"cpu": "6"})))

    async def restart() -> None:
        await quotas.fleet.stop_controllers()
        await quotas.client.delete(QUOTAS, "team", "default")
        await quotas.fleet.start_controllers()
        await quotas.run()

    quotas.play(restart())
    assert quotas.hard("m1") == quotas.works("m1") == {}


def test_a_cluster_that_joins_later_gets_its_share(quotas: QuotaFleet) -> None:
    quotas.play(quotas.limit(quota({"cpu": "10"}, m3={"cpu": "6"})))
    assert quotas.works("m3") == {}

    async def join() -> None:
        await quotas.add("m3")
        await quotas.run(60)

    quotas.play(join())
    assert quotas.hard("m3") == {"team": {"cpu": "6"}}


# status


def test_what_clusters_report_is_added_up(quotas: QuotaFleet) -> None:
    async def scenario() -> None:
        await quotas.limit(quota({"requests.cpu": "10"}, m2={"requests.cpu": "4"}, m1={"requests.cpu": "6"}))
        await quotas.deploy("web", 3, "500m")

    quotas.play(scenario())
    assert quotas.status() == {
        "overall": {"requests.cpu": "10"},
        "overallUsed": {"requests.cpu": "1500m"},
        "aggregatedStatus": [
            {"clusterName": "m1", "hard": {"requests.cpu": "6"}, "used": {"requests.cpu": "1500m"}},
            {"clusterName": "m2", "hard": {"requests.cpu": "4"}, "used": {"requests.cpu": "0"}},
        ],
    }
    text = "Collect status of FederatedResourceQuota(default/team) succeed."
    assert quotas.reasons()["AggregateStatusSucceed"] == text
    quotas.play(quotas.change({"spec": {"staticAssignments": None, "overall": {"requests.cpu": "5"}}}))
    assert quotas.status() == {"overall": {"requests.cpu": "5"}, "overallUsed": {}, "aggregatedStatus": []}


@cases(
    ("True", [{"status": {"hard": {"cpu": "1"}}}], {"clusterName": "m1", "hard": {"cpu": "1"}, "used": {}}),
    ("True", [], None),
    ("False", [{"status": {"hard": {"cpu": "1"}}}], None),
)
def test_a_cluster_counts_once_its_quota_is_applied_and_reported(
    applied: str, reported: list[Obj], wanted: Obj | None
) -> None:
    status = {"conditions": [{"type": "Applied", "status": applied}], "manifestStatuses": reported}
    assert cluster_status({"metadata": {"namespace": "karmada-es-m1"}, "status": status}) == wanted


def test_the_sum_has_what_any_cluster_uses() -> None:
    used: list[Obj] = [{"used": {"cpu": "500m", "pods": "2"}}, {"used": {"cpu": "1"}}]
    assert sum_of(used) == {"cpu": "1500m", "pods": "2"}
