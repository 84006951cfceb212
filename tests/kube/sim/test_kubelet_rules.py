"""The small rules a kubelet goes by: names of images, addresses, what fits on a node."""

from __future__ import annotations

from typing import Any

from karmada.kube.objects.types import Obj
from karmada.kube.sim.kubelet.images import full_name, image_id
from karmada.kube.sim.kubelet.nodestate import Addresses, refusal, requests_of
from tests.support.cases import cases


def _pod(*containers: Obj, **spec: Any) -> Obj:
    made = list(containers) or [{"name": "c", "image": "x"}]
    return {"metadata": {"name": "p"}, "spec": {"nodeName": "n1", "containers": made, **spec}}


@cases(
    ("nginx", "docker.io/library/nginx:latest"),
    ("nginx:1.27", "docker.io/library/nginx:1.27"),
    ("bitnami/redis", "docker.io/bitnami/redis:latest"),
    ("ghcr.io/a/b:v1", "ghcr.io/a/b:v1"),
    ("localhost/x", "localhost/x:latest"),
    ("registry:5000/x", "registry:5000/x:latest"),
    ("a/b@sha256:0f", "docker.io/a/b@sha256:0f"),
)
def test_images_have_full_names(image: str, full: str) -> None:
    assert full_name(image) == full
    assert full_name(full) == full


def test_addresses_are_given_once_and_come_back() -> None:
    addresses = Addresses("10.0.0.0/29")
    given = [addresses.take() for _ in range(6)]
    assert given == ["10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5", "10.0.0.6", ""]
    addresses.give_back("10.0.0.4")
    assert addresses.take() == "10.0.0.4"


def test_addresses_in_use_are_not_given_again() -> None:
    addresses = Addresses("10.0.0.0/24")
    addresses.reserve("10.0.0.2")
    addresses.reserve("192.168.0.1")
    assert addresses.take() == "10.0.0.3"


NODE = {
    "metadata": {"name": "n1", "labels": {"disk": "ssd"}},
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "2", "ephemeral-storage": "10Gi"}},
}


@cases(
    (
        {"cpu": "8"},
        {},
        "OutOfcpu",
        "Node didn't have enough resource: cpu, requested: 8000, used: 0, capacity: 4000",
    ),
    ({"cpu": "1500m"}, {"cpu": 3000}, "OutOfcpu", "requested: 1500, used: 3000, capacity: 4000"),
    ({"memory": "1Gi"}, {"memory": 8 << 30}, "OutOfmemory", "requested: 1073741824"),
    ({}, {"pods": 2}, "OutOfpods", "Node didn't have enough resource: pods, requested: 1, used: 2, capacity: 2"),
    ({"nvidia.com/gpu": "1"}, {}, "OutOfnvidia.com/gpu", "requested: 1, used: 0, capacity: 0"),
)
def test_a_node_refuses_what_does_not_fit(
    requests: dict[str, Any], used: dict[str, Any], reason: str, message: str
) -> None:
    pod = _pod({"name": "c", "image": "x", "resources": {"requests": requests}})
    refused = refusal(pod, NODE, requests_of(pod), used)
    assert refused is not None
    assert refused[0] == reason
    assert message in refused[1]


def test_a_node_takes_what_fits_and_refuses_what_is_meant_for_others() -> None:
    pod = _pod({"name": "c", "image": "x", "resources": {"requests": {"cpu": "4"}}})
    assert refusal(pod, NODE, requests_of(pod), {"pods": 1}) is None
    picky = _pod(nodeSelector={"disk": "hdd"})
    refused = refusal(picky, NODE, requests_of(picky), {})
    assert refused is not None
    assert refused[0] == "NodeAffinity"


def with_port(uid: str, port: int, *, address: str = "", protocol: str = "TCP", started: bool = True) -> Obj:
    pod = _pod({"name": "c", "image": "x", "ports": [{"hostPort": port, "hostIP": address, "protocol": protocol}]})
    pod["metadata"]["uid"] = uid
    return pod | {"status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"} if started else {}}


@cases(
    (with_port("other", 80), True),
    (with_port("other", 80, address="127.0.0.1"), True),
    (with_port("other", 81), False),
    (with_port("other", 80, protocol="UDP"), False),
    (with_port("other", 80, started=False), False),
    (with_port("mine", 80), False),
)
def test_a_node_refuses_a_pod_whose_host_port_is_taken(other: Obj, refused: bool) -> None:
    pod = with_port("mine", 80, started=False)
    found = refusal(pod, NODE, requests_of(pod), {}, [other])
    assert (found is not None and found[0] == "NodePorts") == refused


def test_an_image_that_names_its_digest_keeps_it() -> None:
    assert image_id("a/b@sha256:0f") == "docker.io/a/b@sha256:0f"
    assert image_id("nginx") == image_id("docker.io/library/nginx:latest")
