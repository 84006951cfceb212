"""The event loop's turns: how much CPU time its thread spends before anybody else is served.

CPU time of one thread does not depend on what else the machine does, only on how fast it is; so limits are meant for
the reference speed of the benchmarks, and what is measured is scaled to it.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from benchmarks.speed import REFERENCE, speed

_LOOK_SECONDS = 0.004
_SHOWN_FROM = 0.02
"""CPU seconds of a turn from which on its stack is looked at."""
_FRAMES = 8


@dataclass
class Turn:
    seconds: float = 0.0
    """CPU time, as it would be at the reference speed."""
    where: str = ""
    """The stack of the loop's thread in the midst of it, innermost first."""


class MeteredLoop(asyncio.SelectorEventLoop):
    """A loop that measures each of its turns."""

    longest = 0.0
    where = ""
    began = 0.0
    """CPU time of the loop's thread when its turn began, or `restart` was called; 0 between turns."""
    seen = ""

    def restart(self) -> None:
        """Forget what was measured, and what the turn has used so far."""
        self.began, self.longest, self.where, self.seen = time.thread_time(), 0.0, "", ""

    def _run_once(self) -> None:
        self.began = time.thread_time()
        super()._run_once()  # type: ignore[misc]  # of asyncio's own base class
        used, self.began = time.thread_time() - self.began, 0.0
        if used > self.longest:
            self.longest, self.where = used, self.seen
        self.seen = ""

    def run_forever(self) -> None:
        done = threading.Event()
        clock = time.pthread_getcpuclockid(threading.get_ident())
        watch = threading.Thread(target=self._watch, args=(clock, threading.get_ident(), done), daemon=True)
        watch.start()
        try:
            super().run_forever()
        finally:
            done.set()
            watch.join()

    def _watch(self, clock: int, thread: int, done: threading.Event) -> None:
        while not done.wait(_LOOK_SECONDS):
            began = self.began
            if began and not self.seen and time.clock_gettime(clock) - began > _SHOWN_FROM:
                self.seen = _stack(sys._current_frames().get(thread))


def _stack(frame: FrameType | None) -> str:
    shown: list[str] = []
    while frame is not None and len(shown) < _FRAMES:
        shown.append(f"{frame.f_code.co_name} ({Path(frame.f_code.co_filename).name}:{frame.f_lineno})")
        frame = frame.f_back
    return " < ".join(shown)


class Speed:
    """How fast the machine is, measured again every so often."""

    def __init__(self) -> None:
        self._measured = 0.0
        self._factor = 1.0

    def factor(self) -> float:
        """Return by what CPU seconds are multiplied to be those of the reference."""
        if time.monotonic() - self._measured > 10:
            self._factor = min(1.0, speed() / REFERENCE)  # a faster machine gets no less room
            self._measured = time.monotonic()
        return self._factor


SPEED = Speed()


@contextmanager
def longest_turn() -> Iterator[Turn]:
    """The longest turn of the running loop within the block."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, MeteredLoop)
    factor = SPEED.factor()
    gc.collect()
    gc.freeze()
    gc.disable()  # its pauses are those of the tests' own heap
    loop.restart()
    turn = Turn()
    try:
        yield turn
    finally:
        gc.enable()
        turn.seconds, turn.where = loop.longest * factor, loop.where
