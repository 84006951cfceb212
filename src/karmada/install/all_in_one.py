"""The whole control plane as one Deployment: `karmada` with SQLite on a volume."""

from __future__ import annotations

from karmada.install.common_flags import estimator_flags
from karmada.install.components import (
    SERVICE_RANGE,
    account_flags,
    serving_api,
)
from karmada.install.names import API_PORT, PKI_FOLDER, PROGRAMS, STATE_FOLDER
from karmada.install.options import Options
from karmada.install.preflight import url_of
from karmada.kube.objects.types import Obj


def all_in_one(options: Options) -> Obj:
    return serving_api(all_in_one_flags(options), options)


def all_in_one_flags(options: Options) -> list[str]:
    address = options.advertise_address
    return [
        f"{PROGRAMS}/karmada",
        f"--data-dir={STATE_FOLDER}",
        "--bind-address=0.0.0.0",
        f"--secure-port={API_PORT}",
        "--advertise-address=$(POD_IP)",
        *([f"--public-url={url_of(address, options.port)}"] if address else []),
        f"--client-ca-file={PKI_FOLDER}/ca.crt",
        *account_flags(options),
        f"--service-cluster-ip-range={SERVICE_RANGE}",
        f"--tls-cert-file={PKI_FOLDER}/apiserver.crt",
        f"--tls-private-key-file={PKI_FOLDER}/apiserver.key",
        "--tls-min-version=VersionTLS13",
        "--enable-scheduler-estimator=true",
        *estimator_flags(options.namespace),
        "--v=2",
    ]
