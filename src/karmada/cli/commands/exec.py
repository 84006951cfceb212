"""`karmadactl exec`: run a command in a container of a member, or of the server itself."""

from __future__ import annotations

from collections.abc import Sequence

import click

from karmada.cli.parsing.after_dashes import AfterDashes, behind_dashes
from karmada.cli.streams import remote_commands
from karmada.cli.targeting import connect, pods


@click.command("exec", cls=AfterDashes, options_metavar="[-c CONTAINER] [flags] -- COMMAND [args...]")
@click.argument("words", nargs=-1, metavar="(POD | TYPE/NAME)")
@remote_commands.flags("command", tty="Allocate a terminal for the command.")
@click.option("-f", "--filename", "filenames", multiple=True, help="A file with the object whose pod to use.")
def exec_(words: tuple[str, ...], filenames: tuple[str, ...], flags: remote_commands.Flags) -> None:
    """Run COMMAND in a container; the exit code is that of the command.

    \b
    Examples:
      karmadactl exec nginx --cluster=member1 -- date
      karmadactl exec -it deployment/nginx -c web --cluster=member1 -- sh
      tar c . | karmadactl exec -i nginx --cluster=member1 -- tar x -C /tmp
    """
    command = behind_dashes()
    if command is None and len(words) + bool(filenames) > 1:
        raise connect.usage("exec [POD] [COMMAND] is not supported anymore. Use exec [POD] -- [COMMAND] instead")
    if not words and not filenames:
        raise connect.failure("pod, type/name or --filename must be specified")
    if not command:
        raise connect.failure("you must specify at least one command for the container")
    word = words[0] if words else ""
    remote_commands.end_with(_execute(flags, flags.place(), word, filenames, command))


async def _execute(
    flags: remote_commands.Flags,
    place: remote_commands.Place,
    word: str,
    filenames: Sequence[str],
    command: Sequence[str],
) -> int:
    from karmada.cli.streams import local_terminal
    from karmada.kube.client.pod_streams import execute

    ends = flags.ends()
    async with place.open() as session:
        pod = await place.pod(session, word, filenames, flags.pod_running_timeout)
        pods.not_completed(pod, "cannot exec into a container in a completed pod")
        name = flags.container or pods.chosen_container(pod, "", ends.notify)["name"]
        terminal = ends.terminal()
        metadata = pod["metadata"]
        starting = execute(
            session.client.transport,
            metadata.get("namespace", ""),
            metadata["name"],
            command,
            container=name,
            stdin=ends.stdin,
            tty=terminal,
        )
        remote = await remote_commands.connected(starting)
        size = local_terminal.size() if terminal else None
        code = await remote_commands.converse(
            remote, stdin=ends.stdin, terminal=terminal, sizes=[size] if size is not None else []
        )
    if code:
        click.echo(f"command terminated with exit code {code}", err=True)
    return code
