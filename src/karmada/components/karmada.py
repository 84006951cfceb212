"""`karmada`: the whole control plane as one process: API server, admission, controllers and scheduler."""

from __future__ import annotations

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
    in_process_estimator_flag,
    scheduler_estimator_flags,
    optional_descheduling_flags,
    search_flags,
    dashboard_flags,
    ready_flag,
    logging_flags,
)


@click.command("karmada", cls=Program, context_settings=CONTEXT)
@flags
def main(**given: Any) -> None:
    """Run a multi-cluster control plane: its API, everything behind it, and nothing else to install.

    \b
    Example:
      karmada --data-dir ~/.karmada &
      karmadactl join member1 --kubeconfig ~/.karmada/admin.kubeconfig --cluster-kubeconfig member1.config
    """
    config = replace(server_config(given), public_url=given["public_url"])
    settings, gates = settings_from(given), gates_from(given)
    descheduling = descheduling_options_from(given)
    client = scheduler_client_from(given)
    taint_policies = given["allow_no_execute_taint_policy"]

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
        )
        made.append(plane)
        return plane

    def dashboard() -> list[str]:
        return [f"  dashboard at {plane.dashboard.url}" for plane in made if plane.dashboard is not None]

    run_server(config, make, "Control plane", given, dashboard)


if __name__ == "__main__":
    main()
