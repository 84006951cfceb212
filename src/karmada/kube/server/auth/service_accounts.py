"""Service-account tokens: who they stand for, and whether they still do.

A token's signature and claims never change, so they are checked once and kept. What can change is checked on every
use, straight from the watch cache: time, and that the account, and the Pod, Secret or Node the token is bound to,
still exist with the same uid. So deleting any of them revokes the token at once. Two forms exist: bound tokens with
an audience and an end, and legacy ones that live in a Secret, have neither and are compared with that Secret.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from karmada.kube.kinds.resource import Reader
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.objects.memo import Memo
from karmada.kube.objects.times import parse_time
from karmada.kube.objects.types import Obj
from karmada.kube.server.auth.identity import authenticated
from karmada.kube.server.auth.jwt import KeySet, TokenError, read_token
from karmada.kube.server.auth.peer import CREDENTIAL_ID
from karmada.kube.server.auth.user import User

ACCOUNTS, SECRETS = GroupResource("", "serviceaccounts"), GroupResource("", "secrets")
PODS, NODES = GroupResource("", "pods"), GroupResource("", "nodes")
LEGACY_ISSUER = "kubernetes/serviceaccount"
LEGACY_PREFIX = "kubernetes.io/serviceaccount/"
USER_PREFIX = "system:serviceaccount:"
ALL_ACCOUNTS = "system:serviceaccounts"
INVALID_SINCE = "kubernetes.io/legacy-token-invalid-since"

_LEEWAY = 60.0
"""Clocks of servers that share a key may differ by this; and an object that is being deleted counts this long."""
_KEPT = 8192


def username(namespace: str, name: str) -> str:
    return f"{USER_PREFIX}{namespace}:{name}"


def group_names(namespace: str) -> tuple[str, str]:
    return ALL_ACCOUNTS, f"{ALL_ACCOUNTS}:{namespace}"


def split_username(user: str) -> tuple[str, str] | None:
    """Namespace and name of a service account's user name; None if it is none."""
    if not user.startswith(USER_PREFIX):
        return None
    namespace, colon, name = user[len(USER_PREFIX) :].partition(":")
    return (namespace, name) if colon and namespace and name and ":" not in name else None


@dataclass(frozen=True, slots=True)
class _Verified:
    """A token with a good signature, reduced to what is needed on each use."""

    user: User
    namespace: str
    account: str
    audiences: tuple[str, ...]
    not_before: float
    expires: float
    bound_resource: GroupResource | None = None
    bound_name: str = ""
    bound_uid: str = ""
    legacy_secret: str = field(default="", repr=False)


class ServiceAccountTokens:
    def __init__(
        self,
        keys: KeySet,
        issuers: Sequence[str],
        audiences: Sequence[str],
        reader: Reader,
        now: Callable[[], float],
    ) -> None:
        self._keys = keys
        self._issuers = frozenset(issuers)
        self._audiences = tuple(audiences)
        self._reader = reader
        self._now = now
        self._known: Memo[str, _Verified] = Memo(_KEPT)

    def ours(self, token: str) -> bool:
        """Return True if the token claims to come from one of our issuers."""
        if self._known.get(token) is not None:
            return True
        try:
            issuer = read_token(token)[1].get("iss")
        except TokenError:
            return False
        return isinstance(issuer, str) and (issuer == LEGACY_ISSUER or issuer in self._issuers)

    def authenticate(self, token: str, audiences: Sequence[str] = ()) -> tuple[User, tuple[str, ...]]:
        """Return the user, and those of the wanted audiences that the token is for; TokenError."""
        verified = self._known.get(token)
        if verified is None:
            verified = self._verify(token)
            self._known.put(token, verified)
        self._check_time(verified)
        wanted = audiences or self._audiences
        common = tuple(audience for audience in wanted if audience in verified.audiences)
        if not common:
            raise TokenError("token audiences do not include the target audiences")
        self._check_alive(verified, token)
        return verified.user, common

    def _verify(self, token: str) -> _Verified:
        claims = self._keys.verify(token)
        try:
            if claims.get("iss") == LEGACY_ISSUER:
                return self._legacy(claims)
            if claims.get("iss") not in self._issuers:
                raise TokenError("the token is from another issuer")
            return _bound(claims)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise TokenError("the token lacks claims of a service account") from error

    def _legacy(self, claims: Mapping[str, Any]) -> _Verified:
        def claim(name: str) -> str:
            value = claims[LEGACY_PREFIX + name]
            if not isinstance(value, str) or not value:
                raise TokenError("the token lacks claims of a service account")
            return value

        namespace, name = claim("namespace"), claim("service-account.name")
        if claims["sub"] != username(namespace, name):
            raise TokenError("the token's subject is not its service account")
        return _Verified(
            user=_user(namespace, name, claim("service-account.uid"), {}),
            namespace=namespace,
            account=name,
            audiences=self._audiences,
            not_before=0.0,
            expires=float("inf"),
            legacy_secret=claim("secret.name"),
        )

    def _check_time(self, token: _Verified) -> None:
        now = self._now()
        if now >= token.expires:
            raise TokenError("service account token has expired")
        if now < token.not_before - _LEEWAY:
            raise TokenError("service account token is not valid yet")

    def _check_alive(self, token: _Verified, text: str) -> None:
        self._require(ACCOUNTS, token.namespace, token.account, token.user.uid, "service account")
        if token.bound_resource is not None:
            namespace = "" if token.bound_resource is NODES else token.namespace
            self._require(token.bound_resource, namespace, token.bound_name, token.bound_uid, "bound object")
        elif token.legacy_secret:
            secret = self._require(SECRETS, token.namespace, token.legacy_secret, "", "token secret")
            stored = base64.b64decode((secret.get("data") or {}).get("token") or "")
            if not hmac.compare_digest(stored, text.encode()):
                raise TokenError("token does not match the one in its secret")
            if INVALID_SINCE in (secret["metadata"].get("labels") or {}):
                raise TokenError("the token has been marked invalid")

    def _require(self, resource: GroupResource, namespace: str, name: str, uid: str, what: str) -> Obj:
        obj = self._reader.get(resource, namespace, name)
        if obj is None:
            raise TokenError(f"{what} has been deleted")
        meta = obj["metadata"]
        if uid and meta.get("uid") != uid:
            raise TokenError(f"{what} was deleted and made anew")
        deleted = meta.get("deletionTimestamp")
        if deleted and parse_time(deleted) < self._now() - _LEEWAY:
            raise TokenError(f"{what} has been deleted")
        return obj


def _bound(claims: Mapping[str, Any]) -> _Verified:
    own = claims["kubernetes.io"]
    namespace, account = own["namespace"], own["serviceaccount"]
    name, uid = account["name"], account["uid"]
    if claims["sub"] != username(namespace, name):
        raise TokenError("the token's subject is not its service account")
    audiences = claims["aud"]
    pod, secret, node = own.get("pod"), own.get("secret"), own.get("node")
    candidates = ((PODS, pod), (SECRETS, secret), (NODES, node))
    resource, bound = next(((r, o) for r, o in candidates if o), (None, None))
    return _Verified(
        user=_user(namespace, name, uid, _extra(claims.get("jti"), pod, node)),
        namespace=namespace,
        account=name,
        audiences=(audiences,) if isinstance(audiences, str) else tuple(audiences),
        not_before=float(claims.get("nbf", 0)),
        expires=float(claims["exp"]),
        bound_resource=resource,
        bound_name=bound["name"] if bound else "",
        bound_uid=bound["uid"] if bound else "",
    )


def _user(namespace: str, name: str, uid: str, extra: Mapping[str, tuple[str, ...]]) -> User:
    return authenticated(User(username(namespace, name), uid, group_names(namespace), extra))


def _extra(jti: str | None, pod: Obj | None, node: Obj | None) -> dict[str, tuple[str, ...]]:
    prefix = "authentication.kubernetes.io/"
    extra: dict[str, tuple[str, ...]] = {CREDENTIAL_ID: (f"JTI={jti}",)} if jti else {}
    if pod:
        extra |= {prefix + "pod-name": (pod["name"],), prefix + "pod-uid": (pod["uid"],)}
    if node:
        extra[prefix + "node-name"] = (node["name"],)
        if node.get("uid"):
            extra[prefix + "node-uid"] = (node["uid"],)
    return extra
