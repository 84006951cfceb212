"""Tokens of an OpenID Connect issuer: who they name, by the claims that are configured.

Signature, issuer, audience and required claims are verified once and the result kept for a few seconds; the end of a
token is looked at on each use. Names that begin with "system:" are this server's own: a token that claims one, for its
user or one of its groups, is refused, whatever the issuer says.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from karmada.kube.objects.clock import Clock
from karmada.kube.server.auth.authentication import TokenIdentity, own_audiences
from karmada.kube.server.auth.identity import authenticated
from karmada.kube.server.auth.issuer_keys import IssuerKeys
from karmada.kube.server.auth.jwt import TokenError, is_signed, read_token
from karmada.kube.server.auth.peer import CREDENTIAL_ID
from karmada.kube.server.auth.single_flight import SingleFlight
from karmada.kube.server.auth.token_sources import OidcConfig
from karmada.kube.server.auth.user import User

_RESERVED = "system:"
_LEEWAY = 60.0
"""The issuer's clock may be ahead by this."""


class _Verified(NamedTuple):
    user: User
    expires: float


class OidcTokens:
    def __init__(self, config: OidcConfig, audiences: Sequence[str], clock: Clock) -> None:
        self._config = config
        self._audiences = tuple(audiences)
        self._clock = clock
        self._keys = IssuerKeys(config.issuer_url, config.ca_file.read_bytes() if config.ca_file else b"", clock)
        self._known: SingleFlight[bytes, _Verified] = SingleFlight(clock)

    async def authenticate(self, token: str, audiences: Sequence[str]) -> TokenIdentity | None:
        try:
            issuer = read_token(token)[1].get("iss")
        except TokenError:
            return None
        if issuer != self._config.issuer_url:
            return None
        verified = await self._known.get(hashlib.sha256(token.encode()).digest(), lambda: self._verify(token))
        if verified.expires <= self._clock.now():
            raise TokenError("oidc: the token has expired")
        return TokenIdentity(verified.user, own_audiences(audiences, self._audiences))

    async def close(self) -> None:
        await self._keys.close()

    async def _verify(self, token: str) -> _Verified:
        header, claims = read_token(token)
        alg = header.get("alg")
        if alg not in self._config.signing_algs:
            raise TokenError(f"oidc: the token must be signed with {' or '.join(self._config.signing_algs)}")
        keys = await self._keys.find(str(header.get("kid") or ""))
        if not any(alg in key.algorithms and is_signed(token, key.key, alg) for key in keys):
            raise TokenError("oidc: invalid signature")
        expires = self._check(claims)
        return _Verified(user_of(claims, self._config), expires)

    def _check(self, claims: Mapping[str, Any]) -> float:
        """When the token ends; TokenError if it is not for this server, or not now."""
        config = self._config
        audience = claims.get("aud")
        if config.client_id not in (audience if isinstance(audience, list) else [audience]):
            raise TokenError(f'oidc: the token is not for the client "{config.client_id}"')
        if _seconds(claims, "nbf", 0) > self._clock.now() + _LEEWAY:
            raise TokenError("oidc: the token is not valid yet")
        for claim, value in config.required_claims.items():
            if claims.get(claim) != value:
                raise TokenError(f'oidc: the claim "{claim}" is not as required')
        return _seconds(claims, "exp", None)


def _seconds(claims: Mapping[str, Any], claim: str, default: float | None) -> float:
    value = claims.get(claim, default)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TokenError(f'oidc: the claim "{claim}" is not a time')
    return float(value)


def user_of(claims: Mapping[str, Any], config: OidcConfig) -> User:
    """Return the user that claims name; TokenError names the claim that does not."""
    name = claims.get(config.username_claim)
    if not isinstance(name, str) or not name:
        raise TokenError(f'oidc: the claim "{config.username_claim}" is not a name')
    if config.username_claim == "email" and claims.get("email_verified", True) is not True:
        raise TokenError("oidc: the email address is not verified")
    user, groups = config.prefix + name, tuple(config.groups_prefix + group for group in _groups(claims, config))
    if any(text.startswith(_RESERVED) for text in (user, *groups)):
        raise TokenError(f'oidc: names that begin with "{_RESERVED}" are reserved: configure a prefix')
    jti = claims.get("jti")
    extra = {CREDENTIAL_ID: (f"JTI={jti}",)} if isinstance(jti, str) and jti else {}
    return authenticated(User(user, "", groups, extra))


def _groups(claims: Mapping[str, Any], config: OidcConfig) -> list[str]:
    value = claims.get(config.groups_claim) if config.groups_claim else None
    groups = [] if value is None else value if isinstance(value, list) else [value]
    if not all(isinstance(group, str) for group in groups):
        raise TokenError(f'oidc: the claim "{config.groups_claim}" is not a list of names')
    return groups
