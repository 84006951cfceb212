"""The local terminal while a remote process uses it.

In raw mode every key is sent, Ctrl-C too, and nothing is echoed locally. However the session ends, by an error or a
signal, the terminal is restored. Changes of the window size are sent to the remote side.
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
    """Return whether a person's terminal is standard input."""
    try:
        return os.isatty(sys.stdin.fileno())
    except (OSError, ValueError):
        return False


def size() -> Size | None:
    """Return the size of the window that shows our output, or else of the one the keys come from."""
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
def resizes(send: Callable[[Size], Awaitable[None]], *first: Size) -> Iterator[None]:
    """Send the first sizes, then each new window size, in order."""
    import asyncio
    import signal

    sizes: asyncio.Queue[Size] = asyncio.Queue()
    for one in first:
        sizes.put_nowait(one)

    def changed() -> None:
        now = size()
        if now is not None:
            sizes.put_nowait(now)

    async def sending() -> None:
        from karmada.kube.client.transport import ConnectionFailed

        with contextlib.suppress(ConnectionFailed):  # who reads the output learns of that too
            while True:
                await send(await sizes.get())

    loop = asyncio.get_running_loop()
    task = loop.create_task(sending(), name="terminal size")
    loop.add_signal_handler(signal.SIGWINCH, changed)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGWINCH)
        task.cancel()


class Endings:
    """Signals that would end the process end the session instead; `code` is then the exit code."""

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
