from __future__ import annotations

import pytest

from karmada.kube.client.socks import SocksConnector, _address, is_socks


@pytest.mark.parametrize(
    ("host", "wire"),
    [
        ("10.1.2.3", b"\x01\x0a\x01\x02\x03"),
        ("::1", b"\x04" + b"\x00" * 15 + b"\x01"),
        ("member.example.com", b"\x03\x12member.example.com"),
    ],
)
def test_hosts_are_named_by_address_or_by_name(host: str, wire: bytes) -> None:
    assert _address(host) == wire


@pytest.mark.parametrize(
    ("proxy", "socks"), [("socks5://a:1", True), ("socks5h://a", True), ("http://a", False), ("", False)]
)
def test_the_scheme_tells(proxy: str, socks: bool) -> None:
    assert is_socks(proxy) is socks


@pytest.mark.parametrize("proxy", ["http://a:1", "socks5://", "a:1"])
async def test_what_is_no_such_proxy_is_refused(proxy: str) -> None:
    with pytest.raises(ValueError, match="no SOCKS5 proxy"):
        SocksConnector(proxy)
