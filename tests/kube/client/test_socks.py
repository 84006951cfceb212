from __future__ import annotations

import pytest

from karmada.kube.client.socks import SocksConnector, is_socks


@pytest.mark.parametrize(
    ("proxy", "socks"), [("socks5://a:1", True), ("socks5h://a", True), ("http://a", False), ("", False)]
)
def test_the_scheme_decides(proxy: str, socks: bool) -> None:
    assert is_socks(proxy) is socks


@pytest.mark.parametrize("proxy", ["http://a:1", "socks5://", "a:1"])
async def test_what_is_no_such_proxy_is_refused(proxy: str) -> None:
    with pytest.raises(ValueError, match="no SOCKS5 proxy"):
        SocksConnector(proxy)
