"""A person's terminal while something far away uses it.

In raw mode every key goes to the other side, Ctrl-C too, and nothing is echoed here. Whatever ends the conversation,
an error or a signal, the terminal is as it was before. Changes of the window's size are told to the other side.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import asyncio

MESSAGE = "Unable to use a TTY - input is not a terminal or the right kind of file"


class Size(NamedTuple):
    width: int
    height: int


def is_terminal() -> bool:
    """Whether a person's terminal is standard input."""
    try:
        return os.isatty(sys.stdin.fileno())
    except (OSError, ValueError):
        return False


def size() -> Size | None:
    """Of the window that shows our output, or else of the one the keys come from."""
    for stream in (sys.stdout, sys.stdin):
        with contextlib.suppress(OSError, ValueError):
            width, height = os.get_terminal_size(stream.fileno())
            return Size(width, height)
    return None


@contextlib.contextmanager
def raw() -> Iterator[None]:
    import termios
    import tty

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setraw(descriptor, termios.TCSANOW)
        yield
    finally:
        with contextlib.suppress(termios.error):  # the terminal itself may be gone
            termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


@contextlib.contextmanager
def resizes(tell: Callable[[Size], Awaitable[None]], *first: Size) -> Iterator[None]:
    """Tells the first sizes, then each size the window gets, in order."""
    import asyncio
    import signal

    sizes: asyncio.Queue[Size] = asyncio.Queue()
    for one in first:
        sizes.put_nowait(one)

    def changed() -> None:
        now = size()
        if now is not None:
            sizes.put_nowait(now)

    async def telling() -> None:
        from karmada.kube.client.transport import ConnectionFailed

        with contextlib.suppress(ConnectionFailed):  # who reads the output learns of that too
            while True:
                await tell(await sizes.get())

    loop = asyncio.get_running_loop()
    task = loop.create_task(telling(), name="terminal size")
    loop.add_signal_handler(signal.SIGWINCH, changed)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGWINCH)
        task.cancel()


class Endings:
    """Signals that would end the process at once end the conversation instead; `code` is then what to exit with."""

    def __init__(self) -> None:
        self.code: int | None = None
        self._task: asyncio.Task[object] | None = None

    def __enter__(self) -> Endings:
        import asyncio
        import signal

        self._task = asyncio.current_task()
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            asyncio.get_running_loop().add_signal_handler(number, self._end, number)
        return self

    def __exit__(self, *_: object) -> None:
        import asyncio
        import signal

        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            asyncio.get_running_loop().remove_signal_handler(number)

    def _end(self, number: int) -> None:
        self.code = 128 + number
        if self._task is not None:
            self._task.cancel()
