"""Delegated authentication and authorisation: tokens and rights are reviewed by another API server.

Requests that come through the other server carry their user in headers, vouched for by its front-proxy certificate;
those that come directly bring a client certificate of its authority or a token, whose owner a TokenReview returns.
What a user may do is decided by a SubjectAccessReview. Results are kept for a few seconds, and concurrent requests
for the same review share one. `FollowedTrust` keeps the authorities as the other server publishes them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from karmada.kube.client.client import Client
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.errors import ApiError, InternalError, Unauthorized
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import CONFIG_MAPS
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informers import Informers
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.logging import get_logger
from karmada.kube.server.auth.authentication import ANONYMOUS_USER, CertificateCallers, bearer_token
from karmada.kube.server.auth.frontproxy import FrontProxy
from karmada.kube.server.auth.headers import Headers
from karmada.kube.server.auth.identity import authenticated
from karmada.kube.server.auth.peer import PeerCertificates
from karmada.kube.server.auth.rbac import HEALTH_PATHS, AuthzAttributes, Decision, url_matches
from karmada.kube.server.auth.single_flight import SingleFlight
from karmada.kube.server.auth.user import User

TOKEN_REVIEWS: Final = GVR("authentication.k8s.io", "v1", "tokenreviews")
ACCESS_REVIEWS: Final = GVR("authorization.k8s.io", "v1", "subjectaccessreviews")
PUBLISHED: Final = Key("kube-system", "extension-apiserver-authentication")
_ALLOWED = Decision(True)
log = get_logger("delegated-auth")


def _review_of(kind: GVR, name: str, spec: Obj) -> Obj:
    return {"apiVersion": str(kind.group_version), "kind": name, "metadata": {}, "spec": spec}


# who


class Trust(NamedTuple):
    """The authorities of client certificates, and of front proxies."""

    client_ca_pem: bytes = b""
    proxy: FrontProxy = FrontProxy()

    @property
    def pem(self) -> bytes:
        """Return all that the TLS layer has to know."""
        return b"\n".join(part for part in (self.client_ca_pem, self.proxy.ca_pem) if part.strip())


class DelegatedAuthenticator:
    def __init__(self, client: Client, clock: Clock, *, anonymous: bool = True) -> None:
        self._client = client
        self._clock = clock
        self._anonymous = anonymous
        self._tokens: SingleFlight[bytes, User] = SingleFlight(clock)
        self._certificates: CertificateCallers | None = None

    def believe(self, trust: Trust) -> None:
        peers = PeerCertificates(trust.client_ca_pem, trust.proxy.ca_pem)
        self._certificates = CertificateCallers(peers, trust.proxy, self._clock.now)

    async def identify(self, headers: Headers, peer_cert_der: bytes | None, protocols: Sequence[str]) -> User:
        refused = False
        if peer_cert_der is not None and self._certificates is not None:
            user, refused = self._certificates.identify(headers, peer_cert_der)
            if user is not None:
                return user
        token = bearer_token(headers, protocols)
        if token is not None:
            digest = hashlib.sha256(token.encode()).digest()
            return await self._tokens.get(digest, lambda: self._review(token))
        if refused or not self._anonymous:
            raise Unauthorized
        return ANONYMOUS_USER

    async def _review(self, token: str) -> User:
        review = _review_of(TOKEN_REVIEWS, "TokenReview", {"token": token})
        try:
            status = (await self._client.create(TOKEN_REVIEWS, review)).get("status") or {}
        except (ApiError, ConnectionFailed) as error:
            log.error("Cannot review a token", error)
            raise Unauthorized from error
        if not status.get("authenticated"):
            raise Unauthorized
        info = status.get("user") or {}
        extra = {key: tuple(values) for key, values in (info.get("extra") or {}).items()}
        groups = tuple(info.get("groups") or ())
        return authenticated(User(info.get("username") or "", info.get("uid") or "", groups, extra))


# what


class DelegatedAuthorizer:
    def __init__(self, client: Client, clock: Clock, *, open_paths: Sequence[str] = HEALTH_PATHS) -> None:
        self._client = client
        self._open_paths = tuple(open_paths)
        self._answers: SingleFlight[tuple[object, ...], Decision] = SingleFlight(clock)

    async def decide(self, user: User, request: AuthzAttributes) -> Decision:
        if user.is_master:
            return _ALLOWED
        if not request.is_resource and any(url_matches(pattern, request.path) for pattern in self._open_paths):
            return _ALLOWED
        key = (user.name, user.uid, user.groups, tuple(sorted(user.extra.items())), request)
        return await self._answers.get(key, lambda: self._review(user, request))

    async def _review(self, user: User, request: AuthzAttributes) -> Decision:
        review = _review_of(ACCESS_REVIEWS, "SubjectAccessReview", {**_subject(user), **_wanted(request)})
        try:
            status = (await self._client.create(ACCESS_REVIEWS, review)).get("status") or {}
        except (ApiError, ConnectionFailed) as error:
            raise InternalError.of(f"cannot review the access of {user.name}: {error}") from error
        return Decision(bool(status.get("allowed")), status.get("reason") or "")


def _subject(user: User) -> Obj:
    info = user.info()
    info["user"] = info.pop("username")
    return info


def _wanted(request: AuthzAttributes) -> Obj:
    if not request.is_resource:
        return {"nonResourceAttributes": {"path": request.path, "verb": request.verb}}
    fields = ("verb", "group", "version", "resource", "subresource", "namespace", "name")
    return {"resourceAttributes": {field: value for field in fields if (value := getattr(request, field))}}


# trusted authorities


class FollowedTrust:
    """The authorities that the other server publishes; `changed` is called with each new state."""

    def __init__(self, informers: Informers, given: Trust, changed: Callable[[Trust], None]) -> None:
        """Trust what is `given` besides; a front proxy that is given counts alone."""
        self._given = given
        self._changed = changed
        self.trust = given
        self._informer = informers.of(
            CONFIG_MAPS, PUBLISHED.namespace, field_selector=f"metadata.name={PUBLISHED.name}"
        )
        self._informer.add_handler(self._seen)

    def _seen(self, _old: Obj | None, new: Obj | None) -> None:
        if new is None:
            return  # what was trusted stays so: a ConfigMap that is made anew is no reason to refuse everybody
        data = new.get("data") or {}
        try:
            published = FrontProxy.of(data)
        except ValueError as error:
            log.error("The published authorities cannot be read; the former ones stay", error)
            return
        given = self._given
        client = b"\n".join(part for part in (given.client_ca_pem, data.get("client-ca-file", "").encode()) if part)
        trust = Trust(client, given.proxy if given.proxy.ca_pem else published)
        if trust != self.trust:
            self.trust = trust
            self._changed(trust)
