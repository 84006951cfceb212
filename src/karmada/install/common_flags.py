"""Flags that several components of an installation have."""

from __future__ import annotations

from typing import Final

from karmada.install.names import CONFIG_FILE, PKI_FOLDER, SERVING_PORT

DELEGATED: Final = tuple(f"--{name}kubeconfig={CONFIG_FILE}" for name in ("", "authentication-", "authorization-"))
"""Flags of an API behind the control plane's: who calls, and what they may do, is decided there."""
SERVING: Final = (
    f"--tls-cert-file={PKI_FOLDER}/karmada.crt",
    f"--tls-private-key-file={PKI_FOLDER}/karmada.key",
    "--tls-min-version=VersionTLS13",
    "--audit-log-path=-",
    "--audit-log-maxage=0",
    "--audit-log-maxbackup=0",
    "--bind-address=$(POD_IP)",
    f"--secure-port={SERVING_PORT}",
)


def estimator_flags(namespace: str) -> list[str]:
    """Return how the estimators are reached, which are in this namespace of the host cluster."""
    return [
        f"--scheduler-estimator-ca-file={PKI_FOLDER}/ca.crt",
        f"--scheduler-estimator-cert-file={PKI_FOLDER}/karmada.crt",
        f"--scheduler-estimator-key-file={PKI_FOLDER}/karmada.key",
        f"--scheduler-estimator-service-namespace={namespace}",
    ]
