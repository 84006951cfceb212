"""Proxies: which one leads to a server, and what has to be known of it.

An HTTP proxy gets requests to http servers as they are, and opens tunnels to https servers (CONNECT). A SOCKS5 proxy
opens tunnels to both, and looks up their names, of which it may know more.
"""

from __future__ import annotations

import base64
import os
import socket
import ssl
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

from karmada.kube.client.config import RestConfig

_PORTS: Final = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}
SCHEMES: Final = tuple(_PORTS)
_ENVIRONMENT = ("https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY")
_DIAL_SECONDS = 30.0


class ProxyRefused(OSError):
    """A proxy cannot be reached, refuses, or uses another protocol."""


class Proxy(NamedTuple):
    scheme: str
    host: str
    port: int
    user: str = ""
    password: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    """Additional headers of a CONNECT request."""
    tls: ssl.SSLContext | None = None
    """For a proxy that is itself reached over TLS."""

    @property
    def is_socks(self) -> bool:
        return self.scheme.startswith("socks5")

    def authorization(self) -> tuple[tuple[str, str], ...]:
        """Return the header with the user of an HTTP proxy, if it has one."""
        if not self.user:
            return ()
        pair = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
        return (("Proxy-Authorization", f"Basic {pair}"),)


def proxy_for(config: RestConfig) -> str:
    """Return the kubeconfig's proxy, else the environment's, unless it excludes the host; ValueError."""
    proxy = config.proxy_url or _of_environment(config.server)
    if proxy and urlsplit(proxy).scheme not in SCHEMES:
        raise ValueError(f"proxy {proxy}: only http, https and socks5 proxies are supported")
    return proxy


def _of_environment(server: str) -> str:
    if not any(os.environ.get(name) for name in _ENVIRONMENT):
        return ""
    import urllib.request  # commands have no time for it

    try:
        parts = urlsplit(server)
    except ValueError:
        return ""  # no address that could be reached either way, as every request will report
    if not parts.hostname or urllib.request.proxy_bypass(parts.netloc.rpartition("@")[2]):
        return ""
    return urllib.request.getproxies().get(parts.scheme, "")


@lru_cache(maxsize=256)
def parse_proxy(url: str, headers: tuple[tuple[str, str], ...] = ()) -> Proxy:
    """Return the proxy at `scheme://[user:password@]host[:port]`; ValueError."""
    parts = urlsplit(url)
    if parts.scheme not in _PORTS or not parts.hostname:
        raise ValueError("the address of the proxy cannot be used")
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    port = parts.port or _PORTS[parts.scheme]
    return Proxy(parts.scheme, parts.hostname, port, user, password, headers)


async def dial_socks(proxy: Proxy, host: str, port: int) -> socket.socket:
    """Return a socket that leads to `host` through a SOCKS5 proxy; ProxyRefused."""
    import python_socks  # loaded by the few who have such a proxy
    from python_socks.async_.asyncio import Proxy as Dialler

    dialler = Dialler(
        python_socks.ProxyType.SOCKS5,
        host=proxy.host,
        port=proxy.port,
        username=proxy.user or None,
        password=proxy.password or None,
        rdns=True,
    )
    try:
        made: socket.socket = await dialler.connect(host, port, timeout=_DIAL_SECONDS)
    except (python_socks.ProxyError, python_socks.ProxyConnectionError) as error:
        raise ProxyRefused(str(error)) from error
    return made
