"""`karmadactl attach`: attach to a container of a member or of the server itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from karmada.cli.streams import remote_commands
from karmada.cli.targeting import connect, pods

if TYPE_CHECKING:
    from karmada.cli.streams.local_terminal import Size
    from karmada.kube.objects.types import Obj


@click.command()
@click.argument("words", nargs=-1, metavar="(POD | TYPE/NAME)")
@remote_commands.flags("process", tty="Standard input is a terminal.")
def attach(words: tuple[str, ...], flags: remote_commands.Flags) -> None:
    """Attach to the process of a running container: show its output and, with -i, send it input.

    \b
    Examples:
      karmadactl attach nginx --cluster=member1
      karmadactl attach -it deployment/shell -c sh --cluster=member1
    """
    if not words:
        raise connect.failure("at least 1 argument is required for attach")
    if len(words) > 2:
        seen = f"saw {len(words)}: [{' '.join(words)}]"
        raise connect.failure(f"expected POD, TYPE/NAME, or TYPE NAME, (at most 2 arguments) {seen}")
    command = click.get_current_context().command_path
    remote_commands.end_with(_attach(flags, flags.place(), "/".join(words), command))


async def _attach(flags: remote_commands.Flags, place: remote_commands.Place, word: str, command: str) -> int:
    from karmada.cli.streams import local_terminal
    from karmada.kube.client import pod_streams

    ends = flags.ends()
    async with place.open() as session:
        pod = await place.pod(session, word, (), flags.pod_running_timeout)
        pods.not_completed(pod, "cannot attach a container in a completed pod")
        found = _container(pod, flags.container, ends)
        if ends.tty and not found.get("tty"):
            ends.notify(f"error: Unable to use a TTY - container {found['name']} did not allocate one")
        ends = remote_commands.Ends(ends.stdin, bool(found.get("tty")), ends.quiet)
        terminal = ends.terminal()
        ends.notify("If you don't see a command prompt, try pressing enter.")
        metadata = pod["metadata"]
        starting = pod_streams.attach(
            session.client.transport,
            metadata.get("namespace", ""),
            metadata["name"],
            container=found["name"],
            stdin=ends.stdin,
            tty=terminal,
        )
        remote = await remote_commands.connected(starting)
        sizes = _redrawn(local_terminal.size()) if terminal else []
        code = await remote_commands.converse(remote, stdin=ends.stdin, terminal=terminal, sizes=sizes)
    if terminal and pod["spec"].get("restartPolicy", "Always") == "Always" and not code:
        again = f"{command} {metadata['name']} -c {found['name']} -i -t"
        ends.say(f"Session ended, resume using '{again}' command when the pod is running")
    return code


def _container(pod: Obj, name: str, ends: remote_commands.Ends) -> Obj:
    try:
        return pods.chosen_container(pod, name, ends.notify)
    except connect.Failure as error:
        raise connect.failure(f"cannot attach to the container: {connect.reason(error)}") from error


def _redrawn(size: Size | None) -> list[Size]:
    """Return a size one larger, then the real one: the change makes the remote program redraw its screen."""
    return [] if size is None else [type(size)(size.width + 1, size.height + 1), size]
