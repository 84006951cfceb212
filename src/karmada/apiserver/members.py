"""How the API server reaches a member cluster: address, trust and the token with which it speaks for its users.

Everything comes from the Cluster and its Secrets as they are now, read from the server's own cache: a rotated token or
a moved endpoint counts from the next request on. Errors are those that Karmada's users know.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from urllib.parse import urlsplit

import aiohttp
from yarl import URL

from karmada.apiserver.cluster_resource import CLUSTERS
from karmada.kube.objects.errors import ApiError, NotFound
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.objects.types import Obj
from karmada.kube.server.outbound import Outbound, Trust
from karmada.kube.server.resource import Reader
from karmada.kube.server.user import User

SECRETS = GroupResource("", "secrets")
_GENERAL_GROUPS = frozenset({"system:authenticated", "system:unauthenticated"})


@dataclass(frozen=True, slots=True)
class Member:
    """A member cluster, ready to be asked."""

    name: str
    endpoint: str
    token: str
    trust: Trust
    proxy: str = ""
    proxy_headers: tuple[tuple[str, str], ...] = ()

    def url(self, path: str, query: str = "") -> URL:
        """`path` and `query` are encoded already."""
        base = self.endpoint.rstrip("/")
        return URL(base + "/" + path.lstrip("/") + (f"?{query}" if query else ""), encoded=True)

    def identity(self, user: User) -> list[tuple[str, str]]:
        """The headers by which the member takes a request for the user's own."""
        headers = [("Authorization", f"bearer {self.token}"), ("Impersonate-User", user.name)]
        return headers + [("Impersonate-Group", group) for group in user.groups if group not in _GENERAL_GROUPS]


class Members:
    def __init__(self, reader: Reader, outbound: Outbound) -> None:
        self._reader = reader
        self._outbound = outbound

    def names(self) -> list[str]:
        return [cluster["metadata"]["name"] for cluster in self._reader.list(CLUSTERS)]

    def get(self, name: str) -> Member:
        """NotFound for an unknown cluster; a plain error for one that cannot be reached as it is set up."""
        cluster = self._reader.get(CLUSTERS, "", name)
        if cluster is None:
            raise NotFound.of(CLUSTERS, name)
        spec = cluster.get("spec") or {}
        endpoint = spec.get("apiEndpoint") or ""
        if not endpoint:
            raise plain(f"API endpoint of cluster {name} should not be empty")
        return Member(
            name=name,
            endpoint=endpoint if urlsplit(endpoint).netloc else f"https://{endpoint}",
            token=self._token(name, spec),
            trust=self._trust(spec),
            proxy=spec.get("proxyURL") or "",
            proxy_headers=_split(spec.get("proxyHeader") or {}),
        )

    def _token(self, name: str, spec: Obj) -> str:
        ref = spec.get("impersonatorSecretRef")
        if ref is None:
            raise plain(f"the impersonatorSecretRef of cluster {name} is nil")
        token = _value(self._secret(ref), "token").decode()
        if not token:
            text = f"the impresonate token of cluster {name} is empty"  # spelt as clients know it
            raise plain(f"failed to get impresonateToken for cluster {name}: {text}")
        return token

    def _trust(self, spec: Obj) -> Trust:
        ref = spec.get("secretRef")
        bundle = _value(self._secret(ref), "caBundle") if ref is not None else b""
        return Trust(bundle, insecure=bool(spec.get("insecureSkipTLSVerification")))

    def _secret(self, ref: Obj) -> Obj:
        namespace, name = ref.get("namespace") or "", ref.get("name") or ""
        secret = self._reader.get(SECRETS, namespace, name)
        if secret is None:
            raise NotFound.of(SECRETS, name)
        return secret

    async def ask(
        self,
        member: Member,
        method: str,
        url: URL,
        headers: list[tuple[str, str]],
        data: object = None,
        seconds: float | None = None,
    ) -> aiohttp.ClientResponse:
        response: aiohttp.ClientResponse = await self._outbound.send(
            method,
            url,
            member.trust,
            headers=headers,
            data=data,
            seconds=seconds,
            proxy=member.proxy,
            proxy_headers=member.proxy_headers,
        )
        return response


def plain(message: str) -> ApiError:
    """A failure that is no API status of its own: code 500 without a reason."""
    return ApiError(message, code=500, reason="")


def _value(secret: Obj, key: str) -> bytes:
    try:
        return base64.b64decode((secret.get("data") or {}).get(key) or "", validate=True)
    except binascii.Error:
        return b""


def _split(headers: Obj) -> tuple[tuple[str, str], ...]:
    """Commas part several values of one header."""
    return tuple((name, value.strip()) for name, values in headers.items() for value in str(values).split(","))
