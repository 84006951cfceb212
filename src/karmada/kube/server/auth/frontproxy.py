"""Identities that travel between API servers in X-Remote-* headers, vouched for by the front-proxy client certificate.

As the front, `remote_headers` is what an aggregated request carries. As the backend, `remote_user` reads it; whether
the connection may be believed is decided by the authenticator. `authentication_config` is the ConfigMap from which
aggregated servers read the trusted authorities, and `FrontProxy.of` reads it there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson

from karmada.kube.objects.types import Obj
from karmada.kube.server.auth import headers as h
from karmada.kube.server.auth.user import User


def remote_headers(user: User) -> list[tuple[str, str]]:
    lines = [(h.REMOTE_USER, user.name)]
    if user.uid:
        lines.append((h.REMOTE_UID, user.uid))
    lines += [(h.REMOTE_GROUP, group) for group in user.groups]
    return lines + h.header_lines(h.REMOTE_EXTRA, user.extra.items())


@dataclass(frozen=True, slots=True)
class FrontProxy:
    """The proxies that a backend trusts, and their headers: the first that names a user counts."""

    ca_pem: bytes = b""
    allowed_names: tuple[str, ...] = ()
    """Common names of certificates; none: every certificate of the authority."""
    user_headers: tuple[str, ...] = (h.REMOTE_USER,)
    uid_headers: tuple[str, ...] = (h.REMOTE_UID,)
    group_headers: tuple[str, ...] = (h.REMOTE_GROUP,)
    extra_prefixes: tuple[str, ...] = (h.REMOTE_EXTRA,)

    @classmethod
    def of(cls, data: Mapping[str, str]) -> FrontProxy:
        """From the data of the ConfigMap; ValueError when it makes no sense."""

        def array(key: str, default: tuple[str, ...]) -> tuple[str, ...]:
            text = data.get(f"requestheader-{key}")
            values = orjson.loads(text) if text else None
            if values is not None and not (isinstance(values, list) and all(isinstance(v, str) for v in values)):
                raise ValueError(f"requestheader-{key} is not a list of names")
            return default if values is None else tuple(values)

        usual = cls()
        return cls(
            ca_pem=data.get("requestheader-client-ca-file", "").encode(),
            allowed_names=array("allowed-names", ()),
            user_headers=array("username-headers", usual.user_headers),
            uid_headers=array("uid-headers", usual.uid_headers),
            group_headers=array("group-headers", usual.group_headers),
            extra_prefixes=array("extra-headers-prefix", usual.extra_prefixes),
        )


USUAL = FrontProxy()


def remote_user(headers: h.Headers, proxy: FrontProxy = USUAL) -> User | None:
    name = _first(headers, proxy.user_headers)
    if not name:
        return None
    extra: dict[str, tuple[str, ...]] = {}
    for prefix in proxy.extra_prefixes:
        extra |= h.extras(headers, prefix)
    return User(
        name=name,
        uid=_first(headers, proxy.uid_headers),
        groups=tuple(group for header in proxy.group_headers for group in h.all_values(headers, header)),
        extra=extra,
    )


def _first(headers: h.Headers, names: tuple[str, ...]) -> str:
    return next((value for name in names if (value := headers.get(name, ""))), "")


def authentication_config(client_ca_pem: bytes, front_proxy_ca_pem: bytes, allowed_names: Sequence[str]) -> Obj:
    """ConfigMap kube-system/extension-apiserver-authentication."""

    def array(*values: str) -> str:
        return orjson.dumps(values).decode()

    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "extension-apiserver-authentication", "namespace": "kube-system"},
        "data": {
            "client-ca-file": client_ca_pem.decode("ascii"),
            "requestheader-allowed-names": array(*allowed_names),
            "requestheader-client-ca-file": front_proxy_ca_pem.decode("ascii"),
            "requestheader-extra-headers-prefix": array(h.REMOTE_EXTRA),
            "requestheader-group-headers": array(h.REMOTE_GROUP),
            "requestheader-uid-headers": array(h.REMOTE_UID),
            "requestheader-username-headers": array(h.REMOTE_USER),
        },
    }
