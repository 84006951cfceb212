"""Reports in the log that the certificate of an agent has expired, and what to do about it.

Without this, an expired certificate shows as refused connections. The agent itself goes on with its caches, and uses
a new certificate as soon as its kubeconfig has one.
"""

from __future__ import annotations

from typing import Final

from karmada.joining.pull.objects import KUBECONFIG_SECRET
from karmada.joining.pull.validity import load_chain, validity
from karmada.kube.client.config import ReloadedConfig
from karmada.kube.client.tls import MaterialReader
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.times import rfc3339
from karmada.kube.runtime.logging import get_logger

LOOK_SECONDS: Final = 60.0
log = get_logger("agent")


def expired_at(source: ReloadedConfig, now: float) -> float | None:
    """When the certificate expired; None while it is valid, and where there is none. ValueError if it is unreadable."""
    pem = MaterialReader(source.current().certificate).read()
    if not pem:
        return None
    end = validity(load_chain(pem)).end
    return end if end <= now else None


def advice(end: float, namespace: str) -> str:
    return (
        f"the certificate by which this agent reaches the control plane expired at {rfc3339(end)}: put a kubeconfig "
        f"with a new one into the Secret {namespace}/{KUBECONFIG_SECRET} of its cluster (docs/pull-mode.md, section "
        "An expired certificate)"
    )


class CertificateExpiry:
    """The certificate of an agent; `check` is called every LOOK_SECONDS."""

    def __init__(self, source: ReloadedConfig, namespace: str, clock: Clock) -> None:
        self._source = source
        self._namespace = namespace
        self._clock = clock
        self._reported: float | None = None

    async def check(self) -> None:
        end = self._expired()
        if end is not None and end != self._reported:
            log.error("The control plane refuses this agent", ValueError(advice(end, self._namespace)))
        elif end is None and self._reported is not None:
            log.info("The agent has a valid certificate again")
        self._reported = end

    def _expired(self) -> float | None:
        try:
            return expired_at(self._source, self._clock.now())
        except (OSError, ValueError) as error:
            log.error("The certificate of this agent cannot be read", error)
            return None
