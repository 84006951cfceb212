"""Identities that travel between API servers in X-Remote-* headers, vouched for by the front-proxy client certificate.

As the front, `remote_headers` is what an aggregated request carries. As the backend, `remote_user` reads it; whether
the connection may be believed is decided by the authenticator. `authentication_config` is the ConfigMap from which
aggregated servers learn whom to trust.
"""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from karmada.kube.objects.types import Obj
from karmada.kube.server.auth import headers as h
from karmada.kube.server.user import User


def remote_headers(user: User) -> list[tuple[str, str]]:
    lines = [(h.REMOTE_USER, user.name)]
    if user.uid:
        lines.append((h.REMOTE_UID, user.uid))
    lines += [(h.REMOTE_GROUP, group) for group in user.groups]
    return lines + h.header_lines(h.REMOTE_EXTRA, user.extra.items())


def remote_user(headers: h.Headers) -> User | None:
    name = headers.get(h.REMOTE_USER, "")
    if not name:
        return None
    return User(
        name=name,
        uid=headers.get(h.REMOTE_UID, ""),
        groups=h.all_values(headers, h.REMOTE_GROUP),
        extra=h.extras(headers, h.REMOTE_EXTRA),
    )


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
