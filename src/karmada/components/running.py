"""A server process from its start to its end: it may have to stop before it has started.

A start may wait indefinitely (for a store that is not available yet, for a CRD that is being deleted) and can be
interrupted.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

from karmada.components.hanging import ending_hangs, ending_hangs_at_the_start, open_quarantine
from karmada.kube.objects.times import parse_duration
from karmada.kube.runtime.waiting import cancel_and_wait

if TYPE_CHECKING:
    from karmada.kube.server.config import ServerConfig

F = TypeVar("F", bound=Callable[..., Any])


def namespace_deletion_flag(command: F) -> F:
    """--namespace-deletion-delay; the environment sets it for every process of a test run at once."""
    return click.option(
        "--namespace-deletion-delay",
        callback=_seconds,
        default="5s",
        envvar="KARMADA_NAMESPACE_DELETION_DELAY",
        help="How long the content of a deleted namespace stays readable and writable before it is removed.",
    )(command)


def _seconds(_context: click.Context, param: click.Parameter, value: str) -> float:
    try:
        return parse_duration(value)
    except ValueError:
        raise click.BadParameter(f'"{value}" is not a duration such as 5s or 200ms', param=param) from None


def ready_flag(command: F) -> F:
    """--ready-fd, for a parent that waits for the process to be ready."""
    return click.option(
        "--ready-fd", type=click.IntRange(min=3), help="Write a line to this open file descriptor once it serves."
    )(command)


def report_ready(descriptor: int | None, addresses: Mapping[str, str]) -> None:
    """Report readiness, with what else it serves, and where: `ready dashboard=https://localhost:5480`.

    The descriptor stays open, so that its reader also detects the end of the process.
    """
    if descriptor is not None:
        words = ["ready", *(f"{name}={address}" for name, address in addresses.items())]
        os.write(descriptor, f"{' '.join(words)}\n".encode())


class Served(Protocol):
    """A server that can be started and stopped, and its address."""

    @property
    def url(self) -> str: ...

    @property
    def kubeconfig(self) -> Path: ...

    async def start(self) -> None: ...

    async def stop(self) -> None: ...


def begin(*, verbosity: int, logging_format: str = "text") -> asyncio.Event:
    """Set up what every program has.

    Logs, the garbage collector, errors of the event loop, and signals, which set the event.
    """
    from karmada.kube.runtime.logging import setup
    from karmada.kube.runtime.loop_errors import report_loop_errors
    from karmada.kube.runtime.tuning import tune_garbage_collection

    setup(verbosity=verbosity, format=logging_format)
    tune_garbage_collection()
    report_loop_errors(asyncio.get_running_loop())
    stopping = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    return stopping


def run_server(
    config: ServerConfig,
    make: Callable[[], Served],
    title: str,
    given: Mapping[str, Any],
    addresses: Callable[[], Mapping[str, str]] = dict,
) -> None:
    """Run a server from its command line: logs, signals, shared keys, and errors in one line.

    `addresses`: what else it serves, by name, once it does.
    """
    import uvloop

    async def serve() -> None:
        from karmada.kube.server.auth.shared_keys import share_keys_through
        from karmada.kube.server.storage.open import begin_check

        begin_check(config.storage_url)
        stopping = begin(verbosity=given["verbosity"], logging_format=given["logging_format"])
        config.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        if config.shares_storage and not await start_unless(
            stopping, share_keys_through(config.storage, config.data_dir / "pki")
        ):
            return
        open_quarantine(given["quarantine_file"] or config.data_dir / "quarantine.json")
        await run(make(), title, stopping, given, addresses)

    with errors_in_one_line():
        uvloop.run(serve())


@contextmanager
def errors_in_one_line() -> Iterator[None]:
    """Report what a user can put right (files, addresses, values, the store) without a traceback."""
    from karmada.kube.server.storage.interface import StoreUnavailable

    try:
        yield
    except OSError as error:
        text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error)
        raise click.ClickException(text) from error
    except (ValueError, StoreUnavailable) as error:
        raise click.ClickException(str(error)) from error


async def run(
    server: Served,
    title: str,
    stopping: asyncio.Event,
    given: Mapping[str, Any] = MappingProxyType({}),
    addresses: Callable[[], Mapping[str, str]] = dict,
) -> None:
    """Until `stopping`, which may be set before everything has started. `given`: the flags of the program."""
    with ending_hangs_at_the_start(given):
        started = await start_unless(stopping, server.start())
    try:
        if started:
            click.echo(f"{title} at {server.url}")
            click.echo(f"  export KUBECONFIG={server.kubeconfig}")
            others = addresses()
            for name, address in others.items():
                click.echo(f"  {name} at {address}")
            report_ready(given.get("ready_fd"), others)
            with ending_hangs(given):
                await stopping.wait()
    finally:
        click.echo("Stopping", file=sys.stderr)
        await server.stop()


async def start_unless(stopping: asyncio.Event, start: Coroutine[Any, Any, None]) -> bool:
    """Return whether it has started, or done its work; False when it had to stop before, and that was given up."""
    starting, stopped = asyncio.create_task(start), asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait({starting, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            return False
        starting.result()
        return not stopping.is_set()
    finally:
        await cancel_and_wait(*(task for task in (starting, stopped) if not task.done()))
