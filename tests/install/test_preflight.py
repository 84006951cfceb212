"""What is found out about a host cluster before anything is created in it."""

from __future__ import annotations

from typing import Any

import pytest

from karmada.install.options import InstallError, Volume, options_from
from karmada.install.preflight import addresses, check_port, check_storage_class, node_to_label, url_of
from karmada.kube.objects.types import Obj
from tests.support.cases import cases

MASTER, CONTROL_PLANE = "node-role.kubernetes.io/master", "node-role.kubernetes.io/control-plane"


def node(name: str, address: str = "", *labels: str, taints: bool = False, **conditions: str) -> Obj:
    found = {"Ready": "True", "DiskPressure": "False", **conditions}
    return {
        "metadata": {"name": name, "labels": dict.fromkeys(labels, "")},
        "spec": {"taints": [{"key": "t", "effect": "NoSchedule"}]} if taints else {},
        "status": {
            "addresses": [{"type": "InternalIP", "address": address}] if address else [],
            "conditions": [{"type": kind, "status": status} for kind, status in found.items()],
        },
    }


@cases(
    ([node("a", "10.0.0.1")], "192.0.2.9", ["192.0.2.9"]),
    (
        [node("a", "10.0.0.1"), node("b", "10.0.0.2", MASTER), node("c", "10.0.0.3", CONTROL_PLANE)],
        "",
        ["10.0.0.2"],
    ),
    ([node("a", "10.0.0.1"), node("c", "10.0.0.3", CONTROL_PLANE)], "", ["10.0.0.3"]),
    ([node(str(n), f"10.0.0.{n}") for n in range(1, 6)], "", ["10.0.0.1", "10.0.0.2", "10.0.0.3"]),
    ([node("a", "a.example")], "", ["127.0.0.1"]),
    ([node("a")], "", ["127.0.0.1"]),
)
def test_the_api_server_is_reached_by_the_addresses_of_nodes(
    nodes: list[Obj], advertised: str, found: list[str]
) -> None:
    assert addresses(nodes, advertised) == found


def test_a_cluster_without_nodes_needs_an_address() -> None:
    with pytest.raises(InstallError, match="the host cluster has no nodes: name the address"):
        addresses([], "")


def test_ipv6_addresses_stand_in_brackets() -> None:
    assert url_of("fd00::1", 32443) == "https://[fd00::1]:32443"
    assert url_of("10.0.0.1", 32443) == "https://10.0.0.1:32443"


@cases(
    ([node("a", taints=True), node("b", Ready="False"), node("c", DiskPressure="True"), node("d")], "", "d"),
    ([node("a"), node("b", "", "karmada.io/etcd")], "", ""),
    ([node("a", "", "x"), node("b", "", "y")], "x=,y", ""),
)
def test_a_healthy_node_keeps_the_state(nodes: list[Obj], labels: str, chosen: str) -> None:
    assert node_to_label(nodes, Volume(mode="hostPath", size="", path="/p", node_labels=labels)) == chosen


@cases(
    ([node("a", taints=True)], "", "no node for the state"),
    ([node("a", "", "x")], "x=,y=z", "no node found by label y=z"),
)
def test_without_such_a_node_nothing_is_installed(nodes: list[Obj], labels: str, message: str) -> None:
    with pytest.raises(InstallError, match=message):
        node_to_label(nodes, Volume(mode="hostPath", size="", path="/p", node_labels=labels))


def service(namespace: str, name: str, *ports: int) -> Obj:
    return {
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"ports": [{"nodePort": port} for port in ports]},
    }


def test_a_port_of_our_own_service_is_free() -> None:
    options = options_from({"port": 31000})
    check_port([service("karmada-system", "karmada-apiserver", 31000), service("x", "y", 31001)], options)
    with pytest.raises(InstallError, match="nodePort of karmada apiserver 31000 already exist: Service x/karmada-apis"):
        check_port([service("x", "karmada-apiserver", 30999, 31000)], options)


def storage_class(name: str, default: str = "false") -> Obj:
    return {"metadata": {"name": name, "annotations": {"storageclass.kubernetes.io/is-default-class": default}}}


@cases(
    ([storage_class("a", "true")], {}, ""),
    ([storage_class("a")], {"storage_class": "a"}, ""),
    ([], {"mode": "hostPath"}, ""),
    ([storage_class("a")], {}, r"the cluster has no default StorageClass: name one .* \(known: a\)"),
    ([], {}, "the cluster has none"),
    ([storage_class("a")], {"storage_class": "b"}, r'there is no StorageClass "b" \(known: a\)'),
)
def test_claims_need_a_storage_class(classes: list[Obj], volume: dict[str, Any], message: str) -> None:
    wanted = Volume(**{"mode": "PVC", "size": "1Gi", **volume})
    if not message:
        check_storage_class(classes, wanted)
        return
    with pytest.raises(InstallError, match=message):
        check_storage_class(classes, wanted)
