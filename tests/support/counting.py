"""Cost as a count of calls, and time as turns of the event loop: the same on every machine, however busy it is."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass
class Turns:
    count: int = 0


class Calls:
    """How many functions of Python and of C this thread has called."""

    def __init__(self) -> None:
        self.count = 0

    def _note(self, _frame: object, event: str, _argument: object) -> None:
        self.count += event in ("call", "c_call")


@contextmanager
def counted_calls() -> Iterator[Calls]:
    """Those of the block."""
    calls = Calls()
    sys.setprofile(calls._note)
    try:
        yield calls
    finally:
        sys.setprofile(None)


@contextmanager
def counted_turns() -> Iterator[Turns]:
    """Count the turns that another task of the event loop gets meanwhile."""
    turns = Turns()

    async def other() -> None:
        while True:
            turns.count += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    try:
        yield turns
    finally:
        task.cancel()


async def let_others_run(turns: int = 20) -> None:
    """Return when what was ready to run has run."""
    for _ in range(turns):
        await asyncio.sleep(0)
