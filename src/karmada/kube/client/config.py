"""How to reach a server: what kubeconfig files, service accounts and callers boil down to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

DEFAULT_TIMEOUT = 60.0


@dataclass(frozen=True, slots=True)
class Material:
    """Bytes that are given directly or stay in a file, which may change: inline data wins."""

    data: bytes = b""
    path: str = ""

    def __bool__(self) -> bool:
        return bool(self.data or self.path)


@dataclass(frozen=True, slots=True)
class ExecConfig:
    """A credential plug-in: a program that prints an ExecCredential."""

    command: str
    api_version: str
    args: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = "IfAvailable"
    config: object = None
    """The cluster's client.authentication.k8s.io/exec extension, passed on to the program."""


@dataclass(frozen=True, slots=True)
class Impersonation:
    user: str = ""
    uid: str = ""
    groups: Sequence[str] = ()
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def headers(self) -> list[tuple[str, str]]:
        if not self.user:
            return []
        headers = [("Impersonate-User", self.user)]
        if self.uid:
            headers.append(("Impersonate-Uid", self.uid))
        headers += [("Impersonate-Group", group) for group in self.groups]
        for key, values in self.extra.items():
            headers += [(f"Impersonate-Extra-{_escape_key(key)}", value) for value in values]
        return headers


def _escape_key(key: str) -> str:
    """Header names carry letters, digits and a few signs; everything else is percent-encoded."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "!#$&'*+-.^_`|~") else _percent(c) for c in key)


def _percent(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode())


class ReloadedConfig(Protocol):
    """Where credentials come from that change while they are used."""

    def current(self) -> RestConfig: ...

    def adopt(self, kubeconfig: bytes) -> None:
        """Use the credentials of this kubeconfig from now on."""


@dataclass(frozen=True, slots=True)
class RestConfig:
    """Everything a transport needs. Secrets never show in its repr."""

    server: str
    ca: Material = field(default=Material(), repr=False)
    certificate: Material = field(default=Material(), repr=False)
    key: Material = field(default=Material(), repr=False)
    insecure: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    proxy_headers: Sequence[tuple[str, str]] = ()
    """Additional headers of a CONNECT request to an HTTP proxy."""
    disable_compression: bool = False
    token: str = field(default="", repr=False)
    token_file: str = ""
    username: str = ""
    password: str = field(default="", repr=False)
    exec: ExecConfig | None = None
    reloaded: ReloadedConfig | None = field(default=None, repr=False)
    """Its credentials count in place of those here, as they are at each request."""
    impersonate: Impersonation = Impersonation()
    namespace: str = "default"
    timeout: float = DEFAULT_TIMEOUT
    connect_timeout: float = 0.0
    """For how long a connection may be opened; 0: for as long as the whole call may take."""
    user_agent: str = "karmada"
