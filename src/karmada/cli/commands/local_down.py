"""`karmadactl local-down`: stop a local environment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from karmada.cli.commands.local_up import data_dir_flag
from karmada.cli.targeting import connect

if TYPE_CHECKING:
    from pathlib import Path

    from karmada.local.folder import Folder


@click.command()
@data_dir_flag("The folder of local-up.")
@click.option("--purge", is_flag=True, help="Also remove all state, certificates and logs.")
@click.option("-f", "--force", is_flag=True, help="Skip the confirmation.")
def local_down(data_dir: Path, purge: bool, force: bool) -> None:
    """Stop the control plane and the simulated members of a folder.

    The state is kept for the next local-up, unless --purge is given.

    \b
    Examples:
      karmadactl local-down
      karmadactl local-down --purge --force
    """
    from karmada.local.folder import Folder, Refused

    folder = Folder(data_dir)
    try:
        if purge and not force and not _agreed(folder):
            return
        connect.run(_down(folder, purge))
    except Refused as error:
        raise connect.failure(str(error)) from error


def _agreed(folder: Folder) -> bool:
    """Prompt until there is a valid reply; without a terminal, --force is required."""
    import sys

    from karmada.local.down import attached_names
    from karmada.local.folder import shown

    if not sys.stdin.isatty():
        raise connect.failure("--purge needs confirmation and standard input is closed: add --force")
    attached = connect.run(attached_names(folder))
    if attached:
        click.echo(f"Propagated resources stay in clusters that are not unjoined first: {', '.join(attached)}")
    while True:
        answer = input(f"Remove everything from {shown(folder.root)}? [y/n] ").strip().lower()
        if answer in ("y", "yes"):
            return True
        if answer in ("n", "no"):
            return False


async def _down(folder: Folder, purge: bool) -> None:
    from karmada.local.down import down
    from karmada.local.down import purge as remove
    from karmada.local.folder import shown

    stopped = await down(folder)
    click.echo(f"Stopped {', '.join(stopped)}" if stopped else f"Nothing runs in {shown(folder.root)}")
    if purge:
        await remove(folder)
        click.echo(f"Removed everything from {shown(folder.root)}")
