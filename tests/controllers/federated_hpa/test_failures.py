"""What goes wrong with a FederatedHPA: each step has its condition and its event, and is retried with back-off."""

from __future__ import annotations

from typing import Any

import pytest

from karmada.kube.objects.errors import Forbidden
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import DEPLOYMENTS
from karmada.kube.objects.types import Obj
from tests.controllers.federated_hpa.scaling_plane import CPU, HPAS, POLICY, RPS, ScalingPlane
from tests.support.cases import cases
from tests.support.propagation import deployment

pytestmark = pytest.mark.asyncio(loop_scope="module")
UNABLE = "the HPA controller was unable to"


async def expect_unable(two: ScalingPlane, event: str, reason: str, what: str, problem: str) -> None:
    await two.until(lambda: two.condition("AbleToScale") == ("False", reason, f"{UNABLE} {what}: {problem}"))
    assert (await two.events())[event] == ("Warning", problem)


async def test_an_api_version_that_is_none(two: ScalingPlane) -> None:
    await two.autoscaler(scaleTargetRef={"apiVersion": "a/b/c", "kind": "Deployment", "name": "web"})
    problem = "unexpected GroupVersion string: a/b/c"
    await expect_unable(two, "FailedGetScale", "FailedGetScale", "get the target's current scale", problem)


@cases(
    ({"apiVersion": "apps/v1", "kind": "Deployment", "name": "none"}, 'deployments.apps "none" not found'),
    ({"apiVersion": "a.io/v1", "kind": "Gizmo", "name": "g"}, 'no matches for kind "Gizmo" in version "a.io/v1"'),
)
async def test_a_template_that_is_not_there(target: Obj, problem: str, two: ScalingPlane) -> None:
    await two.autoscaler(scaleTargetRef=target)
    what = "get the target reference object"
    await expect_unable(two, "FailedGetScaleTargetRef", "FailedGetScaleTargetRef", what, problem)
    assert two.status()["desiredReplicas"] == 0


@cases(
    ({}, "target resource has no label"),
    ({"app": "web"}, "no label of policy permanent-id found"),
    ({**POLICY, "propagationpolicy.karmada.io/permanent-id": "another"}, "length of binding list is zero"),
    (POLICY, "no binding matches the target resource"),
)
async def test_a_template_without_a_binding(labels: dict[str, str], problem: str, two: ScalingPlane) -> None:
    await two.bind("other", ["m1"])
    await two.client.create(DEPLOYMENTS, deployment("web", labels=labels))
    await two.autoscaler()
    what = "get the binding by scaleTargetRef"
    await expect_unable(two, "FailedGetBindings", "FailedGetBinding", what, problem)


async def test_the_binding_of_another_namespace_is_not_used(two: ScalingPlane) -> None:
    await two.bind("web", ["m1"], namespace="kube-public")
    await two.client.create(DEPLOYMENTS, deployment("web", labels=POLICY))
    await two.autoscaler()
    await two.until_reason("AbleToScale", "FailedGetBinding")
    assert two.condition("AbleToScale")[2].endswith("no binding matches the target resource")


@cases(
    ([], "binding has no schedulable clusters"),
    (["m1", "gone"], 'clusters.cluster.karmada.io "gone" not found'),
)
async def test_a_binding_without_clusters(clusters: list[str], problem: str, two: ScalingPlane) -> None:
    await two.bind("web", clusters)
    await two.client.create(DEPLOYMENTS, deployment("web", labels=POLICY))
    await two.autoscaler()
    what = "get the target clusters from binding"
    await expect_unable(two, "FailedGetTargetClusters", "FailedGetTargetClusters", what, problem)


NO_REPLICAS = "failed to get replicas in any of clusters, possibly because all of clusters are not ready"


async def test_no_cluster_is_ready_and_then_one_is(two: ScalingPlane) -> None:
    await two.workload(m1=2)
    two.metrics.cpu = {"m1": 50}
    await two.set_ready("m1", "False")
    await two.autoscaler()
    await expect_unable(two, "FailedGetScale", "FailedGetScale", "get the target's current scale", NO_REPLICAS)
    await two.set_ready("m1", "True")
    await two.round()
    await two.until_reason("AbleToScale", "ReadyForNewScale")


async def test_members_at_zero_fail_before_scaling_can_be_disabled(two: ScalingPlane) -> None:
    await two.workload(m1=0)
    await two.autoscaler()
    await expect_unable(two, "FailedGetScale", "FailedGetScale", "get the target's current scale", NO_REPLICAS)


async def test_a_scale_of_the_template_that_cannot_be_read_is_retried_silently(
    two: ScalingPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    await two.workload(m1=2)
    two.metrics.cpu = {"m1": 50}
    client = two.plane.context.client
    get = client.get
    refused: list[GVR] = []

    async def failing(kind: GVR, *args: Any, **options: Any) -> Obj:
        if options.get("subresource") == "scale" and len(refused) < 2:
            refused.append(kind)
            raise Forbidden("not now")
        return await get(kind, *args, **options)

    monkeypatch.setattr(client, "get", failing)
    await two.autoscaler()
    await two.until(lambda: refused)
    assert not two.status()
    await two.round()
    await two.until_reason("AbleToScale", "ReadyForNewScale")
    assert await two.events() == {}


async def test_a_scale_that_cannot_be_written(two: ScalingPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    await two.workload(m1=2)
    two.metrics.cpu = {"m1": 100}
    client = two.plane.context.client
    update = client.update

    async def failing(kind: GVR, obj: Obj, **options: Any) -> Obj:
        if options.get("subresource") == "scale":
            raise Forbidden("not yours")
        return await update(kind, obj, **options)

    monkeypatch.setattr(client, "update", failing)
    await two.autoscaler()
    message = f"{UNABLE} update the target scale: not yours"
    await two.until(lambda: two.condition("AbleToScale") == ("False", "FailedUpdateScale", message))
    reason = "cpu resource utilization (percentage of request) above target"
    assert (await two.events())["FailedRescale"] == ("Warning", f"New size: 4; reason: {reason}; error: not yours")
    assert (two.status()["currentReplicas"], two.status()["desiredReplicas"]) == (2, 0)


async def test_a_status_that_cannot_be_written(two: ScalingPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    await two.workload(m1=2)
    two.metrics.cpu = {"m1": 50}

    async def failing(*_: Any, **__: Any) -> Obj:
        raise Forbidden("not yours")

    monkeypatch.setattr(two.plane.context.client, "update_status", failing)
    await two.autoscaler()

    async def emitted() -> bool:
        return (await two.events()).get("FailedUpdateStatus") == ("Warning", "not yours")

    await two.until(emitted)


# metrics

PROBLEM = (
    "failed to get cpu utilization: unable to get metrics for resource cpu: "
    "unable to fetch metrics from resource metrics API: down"
)
COMPUTE = "the HPA was unable to compute the replica count"


async def test_metrics_that_cannot_be_read_change_nothing(two: ScalingPlane) -> None:
    await two.workload(m1=2)
    two.metrics.broken = {"resource"}
    await two.autoscaler()
    message = f"{COMPUTE}: {PROBLEM}"
    await two.until(lambda: two.condition("ScalingActive") == ("False", "FailedGetResourceMetric", message))
    assert two.status()["currentReplicas"] == 2
    emitted = await two.events()
    assert emitted["FailedGetResourceMetric"] == ("Warning", PROBLEM)
    first = f"failed to get cpu resource metric value: {PROBLEM}"
    counted = f"invalid metrics (1 invalid out of 1), first error is: {first}"
    assert emitted["FailedComputeMetricsReplicas"] == ("Warning", counted)
    two.metrics.broken, two.metrics.cpu = set(), {"m1": 100}
    await two.round()
    await two.until(lambda: two.status()["desiredReplicas"] == 4)


async def test_a_metric_that_fails_lets_others_scale_up_but_not_down(two: ScalingPlane) -> None:
    await two.workload(m1=2)
    two.metrics.broken, two.metrics.cpu = {"custom"}, {"m1": 100}
    await two.autoscaler(metrics=[CPU, RPS])
    await two.until(lambda: two.status().get("desiredReplicas") == 4)
    assert two.reason("ScalingActive") == "ValidMetricFound"
    assert [metric["type"] for metric in two.status()["currentMetrics"]] == ["Resource", ""]
    assert "FailedGetPodsMetric" in await two.events()
    await two.follow(m1=4)
    two.metrics.cpu = {"m1": 1}
    await two.round()
    await two.until_reason("ScalingActive", "FailedGetPodsMetric")
    assert await two.replicas() == 4


async def test_two_autoscalers_for_the_same_pods_are_refused(two: ScalingPlane) -> None:
    await two.workload(m1=2)
    two.metrics.cpu = {"m1": 50}
    await two.autoscaler()
    await two.until_reason("ScalingActive", "ValidMetricFound")
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    await two.autoscaler("copy", scaleTargetRef=target)
    message = "pods by selector app=web are controlled by multiple HPAs: [default/copy default/web]"
    refused = ("False", "AmbiguousSelector", message)
    await two.until(lambda: two.condition("ScalingActive", "copy") == refused)
    assert (await two.events("copy"))["AmbiguousSelector"] == ("Warning", message)
    await two.client.delete(HPAS, "web", "default")
    await two.round()
    await two.until(lambda: two.reason("ScalingActive", "copy") == "ValidMetricFound")


UNPARSABLE = (
    "couldn't convert selector into a corresponding internal selector object: "
    "unable to parse requirement: found '' expected: '('"
)


@cases(
    ("", "SelectorRequired", "selector is required", "the HPA target's scale is missing a selector"),
    ("a in", "InvalidSelector", UNPARSABLE, UNPARSABLE),
)
async def test_a_member_whose_scale_has_no_usable_selector(
    selector: str, event: str, text: str, message: str, two: ScalingPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    await two.workload(m1=2)
    client = two.plane.context.members.get("m1").client
    get = client.get

    async def changed(kind: GVR, *args: Any, **options: Any) -> Obj:
        found = await get(kind, *args, **options)
        if options.get("subresource") == "scale":
            return {**found, "status": {"replicas": 2, **({"selector": selector} if selector else {})}}
        return found

    monkeypatch.setattr(client, "get", changed)
    await two.autoscaler()
    await two.until(lambda: two.condition("ScalingActive") == ("False", "InvalidSelector", message))
    assert (await two.events())[event] == ("Warning", text)
    assert await two.replicas() == 2
