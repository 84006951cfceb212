from __future__ import annotations

from typing import Any

from karmada.estimator.requests import node_amounts, pod_amounts, quantity_text
from tests.support.cases import cases


def container(always: bool = False, **requests: Any) -> dict[str, Any]:
    made = {"name": "c", "resources": {"requests": requests}}
    return {**made, "restartPolicy": "Always"} if always else made


@cases(
    ({}, None),
    ({"containers": [{"name": "c"}]}, None),
    ({"containers": [container(cpu="1"), container(cpu="250m")]}, 1250),
    ({"containers": [container(cpu="1")], "initContainers": [container(cpu="3")]}, 3000),
    ({"containers": [container(cpu="4")], "initContainers": [container(cpu="3"), container(cpu="2")]}, 4000),
    ({"containers": [container(cpu="1")], "initContainers": [container(True, cpu="2")]}, 3000),
    ({"containers": [container(cpu="1")], "initContainers": [container(True, cpu="2"), container(cpu="3")]}, 5000),
    ({"containers": [container(cpu="1")], "initContainers": [container(cpu="3"), container(True, cpu="2")]}, 3000),
    ({"containers": [container(cpu="1")], "overhead": {"cpu": "100m"}}, 1100),
    ({"initContainers": [container(cpu="3")], "overhead": {"cpu": "100m"}}, 3100),
    ({"containers": [container(cpu="1u")]}, 1),
)
def test_what_a_pod_reserves(spec: dict[str, Any], cpu: int | None) -> None:
    assert pod_amounts(spec) == ((("cpu", cpu),) if cpu else ())


def test_everything_but_cpu_counts_in_whole_units() -> None:
    amounts = pod_amounts({"containers": [container(**dict[str, Any]({"memory": "1500m", "example.com/a": "2"}))]})
    assert amounts == (("example.com/a", 2000), ("memory", 2000))


def test_equal_pods_share_their_amounts() -> None:
    first, second = ({"containers": [container(cpu="123m", memory="77Mi")]} for _ in range(2))
    assert pod_amounts(first) is pod_amounts(second)


def test_a_node_keeps_every_resource_it_names() -> None:
    assert node_amounts({"cpu": "3920m", "hugepages-1Gi": "0", "odd": "2"}) == {
        "cpu": 3920,
        "hugepages-1Gi": 0,
        "odd": 2000,
    }


@cases(
    ("cpu", 2500, "2500m"),
    ("cpu", 12000, "12"),
    ("memory", 48 * 1024**3 * 1000, "48Gi"),
    ("hugepages-2Mi", 4 * 1024**2 * 1000, "4Mi"),
    ("ephemeral-storage", 1000, "1"),
    ("pods", 330_000, "330"),
    ("nvidia.com/gpu", 5000, "5"),
)
def test_amounts_are_written_as_kubernetes_does(name: str, thousandths: int, text: str) -> None:
    assert quantity_text(name, thousandths) == text
