"""The API server's proxy to pods, services and nodes: targets and responses.

A name in the path may carry a scheme and a port. A Service is resolved to a random ready endpoint. The response is the
pod's generated page, or, for a port that is forwarded to a real address, that of the server there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from random import Random
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

import aiohttp
from aiohttp import web
from multidict import CIMultiDict
from yarl import URL

from karmada.kube.objects import meta
from karmada.kube.objects.errors import BadRequest, ServiceUnavailable
from karmada.kube.objects.types import Obj
from karmada.kube.server.auth.headers import without_identity
from karmada.kube.server.http.request import Request
from karmada.kube.server.http.results import RawResult, Result, TakeOver
from karmada.kube.sim.kubelet.answers import Answers
from karmada.kube.sim.kubelet.runtime import Runtime
from karmada.kube.sim.kubelet.web import page

_HOP_BY_HOP = frozenset(
    {"connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer", "transfer-encoding",
     "upgrade", "host", "content-length"}
)  # fmt: skip


class Named(NamedTuple):
    """Return the parts of [scheme:]name[:port]."""

    scheme: str
    name: str
    port: str


def parse_name(text: str, kind: str) -> Named:
    parts = text.split(":")
    if len(parts) == 1:
        return Named("", parts[0], "")
    if len(parts) == 2:
        return Named("", parts[0], parts[1])
    if len(parts) == 3 and parts[0] in ("http", "https", ""):
        return Named(*parts)
    raise BadRequest(f'invalid {kind} request "{text}"')


class Endpoint(NamedTuple):
    address: str
    port: int
    pod: str
    """The name of the pod behind it; empty when unknown."""


def service_endpoint(service: Obj, port: str, slices: Iterable[Obj], random: Random) -> Endpoint:
    """Return one of a Service's ready endpoints for the port; ServiceUnavailable when there is none."""
    name = meta.name(service)
    if port.isdigit():
        ports: list[Obj] = (service.get("spec") or {}).get("ports") or []
        found = next((p for p in ports if p.get("port") == int(port)), None)
        if found is None:
            raise ServiceUnavailable(f'no service port {port} found for service "{name}"')
        port = found.get("name") or ""
    ready = list(_ready(slices, port))
    if not ready:
        raise ServiceUnavailable(f'no endpoints available for service "{name}"')
    return random.choice(ready)


def _ready(slices: Iterable[Obj], port_name: str) -> Iterator[Endpoint]:
    for found in slices:
        number: int = next((p["port"] for p in found.get("ports") or () if (p.get("name") or "") == port_name), 0)
        for endpoint in found.get("endpoints") or () if number else ():
            if (endpoint.get("conditions") or {}).get("ready") is not False:
                target = endpoint.get("targetRef") or {}
                pod = target.get("name", "") if target.get("kind") == "Pod" else ""
                yield from (Endpoint(address, number, pod) for address in endpoint.get("addresses") or ())


def first_port(pod: Obj) -> int:
    """Return the default port of a pod."""
    for container in (pod.get("spec") or {}).get("containers") or ():
        for port in container.get("ports") or ():
            return int(port["containerPort"])
    return 80


def base_redirect(request: Request) -> RawResult | None:
    """Redirect …/proxy to …/proxy/, so that relative links stay inside."""
    info = request.info
    if info.rest or info.path.endswith("/") or request.method not in ("GET", "HEAD") or request.in_process:
        return None
    query = f"?{urlencode(request.query.items())}" if request.query else ""
    return RawResult(b"", "text/plain", 301, {"Location": f"{quote(info.path)}/{query}"})


def refused(address: str, port: int) -> ServiceUnavailable:
    return ServiceUnavailable(f"error trying to reach service: dial tcp {address}:{port}: connect: connection refused")


class PodProxy:
    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self.runtime: Runtime | None = None

    def call(self, request: Request, pod: Obj, port: int, scheme: str = "") -> Result:
        path = f"/{request.info.rest}"
        address = self._address(pod, port)
        if address is None or request.in_process:
            answer = page(self._answers, pod, port, path)
            return RawResult(answer.body, answer.content_type, answer.status, answer.other_headers())
        host, real_port = address

        async def run(raw: Any) -> Any:
            return await _relay(raw, request, f"{scheme or 'http'}://{host}:{real_port}", path)

        return TakeOver(run)

    def _address(self, pod: Obj, port: int) -> tuple[str, int] | None:
        """Return where a port really is; None for one of a simulated container."""
        forward = self._answers.forward(pod, port)
        if forward is not None:
            return forward.address()
        address = self.runtime.address(pod) if self.runtime is not None else ""
        return (address, port) if address else None


async def _relay(raw: web.BaseRequest, request: Request, server: str, path: str) -> web.StreamResponse:
    """Relay a request, without the sender's credentials, to a real address, and return the response."""
    headers = CIMultiDict((n, v) for n, v in without_identity(raw.headers) if n.lower() not in _HOP_BY_HOP)
    query = urlencode(request.query.items())
    url = URL(f"{server}{quote(path)}" + (f"?{query}" if query else ""), encoded=True)
    body = raw.content if raw.can_read_body else None
    async with aiohttp.ClientSession(auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar()) as session:
        try:
            # API servers do not verify the certificates of pods
            async with session.request(
                raw.method, url, headers=headers, data=body, allow_redirects=False, ssl=False
            ) as response:
                return await _answer(raw, request, response, url)
        except aiohttp.ClientConnectionError as error:
            raise refused(url.host or "", url.port or 0) from error


async def _answer(
    raw: web.BaseRequest, request: Request, response: aiohttp.ClientResponse, url: URL
) -> web.StreamResponse:
    kept = CIMultiDict((n, v) for n, v in response.headers.items() if n.lower() not in _HOP_BY_HOP)
    if "Location" in kept:
        kept["Location"] = inside(kept["Location"], _prefix(request), url.host or "")
    answer = web.StreamResponse(status=response.status, reason=response.reason, headers=kept)
    answer.enable_chunked_encoding()
    await answer.prepare(raw)
    async for piece in response.content.iter_any():
        await answer.write(piece)
    await answer.write_eof()
    return answer


def _prefix(request: Request) -> str:
    """Return the part of the path before the proxied path."""
    path, rest = request.info.path, request.info.rest
    return path[: len(path) - len(rest)].rstrip("/") if rest else path.rstrip("/")


def inside(location: str, prefix: str, host: str) -> str:
    """Return the location of a redirect; one to the same server stays behind the proxy."""
    parts = urlsplit(location)
    if parts.netloc and parts.hostname != host:
        return location
    path = parts.path if parts.path.startswith("/") else f"/{parts.path}"
    if not parts.netloc and not parts.path.startswith("/"):
        return location
    return f"{prefix}{path}" + (f"?{parts.query}" if parts.query else "")
