"""`karmadactl local-status`: the status of a local environment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from karmada.cli.commands.local_up import data_dir_flag
from karmada.cli.output.columns import aligned
from karmada.cli.targeting import connect

if TYPE_CHECKING:
    from pathlib import Path

    from karmada.local.status import Status


@click.command()
@data_dir_flag("The folder of local-up.")
@click.option("-o", "--output", type=click.Choice(["json"]), help="Another form.")
def local_status(data_dir: Path, output: str | None) -> None:
    """Show the processes, endpoints, members, kubeconfigs and dashboard of a folder.

    The exit code is 0 when everything runs and every member is Ready, otherwise 1, with the problems on stderr.

    \b
    Examples:
      karmadactl local-status
      karmadactl local-status -o json
    """
    from karmada.local.folder import Folder, Refused
    from karmada.local.status import look

    try:
        status = connect.run(look(Folder(data_dir)))
    except Refused as error:
        raise connect.failure(str(error)) from error
    click.echo(_json(status) if output == "json" else _text(status))
    for problem in status.problems if output != "json" else ():
        click.echo(f"! {problem}", err=True)
    if not status.healthy:
        click.get_current_context().exit(1)


def _json(status: Status) -> str:
    import json

    import msgspec

    return json.dumps({**msgspec.to_builtins(status), "healthy": status.healthy}, indent=2)


def _text(status: Status) -> str:
    from pathlib import Path

    from karmada.local.folder import shown

    lines = [f"Folder:  {shown(Path(status.folder))} ({status.mode})", f"Version: v{status.version}"]
    if status.processes:
        rows = [["PROCESS", "STATE", "PID", "KUBERNETES", "ENDPOINT", "LOG"]]
        for process in status.processes:
            state = "running" if process.pid else "stopped"
            log = shown(Path(process.log))
            rows.append([process.name, state, str(process.pid or ""), process.version, process.endpoint, log])
        lines += ["", *aligned(rows)]
    if status.clusters:
        rows = [["CLUSTER", "KUBERNETES", "MODE", "READY", "ENDPOINT"]]
        rows += [[one.name, one.version, one.mode, one.ready, one.endpoint] for one in status.clusters]
        lines += ["", *aligned(rows)]
    if status.kubeconfigs:
        rows = [["KUBECONFIG", "CONTEXTS"]]
        rows += [[shown(Path(path)), ", ".join(contexts)] for path, contexts in status.kubeconfigs.items()]
        lines += ["", *aligned(rows)]
    if status.dashboard:
        lines += ["", f"Dashboard: {status.dashboard}"]
    return "\n".join(lines)
