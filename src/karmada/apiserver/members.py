"""How the API server reaches a member cluster: address, CA and the token with which it impersonates its users.

Everything comes from the Cluster and its Secrets as they are now: a rotated token or a moved endpoint counts from the
next request on. Clusters are the server's own; the Secrets may be another server's, so reading one may take a request.
Errors are those that Karmada's users know. How a cluster is reached is read as the controllers read it (see
karmada.members.access); the credentials used here are the impersonator's token.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import aiohttp
from yarl import URL

from karmada.apiserver.cluster_resource import CLUSTERS
from karmada.kube.client.checking import ConfigError, check_address
from karmada.kube.kinds.resource import Reader
from karmada.kube.objects.errors import ApiError, NotFound
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.objects.types import Obj
from karmada.kube.server.addresses.service_routing import Address
from karmada.kube.server.auth.user import User
from karmada.kube.server.outbound.https import Outbound, Target, Trust, why
from karmada.members.access import NoAccess, check_encrypted, way_to

SECRETS = GroupResource("", "secrets")
GENERAL_GROUPS = frozenset({"system:authenticated", "system:unauthenticated"})


@dataclass(frozen=True, slots=True)
class Member:
    """A member cluster, ready for requests."""

    name: str
    endpoint: str
    token: str
    trust: Trust
    proxy: str = ""
    proxy_headers: Sequence[tuple[str, str]] = ()
    server_name: str = ""
    """The name in its certificate, if it is not the host of the endpoint."""

    def url(self, path: str, query: str = "") -> URL:
        """`path` and `query` are encoded already."""
        base = self.endpoint.rstrip("/")
        return URL(base + "/" + path.lstrip("/") + (f"?{query}" if query else ""), encoded=True)

    def identity(self, user: User) -> list[tuple[str, str]]:
        """Return the headers that impersonate the user in the member."""
        headers = [("Authorization", f"bearer {self.token}"), ("Impersonate-User", user.name)]
        return headers + [("Impersonate-Group", group) for group in user.groups if group not in GENERAL_GROUPS]


FindSecret = Callable[[str, str], Awaitable[Obj | None]]
"""(namespace, name) → the Secret; None: there is none."""


class Members:
    def __init__(
        self, clusters: Reader, secret: FindSecret, outbound: Outbound, *, allow_insecure: bool = False
    ) -> None:
        self._allow_insecure = allow_insecure
        self._reader = clusters
        self._find_secret = secret
        self._outbound = outbound

    def names(self) -> list[str]:
        return [cluster["metadata"]["name"] for cluster in self._reader.list(CLUSTERS)]

    def has(self, name: str) -> bool:
        return self._reader.get(CLUSTERS, "", name) is not None

    async def get(self, name: str) -> Member:
        """NotFound for an unknown cluster; a plain error for one that cannot be reached as it is set up."""
        cluster = self._reader.get(CLUSTERS, "", name)
        if cluster is None:
            raise NotFound.of(CLUSTERS, name)
        spec = cluster.get("spec") or {}
        ref = spec.get("secretRef")
        secret = await self._secret(ref) if ref is not None else None
        try:
            way = way_to(cluster, secret)
            if not way.server:
                raise plain(f"API endpoint of cluster {name} should not be empty")
            check_address(f"the address of cluster {name}", way.server)
            check_encrypted(name, way.server, allow_insecure=self._allow_insecure)
        except (NoAccess, ConfigError) as error:
            raise plain(str(error)) from error
        return Member(
            name=name,
            endpoint=way.server,
            token=await self._token(name, spec),
            trust=Trust(way.ca.data, insecure=way.insecure),
            proxy=way.proxy_url,
            proxy_headers=way.proxy_headers,
            server_name=way.tls_server_name,
        )

    async def _token(self, name: str, spec: Obj) -> str:
        ref = spec.get("impersonatorSecretRef")
        if ref is None:
            raise plain(f"the impersonatorSecretRef of cluster {name} is nil")
        token = _value(await self._secret(ref), "token").decode("ascii", "replace").strip()
        if not token:
            text = f"the impresonate token of cluster {name} is empty"  # spelt as clients know it
            raise plain(f"failed to get impresonateToken for cluster {name}: {text}")
        return token

    async def _secret(self, ref: Obj) -> Obj:
        namespace, name = ref.get("namespace") or "", ref.get("name") or ""
        secret = await self._find_secret(namespace, name)
        if secret is None:
            raise NotFound.of(SECRETS, name)
        return secret

    async def send(
        self,
        member: Member,
        method: str,
        url: URL,
        headers: list[tuple[str, str]],
        data: object = None,
        seconds: float | None = None,
    ) -> aiohttp.ClientResponse:
        """Return the member's answer, its body still to be read; a plain error when there is none."""
        try:
            response: aiohttp.ClientResponse = await self._outbound.send(
                method,
                url,
                member.trust,
                headers=headers,
                data=data,
                seconds=seconds,
                server_name=member.server_name or None,
                proxy=member.proxy,
                proxy_headers=member.proxy_headers,
            )
        except (aiohttp.ClientError, OSError, ValueError) as error:  # among them BadTrust, and what no header can carry
            raise unanswered(error, member) from error
        return response


def plain(message: str) -> ApiError:
    """Return a failure that is no API status of its own: code 500 without a reason."""
    return ApiError(message, code=500, reason="")


def unanswered(error: BaseException, member: Member) -> ApiError:
    """Why the response of the member is missing or incomplete."""
    url = member.url("")
    address = Address(url.host or "", url.port or 443)
    return plain(why(error, Target(address, url.host or "", member.trust)))


def _value(secret: Obj, key: str) -> bytes:
    try:
        return base64.b64decode((secret.get("data") or {}).get(key) or "", validate=True)
    except binascii.Error:
        return b""
