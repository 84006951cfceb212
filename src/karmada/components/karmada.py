"""`karmada`: the whole control plane as one process: API server, admission, controllers and scheduler."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from karmada.components.dashboard_flags import dashboard_flags, dashboard_options_from
from karmada.components.descheduler_flags import descheduling_options_from, optional_descheduling_flags
from karmada.components.estimator_flags import (
    in_process_estimator_flag,
    scheduler_client_from,
    scheduler_estimator_flags,
)
from karmada.components.flags import (
    admission_flags,
    controller_flags,
    duration,
    feature_gates_flag,
    gates_from,
    logging_flags,
    settings_from,
    together,
)
from karmada.components.program import CONTEXT, Program
from karmada.components.running import ready_flag, run_server
from karmada.components.search_flags import search_flags, search_options_from
from karmada.components.server_flags import server_config, server_flags

if TYPE_CHECKING:
    from karmada.components.controlplane import ControlPlane
    from karmada.components.flags import Given
    from karmada.components.workers import WorkerOptions

workers_flags = together(
    click.option(
        "--workers",
        type=click.IntRange(min=1),
        default=1,
        metavar="N",
        help="How many processes the controllers run in. With 2 or more they share the work, each on a part of the "
        "clusters and namespaces; this process keeps the API server and the scheduler. 1: all in this one.",
    ),
    click.option(
        "--worker-metrics-port",
        type=click.IntRange(0, 65535),
        default=0,
        metavar="PORT",
        help="Port on 127.0.0.1 of the first worker's /metrics, /healthz and /readyz; the next worker has the next. "
        "0: free ports, which the log names.",
    ),
    duration(
        "--worker-lease-duration",
        "15s",
        "How long a worker that hangs keeps its part of the work, before the others take it over.",
    ),
)

flags = together(
    server_flags,
    click.option(
        "--public-url",
        default="",
        help="URL by which clients elsewhere reach this server, such as a load balancer's; clusters that register are "
        "given it.  [default: the advertised address and the port]",
    ),
    feature_gates_flag,
    admission_flags,
    controller_flags,
    workers_flags,
    in_process_estimator_flag,
    scheduler_estimator_flags,
    optional_descheduling_flags,
    search_flags,
    dashboard_flags,
    ready_flag,
    logging_flags,
)


def workers_from(given: Given) -> WorkerOptions | None:
    """None: the controllers run in this process."""
    from karmada.components.workers import WorkerOptions

    if given["worker_lease_duration"] < 1:
        raise click.BadParameter("must be at least 1s", param_hint="--worker-lease-duration")
    if given["workers"] == 1:
        return None
    return WorkerOptions(given["workers"], sys.argv[1:], given["worker_metrics_port"])


@click.command("karmada", cls=Program, context_settings=CONTEXT)
@flags
def main(**given: Any) -> None:
    """Run a multi-cluster control plane: its API, everything behind it, and nothing else to install.

    \b
    Example:
      karmada --data-dir ~/.karmada &
      karmadactl join member1 --kubeconfig ~/.karmada/admin.kubeconfig --cluster-kubeconfig member1.config
      karmada --data-dir ~/.karmada --workers 4   # the controllers on up to four cores more
    """
    config = replace(server_config(given), public_url=given["public_url"])
    settings, gates = settings_from(given), gates_from(given)
    descheduling = descheduling_options_from(given)
    client = scheduler_client_from(given)
    taint_policies = given["allow_no_execute_taint_policy"]
    workers = workers_from(given)

    made: list[ControlPlane] = []

    def make() -> ControlPlane:
        from karmada.components.controlplane import ControlPlane

        plane = ControlPlane(
            config,
            settings=settings,
            gates=gates,
            allow_no_execute_taint_policy=taint_policies,
            estimators=client,
            descheduling=descheduling if given["enable_descheduler"] else None,
            in_process_estimator=given["in_process_estimator"],
            search=search_options_from(given),
            dashboard=dashboard_options_from(given),
            workers=workers,
        )
        made.append(plane)
        return plane

    def addresses() -> dict[str, str]:
        dashboards = [plane.dashboard.url for plane in made if plane.dashboard is not None]
        return {"dashboard": dashboards[-1]} if dashboards else {}

    run_server(config, make, "Control plane", given, addresses)


if __name__ == "__main__":
    main()
