"""A process from its start to its end: it may be told to stop before it has started.

What a start waits for (a store that is not there yet, a definition that is on its way out) can take any time; whoever
runs the process need not wait for that to be rid of it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import click

from karmada.kube.objects.times import parse_duration
from karmada.kube.runtime.waiting import cancel_and_wait

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
    """--ready-fd, for whoever starts the process and waits for it."""
    return click.option(
        "--ready-fd", type=click.IntRange(min=3), help="Write a line to this open file descriptor once it serves."
    )(command)


def tell_ready(descriptor: int | None) -> None:
    """The descriptor stays open: who waits at its other end also learns when the process ends."""
    if descriptor is not None:
        os.write(descriptor, b"ready\n")


async def start_unless(stopping: asyncio.Event, start: Coroutine[Any, Any, None]) -> bool:
    """Whether it has started; False when it was told to stop before, and was given up."""
    starting, told = asyncio.create_task(start), asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait({starting, told}, return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            return False
        starting.result()
        return not stopping.is_set()
    finally:
        await cancel_and_wait(*(task for task in (starting, told) if not task.done()))
