"""Calling webhooks: a body out, a body back, for admission and for conversion.

A clientConfig names a URL or a Service. Whatever goes wrong is a WebhookCallFailed whose text says it as Kubernetes
does; what that means for the request (fail or go on) is the caller's to decide.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from typing import Protocol
from urllib.parse import urlsplit

import aiohttp
import orjson

from karmada.kube.client.responses import GENERIC_MESSAGES
from karmada.kube.objects.times import format_duration
from karmada.kube.objects.types import Obj
from karmada.kube.server.addresses.service_routing import Address, Unroutable
from karmada.kube.server.outbound.bodies import read_body
from karmada.kube.server.outbound.https import BadTrust, Outbound, Target, Trust, why

MAX_ANSWER = 6 * 1024 * 1024
"""A patch of the largest object, in base64, fits; more is parsed for too long."""
_HEADERS = (
    ("Content-Type", "application/json"),
    ("Accept", "application/json, */*"),
)
_UNEXPECTED = {
    **GENERIC_MESSAGES,
    400: "the server rejected our request for an unknown reason",
    409: "the server reported a conflict",
    422: "the server rejected our request due to an error in our request",
}


class WebhookCallFailed(ValueError):
    """No usable answer came; the text is what follows `failed to call webhook: `."""


class Router(Protocol):
    async def resolve(self, namespace: str, name: str, port: int) -> Address: ...


class WebhookClient:
    def __init__(
        self, router: Router, outbound: Outbound | None = None, *, user_agent: str = "kube-apiserver-admission"
    ) -> None:
        self._router = router
        self._headers = (*_HEADERS, ("User-Agent", user_agent))
        self._outbound = outbound or Outbound()

    async def close(self) -> None:
        await self._outbound.close()

    async def call(self, client_config: Obj, body: bytes, *, timeout: float) -> bytes:
        """Return the body of a 2xx answer to a POST."""
        place: str | Obj = client_config.get("service") or str(client_config.get("url") or "")
        try:
            ca_pem = base64.b64decode(client_config.get("caBundle") or "", validate=True)
        except binascii.Error as error:
            raise WebhookCallFailed(f"illegal base64 data in caBundle: {error}") from error
        return await self.post(place, ca_pem, body, timeout)

    async def post(self, place: str | Obj, ca_pem: bytes, body: bytes, timeout: float) -> bytes:
        """Post to a URL or service; `pem` has the authorities to believe (none: the system's)."""
        base, server_name = endpoint_url(place)
        url = f"{base}?timeout={format_duration(timeout)}"
        try:
            target = await self._target(place, base, server_name, Trust(ca_pem))
        except (Unroutable, BadTrust) as error:
            raise WebhookCallFailed(f'Post "{url}": {error}') from error
        parts = urlsplit(url)
        try:
            async with asyncio.timeout(timeout):
                status, answer = await self._post(target, f"{parts.path}?{parts.query}", parts.netloc, body)
        except (aiohttp.ClientError, OSError) as error:
            raise WebhookCallFailed(f'Post "{url}": {why(error, target)}') from error
        if not 200 <= status < 300:
            raise WebhookCallFailed(unexpected_answer(status, answer))
        return answer

    async def _target(self, place: str | Obj, base: str, server_name: str, trust: Trust) -> Target:
        self._outbound.tls(trust)
        if isinstance(place, str):
            return Target(Address(server_name, urlsplit(base).port or 443), server_name, trust)
        address = await self._router.resolve(place["namespace"], place["name"], place.get("port") or 443)
        return Target(address, server_name, trust)

    async def _post(self, target: Target, path: str, host: str, body: bytes) -> tuple[int, bytes]:
        """Return the response; a connection that was closed while it was idle is tried once more."""
        headers = (("Host", host), *self._headers)
        try:
            return await self._post_once(target, path, headers, body)
        except (aiohttp.ServerDisconnectedError, ConnectionResetError):
            return await self._post_once(target, path, headers, body)

    async def _post_once(
        self, target: Target, path: str, headers: tuple[tuple[str, str], ...], body: bytes
    ) -> tuple[int, bytes]:
        async with self._outbound.request("POST", target, path, headers=headers, data=body) as response:
            return response.status, await read_body(response, MAX_ANSWER)


def endpoint_url(place: str | Obj) -> tuple[str, str]:
    """Return the URL of a webhook as messages show it, and the name the server must prove."""
    if isinstance(place, str):
        parts = urlsplit(place)
        return (place if parts.path else place + "/"), parts.hostname or ""
    name = f"{place['name']}.{place['namespace']}.svc"
    path = place.get("path") or "/"
    return f"https://{name}:{place.get('port') or 443}{path if path.startswith('/') else '/' + path}", name


def unexpected_answer(status: int, body: bytes) -> str:
    """Return what a client says of a failed response: the Status it carries, else a general text by its code."""
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError:
        parsed = None
    if isinstance(parsed, dict) and parsed.get("kind") == "Status" and parsed.get("message"):
        return str(parsed["message"])
    text = body.decode("utf-8", "replace").strip()
    if status in _UNEXPECTED:
        return _UNEXPECTED[status]
    if status >= 500:
        quoted = orjson.dumps(text[:2048] or "unknown").decode()
        return f"an error on the server ({quoted}) has prevented the request from succeeding"
    if status in (403, 406, 415) and text:
        return text[:2048]
    return f"the server responded with the status code {status} but did not return more information"


def parse_answer(answer: bytes) -> Obj:
    """Return the JSON object a webhook answered."""
    try:
        parsed = orjson.loads(answer)
    except orjson.JSONDecodeError as error:
        raise WebhookCallFailed(f"couldn't get version/kind; json parse error: {error}") from error
    if not isinstance(parsed, dict):
        kind = type(parsed).__name__
        raise WebhookCallFailed(f"couldn't get version/kind; json parse error: a JSON object is needed, not {kind}")
    return parsed


__all__ = ["WebhookCallFailed", "WebhookClient", "endpoint_url", "parse_answer", "unexpected_answer"]
