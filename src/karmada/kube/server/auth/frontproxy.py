"""Identities that travel between API servers in X-Remote-* headers, vouched for by the front-proxy client certificate.

As the front, `remote_headers` is what an aggregated request carries. As the backend, `remote_user` reads it; whether
the connection may be believed is decided by the authenticator. `authentication_config` is the ConfigMap from which
aggregated servers read the trusted authorities, and `FrontProxy.of` reads it there. `FrontProxyConfig` is for servers
whose proxies have certificates of another authority than the one in the data directory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

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
FRONT_PROXY_CLIENT = "front-proxy-client"
"""The name in the certificate by which a server of ours vouches for users."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontProxyConfig:
    """Certificates of front proxies in files; without them, those of the data directory are used."""

    client_ca_file: Path | None = None
    """The authority of proxies' certificates; the server's own stays trusted while its own certificate is used."""
    cert_file: Path | None = None
    key_file: Path | None = None
    """Key by which aggregated servers know this one."""
    names: FrontProxy = USUAL
    """Which names and headers count; its authority is not read."""

    def __post_init__(self) -> None:
        if (self.cert_file is None) is not (self.key_file is None):
            raise ValueError("--proxy-client-cert-file and --proxy-client-key-file are needed together")
        if self.cert_file is not None and self.client_ca_file is None:
            raise ValueError(
                "--proxy-client-cert-file needs --requestheader-client-ca-file: aggregated servers verify it by that"
            )

    @property
    def files(self) -> tuple[Path, ...]:
        return tuple(path for path in (self.client_ca_file, self.cert_file, self.key_file) if path is not None)

    def trusted(self, own_ca_pem: bytes) -> FrontProxy:
        """Return the proxies that are trusted; OSError for a file that cannot be read."""
        if self.client_ca_file is None:
            return replace(self.names, ca_pem=own_ca_pem, allowed_names=(FRONT_PROXY_CLIENT,))
        given, names = self.client_ca_file.read_bytes(), self.names.allowed_names
        if self.cert_file is not None:
            return replace(self.names, ca_pem=given)
        names = (*names, FRONT_PROXY_CLIENT) if names and FRONT_PROXY_CLIENT not in names else names
        return replace(self.names, ca_pem=given + b"\n" + own_ca_pem, allowed_names=names)


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


def authentication_config(client_ca_pem: bytes, proxy: FrontProxy) -> Obj:
    """ConfigMap kube-system/extension-apiserver-authentication."""

    def array(values: Sequence[str]) -> str:
        return orjson.dumps(values).decode()

    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "extension-apiserver-authentication", "namespace": "kube-system"},
        "data": {
            "client-ca-file": client_ca_pem.decode("ascii"),
            "requestheader-allowed-names": array(proxy.allowed_names),
            "requestheader-client-ca-file": proxy.ca_pem.decode("ascii"),
            "requestheader-extra-headers-prefix": array(proxy.extra_prefixes),
            "requestheader-group-headers": array(proxy.group_headers),
            "requestheader-uid-headers": array(proxy.uid_headers),
            "requestheader-username-headers": array(proxy.user_headers),
        },
    }
