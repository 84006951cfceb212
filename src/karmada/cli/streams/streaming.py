"""The local ends of a stream: standard output that may go away, and standard input that may never come.

Whoever reads our output may stop reading (`| head`), and a person ends what goes on forever with Ctrl-C: both are no
errors. Input is read in a thread of its own, because a file, a pipe and a terminal can only be read alike by
waiting for them, and because a descriptor shared with other programs must not be made non-blocking.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Awaitable, Callable, Iterator
from typing import IO, TYPE_CHECKING

from karmada.cli.targeting import connect

if TYPE_CHECKING:
    from concurrent.futures import Future

INTERRUPTED = 130
PIPE_CLOSED = 141
_CHUNK = 1 << 16


@contextlib.contextmanager
def plain_output() -> Iterator[IO[bytes]]:
    """Yield standard output as bytes; end the process, without a word, when it is no longer wanted."""
    output = sys.stdout.buffer
    try:
        try:
            yield output
        finally:
            output.flush()
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
    except BrokenPipeError:
        _abandon(output)
    except connect.Failure as error:
        if not isinstance(error.__cause__, BrokenPipeError):
            raise
        _abandon(output)


def _abandon(output: IO[bytes]) -> None:
    """Send what is still buffered nowhere, rather than to an error while Python ends."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), output.fileno())
    raise SystemExit(PIPE_CLOSED)


class Input:
    """Standard input, read while the block lasts: `take` gets each piece, and b"" at the end of it."""

    def __init__(self, take: Callable[[bytes], Awaitable[None]]) -> None:
        self._take = take
        self._over = False
        self._sending: Future[None] | None = None

    async def __aenter__(self) -> Input:
        import asyncio
        import threading

        self._loop = asyncio.get_running_loop()
        self._wake, self._awake = os.pipe()
        self._thread = threading.Thread(target=self._read, name="stdin", daemon=True)
        self._thread.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Neither a read nor a write that would wait forever keeps the thread."""
        self._over = True
        if self._sending is not None:
            self._sending.cancel()
        os.close(self._awake)
        await self._loop.run_in_executor(None, self._thread.join)
        os.close(self._wake)

    def _read(self) -> None:
        pieces = self._pieces(sys.stdin.buffer)
        while not self._over and self._hand_over(next(pieces, b"")):
            pass

    def _pieces(self, stream: IO[bytes]) -> Iterator[bytes]:
        import select

        try:
            descriptor = stream.fileno()
        except (OSError, ValueError):  # no file behind it: all of it is there
            yield from iter(lambda: stream.read(_CHUNK), b"")
            return
        while True:
            ready, _, _ = select.select([descriptor, self._wake], [], [])
            if self._wake in ready:
                return
            piece = _read_some(descriptor)
            if not piece:
                return
            yield piece

    def _hand_over(self, piece: bytes) -> bool:
        """Return whether more is wanted.

        Waits until the piece was taken, so that no more is read than can be sent.
        """
        import asyncio
        from concurrent.futures import CancelledError

        self._sending = asyncio.run_coroutine_threadsafe(self._guarded(piece), self._loop)
        if self._over:
            self._sending.cancel()
        try:
            self._sending.result()
        except CancelledError:
            return False
        return bool(piece)

    async def _guarded(self, piece: bytes) -> None:
        """Input to an ended command is dropped; the other direction reports its end."""
        from karmada.kube.client.transport import ConnectionFailed

        try:
            await self._take(piece)
        except ConnectionFailed:
            self._over = True


def _read_some(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, _CHUNK)
    except OSError:  # a terminal that was hung up
        return b""
