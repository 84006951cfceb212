"""How a server beside the API server finds the etcd of the control plane."""

from __future__ import annotations

import pytest

from karmada.install.addons.stores import is_all_in_one, store_flags
from karmada.install.options import InstallError
from karmada.kube.objects.types import Obj
from tests.support.cases import cases


def running(*command: str, args: tuple[str, ...] = ()) -> Obj:
    container = {"command": list(command), "args": list(args)}
    return {"spec": {"template": {"spec": {"containers": [container]}}}}


def test_an_etcd_in_the_host_cluster_has_a_url_for_each_replica() -> None:
    etcd = {"spec": {"replicas": 2}}
    assert store_flags(running("kube-apiserver"), etcd, "karmada-system", "example.org") == [
        "--etcd-servers=https://etcd-0.etcd.karmada-system.svc.example.org:2379,"
        "https://etcd-1.etcd.karmada-system.svc.example.org:2379",
        "--etcd-cafile=/etc/karmada/pki/etcd-ca.crt",
        "--etcd-certfile=/etc/karmada/pki/etcd-client.crt",
        "--etcd-keyfile=/etc/karmada/pki/etcd-client.key",
    ]


def test_an_external_etcd_is_that_of_the_api_server() -> None:
    flags = ["--etcd-servers=https://e1:2379,https://e2:2379", "--etcd-prefix=/x", "--etcd-cafile=/pki/ca.crt"]
    api_server = running("kube-apiserver", "--v=2", *flags[:2], args=(flags[2], "--secure-port=1"))
    assert store_flags(api_server, None, "karmada-system", "cluster.local") == flags


def test_without_etcd_it_says_what_to_do() -> None:
    with pytest.raises(InstallError, match="which this control plane does not have: a control plane in one"):
        store_flags(running("kube-apiserver", "--storage=sqlite:/x"), None, "n", "d")


@cases(("/bin/karmada", True), ("karmada", True), ("kube-apiserver", False), ("", False))
def test_a_whole_control_plane_is_known_by_its_program(command: str, expected: bool) -> None:
    assert is_all_in_one(running(*([command] if command else []))) is expected
