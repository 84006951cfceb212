"""`karmada-apiserver`: the embedded Kubernetes API server as a process of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from karmada.components.flags import F, Given, logging_flags, together
from karmada.components.program import CONTEXT, Program
from karmada.components.running import ready_flag, run_server
from karmada.components.server_flags import server_config, server_flags


def api_server_flags(*, controllers: bool) -> Callable[[F], F]:
    return together(
        server_flags,
        click.option(
            "--controllers/--no-controllers",
            default=controllers,
            help="Run the controllers that a kube-controller-manager would run: namespaces, garbage collection, "
            "tokens, certificates.",
        ),
        ready_flag,
        logging_flags,
    )


@click.command("karmada-apiserver", cls=Program, context_settings=CONTEXT)
@api_server_flags(controllers=True)
def main(**given: Any) -> None:
    """Serve the Kubernetes API from one process: no Docker, and no etcd unless you want it.

    On the first start it makes its certificates; then it writes admin.kubeconfig into the data directory and serves
    until it is interrupted. Every answered write is on disk.
    """
    serve(given)


def serve(given: Given) -> None:
    """Until interrupted."""
    config = server_config(given, cluster_controllers=given["controllers"])

    def make() -> Any:
        from karmada.kube.server.app import ApiServer

        return ApiServer(config)

    run_server(config, make, f"Kubernetes API {config.git_version}", given)


if __name__ == "__main__":
    main()
