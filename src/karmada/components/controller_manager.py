"""`karmada-controller-manager`: the controllers as a process of their own.

`karmada` has them built in. This is for a control plane whose API server is another process: a karmada-apiserver, or a
kube-apiserver. Of several such processes, and of one beside a `karmada`, one is the leader and the others stand by.
"""

from __future__ import annotations

from typing import Any

import click

from karmada.components import election
from karmada.components.flags import (
    client_flags,
    config_from,
    controller_flags,
    controller_process_flags,
    election_from,
    gates_from,
    health_address_from,
    limits_from,
    settings_from,
    together,
)
from karmada.components.process import Process, run_process
from karmada.components.program import CONTEXT, Program

COMPONENT = "karmada-controller-manager"
HEALTH_PORT = 10357

flags = together(client_flags, controller_flags, controller_process_flags(election.CONTROLLERS, HEALTH_PORT))


@click.command(COMPONENT, cls=Program, context_settings=CONTEXT)
@flags
def main(**given: Any) -> None:
    """Run the controllers of the control plane, until interrupted.

    \b
    Example:
      karmada-controller-manager --kubeconfig ~/.karmada/admin.kubeconfig --controllers '*,-namespace'
    """
    from karmada.kube.runtime.controller import BackOff

    gates, settings = gates_from(given), settings_from(given)

    def make() -> Process:
        process = Process(
            config_from(given),
            COMPONENT,
            gates,
            settings=settings,
            back_off=BackOff(**limits_from(given)),
            metrics_address=given["metrics_bind_address"],
            health_address=health_address_from(given),
        )
        process.assembly.add_controllers(election_from(given, election.CONTROLLERS))
        return process

    run_process(make, "Controllers", given)


if __name__ == "__main__":
    main()
