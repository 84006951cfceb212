"""Quota enforcement: arithmetic by table, and the write of the quota's status with its races."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

from hypothesis import given
from hypothesis import strategies as st

from karmada.admission.binding_quota import QUOTA_EXCEEDED, charge, difference, enforce, total, usage
from karmada.admission.context import CREATE, UPDATE, Context, Refusal, Settings
from karmada.features import default_gates
from karmada.kube.client.client import Client, Listing
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.errors import ApiError, Conflict, Forbidden
from karmada.kube.objects.quantity import Quantity
from karmada.kube.objects.types import Obj
from tests.support.cases import cases

QUOTAS = "federatedresourcequotas"


class Written(NamedTuple):
    quota: Obj
    dry_run: bool


class Quotas:
    """The two calls that enforcement makes."""

    def __init__(self, *quotas: Obj) -> None:
        self.quotas = list(quotas)
        self.written: list[Written] = []
        self.failures: list[ApiError] = []
        self.list_failure: ApiError | None = None

    async def list_all(self, kind: Any, namespace: str = "") -> Listing:
        assert (kind.resource, namespace) == (QUOTAS, "default")
        if self.list_failure:
            raise self.list_failure
        return Listing(self.quotas, "1")

    async def update(self, kind: Any, obj: Obj, *, subresource: str, dry_run: bool) -> Obj:
        assert (kind.resource, subresource) == (QUOTAS, "status")
        if self.failures:
            raise self.failures.pop(0)
        self.written.append(Written(obj, dry_run))
        return obj


class Clock(FakeClock):
    async def sleep(self, seconds: float) -> None:
        self._now += seconds


def quota(overall: Obj, used: Obj | None = None, name: str = "q") -> Obj:
    return {
        "metadata": {"name": name, "namespace": "default", "resourceVersion": "7"},
        "spec": {"overall": overall},
        "status": {"overall": overall, "overallUsed": used or {}, "aggregatedStatus": []},
    }


def binding(replicas: int | None, request: Obj | None = None, **spec: Any) -> Obj:
    clusters = [] if replicas is None else [{"name": "m1", "replicas": replicas}]
    needs = {"replicaRequirements": {"resourceRequest": request}} if request else {}
    return {"metadata": {"name": "b", "namespace": "default"}, "spec": {"clusters": clusters, **needs, **spec}}


async def enforced(quotas: Quotas, new: Obj, old: Obj | None = None, *, on: bool = True, dry_run: bool = False) -> Obj:
    """The status with which the binding is refused, {} when it is not."""
    gates = default_gates()
    gates.set_values({"FederatedQuotaEnforcement": on})
    settings = Settings(client=cast(Client, quotas), gates=gates, clock=Clock())
    try:
        await enforce(new, old, Context(settings, CREATE if old is None else UPDATE, "default", dry_run))
    except Refusal as refusal:
        return refusal.status()
    return {}


@cases(
    ({"cpu": "150m"}, {"cpu": "100m"}, binding(1, {"cpu": "100m"}), None, "cpu: requested sum 200m, limit 150m"),
    (
        {"cpu": "10m"},
        {"cpu": "10m"},
        binding(2, {"cpu": "10m"}),
        binding(1, {"cpu": "10m"}),
        "cpu: requested sum 20m, limit 10m",
    ),
    (
        {"cpu": "5"},
        {"cpu": "10"},
        binding(9, {"cpu": "1"}),
        binding(10, {"cpu": "1"}),
        "cpu: requested sum 9, limit 5",
    ),
    (
        {"memory": "1Gi"},
        {},
        binding(3, {"memory": "512Mi"}),
        None,
        "memory: requested sum 1536Mi, limit 1Gi",
    ),
    (
        {"cpu": "100", "example.com/gpu": "4"},
        {"example.com/gpu": "6"},
        binding(1, {"cpu": "1"}),
        None,
        "example.com/gpu: requested sum 6, limit 4",
    ),
)
async def test_more_than_the_limit_is_refused(
    overall: Obj, used: Obj, new: Obj, old: Obj | None, exceeded: str
) -> None:
    quotas = Quotas(quota(overall, used))
    assert await enforced(quotas, new, old) == {
        "code": 403,
        "reason": QUOTA_EXCEEDED,
        "message": f"FederatedResourceQuota(default/q) exceeded for resource {exceeded}.",
    }
    assert quotas.written == []


@cases(
    (
        {"cpu": "10", "memory": "1Gi"},
        {"cpu": "4", "memory": "128Mi"},
        binding(4, {"cpu": "1", "memory": "64Mi"}),
        binding(2, {"cpu": "1", "memory": "64Mi"}),
        {"cpu": "6", "memory": "256Mi"},
    ),
    ({"cpu": "10"}, {"cpu": "3"}, binding(0, {"cpu": "1"}), binding(3, {"cpu": "1"}), {}),
    (
        {"cpu": "10", "requests.cpu": "1"},
        {"requests.cpu": "5"},
        binding(1, {"cpu": "1", "requests.cpu": "1"}),
        None,
        {"cpu": "1"},
    ),
)
async def test_what_fits_is_charged(overall: Obj, used: Obj, new: Obj, old: Obj | None, stored: Obj) -> None:
    quotas = Quotas(quota(overall, used))
    assert await enforced(quotas, new, old) == {}
    [(written, dry_run)] = quotas.written
    assert written["status"] == {"overall": overall, "overallUsed": stored, "aggregatedStatus": []}
    assert not dry_run


@cases(
    (binding(None, {"cpu": "10"}), None),
    (binding(1), None),
    (binding(1, {"cpu": "10"}), binding(1, {"cpu": "10000m"})),
    (binding(5, {"memory": "1Gi"}), None),
)
async def test_what_uses_no_more_of_it_is_not_charged(new: Obj, old: Obj | None) -> None:
    quotas = Quotas(quota({"cpu": "10m"}))
    assert await enforced(quotas, new, old) == {}
    assert quotas.written == []


async def test_the_gate_is_closed_by_default() -> None:
    quotas = Quotas(quota({"cpu": "10m"}))
    assert await enforced(quotas, binding(5, {"cpu": "1"}), on=False) == {}
    assert quotas.written == []


async def test_no_quota_is_charged_when_one_of_several_refuses() -> None:
    quotas = Quotas(quota({"cpu": "10"}, name="a"), quota({"cpu": "1"}, name="b"))
    refusal = await enforced(quotas, binding(5, {"cpu": "1"}))
    assert refusal["message"].startswith("FederatedResourceQuota(default/b)")
    assert quotas.written == []


async def test_a_dry_run_charges_nothing() -> None:
    quotas = Quotas(quota({"cpu": "10"}))
    assert await enforced(quotas, binding(1, {"cpu": "1"}), dry_run=True) == {}
    assert quotas.written[0].dry_run


async def test_a_lost_race_is_run_again() -> None:
    quotas = Quotas(quota({"cpu": "10"}))
    quotas.failures = [Conflict("changed")] * 4
    assert await enforced(quotas, binding(1, {"cpu": "1"})) == {}
    assert len(quotas.written) == 1
    quotas.failures = [Conflict("changed")] * 5
    assert await enforced(quotas, binding(1, {"cpu": "1"})) == {
        "code": 500,
        "message": "failed to apply FederatedResourceQuota updates after multiple retries for RB default/b: changed",
    }


async def test_a_quota_that_is_charged_already_is_not_charged_again_after_a_lost_race() -> None:
    class Racing(Quotas):
        async def update(self, kind: Any, obj: Obj, *, subresource: str, dry_run: bool) -> Obj:
            if obj["metadata"]["name"] == "b" and not self.lost:
                self.lost = True
                raise Conflict("changed")
            self.quotas = [obj if one["metadata"]["name"] == obj["metadata"]["name"] else one for one in self.quotas]
            return await super().update(kind, obj, subresource=subresource, dry_run=dry_run)

        lost = False

    quotas = Racing(quota({"cpu": "3"}, name="a"), quota({"cpu": "3"}, name="b"))
    assert await enforced(quotas, binding(2, {"cpu": "1"})) == {}
    assert [one["status"]["overallUsed"] for one in quotas.quotas] == [{"cpu": "2"}, {"cpu": "2"}]


async def test_what_goes_wrong_otherwise_is_a_failure() -> None:
    quotas = Quotas(quota({"cpu": "10"}))
    quotas.failures = [Forbidden("no")]
    assert await enforced(quotas, binding(1, {"cpu": "1"})) == {
        "code": 500,
        "message": "permanent error updating FRQ statuses for RB default/b: no",
    }
    quotas.list_failure = Forbidden("no")
    assert await enforced(quotas, binding(1, {"cpu": "1"})) == {
        "code": 500,
        "message": "failed to list FederatedResourceQuotas: no",
    }


def flink(clusters: int) -> Obj:
    components = [
        {"name": "jm", "replicas": 1, "replicaRequirements": {"resourceRequest": {"cpu": "1"}}},
        {"name": "tm", "replicas": 2, "replicaRequirements": {"resourceRequest": {"cpu": "2", "memory": "0"}}},
        {"name": "none", "replicas": 0, "replicaRequirements": {"resourceRequest": {"cpu": "100"}}},
        {"name": "nothing", "replicas": 3},
    ]
    names = [{"name": f"m{number}"} for number in range(clusters)]
    return {"metadata": {"name": "b", "namespace": "default"}, "spec": {"components": components, "clusters": names}}


def shown(amounts: dict[str, Quantity]) -> dict[str, str]:
    return {name: str(amount) for name, amount in amounts.items()}


def test_every_cluster_gets_all_components() -> None:
    assert shown(usage(flink(1))) == {"cpu": "5"}
    assert shown(usage(flink(2))) == {"cpu": "10"}
    assert usage(flink(0)) == {}
    assert shown(difference(usage(flink(2)), usage(flink(1)))) == {"cpu": "5"}


async def test_components_that_go_to_another_number_of_clusters_are_counted_again() -> None:
    quotas = Quotas(quota({"cpu": "100"}, {"cpu": "5"}))
    assert await enforced(quotas, flink(2), flink(1)) == {}
    assert quotas.written[0].quota["status"]["overallUsed"] == {"cpu": "10"}


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["1500u", "1m", "250m", "1"])), min_size=1))
def test_the_changes_of_a_binding_add_up_to_its_charge(history: list[tuple[int, str]]) -> None:
    used: dict[str, Any] = {}
    charged: dict[str, Quantity] = {}
    for replicas, cpu in history:
        now = charge(binding(replicas, {"cpu": cpu}))
        used, charged = total(used, difference(now, charged)), now
    assert used == charged


def test_totals_are_whole_numbers_of_what_pods_request() -> None:
    change = {
        "cpu": Quantity.parse("1500u"),
        "memory": Quantity.parse("1500m"),
        "hugepages-2Mi": Quantity.parse("4Mi"),
        "attachable-volumes-x": Quantity.parse("1"),
        "limits.cpu": Quantity.parse("1"),
        "services": Quantity.parse("1"),
    }
    assert shown(total({"pods": "3", "cpu": "1m"}, change)) == {
        "pods": "3",
        "cpu": "3m",
        "memory": "2",
        "hugepages-2Mi": "4Mi",
        "attachable-volumes-x": "1",
    }
