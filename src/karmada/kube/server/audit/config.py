"""Where audit events go, as the command line says it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from karmada.kube.server.audit.policy import METADATA_ONLY, Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditWebhookConfig:
    """`file` is the kubeconfig of the server that gets the events, in batches."""

    file: Path
    buffer: int = 10_000
    """Events that may wait; what comes when so many do is dropped and counted."""
    batch: int = 400
    wait_seconds: float = 30.0
    """How long an event may wait for a batch to fill."""
    first_pause: float = 10.0
    """Before a batch that could not be sent is tried again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditConfig:
    policy: Policy = METADATA_ONLY
    log_path: Path | None = None
    max_megabytes: int = 100
    """The log is rotated before it is larger than this."""
    max_backups: int = 0
    """Rotated files to keep; 0: all."""
    max_days: int = 0
    """How old rotated files may become; 0: any age."""
    webhook: AuditWebhookConfig | None = None

    @property
    def enabled(self) -> bool:
        return self.log_path is not None or self.webhook is not None
