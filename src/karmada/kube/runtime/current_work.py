"""What an event loop is working on, read from the frames of its thread: a key, a delivered object or a request.

Nothing is recorded while it runs, so it costs nothing: functions that are registered here recognise a frame of theirs
and return its work. They run on another thread than the frame, and the loop hangs meanwhile.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Literal, NamedTuple, TypeAlias

from karmada.kube.objects.types import Obj
from karmada.kube.runtime.logging import get_logger

_FRAMES = 15

log = get_logger("watchdog")


def _nothing() -> None:
    """Return no object."""


class Work(NamedTuple):
    """Something that runs on an event loop."""

    what: Literal["key", "object", "request"]
    """A key that is reconciled, an object that is delivered to a handler, or a request."""
    name: str
    controller: str = ""
    """That reconciles the key, or gets the object."""
    fingerprint: Callable[[], str] = str
    """Returns what changes when users change the object; empty if that is not known."""
    about: Callable[[], Obj | None] = _nothing
    """Returns the object that it is about, if that is known."""


Describe: TypeAlias = Callable[[FrameType], Work | None]
_describers: list[Describe] = []


def describes_work(describe: Describe) -> Describe:
    """Register a function that returns the work of a frame if the frame is one of its own; usable as a decorator."""
    _describers.append(describe)
    return describe


def stack_of(thread: int) -> list[FrameType]:
    """Return the frames of a thread, the innermost first."""
    return list(_up(sys._current_frames().get(thread)))


def work_on(stack: Sequence[FrameType]) -> list[Work]:
    """Return what runs in these frames, the innermost first; a reconcile may have made the request that runs."""
    return [work for frame in stack for describe in _describers if (work := _described(describe, frame)) is not None]


def shown(stack: Sequence[FrameType]) -> str:
    """Return the innermost frames in one line."""
    return " < ".join(
        f"{frame.f_code.co_name} ({Path(frame.f_code.co_filename).name}:{frame.f_lineno})" for frame in stack[:_FRAMES]
    )


def _up(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _described(describe: Describe, frame: FrameType) -> Work | None:
    """Return what a frame works on; it may run on meanwhile, and not have the variables that it had."""
    try:
        return describe(frame)
    except Exception as error:  # noqa: BLE001 - the watchdog must go on
        log.error("The work of a frame is not known", error, frame=frame.f_code.co_qualname)
        return None
