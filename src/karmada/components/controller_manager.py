"""`karmada-controller-manager`: the controllers as a process of their own.

`karmada` has them built in. This is for a control plane whose API server is another process: a karmada-apiserver, or a
kube-apiserver. Of several such processes, and of one beside a `karmada`, one is the leader and the others stand by;
with `--share-work` all of them work, each on its part (docs/high-availability.md).
"""

from __future__ import annotations

from typing import Any

import click

from karmada.components import election
from karmada.components.flags import (
    Given,
    client_flags,
    config_from,
    controller_flags,
    controller_process_flags,
    election_from,
    endpoints_from,
    gates_from,
    limits_from,
    settings_from,
    switch,
    together,
)
from karmada.components.process import Process, run_process
from karmada.components.program import CONTEXT, Program
from karmada.components.sharing import Sharing

COMPONENT = "karmada-controller-manager"
HEALTH_PORT = 10357

flags = together(
    client_flags,
    controller_flags,
    switch(
        "--share-work",
        False,
        "Work at the same time as the other replicas with this flag, each on a part of the clusters and namespaces. "
        "The lease of --leader-elect is then that of all of them, so that none works beside a replica without it.",
    ),
    controller_process_flags(election.CONTROLLERS, HEALTH_PORT),
)


def sharing_from(given: Given) -> Sharing | None:
    """click.ClickException for flags that contradict it."""
    if not given["share_work"]:
        return None
    elected = election_from(given, election.CONTROLLERS)
    if elected is None:
        raise click.ClickException("--share-work needs the leases that --leader-elect=false disables; drop one of them")
    return Sharing(election=elected)


@click.command(COMPONENT, cls=Program, context_settings=CONTEXT)
@flags
def main(**given: Any) -> None:
    """Run the controllers of the control plane, until interrupted.

    \b
    Example:
      karmada-controller-manager --kubeconfig ~/.karmada/admin.kubeconfig --controllers '*,-namespace'
      karmada-controller-manager --kubeconfig ~/.karmada/admin.kubeconfig --share-work
    """
    from karmada.kube.runtime.back_off import BackOff

    gates, settings, sharing = gates_from(given), settings_from(given), sharing_from(given)

    def make() -> Process:
        process = Process(
            config_from(given),
            COMPONENT,
            gates,
            settings=settings,
            back_off=BackOff(**limits_from(given)),
            endpoints=endpoints_from(given),
            sharing=sharing,
        )
        if sharing is None:
            process.assembly.add_controllers(election_from(given, election.CONTROLLERS))
        return process

    run_process(make, "Controllers", given)


if __name__ == "__main__":
    main()
