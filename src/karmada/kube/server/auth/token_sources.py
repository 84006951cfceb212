"""Which other servers' tokens are accepted, as the command line says it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

SIGNING_ALGS: Final = ("RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512")


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcConfig:
    """Tokens of one OpenID Connect issuer for one client; ValueError names the flag that makes no sense."""

    issuer_url: str
    client_id: str
    username_claim: str = "sub"
    username_prefix: str = ""
    """Empty: the issuer and "#", but nothing before an email address; "-": nothing."""
    groups_claim: str = ""
    groups_prefix: str = ""
    required_claims: Mapping[str, str] = field(default_factory=dict)
    ca_file: Path | None = None
    """Authorities of the issuer's certificate; None: the system's."""
    signing_algs: tuple[str, ...] = ("RS256",)

    def __post_init__(self) -> None:
        parts = urlsplit(self.issuer_url)
        if parts.scheme != "https" or not parts.hostname or parts.query or parts.fragment:
            raise ValueError(f'--oidc-issuer-url: "{self.issuer_url}" is not a URL like https://accounts.example.com')
        if not self.client_id:
            raise ValueError("--oidc-client-id is needed with --oidc-issuer-url")
        unknown = [alg for alg in self.signing_algs if alg not in SIGNING_ALGS]
        if unknown or not self.signing_algs:
            known = ", ".join(SIGNING_ALGS)
            raise ValueError(f'--oidc-signing-algs: "{", ".join(unknown)}" is not supported; use some of {known}')

    @property
    def prefix(self) -> str:
        """Return what stands before the names of its users."""
        if self.username_prefix:
            return "" if self.username_prefix == "-" else self.username_prefix
        return "" if self.username_claim == "email" else f"{self.issuer_url}#"


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenWebhookConfig:
    """A server that reviews tokens; `file` is the kubeconfig by which it is reached."""

    file: Path
    version: str = "v1beta1"
    cache_seconds: float = 120.0
