"""The way of process pods to servers outside of their cluster: an HTTP proxy, so that faults can cut it.

A pod's environment names the proxy (HTTPS_PROXY) with the pod as its user, which identifies its connections. It
serves CONNECT only and looks into nothing. The cluster's own API server and Services are reached directly.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from urllib.parse import quote, unquote

from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.keys import Key
from karmada.kube.sim.processes.network import Connection, Listener, Network, send

_HEAD_SECONDS = 10.0
_CONNECT_SECONDS = 30.0


class EgressProxy:
    def __init__(self, pods: Informer, network: Network) -> None:
        self._pods = pods
        self._network = network
        self._listener = Listener(self._serve)
        self._address = ("", 0)

    async def start(self, host: str) -> None:
        self._address = host, await self._listener.open(host, 0)

    async def stop(self) -> None:
        await self._listener.close()

    def environment(self, key: Key, api_server: tuple[str, int]) -> dict[str, str]:
        """Return the variables by which a pod's programs use the proxy."""
        host, port = self._address
        if not port:
            return {}
        user = quote(f"{key.namespace}.{key.name}", safe="")
        return {
            "HTTPS_PROXY": f"http://{user}:pod@{host}:{port}",
            "NO_PROXY": f"{api_server[0]}:{api_server[1]},.svc,.cluster.local",
        }

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_HEAD_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError, OSError):
            return
        target, user = parse_head(head)
        host, _, port = target.rpartition(":")
        if not host or not port.isdigit():
            await send(writer, b"HTTP/1.1 405 Method Not Allowed\r\nAllow: CONNECT\r\nContent-Length: 0\r\n\r\n")
            return
        connection = Connection(self._pod(user), target)
        if self._network.is_refused(connection):
            await send(writer, _failure("an injected fault isolates this pod"))
            return
        await self._network.passable(connection)
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                ends = await asyncio.open_connection(host.strip("[]"), int(port))
        except (OSError, TimeoutError) as error:
            await send(writer, _failure(str(error) or "no connection in time"))
            return
        try:
            await send(writer, b"HTTP/1.1 200 Connection established\r\n\r\n")
            await self._network.relay(connection, (reader, writer), ends)
        finally:
            ends[1].close()

    def _pod(self, user: str) -> Obj | None:
        namespace, _, name = user.partition(".")
        return self._pods.get(Key(namespace, name))


def parse_head(head: bytes) -> tuple[str, str]:
    """Return the target of a CONNECT request and its user; empty if there is none."""
    first, *lines = head.decode("latin-1").split("\r\n")
    method, _, rest = first.partition(" ")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    scheme, _, given = headers.get("proxy-authorization", "").partition(" ")
    user = ""
    if scheme.lower() == "basic":
        try:
            user = base64.b64decode(given, validate=True).decode().partition(":")[0]
        except (binascii.Error, UnicodeDecodeError):
            user = ""
    return (rest.partition(" ")[0] if method == "CONNECT" else ""), unquote(user)


def _failure(why: str) -> bytes:
    body = why.encode()
    return b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(body), body)
