"""`karmada-scheduler-estimator`: how many replicas fit on the nodes of one member, over gRPC.

One process for each member; it is a client of that member's API server. `--cluster-name` is the member's name in the
control plane: requests for another are refused.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from karmada.components.flags import (
    Endpoints,
    config_from,
    endpoint_flags,
    endpoints_from,
    feature_gates_flag,
    file,
    gates_from,
    ignored,
    kube_api_flags,
    logging_flags,
    refuse,
    switch,
    together,
)
from karmada.components.process import NOWHERE, Process, run_process
from karmada.components.program import CONTEXT, Program

if TYPE_CHECKING:
    from karmada.estimator.server import ServingFiles
    from karmada.kube.client.config import RestConfig
    from karmada.kube.objects.errors import FieldError
    from karmada.kube.runtime.features import FeatureGates

COMPONENT = "karmada-scheduler-estimator"
PORT, HEALTH_PORT = 10352, 10351


class EstimatorProcess(Process):
    """`member` is the way to the cluster; `port` 0 takes a free one."""

    def __init__(
        self,
        member: RestConfig,
        cluster: str,
        gates: FeatureGates,
        *,
        host: str = "::",
        port: int = PORT,
        files: ServingFiles | None = None,
        endpoints: Endpoints = NOWHERE,
    ) -> None:
        from karmada.estimator.estimator import NOT_OVER, ClusterEstimator
        from karmada.estimator.metrics import EstimatorMetrics
        from karmada.estimator.server import EstimatorServer

        super().__init__(member, COMPONENT, gates, endpoints=endpoints)
        metrics = EstimatorMetrics(self.manager.clock)
        self.metrics.registry.register(metrics)
        self.estimator = ClusterEstimator(
            cluster, self.manager.informers, gates, self.manager.clock, pods=NOT_OVER, metrics=metrics
        )
        self.estimator.start(workloads=True)
        self.server = EstimatorServer(self.estimator, host=host, port=port, files=files)
        self.manager.add_component(self.server)


flags = together(
    click.option(
        "--kubeconfig", default="", help="Kubeconfig of the member.  [default: the account of the pod, else as kubectl]"
    ),
    click.option("--master", default="", help="Address of the member, in place of the one in the kubeconfig."),
    click.option("--cluster-name", default="", help="Name of the member in the control plane."),
    click.option("--server-port", default=PORT, help="Port of the gRPC service."),
    file("--grpc-auth-cert-file", "Certificate of the gRPC service.  [default: the service is not encrypted]"),
    file("--grpc-auth-key-file", "Its private key."),
    file("--grpc-client-ca-file", "Authority of clients: without a certificate from it they are refused."),
    switch("--insecure-skip-grpc-client-verify", False, "Admit clients without a certificate all the same."),
    feature_gates_flag,
    kube_api_flags,
    ignored("--parallelism", "all nodes are computed at once."),
    endpoint_flags(HEALTH_PORT),
    logging_flags,
)


_NO_CIPHER: Final = "ECDHE-PSK-CHACHA20-POLY1305"
"""gRPC has no setting for the least version of TLS. With no cipher but one that needs a secret nobody has, 1.2 is ruled
out, while 1.3 has ciphers of its own. gRPC reads this once in a process, before its first connection."""


@click.command(COMPONENT, cls=Program, context_settings=CONTEXT)
@flags
def main(**given: Any) -> None:
    """Estimate how many replicas fit on the nodes of a member, for schedulers, until interrupted.

    \b
    Example:
      karmada-scheduler-estimator --cluster-name member1 --kubeconfig member1.kubeconfig \\
        --grpc-auth-cert-file server.crt --grpc-auth-key-file server.key --grpc-client-ca-file ca.crt
    """
    refuse(_wrong(given))
    gates = gates_from(given)
    os.environ.setdefault("GRPC_SSL_CIPHER_SUITES", _NO_CIPHER)
    run_process(lambda: _process(given, gates), f"Estimator of cluster {given['cluster_name']}", given)


def _wrong(given: dict[str, Any]) -> list[FieldError]:
    from karmada.kube.objects.errors import invalid

    wrong: list[FieldError] = []
    if not given["cluster_name"]:
        wrong.append(invalid("Options.ClusterName", "", "clusterName cannot be empty"))
    port = given["server_port"]
    if not 0 <= port <= 65535:
        wrong.append(invalid("Options.ServerPort", port, "must be a valid port between 0 and 65535 inclusive"))
    cert, key, authority = (given[f"grpc_{name}_file"] for name in ("auth_cert", "auth_key", "client_ca"))
    if (cert is None) != (key is None):
        field, path, other = ("GrpcAuthCertFile", cert, "key") if cert else ("GrpcAuthKeyFile", key, "cert")
        wrong.append(invalid(f"Options.{field}", str(path), f"needs --grpc-auth-{other}-file"))
    if authority is not None and cert is None and key is None:
        text = "clients are verified over TLS only: needs --grpc-auth-cert-file and --grpc-auth-key-file"
        wrong.append(invalid("Options.GrpcClientCaFile", str(authority), text))
    return wrong


def _process(given: dict[str, Any], gates: FeatureGates) -> EstimatorProcess:
    from karmada.kube.client.grpc_extra import missing_grpc

    try:
        files = _files(given)
        return EstimatorProcess(
            config_from(given),
            given["cluster_name"],
            gates,
            port=given["server_port"],
            files=files,
            endpoints=endpoints_from(given),
        )
    except ModuleNotFoundError as error:
        raise ValueError(missing_grpc(COMPONENT, error)) from error


def _files(given: dict[str, Any]) -> ServingFiles | None:
    from karmada.estimator.server import ServingFiles

    certificate: Path | None = given["grpc_auth_cert_file"]
    if certificate is None:
        click.echo("Warning: the gRPC service is not encrypted (no --grpc-auth-cert-file)", err=True)
        return None
    return ServingFiles(
        certificate,
        given["grpc_auth_key_file"],
        given["grpc_client_ca_file"],
        given["insecure_skip_grpc_client_verify"],
    )


if __name__ == "__main__":
    main()
