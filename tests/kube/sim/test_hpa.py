"""HorizontalPodAutoscalers of a simulated cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from karmada.kube.autoscaling.metrics import MetricsError, PodMetric
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import AUTOSCALERS, CRDS, DEPLOYMENTS, PODS
from karmada.kube.objects.meta import get_condition, has_condition
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key
from karmada.kube.sim.controllers.hpa import HorizontalPodAutoscalers
from tests.kube.sim.harness import Harness, running
from tests.support.custom_kinds import definition, version
from tests.support.eventually import eventually
from tests.support.objects import kube_object

NOW = 1_700_000_000.0
LABELS = {"app": "web"}


class FakeMetrics:
    """Every pod uses the same; tests set how much."""

    def __init__(self) -> None:
        self.cpu = 0
        self.rps = 0
        self.queue: list[int] = []
        self.ingress = 0
        self.broken: set[str] = set()
        self.pods_known: Callable[[], list[str]] = list
        self.now: Callable[[], float] = lambda: NOW

    def _all(self, kind: str, value: int) -> dict[str, PodMetric]:
        if kind in self.broken:
            raise MetricsError(f"unable to fetch metrics from {kind} metrics API: down")
        return {name: PodMetric(value, self.now(), 30.0) for name in self.pods_known()}

    async def resource(self, *_requested: str) -> dict[str, PodMetric]:
        return self._all("resource", self.cpu)

    async def pods(self, *_requested: str) -> dict[str, PodMetric]:
        return self._all("custom", self.rps)

    async def object(self, *_requested: Any) -> int:
        return self.ingress

    async def external(self, *_requested: str) -> list[int]:
        return self.queue


class Scaled:
    """A Deployment with pods that are ready at once, and its autoscaler."""

    def __init__(self, cluster: Harness, metrics: FakeMetrics) -> None:
        self.cluster, self.metrics = cluster, metrics
        metrics.pods_known = lambda: [p["metadata"]["name"] for p in cluster.context.informers.of(PODS).list("default")]
        metrics.now = cluster.clock.now

    async def deployment(self, replicas: int) -> None:
        template = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}
        spec = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": template}
        made = kube_object("apps/v1", "Deployment", "web", "default", spec=spec)
        await self.cluster.client.create(DEPLOYMENTS, made)
        await self.pods(replicas)

    async def pods(self, number: int) -> None:
        """What the Deployment's controllers would do."""
        started = rfc3339(self.cluster.clock.now() - 3600)
        for n in range(number):
            if f"web-{n}" not in self.metrics.pods_known():
                meta = {"name": f"web-{n}", "namespace": "default", "labels": LABELS}
                resources = {"requests": {"cpu": "100m"}}
                spec = {"containers": [{"name": "c", "image": "nginx", "resources": resources}], "nodeName": "n"}
                made = await self.cluster.client.create(
                    PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
                )
                ready = {"type": "Ready", "status": "True", "lastTransitionTime": started}
                await self.cluster.set_pod_status(
                    made, {"phase": "Running", "startTime": started, "conditions": [ready]}
                )
        for name in self.metrics.pods_known():
            if int(name.split("-")[1]) >= number:
                await self.cluster.client.delete(PODS, name, "default", grace_period=0)
        await self.cluster.client.patch(
            DEPLOYMENTS, "web", "default", {"status": {"replicas": number}}, subresource="status"
        )
        await eventually(lambda: len(self.metrics.pods_known()) == number)

    async def autoscaler(self, name: str = "web", target: Obj | None = None, **spec: Any) -> None:
        reference = target or {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        body = {"scaleTargetRef": reference, "maxReplicas": 10, "metrics": [CPU], **spec}
        made = kube_object("autoscaling/v2", "HorizontalPodAutoscaler", name, "default", spec=body)
        await self.cluster.client.create(AUTOSCALERS, made)

    def status(self, name: str = "web") -> Obj:
        found = self.cluster.context.informers.of(AUTOSCALERS).get(Key("default", name)) or {}
        return found.get("status") or {}

    def condition(self, kind: str, name: str = "web") -> tuple[str, str, str] | None:
        found = get_condition(self.status(name).get("conditions"), kind)
        return (found["status"], found["reason"], found["message"]) if found else None

    async def replicas(self) -> int:
        found = await self.cluster.client.get(DEPLOYMENTS, "web", "default")
        return int(found["spec"]["replicas"])

    async def round(self) -> None:
        await self.cluster.clock.advance(15)

    async def until(self, condition: Callable[[], Any], name: str = "web") -> None:
        await eventually(condition, show=lambda: self.status(name))

    async def emitted(self, reason: str) -> tuple[str, str]:
        async def recorded() -> list[tuple[str, str]]:
            return [(kind, message) for kind, why, message in await self.cluster.events("web") if why == reason]

        found: list[tuple[str, str]] = await eventually(recorded)
        return found[0]


CPU: Obj = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
}


@pytest.fixture
async def scaled(tmp_path: Path) -> AsyncIterator[Scaled]:
    metrics = FakeMetrics()
    async with running(tmp_path, lambda context: [HorizontalPodAutoscalers(context, metrics)]) as cluster:
        yield Scaled(cluster, metrics)


async def test_more_load_means_more_replicas(scaled: Scaled) -> None:
    await scaled.deployment(2)
    scaled.metrics.cpu = 90
    await scaled.autoscaler()
    await scaled.until(lambda: scaled.status().get("desiredReplicas") == 4)
    assert await scaled.replicas() == 4
    status = scaled.status()
    assert status["currentReplicas"] == 2
    assert status["lastScaleTime"] == rfc3339(scaled.cluster.clock.now())
    [shown] = status["currentMetrics"]
    assert shown == {
        "type": "Resource",
        "resource": {"name": "cpu", "current": {"averageUtilization": 90, "averageValue": "90m"}},
    }
    rescaled = "the HPA controller was able to update the target scale to 4"
    assert scaled.condition("AbleToScale") == ("True", "SucceededRescale", rescaled)
    name = "cpu resource utilization (percentage of request)"
    found = f"the HPA was able to successfully calculate a replica count from {name}"
    assert scaled.condition("ScalingActive") == ("True", "ValidMetricFound", found)
    within = "the desired count is within the acceptable range"
    assert scaled.condition("ScalingLimited") == ("False", "DesiredWithinRange", within)
    assert await scaled.emitted("SuccessfulRescale") == ("Normal", f"New size: 4; reason: {name} above target")


async def test_less_load_means_fewer_replicas_after_five_minutes(scaled: Scaled) -> None:
    await scaled.deployment(4)
    scaled.metrics.cpu = 50
    await scaled.autoscaler()
    steady = ("True", "ReadyForNewScale", "recommended size matches current size")
    await scaled.until(lambda: scaled.condition("AbleToScale") == steady)
    scaled.metrics.cpu = 10
    await scaled.round()
    held = "recent recommendations were higher than current one, applying the highest recent recommendation"
    await scaled.until(lambda: scaled.condition("AbleToScale") == ("True", "ScaleDownStabilized", held))
    assert await scaled.replicas() == 4
    for _ in range(20):
        await scaled.round()
    await scaled.until(lambda: scaled.status().get("desiredReplicas") == 1)
    assert await scaled.replicas() == 1
    assert await scaled.emitted("SuccessfulRescale") == ("Normal", "New size: 1; reason: All metrics below target")


async def test_limits_hold(scaled: Scaled) -> None:
    await scaled.deployment(3)
    scaled.metrics.cpu = 400
    await scaled.autoscaler(maxReplicas=5)
    await scaled.until(lambda: scaled.status().get("desiredReplicas") == 5)
    message = "the desired replica count is more than the maximum replica count"
    assert scaled.condition("ScalingLimited") == ("True", "TooManyReplicas", message)
    await scaled.cluster.client.patch(AUTOSCALERS, "web", "default", {"spec": {"maxReplicas": 4}})
    await scaled.until(lambda: scaled.status().get("desiredReplicas") == 4)
    assert await scaled.replicas() == 4


async def test_too_few_replicas_become_the_minimum_without_a_look_at_metrics(scaled: Scaled) -> None:
    await scaled.deployment(1)
    scaled.metrics.broken = {"resource"}
    await scaled.autoscaler(minReplicas=3)
    await scaled.until(lambda: scaled.status().get("desiredReplicas") == 3)
    emitted = "New size: 3; reason: Current number of replicas below Spec.MinReplicas"
    assert await scaled.emitted("SuccessfulRescale") == ("Normal", emitted)


async def test_a_target_at_zero_is_left_alone(scaled: Scaled) -> None:
    await scaled.deployment(0)
    await scaled.autoscaler()
    message = "scaling is disabled since the replica count of the target is zero"
    await scaled.until(lambda: scaled.condition("ScalingActive") == ("False", "ScalingDisabled", message))
    assert await scaled.replicas() == 0


async def test_a_missing_metric_is_reported_and_mends_itself(scaled: Scaled) -> None:
    await scaled.deployment(2)
    scaled.metrics.broken = {"resource"}
    await scaled.autoscaler()
    problem = (
        "failed to get cpu utilization: unable to get metrics for resource cpu: "
        "unable to fetch metrics from resource metrics API: down"
    )
    message = f"the HPA was unable to compute the replica count: {problem}"
    await scaled.until(lambda: scaled.condition("ScalingActive") == ("False", "FailedGetResourceMetric", message))
    assert scaled.status()["currentReplicas"] == 2
    assert await scaled.emitted("FailedGetResourceMetric") == ("Warning", problem)
    counted = (
        f"invalid metrics (1 invalid out of 1), first error is: failed to get cpu resource metric value: {problem}"
    )
    assert await scaled.emitted("FailedComputeMetricsReplicas") == ("Warning", counted)
    scaled.metrics.broken = set()
    scaled.metrics.cpu = 80
    await scaled.round()
    await scaled.until(lambda: scaled.status().get("desiredReplicas") == 4)


async def test_of_several_metrics_the_largest_wins_and_a_broken_one_forbids_only_less(scaled: Scaled) -> None:
    rps = {
        "type": "Pods",
        "pods": {"metric": {"name": "rps"}, "target": {"type": "AverageValue", "averageValue": "10"}},
    }
    await scaled.deployment(2)
    scaled.metrics.cpu, scaled.metrics.rps = 25, 30_000
    await scaled.autoscaler(metrics=[CPU, rps])
    await scaled.until(lambda: scaled.status().get("desiredReplicas") == 4)
    assert (await scaled.emitted("SuccessfulRescale"))[1] == "New size: 4; reason: pods metric rps above target"
    await scaled.pods(4)
    scaled.metrics.broken = {"custom"}
    await scaled.round()
    await scaled.until(lambda: (scaled.condition("ScalingActive") or ("",) * 2)[1] == "FailedGetPodsMetric")
    scaled.metrics.cpu = 100
    await scaled.round()
    await scaled.until(lambda: scaled.status().get("desiredReplicas") == 8)
    assert [m["type"] for m in scaled.status()["currentMetrics"]] == ["Resource", ""]


async def test_objects_and_external_metrics_scale_too(scaled: Scaled) -> None:
    described = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": "main"}
    hits = {"describedObject": described, "metric": {"name": "hits"}, "target": {"type": "Value", "value": "10"}}
    queue = {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "5"}}
    await scaled.deployment(2)
    scaled.metrics.ingress, scaled.metrics.queue = 15_000, [10_000, 8_000]
    await scaled.autoscaler(metrics=[{"type": "Object", "object": hits}, {"type": "External", "external": queue}])
    await scaled.until(lambda: scaled.status().get("desiredReplicas") == 4)
    shown = scaled.status()["currentMetrics"]
    assert shown[0]["object"]["current"] == {"value": "15"}
    assert shown[1]["external"]["current"] == {"averageValue": "9"}
    assert (await scaled.emitted("SuccessfulRescale"))[
        1
    ] == "New size: 4; reason: external metric queue(nil) above target"


async def test_a_behavior_bounds_each_step(scaled: Scaled) -> None:
    await scaled.deployment(2)
    scaled.metrics.cpu = 300
    await scaled.autoscaler(behavior={"scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}})
    await scaled.until(lambda: scaled.status().get("desiredReplicas") == 3)
    message = "the desired replica count is increasing faster than the maximum scale rate"
    assert scaled.condition("ScalingLimited") == ("True", "ScaleUpLimit", message)
    await scaled.pods(3)
    for _ in range(3):
        await scaled.round()
    assert await scaled.replicas() == 3
    await scaled.round()
    await scaled.round()
    await scaled.until(lambda: scaled.status().get("desiredReplicas") == 4)


async def test_a_missing_target_is_reported(scaled: Scaled) -> None:
    await scaled.autoscaler()
    problem = 'deployments.apps "web" not found'
    message = f"the HPA controller was unable to get the target's current scale: {problem}"
    await scaled.until(lambda: scaled.condition("AbleToScale") == ("False", "FailedGetScale", message))
    assert await scaled.emitted("FailedGetScale") == ("Warning", problem)


async def test_an_unknown_kind_is_reported(scaled: Scaled) -> None:
    await scaled.autoscaler(target={"apiVersion": "example.com/v1", "kind": "Gizmo", "name": "g"})
    problem = 'no matches for kind "Gizmo" in group "example.com"'
    await scaled.until(lambda: (scaled.condition("AbleToScale") or ("",) * 3)[2].endswith(problem))


async def test_two_autoscalers_for_the_same_pods_are_refused(scaled: Scaled) -> None:
    await scaled.deployment(2)
    scaled.metrics.cpu = 50
    await scaled.autoscaler()
    await scaled.until(lambda: scaled.condition("ScalingActive"))
    await scaled.autoscaler("copy")
    message = "pods by selector app=web are controlled by multiple HPAs: [default/copy default/web]"
    refused = ("False", "AmbiguousSelector", message)
    await scaled.until(lambda: scaled.condition("ScalingActive", "copy") == refused, "copy")
    await scaled.cluster.client.delete(AUTOSCALERS, "web", "default")
    await scaled.round()
    await scaled.until(lambda: (scaled.condition("ScalingActive", "copy") or ("",))[0] == "True", "copy")


async def test_custom_resources_scale_through_their_scale_subresource(scaled: Scaled) -> None:
    scale = {
        "specReplicasPath": ".spec.size",
        "statusReplicasPath": ".status.size",
        "labelSelectorPath": ".status.selector",
    }
    crd = definition("example.com", "Fleet", version(subresources={"scale": scale, "status": {}}))
    client, fleets = scaled.cluster.client, GVR("example.com", "v1", "fleets")
    await client.create(CRDS, crd)
    fleet = kube_object("example.com/v1", "Fleet", "f", "default", spec={"size": 2})
    known = scaled.cluster.context.informers.of(CRDS)
    await known.until(
        lambda: has_condition(known.list()[0]["status"]["conditions"], "Established") if known.list() else False
    )
    await client.create(fleets, fleet)
    await client.patch(fleets, "f", "default", {"status": {"size": 2, "selector": "app=web"}}, subresource="status")
    await scaled.deployment(2)
    scaled.metrics.cpu = 100
    await scaled.autoscaler(target={"apiVersion": "example.com/v1", "kind": "Fleet", "name": "f"})
    await scaled.until(lambda: scaled.status().get("desiredReplicas") == 4)
    assert (await client.get(fleets, "f", "default"))["spec"]["size"] == 4


async def test_a_deleted_autoscaler_is_forgotten(scaled: Scaled) -> None:
    await scaled.deployment(2)
    scaled.metrics.cpu = 50
    await scaled.autoscaler()
    await scaled.until(lambda: scaled.condition("ScalingActive"))
    await scaled.cluster.client.delete(AUTOSCALERS, "web", "default")
    await eventually(lambda: scaled.status() == {})
    scaled.metrics.cpu = 500
    await scaled.round()
    await scaled.round()
    assert await scaled.replicas() == 2
