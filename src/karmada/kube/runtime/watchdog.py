"""Stalls of the event loop: noticed by a thread, counted, logged with what caused them, and ended when they do not end.

Everything in a process shares one loop, so a callback that runs long holds up API, controllers and probes together. The
thread has the loop answer a beat; a beat that is not answered in time is a stall, whose stack is taken while it lasts.
Work that holds the interpreter lock stops the thread as well: then the thread itself wakes late, which counts too
unless the process did not run meanwhile.
A process that used no CPU since the last beat cannot have stalled, so at rest the loop is hardly ever woken.

A stall may be many short callbacks in a row, or one that does not end. For the latter, one frame is at the bottom of
the stack at every look: it is logged after two seconds, with the key, the object or the request, while it lasts, and
ends the process at the limit, so that its supervisor starts it again. Time counts by looks, so that a process that was
stopped for minutes, or a machine that was asleep, is not taken for one that hangs.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from types import FrameType
from typing import TYPE_CHECKING, Final, TypeAlias

from karmada.kube.runtime.current_work import Work, shown, stack_of, work_on
from karmada.kube.runtime.logging import get_logger

if TYPE_CHECKING:
    from prometheus_client.core import Metric

THRESHOLD_SECONDS = 0.1
REPORT_SECONDS: Final = 2.0
"""A callback that runs for so long is logged while it does."""
EXIT_CODE: Final = 70
"""Of a process that ends because its loop hangs: EX_SOFTWARE of sysexits.h."""
_LOOK_SECONDS = 0.05
_STALL_LOOK_SECONDS = 0.25
_IDLE_CPU_SECONDS = 0.01
"""Less CPU than this since the last beat: nothing ran long."""
_LAST_WORDS_SECONDS = 5.0
"""For what is written at the end: the hanging loop may hold a lock of the log, or the disk may hang."""

log = get_logger("watchdog")

Blame: TypeAlias = Callable[[Sequence[Work], float, str], None]
"""Is called before the process ends, with the work, the seconds and the stack."""


class Stalls:
    """The stalls that were counted in this process; a collector of Prometheus."""

    def __init__(self) -> None:
        self.count = 0
        self.seconds = 0.0
        self.longest = 0.0

    def add(self, seconds: float) -> None:
        self.count += 1
        self.seconds += seconds
        self.longest = max(self.longest, seconds)

    def collect(self) -> Iterable[Metric]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        yield CounterMetricFamily(
            "event_loop_stalls", f"Times the event loop was blocked for {THRESHOLD_SECONDS:g} s", value=self.count
        )
        yield CounterMetricFamily("event_loop_stall_seconds", "Seconds of these stalls", value=self.seconds)
        yield GaugeMetricFamily("event_loop_longest_stall_seconds", "The longest of them", value=self.longest)


STALLS = Stalls()


class Verdict(Enum):
    """What follows from a look at a stall."""

    WAIT = "nothing"
    REPORT = "log what runs"
    END = "end the process"


class LongCallback:
    """The callback that is seen at every look of a stall; another one, and its time starts anew."""

    def __init__(self, limit: float) -> None:
        """`limit`: after how many seconds it ends the process; 0: never."""
        self.seconds = 0.0
        self._limit = limit
        self._report_at = min(REPORT_SECONDS, limit / 2) if limit else REPORT_SECONDS
        self._frame: object = None
        self._reported = False

    def seen(self, frame: object, seconds: float) -> Verdict:
        """Decide after a look, `seconds` after the one before: `frame` is the outermost of the callback."""
        if frame is not self._frame:
            self._frame, self._reported, self.seconds = frame, False, 0.0
            return Verdict.WAIT
        self.seconds += seconds
        if self._limit and self.seconds >= self._limit:
            return Verdict.END
        if self._reported or self.seconds < self._report_at:
            return Verdict.WAIT
        self._reported = True
        return Verdict.REPORT


class Watchdog:
    """`start` on the loop's thread; `stop` from there too."""

    def __init__(
        self,
        stalls: Stalls = STALLS,
        threshold: float = THRESHOLD_SECONDS,
        *,
        limit: float = 0.0,
        known_only: bool = False,
        blame: Blame | None = None,
        leave: Callable[[int], None] = os._exit,
    ) -> None:
        """`limit`: after how many seconds of one callback the process ends; 0: never. `leave` ends it.

        `known_only`: it ends for the work of a controller only, which the next process leaves alone.
        """
        self._stalls = stalls
        self._threshold = threshold
        self._limit = limit
        self._known_only = known_only
        self._blame = blame
        self._leave = leave
        self._stopping = threading.Event()
        self._answered = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._watched = threading.get_ident()
        self._below = {frame.f_code for frame in stack_of(self._watched)}
        """Of what runs the loop, and of the task that started this."""
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._answered.set()
        self._thread.join()

    def _watch(self) -> None:
        cpu = beaten = time.process_time()
        while True:
            began = time.monotonic()
            if self._stopping.wait(_LOOK_SECONDS):
                return
            late = time.monotonic() - began - _LOOK_SECONDS
            before, cpu = cpu, time.process_time()
            if late > self._threshold and cpu - before > self._threshold:
                self._count(late, stack_of(self._watched))
            if cpu - beaten > _IDLE_CPU_SECONDS:
                self._beat()
                beaten = time.process_time()

    def _beat(self) -> None:
        """Wait until the loop answers, however long that takes."""
        self._answered.clear()
        if self._stopping.is_set():  # after the clearing, which may have undone what `stop` has set
            return
        began = time.monotonic()
        try:
            self._loop.call_soon_threadsafe(self._answered.set)
        except RuntimeError:  # the loop is closed
            self._stopping.set()
            return
        if self._answered.wait(self._threshold):
            return
        stack = stack_of(self._watched)
        self._wait_out(stack)
        if not self._stopping.is_set():
            self._count(time.monotonic() - began, stack)

    def _wait_out(self, stack: list[FrameType]) -> None:
        """Look at a stall until it is over; `stack` is what was seen first."""
        running = LongCallback(self._limit)
        running.seen(self._outermost(stack), 0.0)
        while not self._answered.wait(_STALL_LOOK_SECONDS):
            seen = stack_of(self._watched)
            match running.seen(self._outermost(seen), _STALL_LOOK_SECONDS):
                case Verdict.REPORT:
                    self._log("The event loop hangs", running.seconds, seen)
                case Verdict.END if not self._known_only or any(work.controller for work in work_on(seen)):
                    self._end(running.seconds, seen)
                    return

    def _outermost(self, stack: list[FrameType]) -> FrameType | None:
        """Return the frame that the loop has called."""
        return next((frame for frame in reversed(stack) if frame.f_code not in self._below), None)

    def _count(self, seconds: float, stack: list[FrameType]) -> None:
        self._stalls.add(seconds)
        self._log("The event loop stalled", seconds, stack)

    def _log(self, message: str, seconds: float, stack: list[FrameType], **more: object) -> None:
        pairs = {work.what: f"{work.controller} {work.name}".lstrip() for work in reversed(work_on(stack))}
        log.warning(message, seconds=round(seconds, 3), **pairs, **more, stack=shown(stack))

    def _end(self, seconds: float, stack: list[FrameType]) -> None:
        """End the process, with a log of why, unless that hangs as well."""

        def last_words() -> None:
            if self._blame is not None:
                self._blame(work_on(stack), seconds, shown(stack))
            self._log("The event loop hangs, and the process ends to be started again", seconds, stack, code=EXIT_CODE)

        speaking = threading.Thread(target=last_words, name="last words", daemon=True)
        speaking.start()
        speaking.join(_LAST_WORDS_SECONDS)
        self._leave(EXIT_CODE)


@contextmanager
def watching_for_stalls(
    stalls: Stalls = STALLS,
    threshold: float = THRESHOLD_SECONDS,
    *,
    limit: float = 0.0,
    known_only: bool = False,
    blame: Blame | None = None,
) -> Iterator[Stalls]:
    """Around the life of a server, on its loop."""
    dog = Watchdog(stalls, threshold, limit=limit, known_only=known_only, blame=blame)
    dog.start()
    try:
        yield stalls
    finally:
        dog.stop()
