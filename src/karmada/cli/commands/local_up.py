"""`karmadactl local-up`: a control plane with members on this machine, in one command."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from karmada.cli.targeting import connect

if TYPE_CHECKING:
    from karmada.local.attaching import Attached
    from karmada.local.background import Leave
    from karmada.local.choosing import Requested
    from karmada.local.folder import Folder
    from karmada.local.up import Outcome, Up

F = TypeVar("F", bound=Callable[..., Any])


def data_dir_flag(help_text: str) -> Callable[[F], F]:
    return click.option(
        "--data-dir",
        type=click.Path(file_okay=False, path_type=Path),
        default=Path("~/.karmada"),
        show_default=True,
        help=help_text,
    )


@click.command()
@data_dir_flag("The folder for state, certificates and logs; created with mode 0700.")
@click.option(
    "--members",
    type=click.IntRange(min=0),
    show_default="3",
    help="The number of simulated members [as before, else 3].",
)
@click.option(
    "--pull-members",
    type=click.IntRange(min=0),
    show_default="0",
    help="How many of them, the last ones, are in mode Pull: registered, with an agent [as before, else 0].",
)
@click.option("--detach", is_flag=True, help="Return when everything runs; keep it running in the background.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    show_default="5443",
    help="The port of the control plane, 0 for any free one [as before, else 5443].",
)
@click.option("--no-dashboard", is_flag=True, help="Start without the dashboard.")
@click.option("--etcd", is_flag=True, help="Store the state in an etcd that is started along with the control plane.")
@click.option(
    "--etcd-server", default="", metavar="URL", help="Store the state in this running etcd: http://host:2379."
)
@click.option(
    "--attach",
    multiple=True,
    metavar="KUBECONFIG[:CONTEXT][=NAME]",
    help="Also join this cluster; may be repeated.",
)
@click.argument("flags", nargs=-1, type=click.UNPROCESSED, metavar="[-- FLAGS OF karmada]")
def local_up(
    data_dir: Path,
    members: int | None,
    pull_members: int | None,
    detach: bool,
    port: int | None,
    no_dashboard: bool,
    etcd: bool,
    etcd_server: str,
    attach: tuple[str, ...],
    flags: tuple[str, ...],
) -> None:
    """Start a control plane with simulated members on this machine.

    All state is in one folder and is used again by the next start. The command stays in the foreground and Ctrl-C stops
    everything, unless --detach is given. If it runs already, missing members are added.

    \b
    Examples:
      karmadactl local-up
      karmadactl local-up --members 5 --detach
      karmadactl local-up --members 3 --pull-members 1
      karmadactl local-up --data-dir /srv/karmada --etcd --port 6443
      karmadactl local-up --attach ~/.kube/config:kind-test=test
      karmadactl local-up -- --feature-gates Failover=true -v 2
    """
    from karmada.local.attaching import parse
    from karmada.local.background import in_background
    from karmada.local.choosing import Requested
    from karmada.local.folder import Folder, Refused

    try:
        requested = Requested(
            members=members,
            pull_members=pull_members,
            port=port,
            dashboard=not no_dashboard,
            etcd=etcd,
            etcd_server=etcd_server,
        )
        attached = [parse(text) for text in attach]
        connect.run(_up(Folder(data_dir), requested, attached, in_background() if detach else None, flags))
    except Refused as error:
        raise connect.failure(str(error)) from error


async def _up(
    folder: Folder, requested: Requested, attach: list[Attached], leave: Leave | None, flags: tuple[str, ...]
) -> None:
    """`leave`: it is in the background."""
    import sys

    from karmada.local.board import Board
    from karmada.local.folder import shown
    from karmada.local.up import SUPERVISOR, Interrupted, Up

    board = Board(sys.stdout)
    board.say(f"Starting in {shown(folder.root)}")
    up = Up(folder, board, detach=leave is not None, flags=flags, attach=attach)
    try:
        async with board:
            outcome = await up.start(requested)
    except Interrupted:
        click.echo("Interrupted; everything is stopped")
        click.get_current_context().exit(130)
    failed = board.failed
    foreground = leave is None and not outcome.already
    click.echo(_how_to_go_on(folder, outcome, board.seconds, failed, foreground=foreground))
    problem = connect.failure(f"not Ready: {', '.join(failed)}; see karmadactl local-status") if failed else None
    if outcome.already:
        up.leave()
        if problem is not None:
            raise problem
    elif leave is None:
        await _stay(up)
    else:
        if problem is not None:
            problem.show()
        leave(0 if problem is None else problem.exit_code, folder.log(SUPERVISOR))
        await _stay_behind(up)


async def _stay(up: Up) -> None:
    try:
        await up.until_stopped()
    finally:
        click.echo("\nStopping")
        await up.stop()
    click.echo("Stopped; the state is kept")


async def _stay_behind(up: Up) -> None:
    """Supervise in the background: the other programs keep running when one exits by itself and is not restarted."""
    from karmada.local.folder import Refused

    try:
        await up.until_stopped()
    except Refused as error:
        click.echo(error)
        up.leave()
    else:
        await up.stop()


def _how_to_go_on(folder: Folder, outcome: Outcome, seconds: float, failed: list[str], *, foreground: bool) -> str:
    import shutil
    import sys

    from karmada.local.folder import shown

    how = "Already running" if outcome.already else "Everything runs"
    if failed:
        how = f"Running, except {', '.join(failed)}"
    own = Path(sys.executable).with_name("karmadactl")
    lines = [f"\n{how} ({seconds:.1f} s). Next{' in another terminal' if foreground else ''}:\n"]
    if own.exists() and shutil.which("karmadactl") is None:
        lines.append(f"  export PATH={shown(own.parent)}:$PATH")
    flag = "" if folder.root == Path("~/.karmada").expanduser() else f" --data-dir {shown(folder.root)}"
    end = "Ctrl-C" if foreground else f"karmadactl local-down{flag}"
    lines += [
        f"  export KUBECONFIG={shown(folder.control_kubeconfig)}",
        "  kubectl get clusters                            # or karmadactl get clusters",
        f"  kubectl --kubeconfig {shown(folder.members_kubeconfig)} --context member1 get nodes",
        f"  karmadactl local-status{flag}",
        *_dashboard(outcome.choices.dashboard),
        "",
        f"Logs are in {shown(folder.logs)}. {end} stops it; the next start keeps the state.",
    ]
    return "\n".join(lines)


def _dashboard(address: str) -> list[str]:
    """Return where it is, and how to get in: the login page takes the kubeconfig above as a file or pasted."""
    if not address:
        return []
    return [f"  {address:<48}# the dashboard: log in with that kubeconfig"]
