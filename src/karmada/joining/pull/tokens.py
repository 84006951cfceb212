"""Bootstrap tokens as they are stored: Secrets in kube-system, each named after the public half of its token."""

from __future__ import annotations

import secrets
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from karmada.kube.objects.bootstrap_tokens import NAME_PREFIX, NAMESPACE, SECRET_TYPE, USAGE_PREFIX
from karmada.kube.objects.times import parse_time, rfc3339

_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz0123456789"


@dataclass(frozen=True, slots=True)
class Token:
    id: str
    secret: str
    usages: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    description: str = ""
    expires: float | None = None
    """Seconds since 1970; None: never."""

    def __str__(self) -> str:
        return f"{self.id}.{self.secret}"


class Malformed(ValueError):
    """A Secret of the right type that holds no token."""


def new_token() -> tuple[str, str]:
    """Both halves, by chance."""
    letters = "".join(secrets.choice(_LETTERS) for _ in range(22))
    return letters[:6], letters[6:]


def to_secret(token: Token) -> dict[str, Any]:
    data = {"token-id": token.id, "token-secret": token.secret}
    if token.description:
        data["description"] = token.description
    if token.expires is not None:
        data["expiration"] = rfc3339(token.expires)
    data |= {f"{USAGE_PREFIX}{usage}": "true" for usage in token.usages}
    if token.groups:
        data["auth-extra-groups"] = ",".join(token.groups)
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": f"{NAME_PREFIX}{token.id}", "namespace": NAMESPACE},
        "type": SECRET_TYPE,
        "data": {key: b64encode(value.encode()).decode() for key, value in data.items()},
    }


def from_secret(secret: Mapping[str, Any]) -> Token:
    name = secret["metadata"]["name"]
    data = _decoded(secret)
    token_id, token_secret = data.get("token-id", ""), data.get("token-secret", "")
    if not token_id:
        raise Malformed(f"bootstrap Token Secret has no token-id data: {name}")
    if name != f"{NAME_PREFIX}{token_id}":
        raise Malformed(f'bootstrap token name is not of the form "{NAME_PREFIX}(token-id)": {name}')
    if not token_secret:
        raise Malformed(f"bootstrap Token Secret has no token-secret data: {name}")
    try:
        expires = parse_time(data["expiration"]) if data.get("expiration") else None
    except ValueError as error:
        raise Malformed(f'can\'t parse expiration time of bootstrap token "{name}": {error}') from None
    usages = (key.removeprefix(USAGE_PREFIX) for key in data if key.startswith(USAGE_PREFIX) and data[key] == "true")
    return Token(
        id=token_id,
        secret=token_secret,
        usages=tuple(sorted(usages)),
        groups=tuple(group for group in data.get("auth-extra-groups", "").split(",") if group),
        description=data.get("description", ""),
        expires=expires,
    )


def _decoded(secret: Mapping[str, Any]) -> dict[str, str]:
    encoded: Mapping[str, str] = secret.get("data") or {}
    return {key: b64decode(value).decode(errors="replace") for key, value in encoded.items()}
