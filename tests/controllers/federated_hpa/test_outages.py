"""Members and metrics that fail or are slow: the others still count, the status says so, and nobody else waits."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from karmada.kube.client.client import ListPage
from karmada.kube.objects.errors import Forbidden
from karmada.rehearsal.network import State
from tests.controllers.federated_hpa.scaling_plane import BINDINGS, CPU, RPS, ScalingPlane

pytestmark = pytest.mark.asyncio(loop_scope="module")
COUNTED = (
    "the HPA was able to successfully calculate a replica count from cpu resource utilization (percentage of request)"
)


def counted_without(*clusters: str) -> tuple[str, str, str]:
    return "True", "ValidMetricFound", f"{COUNTED}; not counted: {', '.join(clusters)}"


async def test_a_cluster_that_is_not_ready_is_left_out_and_the_rest_scaled_to_the_whole(two: ScalingPlane) -> None:
    await two.workload(m1=3, m2=2)
    two.metrics.cpu = {"m1": 75, "m2": 75}
    await two.set_ready("m2", "False")
    await two.autoscaler()
    await two.until(lambda: two.status().get("desiredReplicas") == 8)  # 1.5 times 3 of 5, calibrated
    assert two.condition("ScalingActive") == counted_without("m2 (not ready)")


@pytest.mark.parametrize("state", [State.DOWN, State.FAILING])
async def test_a_member_that_refuses_is_left_out_at_once(two: ScalingPlane, state: State) -> None:
    await two.workload(m1=3, m2=2)
    two.metrics.cpu = {"m1": 75, "m2": 75}
    two.members["m2"].network.change(state)
    await two.autoscaler()
    await two.until(lambda: two.status().get("desiredReplicas") == 8)
    assert two.condition("ScalingActive") == counted_without("m2 (not reachable)")


async def test_a_member_that_hangs_costs_a_few_seconds(two: ScalingPlane) -> None:
    await two.workload(m1=3, m2=2)
    two.metrics.cpu = {"m1": 75, "m2": 75}
    two.members["m2"].network.change(State.HANGING)
    await two.autoscaler()
    await two.clock.advance(4.5)
    assert not two.status()
    await two.clock.advance(1)
    await two.until(lambda: two.status().get("desiredReplicas") == 8)
    assert two.condition("ScalingActive") == counted_without("m2 (not reachable)")


async def test_a_member_that_hangs_is_left_alone_for_a_while(two: ScalingPlane) -> None:
    """However many autoscalers use it, they wait once."""
    two.metrics.cpu = {"m1": 50, "m2": 50}
    names = [f"web{number}" for number in range(20)]
    for name in names:
        await two.workload(name, m1=1, m2=1)
    two.members["m2"].network.change(State.HANGING)
    for name in names:
        await two.autoscaler(name)
    await two.clock.advance(5.1)
    expected = counted_without("m2 (not reachable)")
    await two.until(lambda: all(two.condition("ScalingActive", name) == expected for name in names))
    two.members["m2"].network.change(State.UP)
    await two.round(3)
    await two.until(lambda: all(two.condition("ScalingActive", name)[2] == COUNTED for name in names))


async def test_a_cluster_without_the_workload_is_left_out(two: ScalingPlane) -> None:
    await two.workload(m1=2)
    two.metrics.cpu = {"m1": 50}
    await two.client.patch(
        BINDINGS, "web-deployment", "default", {"spec": {"clusters": [{"name": "m1"}, {"name": "m2"}]}}
    )
    await two.autoscaler()
    await two.until(lambda: two.condition("ScalingActive") == counted_without("m2 (not there)"))


async def test_a_cluster_that_is_back_counts_again(two: ScalingPlane) -> None:
    await two.workload(m1=2, m2=2)
    two.metrics.cpu = {"m1": 50, "m2": 50}
    two.members["m2"].network.change(State.DOWN)
    await two.autoscaler()
    await two.until(lambda: two.condition("ScalingActive") == counted_without("m2 (not reachable)"))
    two.members["m2"].network.change(State.UP)
    await two.round(3)
    await two.until(lambda: two.condition("ScalingActive") == ("True", "ValidMetricFound", COUNTED))


async def test_a_member_whose_pods_cannot_be_listed_is_waited_for_once(
    two: ScalingPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    await two.workload(m1=2, m2=2)
    two.metrics.cpu = {"m1": 50, "m2": 50}
    client = two.plane.context.members.get("m2").client

    async def refused(*_: Any, **__: Any) -> AsyncIterator[ListPage]:
        raise Forbidden("not yours")
        yield

    monkeypatch.setattr(client, "pages", refused)
    await two.autoscaler()
    await two.clock.advance(110)
    assert not two.status()
    await two.clock.advance(11)
    expected = counted_without("m2 (its pods are not listed yet)")
    await two.until(lambda: two.condition("ScalingActive") == expected)
    before = two.metrics.requests["resource default"]
    await two.round()
    await two.until(lambda: two.metrics.requests["resource default"] == before + 1)


async def test_pods_without_metrics_in_one_member_are_estimated(two: ScalingPlane) -> None:
    await two.workload(m1=2, m2=2)
    two.metrics.cpu = {"m1": 200}
    await two.autoscaler()
    await two.until(lambda: two.status().get("desiredReplicas") == 8)  # 200 % of two, nothing of the others
    assert two.condition("ScalingActive") == counted_without("m2 (no metrics of its pods)")


async def test_pods_without_metrics_in_one_member_do_not_let_replicas_fall(two: ScalingPlane) -> None:
    await two.workload(m1=2, m2=2)
    two.metrics.cpu = {"m1": 10}
    await two.autoscaler(behavior={"scaleDown": {"stabilizationWindowSeconds": 0}})
    await two.until(lambda: two.condition("ScalingActive") == counted_without("m2 (no metrics of its pods)"))
    assert await two.replicas() == 4


# slow metrics


async def test_an_answer_after_ten_seconds_counts_and_holds_up_nobody_else(two: ScalingPlane) -> None:
    await two.workload("slow", m1=1)
    await two.workload(m1=1)
    two.metrics.cpu, two.metrics.rps = {"m1": 100}, 20_000
    two.metrics.slow = {"custom default": 10.0}
    await two.autoscaler("slow", metrics=[RPS])
    await two.autoscaler()
    await two.until(lambda: two.status().get("desiredReplicas") == 2)
    assert not two.status("slow")
    await two.clock.advance(10.1)
    await two.until(lambda: two.status("slow").get("desiredReplicas") == 2)


async def test_an_answer_that_takes_longer_than_a_period_has_failed(two: ScalingPlane) -> None:
    await two.workload(m1=1)
    two.metrics.cpu, two.metrics.slow = {"m1": 100}, {"resource default": 60.0}
    await two.autoscaler()
    await two.clock.advance(15.1)
    message = (
        "the HPA was unable to compute the replica count: failed to get cpu utilization: "
        "unable to get metrics for resource cpu: "
        "unable to fetch metrics from resource metrics API: no response within 15s"
    )
    await two.until(lambda: two.condition("ScalingActive") == ("False", "FailedGetResourceMetric", message))
    two.metrics.slow = {}
    await two.round()
    await two.until(lambda: two.status().get("desiredReplicas") == 2)


async def test_pods_of_the_same_name_in_two_clusters_are_two(two: ScalingPlane) -> None:
    """Values of custom metrics, which are added up by name, are shared by them."""
    await two.workload(m1=1, m2=1)
    await two.rename_pod("m1", "web-m1-0", "web-0")
    await two.rename_pod("m2", "web-m2-0", "web-0")
    two.metrics.cpu, two.metrics.rps = {"m1": 20, "m2": 120}, 20_000
    await two.autoscaler(metrics=[CPU, RPS])
    await two.until(lambda: two.status().get("desiredReplicas") == 4)
    shown = two.status()["currentMetrics"]
    assert shown[0]["resource"]["current"] == {"averageUtilization": 70, "averageValue": "70m"}
    assert shown[1]["pods"]["current"] == {"averageValue": "20"}
