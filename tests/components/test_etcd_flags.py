from __future__ import annotations

import pytest

from karmada.components.server_flags import etcd_address
from tests.support.cases import cases


@cases(
    ("http://a:2379", ("", "", ""), "etcd://a:2379?prefix=/registry"),
    ("a:2379,b:2379", ("", "", ""), "etcd://a:2379,b:2379?prefix=/registry"),
    (
        "https://a:2379,https://b",
        ("/pki/ca.crt", "/pki/a b.crt", "/pki/c.key"),
        "etcd://a:2379,b?prefix=/registry&cacert=/pki/ca.crt&cert=/pki/a%20b.crt&key=/pki/c.key",
    ),
)
def test_the_flags_make_an_address(servers: str, files: tuple[str, str, str], address: str) -> None:
    assert etcd_address(servers, "/registry", *files) == address


@cases(("https://a", "needs --etcd-cafile"), ("ftp://a", "is not a URL"), ("http://a,", "is not a URL"))
def test_flags_that_cannot_work(servers: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        etcd_address(servers, "/registry", "", "", "")
