"""One of the workers of `karmada --workers N`: the controllers, over the network, sharing the work with the others.

Not for people: `karmada` starts it with its own flags (see workers); karmada-controller-manager --share-work is the
same for other machines.
"""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING, Any

import click

from karmada.components import election
from karmada.components.election import Election
from karmada.components.flags import Endpoints, address, gates_from, settings_from, together
from karmada.components.karmada import flags
from karmada.components.process import Process, run_process
from karmada.components.program import CONTEXT, Program
from karmada.components.sharing import Sharing
from karmada.controllers.context import CONTROLLER_MANAGER
from karmada.kube.runtime.logging import get_logger

if TYPE_CHECKING:
    from karmada.components.flags import Given

_STDIN = 0
log = get_logger("worker")

worker_flags = together(
    click.option("--worker-name", required=True, help="What the names of its Leases begin with."),
    click.option("--worker-kubeconfig", required=True, help="Kubeconfig of the control plane; it is followed."),
    address("--worker-address", "0", "Address of /metrics, /healthz and /readyz."),
)


def sharing_of(given: Given) -> Sharing:
    """With the times of other leases, in the same relation to each other."""
    duration: float = given["worker_lease_duration"]
    own = Election(
        name=election.CONTROLLERS,
        lease_duration=duration,
        renew_deadline=duration * 2 / 3,
        retry_period=duration * 2 / 15,
    )
    return Sharing(election=own, replica=given["worker_name"])


def _end_with_parent() -> None:
    """Wait for the end of standard input, which ends with the parent."""
    loop = asyncio.get_running_loop()

    def read() -> None:
        if not os.read(_STDIN, 1024):
            loop.remove_reader(_STDIN)
            os.kill(os.getpid(), signal.SIGTERM)

    loop.add_reader(_STDIN, read)


class Worker(Process):
    async def prepare(self) -> None:
        for endpoint in self.endpoints:
            log.info("Metrics and health", address=f"http://{endpoint.host}:{endpoint.port}")


@click.command("karmada-worker", cls=Program, context_settings=CONTEXT)
@flags
@worker_flags
def main(**given: Any) -> None:
    """Run controllers as one of the workers of a `karmada`, which starts them; ends when its standard input does."""
    gates, settings = gates_from(given), settings_from(given)

    def make() -> Process:
        from karmada.kube.client.reloading_kubeconfig import ReloadingKubeconfig

        _end_with_parent()
        return Worker(
            ReloadingKubeconfig(given["worker_kubeconfig"]).config(),
            CONTROLLER_MANAGER,
            gates,
            settings=settings,
            endpoints=Endpoints(given["worker_address"], given["worker_address"]),
            sharing=sharing_of(given),
        )

    quarantine = given["data_dir"].expanduser() / "workers" / f"{given['worker_name']}.quarantine.json"
    run_process(make, "Controllers", {**given, "quarantine_file": quarantine})


if __name__ == "__main__":
    main()
