"""FederatedHPAs over two clusters: replicas that follow the load, within bounds, windows and rates."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from karmada.kube.objects.gvrs import DEPLOYMENTS
from karmada.kube.objects.times import rfc3339
from karmada.kube.runtime.keys import Key
from tests.controllers.federated_hpa.scaling_plane import BINDINGS, CPU, HPAS, RPS, ScalingPlane
from tests.support.cases import cases

pytestmark = pytest.mark.asyncio(loop_scope="module")
CPU_NAME = "cpu resource utilization (percentage of request)"
STEADY = ("True", "ReadyForNewScale", "recommended size matches current size")


async def test_load_in_all_clusters_together_decides(two: ScalingPlane) -> None:
    await two.workload(m1=1, m2=1)
    two.metrics.cpu = {"m1": 100, "m2": 80}
    await two.autoscaler()
    await two.until(lambda: two.status().get("desiredReplicas") == 4)
    assert await two.replicas() == 4
    status = two.status()
    assert status["currentReplicas"] == 2
    assert status["lastScaleTime"] == rfc3339(two.clock.now())
    assert "observedGeneration" not in status
    usage = {"averageUtilization": 90, "averageValue": "90m"}
    assert status["currentMetrics"] == [{"type": "Resource", "resource": {"name": "cpu", "current": usage}}]
    able = ("True", "SucceededRescale", "the HPA controller was able to update the target scale to 4")
    assert two.condition("AbleToScale") == able
    found = f"the HPA was able to successfully calculate a replica count from {CPU_NAME}"
    assert two.condition("ScalingActive") == ("True", "ValidMetricFound", found)
    within = "the desired count is within the acceptable range"
    assert two.condition("ScalingLimited") == ("False", "DesiredWithinRange", within)
    emitted = await two.events()
    assert emitted == {"SuccessfulRescale": ("Normal", f"New size: 4; reason: {CPU_NAME} above target")}


async def test_replicas_fall_once_the_window_has_passed(two: ScalingPlane) -> None:
    await two.workload(m1=2, m2=2)
    two.metrics.cpu = {"m1": 50, "m2": 50}
    await two.autoscaler()
    await two.until(lambda: two.condition("AbleToScale") == STEADY)
    two.metrics.cpu = {"m1": 10, "m2": 10}
    await two.round(20)
    held = "recent recommendations were higher than current one, applying the highest recent recommendation"
    await two.until(lambda: two.condition("AbleToScale") == ("True", "ScaleDownStabilized", held))
    assert await two.replicas() == 4
    await two.round()
    await two.until(lambda: two.status()["desiredReplicas"] == 1)
    assert await two.replicas() == 1
    assert (await two.events())["SuccessfulRescale"] == ("Normal", "New size: 1; reason: All metrics below target")


async def test_the_status_is_written_only_when_it_changes(two: ScalingPlane) -> None:
    await two.workload(m1=2)
    two.metrics.cpu = {"m1": 50}
    await two.autoscaler()
    await two.until(lambda: two.condition("AbleToScale") == STEADY)
    before = (await two.client.get(HPAS, "web", "default"))["metadata"]["resourceVersion"]
    await two.round(5)
    assert (await two.client.get(HPAS, "web", "default"))["metadata"]["resourceVersion"] == before
    assert two.metrics.requests["resource default"] == 6


@cases(
    ({"minReplicas": 3}, 3, "Current number of replicas below Spec.MinReplicas"),
    ({"maxReplicas": 1}, 1, "Current number of replicas above Spec.MaxReplicas"),
)
async def test_bounds_hold_at_once_and_without_metrics(
    spec: dict[str, Any], desired: int, reason: str, two: ScalingPlane
) -> None:
    await two.workload(m1=2)
    two.metrics.broken = {"resource"}
    await two.autoscaler(**spec)
    await two.until(lambda: two.status().get("desiredReplicas") == desired)
    assert await two.replicas() == desired
    assert (await two.events())["SuccessfulRescale"] == ("Normal", f"New size: {desired}; reason: {reason}")
    assert "currentMetrics" not in two.status()
    assert not two.metrics.requests


async def test_a_change_of_bounds_acts_at_once_and_clears_the_metrics(two: ScalingPlane) -> None:
    await two.workload(m1=2)
    two.metrics.cpu = {"m1": 50}
    await two.autoscaler()
    await two.until(lambda: two.status().get("currentMetrics"))
    await two.client.patch(HPAS, "web", "default", {"spec": {"minReplicas": 5}})
    await two.until(lambda: two.status()["desiredReplicas"] == 5)
    assert "currentMetrics" not in two.status()


async def test_without_a_behavior_replicas_at_most_double(two: ScalingPlane) -> None:
    await two.workload(m1=3)
    two.metrics.cpu = {"m1": 1000}
    await two.autoscaler()
    await two.until(lambda: two.status().get("desiredReplicas") == 6)
    message = "the desired replica count is increasing faster than the maximum scale rate"
    assert two.condition("ScalingLimited") == ("True", "ScaleUpLimit", message)


async def test_the_maximum_bounds_what_metrics_propose(two: ScalingPlane) -> None:
    await two.workload(m1=3)
    two.metrics.cpu = {"m1": 1000}
    await two.autoscaler(maxReplicas=5)
    await two.until(lambda: two.status().get("desiredReplicas") == 5)
    message = "the desired replica count is more than the maximum replica count"
    assert two.condition("ScalingLimited") == ("True", "TooManyReplicas", message)


async def test_a_behavior_bounds_each_step_in_both_directions(two: ScalingPlane) -> None:
    def one_pod(seconds: int) -> dict[str, object]:
        return {"policies": [{"type": "Pods", "value": 1, "periodSeconds": seconds}]}

    await two.workload(m1=2)
    two.metrics.cpu = {"m1": 300}
    down = {"stabilizationWindowSeconds": 0, **one_pod(60)}
    await two.autoscaler(behavior={"scaleUp": one_pod(60), "scaleDown": down})
    await two.until(lambda: two.status().get("desiredReplicas") == 3)
    assert two.reason("ScalingLimited") == "ScaleUpLimit"
    await two.follow(m1=3)
    await two.round(3)
    assert await two.replicas() == 3
    two.metrics.cpu = {"m1": 1}
    await two.round()
    message = "the desired replica count is decreasing faster than the maximum scale rate"
    await two.until(lambda: two.condition("ScalingLimited") == ("True", "ScaleDownLimit", message))
    assert await two.replicas() == 2


async def test_an_upward_window_holds_replicas_where_they_are(two: ScalingPlane) -> None:
    await two.workload(m1=2)
    two.metrics.cpu = {"m1": 50}
    await two.autoscaler(behavior={"scaleUp": {"stabilizationWindowSeconds": 60}})
    await two.until(lambda: two.condition("AbleToScale") == STEADY)
    two.metrics.cpu = {"m1": 100}
    await two.round()
    held = "recent recommendations were lower than current one, applying the lowest recent recommendation"
    await two.until(lambda: two.condition("AbleToScale") == ("True", "ScaleUpStabilized", held))
    await two.round(4)
    await two.until(lambda: two.status()["desiredReplicas"] == 4)


async def test_too_few_replicas_are_the_minimum(two: ScalingPlane) -> None:
    await two.workload(m1=4)
    two.metrics.cpu = {"m1": 1}
    await two.autoscaler(minReplicas=3, behavior={"scaleDown": {"stabilizationWindowSeconds": 0}})
    await two.until(lambda: two.status().get("desiredReplicas") == 3)
    message = "the desired replica count is less than the minimum replica count"
    assert two.condition("ScalingLimited") == ("True", "TooFewReplicas", message)


async def test_of_several_metrics_the_largest_proposal_wins(two: ScalingPlane) -> None:
    await two.workload(m1=2)
    two.metrics.cpu, two.metrics.rps = {"m1": 60}, 20_000
    await two.autoscaler(metrics=[CPU, RPS])
    await two.until(lambda: two.status().get("desiredReplicas") == 4)
    assert (await two.events())["SuccessfulRescale"][1] == "New size: 4; reason: pods metric rps above target"
    shown = {"metric": {"name": "rps"}, "current": {"averageValue": "20"}}
    assert two.status()["currentMetrics"][1] == {"type": "Pods", "pods": shown}


HITS = {
    "describedObject": {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": "main"},
    "metric": {"name": "hits"},
}


async def test_a_metric_of_an_object_by_its_value(two: ScalingPlane) -> None:
    await two.workload(m1=2)
    two.metrics.hits = 15_000
    target = {"type": "Value", "value": "10"}
    await two.autoscaler(metrics=[{"type": "Object", "object": {**HITS, "target": target}}])
    await two.until(lambda: two.status().get("desiredReplicas") == 3)
    assert two.status()["currentMetrics"] == [{"type": "Object", "object": {**HITS, "current": {"value": "15"}}}]
    assert two.condition("ScalingActive")[2].endswith("from Ingress metric hits")


async def test_a_metric_of_an_object_by_its_average_is_reported_as_karmada_does(two: ScalingPlane) -> None:
    await two.workload(m1=2)
    two.metrics.hits = 30_000
    target = {"type": "AverageValue", "averageValue": "10"}
    await two.autoscaler(metrics=[{"type": "Object", "object": {**HITS, "target": target}}])
    await two.until(lambda: two.status().get("desiredReplicas") == 3)
    [shown] = two.status()["currentMetrics"]
    assert shown["object"]["current"] == {"averageValue": "15"}
    assert shown["object"]["describedObject"] == {"kind": "", "name": ""}
    assert two.condition("ScalingActive")[2].endswith("from external metric hits(nil)")


async def test_a_template_at_zero_is_left_at_zero(two: ScalingPlane) -> None:
    """Its members lag behind."""
    await two.workload(m1=2)
    await two.client.patch(DEPLOYMENTS, "web", "default", {"spec": {"replicas": 0}})
    await two.autoscaler()
    await two.until_reason("AbleToScale", "SucceededGetScale")
    assert await two.replicas() == 0
    assert "SuccessfulRescale" not in await two.events()


async def test_autoscalers_of_a_namespace_share_the_requests_of_a_moment(two: ScalingPlane) -> None:
    two.metrics.cpu = {"m1": 50}
    for name in ("a", "b", "c"):
        await two.workload(name, m1=1)
        await two.autoscaler(name)
    await two.until(lambda: all(two.reason("ScalingActive", name) == "ValidMetricFound" for name in "abc"))
    two.metrics.requests = Counter()
    await two.round()
    assert two.metrics.requests == {"resource default": 1}


async def test_what_is_known_of_a_deleted_autoscaler_goes_with_it(two: ScalingPlane) -> None:
    await two.workload(m1=1, m2=1)
    two.metrics.cpu = {"m1": 50, "m2": 50}
    await two.autoscaler()
    await two.until(lambda: two.condition("AbleToScale") == STEADY)
    controller, member = two.controller, two.plane.context.members.known("m1")
    assert sorted(controller.scales.followed) == ["m1", "m2"]
    assert len(member.informers.all()) == 1
    await two.client.delete(HPAS, "web", "default")
    await two.until(lambda: Key("default", "web") not in controller.histories)
    await two.until(lambda: not controller.scales.followed and not member.informers.all())
    assert len(controller.selectors) == 0


async def test_the_pods_of_a_cluster_that_is_left_are_kept_no_longer(two: ScalingPlane) -> None:
    await two.workload(m1=1, m2=1)
    two.metrics.cpu = {"m1": 50, "m2": 50}
    await two.autoscaler()
    await two.until(lambda: two.condition("AbleToScale") == STEADY)
    patch = {"spec": {"clusters": [{"name": "m1"}]}}
    await two.client.patch(BINDINGS, "web-deployment", "default", patch)
    await two.round()
    await two.until(lambda: two.controller.scales.followed == ["m1"])


async def test_what_was_done_is_counted(two: ScalingPlane) -> None:
    def counted() -> dict[tuple[str, str], float]:
        return {
            (sample.labels["action"], sample.labels["error"]): sample.value
            for metric in two.controller.metrics.collect()
            for sample in metric.samples
            if sample.name == "horizontal_pod_autoscaler_controller_reconciliations_total"
        }

    before = Counter(counted())
    await two.autoscaler("missing")
    await two.until_reason("AbleToScale", "FailedGetScaleTargetRef", "missing")
    await two.workload(m1=2)
    two.metrics.cpu = {"m1": 100}
    await two.autoscaler()
    await two.until(lambda: two.status().get("desiredReplicas") == 4)
    await two.until(lambda: Counter(counted()) - before == {("scale_up", "none"): 1, ("none", "internal"): 1})
