"""`karmada-sim`: the process in which simulated clusters live. `karmadactl sim create` starts it when it is needed."""

from __future__ import annotations

import fcntl
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from karmada.components.program import Program
from karmada.components.running import begin, namespace_deletion_flag, ready_flag, report_ready

if TYPE_CHECKING:
    from karmada.kube.sim.fleet import Fleet

DEFAULT_FOLDER = Path("~/.karmada/sim")


@click.command(
    "karmada-sim", cls=Program, context_settings={"help_option_names": ["-h", "--help"], "show_default": True}
)
@click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=DEFAULT_FOLDER,
    help="Where the clusters' state, certificates and kubeconfigs are; made with mode 0700 when it does not exist.",
)
@click.option("--in-memory", is_flag=True, help="Keep the clusters' state in memory only.")
@click.option(
    "--run-processes",
    is_flag=True,
    help="New clusters run pods of known images as processes of this machine, as this user.",
)
@click.option(
    "--process-images",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A YAML file with further images for that: image pattern -> command.",
)
@namespace_deletion_flag
@ready_flag
@click.option("-v", "--verbosity", default=0, help="How much to log, as in Kubernetes.")
def main(
    data_dir: Path,
    in_memory: bool,
    run_processes: bool,
    process_images: Path | None,
    namespace_deletion_delay: float,
    ready_fd: int | None,
    verbosity: int,
) -> None:
    """Run the simulated clusters of a folder, and create more on request, until interrupted.

    \b
    Example:
      karmada-sim --data-dir ~/.karmada/sim &
      karmadactl sim create member1 --nodes 5
    """
    import uvloop

    from karmada.components.process_images import known_images
    from karmada.kube.sim.fleet import Fleet, ProcessDefaults

    images = str(process_images.absolute()) if process_images is not None else ""
    fleet = Fleet(
        data_dir.expanduser().absolute(),
        in_memory=in_memory,
        namespace_deletion_delay=namespace_deletion_delay,
        processes=ProcessDefaults(known=known_images(), run=run_processes, images=images),
    )
    uvloop.run(serve(fleet, verbosity, ready_fd))


async def serve(fleet: Fleet, verbosity: int, ready_fd: int | None) -> None:
    from karmada.kube.runtime.watchdog import watching_for_stalls
    from karmada.kube.sim.admin import AdminServer

    stopping = begin(verbosity=verbosity)
    lock = _lock(fleet.folder)
    admin = AdminServer(fleet, stopping.set)
    try:
        await fleet.start(_show_progress)
        await admin.start()
        click.echo(f"{len(fleet.clusters)} simulated clusters; kubeconfig {fleet.kubeconfig}")
        report_ready(ready_fd, {})
        with watching_for_stalls():
            await stopping.wait()
    finally:
        click.echo("Stopping", file=sys.stderr)
        await admin.stop()
        await fleet.stop()
        os.close(lock)


def _lock(folder: Path) -> int:
    """Lock the folder for this process; the lock is released when the process ends, even by a crash."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(folder / "process.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise click.ClickException(f"simulated clusters already run in {folder}") from None
    return descriptor


def _show_progress(done: int, all_of_them: int) -> None:
    if sys.stderr.isatty():
        click.echo(f"\rStarted {done} of {all_of_them} clusters", nl=done == all_of_them, err=True)


if __name__ == "__main__":
    main()
