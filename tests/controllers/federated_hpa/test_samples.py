"""Which pod a sample belongs to, and what is kept of a pod."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from karmada.controllers.federated_hpa.pods import PodKey, slim_pod
from karmada.controllers.federated_hpa.samples import attributed, by_name, by_pod
from karmada.kube.autoscaling.metrics import PodMetric, usage_of, value_of
from karmada.kube.autoscaling.replicas import request_of
from karmada.kube.objects.types import Obj
from tests.support.cases import cases

ONE, TWO, OTHER = PodKey("m1", "web-0"), PodKey("m2", "web-0"), PodKey("m1", "web-1")


def measured(name: str, cluster: str, cpu: str) -> Obj:
    annotations = {"annotations": {"resource.karmada.io/query-from-cluster": cluster}} if cluster else {}
    return {
        "metadata": {"name": name, "namespace": "ns", **annotations},
        "timestamp": "1970-01-01T00:01:00Z",
        "window": "30s",
        "containers": [{"name": "c", "usage": {"cpu": cpu} if cpu else {}}],
    }


def value(name: str, amount: str) -> Obj:
    return {"describedObject": {"name": name}, "timestamp": "1970-01-01T00:01:00Z", "value": amount}


def sample(milli: int, window: float = 30.0) -> PodMetric:
    return PodMetric(milli, 60.0, window)


@cases(
    (
        [ONE, TWO],
        [measured("web-0", "m1", "10m"), measured("web-0", "m2", "30m")],
        {ONE: sample(10), TWO: sample(30)},
    ),
    ([ONE, TWO], [measured("web-0", "m1", "10m")], {ONE: sample(10)}),
    ([ONE, TWO], [measured("web-0", "", "40m")], {ONE: sample(20), TWO: sample(20)}),
    ([ONE, TWO], [measured("web-0", "", "40m")] * 2, {ONE: sample(40), TWO: sample(40)}),
    (
        [ONE, TWO],
        [measured("web-0", "m1", "10m"), measured("web-0", "", "40m")],
        {ONE: sample(10), TWO: sample(40)},
    ),
    ([ONE], [measured("web-0", "m1", "")], {ONE: None}),
    ([ONE], [measured("gone", "m1", "10m")], {}),
    ids=[
        "by cluster", "one cluster only", "shared by name", "added up and shared", "known before shared",
        "without the resource", "of a pod that is not listed",
    ],
)  # fmt: skip
def test_samples_of_resources(pods: list[PodKey], items: list[Obj], expected: dict[PodKey, PodMetric | None]) -> None:
    assert attributed(pods, by_pod(items), lambda item: usage_of(item, "cpu", "")) == expected


def test_samples_of_custom_metrics_are_by_name() -> None:
    items = [value("web-0", "5"), value("web-1", "1500m")]
    shared = PodMetric(2500, 60.0, 60.0)
    found = attributed([ONE, TWO, OTHER], by_name(items), value_of)
    assert found == {ONE: shared, TWO: shared, OTHER: PodMetric(1500, 60.0, 60.0)}


@given(
    st.sets(st.builds(PodKey, st.sampled_from(["m1", "m2", "m3"]), st.sampled_from(["p", "q"])), min_size=1),
    st.lists(
        st.tuples(st.sampled_from(["p", "q"]), st.sampled_from(["", "m1", "m2"]), st.integers(0, 1000)), max_size=6
    ),
)
def test_no_usage_is_made_up(pods: set[PodKey], used: list[tuple[str, str, int]]) -> None:
    """What pods of a name have together is at most what was measured for that name."""
    samples = by_pod(measured(name, cluster, f"{cpu}m") for name, cluster, cpu in used)
    found = attributed(pods, samples, lambda item: usage_of(item, "cpu", ""))
    for name in ("p", "q"):
        total = sum(metric.value for key, metric in found.items() if metric is not None and key.name == name)
        assert total <= sum(cpu for one, _, cpu in used if one == name)


def test_a_kept_pod_has_what_autoscaling_needs_and_no_more() -> None:
    container = {"name": "c", "image": "nginx", "env": [{"name": "A"}], "resources": {"requests": {"cpu": "100m"}}}
    sidecar = {**container, "name": "s", "restartPolicy": "Always"}
    pod = {
        "metadata": {
            "name": "p", "namespace": "ns", "uid": "u", "resourceVersion": "1", "labels": {"app": "web"},
            "annotations": {"a": "b"},
        },
        "spec": {"nodeName": "n", "containers": [container], "initContainers": [{"name": "init"}, sidecar]},
        "status": {
            "phase": "Running", "startTime": "2024-01-01T00:00:00Z", "podIP": "10.0.0.1",
            "conditions": [
                {"type": "PodScheduled", "status": "True"},
                {"type": "Ready", "status": "True", "lastTransitionTime": "2024-01-01T00:00:01Z", "message": "m"},
            ],
        },
    }  # fmt: skip
    kept = slim_pod(pod)
    assert kept == {
        "metadata": {"name": "p", "namespace": "ns", "uid": "u", "resourceVersion": "1", "labels": {"app": "web"}},
        "spec": {
            "containers": [{"name": "c", "resources": {"requests": {"cpu": "100m"}}}],
            "initContainers": [{"name": "s", "resources": {"requests": {"cpu": "100m"}}, "restartPolicy": "Always"}],
        },
        "status": {
            "phase": "Running",
            "startTime": "2024-01-01T00:00:00Z",
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2024-01-01T00:00:01Z"}],
        },
    }
    assert request_of(kept, "cpu") == request_of(pod, "cpu") == 200
    again = slim_pod({**pod, "metadata": {**pod["metadata"], "name": "q"}})  # type: ignore[dict-item]
    assert again["spec"] is kept["spec"]
    assert again["metadata"]["labels"] is kept["metadata"]["labels"]
