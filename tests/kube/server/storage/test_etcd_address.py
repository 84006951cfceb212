"""etcd:// addresses: several members, TLS files, a prefix; and what is wrong with those that are wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from karmada.kube.server.storage.etcd import EtcdStore, TlsFiles
from karmada.kube.server.storage.open import open_store
from tests.support.cases import cases


@cases(
    ("etcd://h:1", ("h:1",), "/registry-karmada/", None),
    ("etcd://h:1,i:2/", ("h:1", "i:2"), "/registry-karmada/", None),
    ("etcd://10.0.0.1", ("10.0.0.1:2379",), "/registry-karmada/", None),
    ("etcd://[::1],[fe80::1]:9", ("[::1]:2379", "[fe80::1]:9"), "/registry-karmada/", None),
    ("etcd://h:1?prefix=/a/b", ("h:1",), "/a/b/", None),
    ("etcd://h:1?cacert=/ca.crt", ("h:1",), "/registry-karmada/", TlsFiles(Path("/ca.crt"))),
    (
        "etcd://h:1?cacert=/my%20ca.crt&cert=c.crt&key=c.key&prefix=x",
        ("h:1",),
        "x/",
        TlsFiles(Path("/my ca.crt"), Path("c.crt"), Path("c.key")),
    ),
)
def test_an_address_names_members_prefix_and_files(
    url: str, addresses: tuple[str, ...], prefix: str, tls: TlsFiles | None
) -> None:
    store = open_store(url)
    assert isinstance(store, EtcdStore)
    assert (store.addresses, store.layout.prefix, store.tls) == (addresses, prefix, tls)


@cases(
    ("etcd://", "unknown store"),
    ("etcd://h:1/path", "unknown store"),
    ("etcd://h:x", '"h:x" is not host:port'),
    ("etcd://h:0", '"h:0" is not host:port'),
    ("etcd://h:1,,i:2", '"" is not host:port'),
    ("etcd://::1", '"::1" is not host:port'),
    ("etcd://user@h:1", '"user@h:1" is not host:port'),
    ("etcd://h:1?cert=c&cacert=a", "cert and key go together"),
    ("etcd://h:1?cert=c&key=k", "need cacert"),
    ("etcd://h:1?prefix=/", 'option "prefix" is empty'),
    ("etcd://h:1?tls=yes", 'unknown option "tls"'),
)
def test_what_is_wrong_with_an_address_is_said(url: str, said: str) -> None:
    with pytest.raises(ValueError) as refused:
        open_store(url)
    assert said in str(refused.value)
