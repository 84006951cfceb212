"""A command in a container, connected to the standard streams of this process.

Its output is written as it comes, standard input is sent to it, and its exit code becomes ours. With a terminal on both
sides every key and every change of the window size is sent; there is no stderr then.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from typing import IO, TYPE_CHECKING, Any

import click

from karmada.cli.streams import local_terminal
from karmada.cli.streams.streaming import Input, plain_output
from karmada.cli.targeting import connect, pods
from karmada.cli.targeting import scope as scopes

if TYPE_CHECKING:
    from karmada.cli.streams.local_terminal import Size
    from karmada.cli.targeting.session import Session
    from karmada.kube.client.pod_streams import RemoteCommand
    from karmada.kube.objects.types import Obj


@dataclass(frozen=True, slots=True)
class Flags:
    """Flags that exec and attach share."""

    way: connect.Way
    namespace: str
    scope: str
    cluster: str
    container: str
    stdin: bool
    tty: bool
    quiet: bool
    pod_running_timeout: float

    def place(self) -> Place:
        pods.require_time(self.pod_running_timeout)
        cluster = scopes.chosen_cluster(self.scope, self.cluster)
        return Place(self.way, self.namespace, cluster)

    def ends(self) -> Ends:
        return Ends(self.stdin, self.tty, self.quiet)


_NAMES = frozenset(field.name for field in fields(Flags))


def flags(process: str, *, tty: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return the flags of exec and attach, which get them as `flags`.

    `process` is what their help calls the remote side, `tty` the help of --tty.
    """
    timeout = "How long to wait until a pod runs [1m]."
    options = (
        connect.connection_flags,
        connect.namespace_flag,
        scopes.one_cluster_flags,
        click.option("-c", "--container", default="", help="The container [the pod's default or first container]."),
        click.option("-i", "--stdin", is_flag=True, help=f"Pass standard input to the {process}."),
        click.option("-t", "--tty", is_flag=True, help=tty),
        click.option("-q", "--quiet", is_flag=True, help=f"Print only the output of the {process}."),
        click.option("--pod-running-timeout", type=connect.Duration(), default="1m0s", help=timeout),
    )

    def add(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def packed(**given: Any) -> None:
            common = {name: given.pop(name) for name in _NAMES}
            command(flags=Flags(**common), **given)

        decorated: Callable[..., None] = packed
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return add


@dataclass(frozen=True, slots=True)
class Place:
    """Where the pod is: in a member, or with no `cluster` in the server of the kubeconfig itself."""

    way: connect.Way
    namespace: str
    cluster: str

    def open(self) -> contextlib.AbstractAsyncContextManager[Session]:
        return self.way.server(self.cluster, self.namespace)

    async def pod(self, session: Session, word: str, filenames: Sequence[str], seconds: float) -> Obj:
        """Return the pod to enter; if it is in no control plane and no cluster is given, the error names the flag."""
        from karmada.kube.objects.errors import NotFound

        try:
            return await pods.pod_from(session, word, filenames, seconds)
        except NotFound as error:
            if self.cluster or not word:
                raise
            raise connect.Failure(f"{connect.describe(error)}\n{await pods.cluster_hint(session, word)}") from error


@dataclass(frozen=True, slots=True)
class Ends:
    """The streams of this side that take part."""

    stdin: bool
    tty: bool
    quiet: bool

    def notify(self, text: str) -> None:
        if not self.quiet:
            click.echo(text, err=True)

    def say(self, text: str) -> None:
        """Print a message about the session, unless --quiet."""
        if not self.quiet:
            click.echo(text)

    def terminal(self) -> bool:
        """Return whether there is a terminal on this side, where one is wanted."""
        if not self.stdin or not self.tty:
            return False
        if not local_terminal.is_terminal():
            self.notify(local_terminal.MESSAGE)
            return False
        return True


def end_with(work: Coroutine[Any, Any, int]) -> None:
    """Do it, and exit with the code that comes back."""
    with plain_output():
        code = connect.run(work)
        if code:
            raise SystemExit(code)


async def connected(connecting: Coroutine[Any, Any, RemoteCommand]) -> RemoteCommand:
    """Return the started command; Failure when the server could not even try."""
    from karmada.kube.client.transport import UpgradeRefused

    try:
        return await connecting
    except UpgradeRefused as refused:
        raise connect.failure(f"unable to upgrade connection: {refused.message}") from refused


async def converse(remote: RemoteCommand, *, stdin: bool, terminal: bool, sizes: Sequence[Size] = ()) -> int:
    """Connect the streams until it ends; returns its exit code. `sizes` are the initial window sizes."""
    import asyncio

    output, errors = sys.stdout.buffer, sys.stderr.buffer

    endings = local_terminal.Endings()
    try:
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(remote.close)
            if terminal:
                stack.enter_context(endings)
                stack.enter_context(local_terminal.raw())
                stack.enter_context(local_terminal.resizes(lambda size: remote.resize(*size), *sizes))
            if stdin:
                await stack.enter_async_context(Input(_sender(remote)))
            return await _show(remote, output, errors)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if endings.code is None or task is None:
            raise
        task.uncancel()
        return endings.code


def _sender(remote: RemoteCommand) -> Callable[[bytes], Coroutine[Any, Any, None]]:
    async def send(piece: bytes) -> None:
        if piece:
            await remote.write(piece)
        elif remote.can_close_stdin:
            await remote.close_stdin()
        else:
            click.echo(
                "warning: this server does not support half-close; the command does not see the end of its input",
                err=True,
            )

    return send


async def _show(remote: RemoteCommand, output: IO[bytes], errors: IO[bytes]) -> int:
    from karmada.kube.client.pod_streams import STDOUT
    from karmada.kube.client.transport import ConnectionFailed
    from karmada.kube.objects.errors import ApiError

    try:
        async for channel, data in remote.output():
            sink = output if channel == STDOUT else errors
            sink.write(data)
            sink.flush()
        code = await remote.exit_code()
    except ApiError as error:
        raise connect.failure(error.message) from error
    except ConnectionFailed as error:
        raise connect.failure(str(error)) from error
    return code
