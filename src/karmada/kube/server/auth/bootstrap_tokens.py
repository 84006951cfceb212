"""Bootstrap tokens: short-lived Secrets in kube-system that let a new member say its first words.

A token `<id>.<secret>` does two things, each only if its Secret says so. It authenticates a caller, and it signs the
public ConfigMap kube-public/cluster-info: whoever knows the secret can check, over an untrusted connection, that the
server address and CA found there are genuine. The signature is a JWS with the content taken out (detached).
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
from collections.abc import Iterable

from karmada.kube.kinds.resource import Reader
from karmada.kube.objects.bootstrap_tokens import (
    INFO_KEY,
    NAME_PREFIX,
    NAMESPACE,
    SECRET_TYPE,
    SIGNATURE_PREFIX,
    BootstrapToken,
    detached_signature,
)
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.objects.times import parse_time
from karmada.kube.objects.types import Obj
from karmada.kube.server.auth.jwt import TokenError
from karmada.kube.server.auth.user import User

_SECRETS = GroupResource("", "secrets")
_GROUP = re.compile(r"system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]")
_DEFAULT_GROUP = "system:bootstrappers"


def looks_like_bootstrap_token(token: str) -> bool:
    return BootstrapToken.parse(token) is not None


def _data(secret: Obj, key: str) -> str:
    """Return a decoded value; one that is not text counts as absent."""
    encoded = (secret.get("data") or {}).get(key)
    if not encoded:
        return ""
    try:
        return base64.b64decode(encoded, validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return ""


def is_bootstrap_token(secret: Obj) -> bool:
    return secret.get("type") == SECRET_TYPE and secret["metadata"].get("namespace") == NAMESPACE


def seconds_left(secret: Obj, now: float) -> float | None:
    """Until the token expires (0: it has; an unreadable time counts as past); None: never. For the token cleaner."""
    expiration = _data(secret, "expiration")
    if not expiration:
        return None
    try:
        return max(0.0, parse_time(expiration) - now)
    except ValueError:
        return 0.0


def _expired(secret: Obj, now: float) -> bool:
    return seconds_left(secret, now) == 0.0


def authenticate(token: str, reader: Reader, now: float) -> User:
    """Return the user of a bootstrap token; TokenError if it is not (or no longer) good."""
    parsed = BootstrapToken.parse(token)
    if parsed is None:
        raise TokenError("not a bootstrap token")
    token_id, token_secret = parsed
    secret = reader.get(_SECRETS, NAMESPACE, NAME_PREFIX + token_id)
    if secret is None or secret["metadata"].get("deletionTimestamp") or not is_bootstrap_token(secret):
        raise TokenError("unknown bootstrap token")
    if not hmac.compare_digest(_data(secret, "token-secret").encode(), token_secret.encode()):
        raise TokenError("unknown bootstrap token")
    if _data(secret, "token-id") != token_id:
        raise TokenError("the bootstrap token's Secret holds another token id")
    if _expired(secret, now):
        raise TokenError("the bootstrap token has expired")
    if _data(secret, "usage-bootstrap-authentication") != "true":
        raise TokenError("the bootstrap token is not meant for authentication")
    return User(name=f"system:bootstrap:{token_id}", groups=_groups(secret))


def _groups(secret: Obj) -> tuple[str, ...]:
    groups = {_DEFAULT_GROUP}
    extra = _data(secret, "auth-extra-groups")
    for group in extra.split(",") if extra else ():
        if not _GROUP.fullmatch(group):
            raise TokenError("the bootstrap token has a group outside system:bootstrappers:")
        groups.add(group)
    return tuple(sorted(groups))


def _signing_token(secret: Obj, now: float) -> BootstrapToken | None:
    """Return the token, if it signs cluster-info."""
    meta = secret["metadata"]
    if not is_bootstrap_token(secret) or meta.get("deletionTimestamp"):
        return None
    token = BootstrapToken.parse(f"{_data(secret, 'token-id')}.{_data(secret, 'token-secret')}")
    if token is None or meta["name"] != NAME_PREFIX + token.id:
        return None
    if _expired(secret, now) or _data(secret, "usage-bootstrap-signing") != "true":
        return None
    return token


def sign_cluster_info(config_map: Obj, secrets: Iterable[Obj], now: float) -> Obj | None:
    """cluster-info with exactly the signatures it should have; None if there is nothing to change."""
    data: dict[str, str] = config_map.get("data") or {}
    kubeconfig = data.get(INFO_KEY)
    if kubeconfig is None:
        return None
    wanted = {key: value for key, value in data.items() if not key.startswith(SIGNATURE_PREFIX)}
    for secret in secrets:
        token = _signing_token(secret, now)
        if token is not None:
            wanted[SIGNATURE_PREFIX + token.id] = detached_signature(kubeconfig, token)
    return None if wanted == data else {**config_map, "data": wanted}
