"""How estimators are found and called: the flags that the scheduler and the descheduler have in common."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from karmada.api.well_known import ESTIMATOR_PREFIX, estimator_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Whereabouts:
    """How the Services of estimators are called, and the port they serve."""

    namespace: str = "karmada-system"
    prefix: str = ESTIMATOR_PREFIX
    port: int = 10352

    def service(self, cluster: str) -> str:
        return estimator_name(cluster, self.prefix)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """Files of a client. Without an authority calls are in plain text, unless verification is to be skipped."""

    authority: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    insecure: bool = False
    """True if the server's certificate is not verified."""

    @property
    def plain(self) -> bool:
        return self.authority is None and not self.insecure

    def own(self) -> tuple[bytes | None, bytes | None]:
        """Key and certificate of the client; both or none."""
        if self.certificate is None or self.key is None:
            return None, None
        return self.key.read_bytes(), self.certificate.read_bytes()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientOptions:
    where: Whereabouts = field(default_factory=Whereabouts)
    tls: Tls = field(default_factory=Tls)
    timeout: float = 3.0
    """Seconds for all calls of one estimate together."""
    skip_pull: bool = False
    """True if estimators of clusters in mode Pull are left alone."""
