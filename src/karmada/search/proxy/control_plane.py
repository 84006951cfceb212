"""Everything that is not registered, and what is no resource: answered by the control plane, for the caller.

The caller's own rights count there. In the process of the control plane's server the request is run as if it had been
sent there; from another process it is sent with the credentials of that process, impersonating the caller.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import aiohttp
from aiohttp import web
from yarl import URL

from karmada.apiserver.members import GENERAL_GROUPS
from karmada.kube.client.config import Impersonation, RestConfig
from karmada.kube.client.credentials import CredentialError, credentials_for
from karmada.kube.client.proxies import proxy_for
from karmada.kube.client.tls import MaterialReader, client_context
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.errors import ServiceUnavailable
from karmada.kube.server.addresses.service_routing import Address
from karmada.kube.server.auth.user import User
from karmada.kube.server.http.relaying import body_of, forwarded_headers, own_body, pass_on, whole
from karmada.kube.server.http.request import Request
from karmada.kube.server.http.results import Result, TakeOver
from karmada.kube.server.outbound.https import Outbound, Target, Trust, why
from karmada.search.proxy.chain import KARMADA
from karmada.search.proxy.parsing import Proxied

IN_PROCESS_SECONDS = 60.0
Reroute = Callable[[Request, str, str], Awaitable[Result]]
"""(request, path, query) → the result of the server in this process."""


class LocalControlPlane:
    """In the process of its API server."""

    order = KARMADA

    def __init__(self, reroute: Reroute) -> None:
        self._reroute = reroute

    def takes(self, inner: Proxied) -> bool:  # noqa: ARG002 - the last of the chain
        return True

    async def answer(self, inner: Proxied) -> Result:
        return await self._reroute(inner.request, inner.path, inner.query)


class RemoteControlPlane:
    """Over the network, impersonating the caller."""

    order = KARMADA

    def __init__(self, config: RestConfig, clock: Clock) -> None:
        self._config = config
        self._credentials = credentials_for(config, clock=clock)
        self._ca = MaterialReader(config.ca)
        self._outbound = Outbound()
        self._proxy = proxy_for(config)

    async def close(self) -> None:
        await self._outbound.close()

    def takes(self, inner: Proxied) -> bool:  # noqa: ARG002 - the last of the chain
        return True

    async def answer(self, inner: Proxied) -> Result:
        if inner.request.in_process:
            return await self._call(inner)
        return TakeOver(lambda raw: self._forward(inner, raw))

    async def _forward(self, inner: Proxied, raw: web.BaseRequest) -> web.StreamResponse:
        headers = forwarded_headers(raw, _impersonating(inner.request.user))
        headers = [(name, value) for name, value in headers if name != "Host"]
        return await pass_on(raw, await self._send(inner, headers, body_of(inner.request, raw)))

    async def _call(self, inner: Proxied) -> Result:
        request = inner.request
        headers = [(n, v) for n, v in request.headers.items() if v] + _impersonating(request.user)
        return await whole(await self._send(inner, headers, own_body(request), IN_PROCESS_SECONDS))

    async def _send(
        self, inner: Proxied, headers: list[tuple[str, str]], body: object, seconds: float | None = None
    ) -> aiohttp.ClientResponse:
        config = self._config
        url = URL(config.server.rstrip("/") + inner.path + (f"?{inner.query}" if inner.query else ""), encoded=True)
        try:
            credential = await self._credentials.get()
            if credential.authorization:
                headers = [*headers, ("Authorization", credential.authorization)]
            ca = b"" if config.insecure else self._ca.read()
            context = client_context(ca, credential.certificate, credential.key, config.insecure)
            response: aiohttp.ClientResponse = await self._outbound.send(
                inner.request.method,
                url,
                context,
                headers=headers,
                data=body,
                seconds=seconds,
                server_name=config.tls_server_name or None,
                proxy=self._proxy,
                proxy_headers=config.proxy_headers,
            )
        except (aiohttp.ClientError, OSError, ValueError, CredentialError) as error:
            raise ServiceUnavailable(f"error trying to reach service: {_reason(error, url)}") from error
        if response.status == 401:
            self._credentials.rejected(credential)  # the next request has a new one, if there is one to get
        return response


def _impersonating(user: User) -> list[tuple[str, str]]:
    groups = [group for group in user.groups if group not in GENERAL_GROUPS]
    return Impersonation(user.name, groups=groups).headers()


def _reason(error: Exception, url: URL) -> str:
    return why(error, Target(Address(url.host or "", url.port or 443), url.host or "", Trust()))
