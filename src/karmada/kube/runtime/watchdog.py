"""Stalls of the event loop: noticed by a thread, counted, and logged with the stack and the request that caused them.

Everything in a process shares one loop, so a callback that runs long holds up API, controllers and probes together. The
thread has the loop answer a beat; a beat that is not answered in time is a stall, whose stack is taken while it lasts.
Work that holds the interpreter lock stops the thread as well: then the thread itself wakes late, which counts too
unless the process did not run meanwhile.
A process that used no CPU since the last beat cannot have stalled, so at rest the loop is hardly ever woken.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from karmada.kube.runtime.logging import get_logger

if TYPE_CHECKING:
    from prometheus_client.core import Metric

THRESHOLD_SECONDS = 0.1
_LOOK_SECONDS = 0.05
_IDLE_CPU_SECONDS = 0.01
"""Less CPU than this since the last beat: nothing ran long."""
_FRAMES = 15

log = get_logger("watchdog")

Describe = Callable[[FrameType], str | None]
_describers: list[Describe] = []


def describe_requests(describe: Describe) -> Describe:
    """Return a function that knows the request of a frame, if it is one of its own; usable as a decorator."""
    _describers.append(describe)
    return describe


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


class Watchdog:
    """`start` on the loop's thread; `stop` from there too."""

    def __init__(self, stalls: Stalls = STALLS, threshold: float = THRESHOLD_SECONDS) -> None:
        self._stalls = stalls
        self._threshold = threshold
        self._stopping = threading.Event()
        self._answered = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._watched = threading.get_ident()
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
                self._report(late, self._stack())
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
        stack = self._stack()
        self._answered.wait()
        if not self._stopping.is_set():
            self._report(time.monotonic() - began, stack)

    def _stack(self) -> list[FrameType]:
        """Return the frames of the loop's thread, the innermost first."""
        frames: list[FrameType] = []
        frame = sys._current_frames().get(self._watched)
        while frame is not None:
            frames.append(frame)
            frame = frame.f_back
        return frames

    def _report(self, seconds: float, stack: list[FrameType]) -> None:
        self._stalls.add(seconds)
        request = next(filter(None, (describe(frame) for frame in stack for describe in _describers)), "")
        shown = " < ".join(map(_shown, stack[:_FRAMES]))
        log.warning("The event loop stalled", seconds=round(seconds, 3), request=request, stack=shown)


def _shown(frame: FrameType) -> str:
    return f"{frame.f_code.co_name} ({Path(frame.f_code.co_filename).name}:{frame.f_lineno})"


@contextmanager
def watching_for_stalls(stalls: Stalls = STALLS, threshold: float = THRESHOLD_SECONDS) -> Iterator[Stalls]:
    """Around the life of a server, on its loop."""
    dog = Watchdog(stalls, threshold)
    dog.start()
    try:
        yield stalls
    finally:
        dog.stop()
