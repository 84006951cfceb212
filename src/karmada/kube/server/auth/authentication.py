"""Who makes a request: the first of these that says so wins.

1. A front proxy (client certificate of the front-proxy authority with an allowed name) naming a user in headers.
2. A client certificate of the cluster's authority.
3. A bearer token, in the Authorization header or, from browsers, as a WebSocket subprotocol: from the static file,
   of a service account, or a bootstrap token; then those that other servers know (OpenID Connect, a webhook).
4. Nobody: the anonymous user, if that is allowed.

A token or certificate that is present but not valid is refused, never taken for anonymous; authorization schemes other
than Bearer are ignored. Every named user also gets the group system:authenticated.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from karmada.kube.kinds.resource import Reader
from karmada.kube.objects.base64url import b64url_decode
from karmada.kube.objects.errors import Unauthorized
from karmada.kube.server.auth import bootstrap_tokens
from karmada.kube.server.auth.frontproxy import FRONT_PROXY_CLIENT, FrontProxy, remote_user
from karmada.kube.server.auth.headers import Headers
from karmada.kube.server.auth.identity import authenticated
from karmada.kube.server.auth.jwt import TokenError
from karmada.kube.server.auth.peer import PeerCertificates
from karmada.kube.server.auth.service_accounts import ServiceAccountTokens
from karmada.kube.server.auth.user import ANONYMOUS, UNAUTHENTICATED, User

WEBSOCKET_BEARER = "base64url.bearer.authorization.k8s.io."
UNKNOWN_TOKEN = "invalid bearer token"
USUAL_PROXY = FrontProxy(allowed_names=(FRONT_PROXY_CLIENT,))
ANONYMOUS_USER = User(name=ANONYMOUS, groups=(UNAUTHENTICATED,))


class TokenIdentity(NamedTuple):
    user: User
    audiences: tuple[str, ...]


class TokenSource(Protocol):
    """Tokens that another server has issued or knows."""

    async def authenticate(self, token: str, audiences: Sequence[str]) -> TokenIdentity | None:
        """Return whose token it is; None if it comes from elsewhere, TokenError if it is bad."""

    async def close(self) -> None: ...


def parse_token_file(text: str) -> dict[str, User]:
    """Lines of `token,user,uid[,"group1,group2"]`; ValueError names the line, never its content."""
    users: dict[str, User] = {}
    for number, row in enumerate(csv.reader(io.StringIO(text), skipinitialspace=True), start=1):
        if not row or row[0].startswith("#"):
            continue
        if len(row) < 3 or not row[0] or not row[1]:
            raise ValueError(f"token file, line {number}: must be token,user,uid with an optional list of groups")
        groups = tuple(group.strip() for group in row[3].split(",") if group.strip()) if len(row) > 3 else ()
        users[row[0]] = authenticated(User(name=row[1], uid=row[2], groups=groups))
    return users


class CertificateCallers:
    """Callers by their client certificates, and those that a front proxy vouches for."""

    def __init__(self, peers: PeerCertificates, proxy: FrontProxy, now: Callable[[], float]) -> None:
        self._peers = peers
        self._proxy = proxy
        self._names = frozenset(proxy.allowed_names)
        self._now = now

    def identify(self, headers: Headers, der: bytes) -> tuple[User | None, bool]:
        """Return the user, if the certificate gives one; else whether it must not pass as anonymous."""
        peer = self._peers.identify(der)
        if not peer.valid_at(self._now()):
            return None, True
        if peer.proxy and (not self._names or peer.common_name in self._names):
            remote = remote_user(headers, self._proxy)
            if remote is not None:
                return authenticated(remote), False
        if peer.user is not None:
            return peer.user, False
        return None, True


class Authenticator:
    def __init__(
        self,
        reader: Reader,
        *,
        now: Callable[[], float],
        peers: PeerCertificates | None = None,
        service_accounts: ServiceAccountTokens | None = None,
        static_tokens: Mapping[str, User] | None = None,
        audiences: Sequence[str] = (),
        front_proxy: FrontProxy = USUAL_PROXY,
        bootstrap: bool = True,
        anonymous: bool = True,
        sources: Sequence[TokenSource] = (),
    ) -> None:
        self._sources = tuple(sources)
        self._reader = reader
        self._now = now
        self._certificates = CertificateCallers(peers, front_proxy, now) if peers is not None else None
        self._service_accounts = service_accounts
        self._static = dict(static_tokens or {})
        self._audiences = tuple(audiences)
        self._bootstrap = bootstrap
        self._anonymous = anonymous

    @property
    def audiences(self) -> tuple[str, ...]:
        return self._audiences

    async def identify(self, headers: Headers, peer_cert_der: bytes | None, protocols: Sequence[str]) -> User:
        try:
            return self.authenticate(headers, peer_cert_der, protocols)
        except Unauthorized:
            token = bearer_token(headers, protocols) if self._sources else None
            if token is None:
                raise
        try:
            return (await self.authenticate_anywhere(token)).user
        except TokenError as error:
            raise Unauthorized from error

    def authenticate(self, headers: Headers, peer_cert_der: bytes | None = None, protocols: Sequence[str] = ()) -> User:
        """Return the request's user as this server knows it; Unauthorized for bad credentials, or none where needed.

        `protocols` are the WebSocket subprotocols the client offers, if it wants one.
        """
        refused = False
        if peer_cert_der is not None and self._certificates is not None:
            user, refused = self._certificates.identify(headers, peer_cert_der)
            if user is not None:
                return user
        token = bearer_token(headers, protocols)
        if token is not None:
            try:
                return self.authenticate_token(token).user
            except TokenError as error:
                raise Unauthorized from error
        if refused or not self._anonymous:
            raise Unauthorized
        return ANONYMOUS_USER

    def authenticate_token(self, token: str, audiences: Sequence[str] = ()) -> TokenIdentity:
        """Whose token it is, for any of the audiences (default: this server's own); TokenError if it is nobody's."""
        static = self._static.get(token)
        if static is not None:
            return TokenIdentity(static, self._own_audiences(audiences))
        if self._service_accounts is not None and self._service_accounts.ours(token):
            user, common = self._service_accounts.authenticate(token, audiences or self._audiences)
            return TokenIdentity(user, common)
        if self._bootstrap and bootstrap_tokens.looks_like_bootstrap_token(token):
            user = bootstrap_tokens.authenticate(token, self._reader, self._now())
            return TokenIdentity(authenticated(user), self._own_audiences(audiences))
        raise TokenError(UNKNOWN_TOKEN)

    async def authenticate_anywhere(self, token: str, audiences: Sequence[str] = ()) -> TokenIdentity:
        """Authenticate also the tokens of other servers; the error has what each of them says."""
        errors: list[str] = []
        try:
            return self.authenticate_token(token, audiences)
        except TokenError as error:
            errors.append(str(error))
        for source in self._sources:
            try:
                found = await source.authenticate(token, audiences or self._audiences)
            except TokenError as error:
                errors.append(str(error))
            else:
                if found is not None:
                    return found
        raise TokenError(", ".join(text for text in errors if text != UNKNOWN_TOKEN) or UNKNOWN_TOKEN)

    def _own_audiences(self, wanted: Sequence[str]) -> tuple[str, ...]:
        return own_audiences(wanted, self._audiences)


def own_audiences(wanted: Sequence[str], own: tuple[str, ...]) -> tuple[str, ...]:
    """Tokens without an audience are for this server only."""
    common = tuple(a for a in wanted if a in own) if wanted else own
    if wanted and not common:
        raise TokenError("token audiences do not include the target audiences")
    return common


def bearer_token(headers: Headers, protocols: Sequence[str]) -> str | None:
    """Return the token of a request, from its header or its subprotocols; Unauthorized for a malformed subprotocol."""
    authorization = headers.get("Authorization")
    token = _bearer(authorization.strip()) if authorization else ""
    return token or (_websocket_bearer(protocols) if protocols else None)


def _bearer(authorization: str) -> str:
    """Return the bearer token, empty when there is none: other schemes, such as Basic, are not authentication here."""
    scheme, _, rest = authorization.partition(" ")
    return rest.split(" ", 1)[0] if scheme.lower() == "bearer" else ""


def _websocket_bearer(protocols: Sequence[str]) -> str | None:
    """Return the token among the subprotocols; the client must offer a real one besides it."""
    tokens = [p[len(WEBSOCKET_BEARER) :] for p in protocols if p.startswith(WEBSOCKET_BEARER)]
    if not tokens:
        return None
    if len(tokens) > 1 or len(tokens) == len(protocols):
        raise Unauthorized
    try:
        return b64url_decode(tokens[0]).decode("utf-8")
    except ValueError as error:
        raise Unauthorized from error
