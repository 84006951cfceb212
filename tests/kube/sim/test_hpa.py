from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karmada.kube.client.client import Client
from karmada.kube.client.discovery import Mapping
from karmada.kube.client.transport import Call
from karmada.kube.objects.errors import ApiError, NotFound
from karmada.kube.objects.gvk import GVK, GVR
from karmada.kube.objects.meta import get_condition, has_condition
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key
from karmada.kube.sim.controllers.hpa import (
    AUTOSCALERS,
    HorizontalPodAutoscalers,
    MetricsClient,
    MetricsError,
    PodMetric,
)
from karmada.kube.sim.controllers.hpa_behavior import Bounds, History, Moment, decide, down_limit, up_limit
from karmada.kube.sim.controllers.hpa_replicas import Tolerances, by_average, by_share, by_utilization, by_value
from karmada.kube.sim.controllers.hpa_sources import printed
from tests.kube.sim.harness import PODS, Harness, running
from tests.support.eventually import eventually

NOW = 1_700_000_000.0
EXACT = Tolerances()


# --- arithmetic


def pod(name: str, *, phase: str = "Running", ready: bool = True, age: float = 3600, request: str = "1000m") -> Obj:
    started = NOW - age
    condition = {"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": rfc3339(started + 5)}
    resources = {"requests": {"cpu": request}} if request else {}
    return {
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "resources": resources}]},
        "status": {"phase": phase, "startTime": rfc3339(started), "conditions": [condition]},
    }


def used(**values: int) -> dict[str, PodMetric]:
    return {name: PodMetric(value, NOW, 30.0) for name, value in values.items()}


ABC = [pod("a"), pod("b"), pod("c")]
CASES: list[tuple[str, list[Obj], dict[str, PodMetric], int, int]] = [
    ("in proportion", ABC, used(a=600, b=1000, c=1400), 50, 6),
    ("fewer", ABC, used(a=100, b=200, c=300), 50, 2),
    ("within the tolerance", ABC, used(a=510, b=540, c=540), 50, 3),
    ("a missing pod is idle on the way up", ABC, used(a=900, b=900), 50, 4),
    ("a missing pod is busy on the way down", ABC, used(a=100, b=100), 50, 3),
    ("a pending pod is idle on the way up", [*ABC[:2], pod("c", phase="Pending")], used(a=900, b=900), 50, 4),
    ("a pending pod is not counted on the way down", [*ABC[:2], pod("c", phase="Pending")], used(a=100, b=100), 50, 1),
    ("an unready pod that just started is idle", [*ABC[:2], pod("c", ready=False, age=60)],
     used(a=900, b=900, c=900), 50, 4),
    ("an unready pod that was ready once counts", [*ABC[:2], pod("c", ready=False, age=3600)],
     used(a=900, b=900, c=900), 50, 4),
    ("failed pods are ignored", [*ABC, pod("d", phase="Failed")], used(a=1000, b=1000, c=1000), 50, 6),
    ("assumptions that turn the direction change nothing", ABC, used(a=560), 50, 3),
]  # fmt: skip


@pytest.mark.parametrize(
    ("pods", "metrics", "target", "expected"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
def test_replicas_follow_utilization(
    pods: list[Obj], metrics: dict[str, PodMetric], target: int, expected: int
) -> None:
    assert by_utilization(3, pods, metrics, "cpu", "", target, EXACT, NOW).replicas == expected


def test_a_young_pod_counts_once_a_whole_window_was_measured_after_it_became_ready() -> None:
    young = pod("c", age=60)  # ready since 55 s
    early = {**used(a=900, b=900), "c": PodMetric(900, NOW - 50, 30.0)}
    late = {**used(a=900, b=900), "c": PodMetric(900, NOW - 10, 30.0)}
    assert by_utilization(3, [*ABC[:2], young], early, "cpu", "", 50, EXACT, NOW).replicas == 4
    assert by_utilization(3, [*ABC[:2], young], late, "cpu", "", 50, EXACT, NOW).replicas == 6


def test_utilization_is_shown_as_a_percentage_and_an_average() -> None:
    found = by_utilization(3, ABC, used(a=300, b=600, c=900), "cpu", "", 60, EXACT, NOW)
    assert (found.usage, found.average) == (60, 600)


@pytest.mark.parametrize(
    ("pods", "metrics", "message"),
    [
        ([], {}, "no pods returned by selector while calculating replica count"),
        (ABC, {}, "did not receive metrics for targeted pods (pods might be unready)"),
        ([pod("a", request="")], used(a=1), "missing request for cpu in container c of Pod a"),
    ],
)
def test_without_numbers_there_is_no_proposal(pods: list[Obj], metrics: dict[str, PodMetric], message: str) -> None:
    with pytest.raises(MetricsError) as error:
        by_utilization(3, pods, metrics, "cpu", "", 50, EXACT, NOW)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("metrics", "expected"),
    [
        (used(a=20_000, b=10_000, c=30_000), (4, 20_000)),
        (used(a=15_500, b=15_500, c=15_500), (3, 15_500)),
        (used(a=5_000, b=5_000, c=5_000), (1, 5_000)),
        (used(a=5_000, b=5_000), (2, 5_000)),  # c is taken to be at the target
    ],
)
def test_replicas_follow_an_average_value(metrics: dict[str, PodMetric], expected: tuple[int, int]) -> None:
    found = by_average(3, ABC, metrics, "", 15_000, EXACT, NOW)
    assert (found.replicas, found.average) == expected


@pytest.mark.parametrize(
    ("current", "usage", "expected"), [(3, 33_000, 5), (3, 21_000, 3), (3, 10_000, 2), (0, 45_000, 3)]
)
def test_replicas_follow_one_value_for_all(current: int, usage: int, expected: int) -> None:
    assert by_value(current, ABC, usage, 20_000, EXACT).replicas == expected


@pytest.mark.parametrize(
    ("existing", "usage", "expected", "share"),
    [(3, 31_000, 3, 10_334), (3, 60_000, 6, 20_000), (3, 4_000, 1, 1_334), (0, 25_000, 3, 0)],
)
def test_replicas_follow_a_share_of_one_value(existing: int, usage: int, expected: int, share: int) -> None:
    found = by_share(existing, usage, 10_000, EXACT)
    assert (found.replicas, found.usage) == (expected, share)


def test_tolerances_may_differ_by_direction() -> None:
    metrics = used(a=540, b=540, c=540)
    assert by_utilization(3, ABC, metrics, "cpu", "", 50, Tolerances(0.1, 0.05), NOW).replicas == 4
    assert by_utilization(3, ABC, metrics, "cpu", "", 50, Tolerances(0.05, 0.1), NOW).replicas == 3


@given(st.lists(st.integers(0, 5000), min_size=1, max_size=8), st.integers(1, 200))
def test_replicas_never_move_against_the_ratio(values: list[int], target: int) -> None:
    pods = [pod(f"p{n}") for n in range(len(values))]
    metrics = {f"p{n}": PodMetric(value, NOW, 30.0) for n, value in enumerate(values)}
    found = by_utilization(len(values), pods, metrics, "cpu", "", target, EXACT, NOW)
    if found.usage > target * 1.1:
        assert found.replicas >= len(values)
    elif found.usage < target * 0.9:
        assert found.replicas <= len(values)
    else:
        assert found.replicas == len(values)


# --- behaviour

WIDE = Bounds(1, 100)


def behavior(up: Obj | None = None, down: Obj | None = None) -> Obj:
    default = [{"type": "Percent", "value": 100, "periodSeconds": 15}]
    fast = [*default, {"type": "Pods", "value": 4, "periodSeconds": 15}]
    return {
        "scaleUp": {"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": fast, **(up or {})},
        "scaleDown": {"selectPolicy": "Max", "policies": default, **(down or {})},
    }


@pytest.mark.parametrize(
    ("current", "wanted", "bounds", "expected", "reason"),
    [
        (5, 7, WIDE, 7, "DesiredWithinRange"),
        (5, 30, WIDE, 10, "ScaleUpLimit"),
        (1, 30, WIDE, 4, "ScaleUpLimit"),
        (5, 30, Bounds(1, 8), 8, "TooManyReplicas"),
        (5, 5, Bounds(1, 8), 5, "DesiredWithinRange"),
    ],
)
def test_without_behavior_replicas_at_most_double(
    current: int, wanted: int, bounds: Bounds, expected: int, reason: str
) -> None:
    decision = decide(History(), current, wanted, bounds, None, NOW)
    assert (decision.replicas, decision.limit[0]) == (expected, reason)
    assert decision.limited is (reason != "DesiredWithinRange")


def test_without_behavior_the_highest_recommendation_of_five_minutes_wins() -> None:
    history = History()
    held = decide(history, 5, 2, WIDE, None, NOW)
    assert (held.replicas, held.able[0]) == (5, "ScaleDownStabilized")
    still = decide(history, 5, 3, WIDE, None, NOW + 299)
    assert still.replicas == 5
    free = decide(history, 5, 1, WIDE, None, NOW + 301)
    assert (free.replicas, free.able[0]) == (3, "ScaleDownStabilized")
    low = decide(history, 3, 0, Bounds(1, 10), None, NOW + 1000)
    assert (low.replicas, low.limit[0], low.able[0]) == (1, "TooFewReplicas", "ReadyForNewScale")


def test_a_window_for_scaling_up_takes_the_lowest_recent_recommendation() -> None:
    history, rules = History(), behavior(up={"stabilizationWindowSeconds": 60})
    held = decide(history, 5, 9, WIDE, rules, NOW)
    assert (held.replicas, held.able[0]) == (5, "ScaleUpStabilized")
    assert decide(history, 5, 7, WIDE, rules, NOW + 61).replicas == 7


def test_a_window_of_zero_scales_down_at_once() -> None:
    rules = behavior(down={"stabilizationWindowSeconds": 0})
    assert decide(History(), 10, 3, WIDE, rules, NOW).replicas == 3
    assert decide(History(), 10, 3, WIDE, behavior(), NOW).replicas == 10


PODS_2 = {"type": "Pods", "value": 2, "periodSeconds": 60}
PERCENT_10 = {"type": "Percent", "value": 10, "periodSeconds": 60}


@pytest.mark.parametrize(
    ("select", "policies", "up", "down"),
    [
        ("Max", [PODS_2, PERCENT_10], 110, 90),
        ("Min", [PODS_2, PERCENT_10], 102, 98),
        ("Max", [PODS_2], 102, 98),
        ("Disabled", [PODS_2], 100, 100),
    ],
)
def test_policies_bound_the_change(select: str, policies: list[Obj], up: int, down: int) -> None:
    rules = {"selectPolicy": select, "policies": policies}
    assert up_limit(History(), 100, rules, NOW) == up
    assert down_limit(History(), 100, rules, NOW) == down


def test_changes_within_the_period_count_against_the_policies() -> None:
    rules = {"selectPolicy": "Max", "policies": [PODS_2]}
    history = History(added=[Moment(NOW - 30, 1), Moment(NOW - 90, 5)])
    assert up_limit(history, 10, rules, NOW) == 11
    assert down_limit(History(removed=[Moment(NOW - 30, 1)]), 10, rules, NOW) == 9


def test_a_used_up_rate_holds_replicas_where_they_are() -> None:
    rules = behavior(up={"policies": [PODS_2]})
    history = History()
    first = decide(history, 10, 30, WIDE, rules, NOW)
    assert (first.replicas, first.limit[0]) == (12, "ScaleUpLimit")
    history.scaled(10, 12, rules, NOW)
    assert decide(history, 12, 30, WIDE, rules, NOW + 15).replicas == 12
    assert decide(history, 12, 30, WIDE, rules, NOW + 61).replicas == 14
    history.scaled(12, 14, rules, NOW + 61)
    assert history.added == [Moment(NOW + 61, 2)]


@given(st.lists(st.integers(0, 40), min_size=1, max_size=20), st.integers(1, 20), st.booleans(), st.integers(1, 5))
def test_decisions_stay_within_bounds(wanted: list[int], current: int, with_behavior: bool, low: int) -> None:
    bounds, history, rules = Bounds(low, 25), History(), behavior() if with_behavior else None
    current = min(max(current, low), 25)
    for step, replicas in enumerate(wanted):
        decision = decide(history, current, replicas, bounds, rules, NOW + 15 * step)
        assert bounds.low <= decision.replicas <= bounds.high
        history.scaled(current, decision.replicas, rules or {}, NOW + 15 * step)
        current = decision.replicas


def test_selectors_are_printed_as_go_does() -> None:
    assert printed(None) == "nil"
    shown = printed(
        {"matchLabels": {"q": "w"}, "matchExpressions": [{"key": "k", "operator": "In", "values": ["a", "b"]}]}
    )
    assert shown == (
        "&LabelSelector{MatchLabels:map[string]string{q: w,},"
        "MatchExpressions:[]LabelSelectorRequirement{LabelSelectorRequirement{Key:k,Operator:In,Values:[a b],},},}"
    )


# --- the client


class Scripted:
    """A transport with fixed answers; records the requests."""

    def __init__(self, answers: dict[str, Obj]) -> None:
        self.answers = answers
        self.requests: list[Call] = []
        self.missing: ApiError = NotFound.resource()

    async def call(self, call: Call) -> Any:
        self.requests.append(call)
        if call.path not in self.answers:
            raise self.missing
        return self.answers[call.path]


class Mapper:
    async def mapping(self, kind: Any) -> Mapping:
        if kind.kind == "Node":
            return Mapping(GVR("", "v1", "nodes"), GVK("", "v1", "Node"), namespaced=False)
        return Mapping(GVR("apps", "v1", "deployments"), GVK("apps", "v1", "Deployment"), namespaced=True)


def metrics_client(answers: dict[str, Obj]) -> tuple[MetricsClient, Scripted]:
    transport = Scripted(answers)
    return MetricsClient(Client(transport, mapper=Mapper())), transport  # type: ignore[arg-type]


CUSTOM = "/apis/custom.metrics.k8s.io"
GROUP = {CUSTOM: {"preferredVersion": {"version": "v1beta2"}, "versions": [{"version": "v1beta2"}]}}


async def test_resource_metrics_are_summed_over_containers() -> None:
    usage = [{"name": "c", "usage": {"cpu": "250m"}}, {"name": "d", "usage": {"cpu": "123456789n"}}]
    item = {"metadata": {"name": "p", "namespace": "ns"}, "timestamp": "1970-01-01T00:01:00Z", "window": "15.5s"}
    half = {**item, "metadata": {"name": "q", "namespace": "ns"}, "containers": [{"name": "c", "usage": {}}]}
    path = "/apis/metrics.k8s.io/v1beta1/namespaces/ns/pods"
    client, transport = metrics_client({path: {"items": [{**item, "containers": usage}, half]}})
    assert await client.resource("ns", "app=web", "cpu", "") == {"p": PodMetric(374, 60.0, 15.5)}
    assert transport.requests[0].query == {"labelSelector": "app=web"}
    with pytest.raises(MetricsError, match="container d not present in metrics for pod ns/q"):
        await client.resource("ns", "", "cpu", "d")


@pytest.mark.parametrize("missing", [NotFound.resource(), ApiError("404 page not found", code=404)])
async def test_a_missing_metrics_api_is_reported_as_kubernetes_does(missing: ApiError) -> None:
    client, transport = metrics_client({})
    transport.missing = missing
    with pytest.raises(MetricsError) as error:
        await client.resource("ns", "", "cpu", "")
    assert str(error.value) == (
        "unable to fetch metrics from resource metrics API: "
        "the server could not find the requested resource (get pods.metrics.k8s.io)"
    )


async def test_custom_metrics_are_read_in_the_preferred_version() -> None:
    item = {"describedObject": {"name": "p"}, "timestamp": "1970-01-01T00:01:00Z", "value": "1500m"}
    answers: dict[str, Obj] = {**GROUP, f"{CUSTOM}/v1beta2/namespaces/ns/pods/*/rps": {"items": [item]}}
    client, transport = metrics_client(answers)
    assert await client.pods("ns", "app=web", "rps", "verb=GET") == {"p": PodMetric(1500, 60.0, 60.0)}
    assert transport.requests[-1].query == {"labelSelector": "app=web", "metricLabelSelector": "verb=GET"}


@pytest.mark.parametrize(
    ("described", "path"),
    [
        ({"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}, "namespaces/ns/deployments.apps/d/m"),
        ({"kind": "Node", "name": "n"}, "nodes/n/m"),
        ({"kind": "Namespace", "name": "ns"}, "namespaces/ns/metrics/m"),
    ],
)
async def test_metrics_of_objects_have_paths_by_scope(described: Obj, path: str) -> None:
    client, _ = metrics_client({**GROUP, f"{CUSTOM}/v1beta2/{path}": {"items": [{"value": "7"}]}})
    assert await client.object("ns", described, "m", "") == 7000


async def test_external_metrics_come_as_a_list() -> None:
    path = "/apis/external.metrics.k8s.io/v1beta1/namespaces/ns/queue"
    client, transport = metrics_client({path: {"items": [{"value": "3"}, {"value": "500m"}]}})
    assert await client.external("ns", "queue", "q=w") == [3000, 500]
    assert transport.requests[0].query == {"labelSelector": "q=w"}


# --- the controller

DEPLOYMENTS = GVR("apps", "v1", "deployments")
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
        meta = {"name": "web", "namespace": "default"}
        made = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}
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
        meta = {"name": name, "namespace": "default"}
        made = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": meta, "spec": body}
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
    crds = GVR("apiextensions.k8s.io", "v1", "customresourcedefinitions")
    scale = {
        "specReplicasPath": ".spec.size",
        "statusReplicasPath": ".status.size",
        "labelSelectorPath": ".status.selector",
    }
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
        "subresources": {"scale": scale, "status": {}},
    }
    names = {"plural": "fleets", "singular": "fleet", "kind": "Fleet", "listKind": "FleetList"}
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "fleets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }
    client, fleets = scaled.cluster.client, GVR("example.com", "v1", "fleets")
    await client.create(crds, crd)
    meta = {"name": "f", "namespace": "default"}
    fleet = {"apiVersion": "example.com/v1", "kind": "Fleet", "metadata": meta, "spec": {"size": 2}}
    known = scaled.cluster.context.informers.of(crds)
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
