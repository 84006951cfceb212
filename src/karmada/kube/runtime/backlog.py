"""Turns for work that is not urgent, so that what is new never waits for long behind what is checked again.

After a start, or when a policy changes, tens of thousands of keys are reconciled, most of them without a request that
would let others run in between. They have priorities below 0, and their workers, of all controllers of an event loop,
take turns: a few keys in each iteration of the loop, those of every lane at about the same pace. So each iteration is
short, and controllers that need the same object read it at about the same time, while it is still parsed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from weakref import WeakKeyDictionary

_AT_ONCE = 8
"""Turns in an iteration: some two milliseconds."""
URGENT = 0
"""The least priority that waits for no turn."""


class BacklogTurns:
    """First come, first served."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._granting = False

    async def next(self) -> None:
        """Wait for a turn."""
        turn = self._loop.create_future()
        self._waiting.append(turn)
        if not self._granting:
            self._granting = True
            self._loop.call_soon(self._grant)
        await turn

    def _grant(self) -> None:
        granted = 0
        while self._waiting and granted < _AT_ONCE:
            turn = self._waiting.popleft()
            if not turn.done():  # else its worker was cancelled
                turn.set_result(None)
                granted += 1
        self._granting = bool(self._waiting)
        if self._granting:
            self._loop.call_soon(self._grant)


_TURNS: WeakKeyDictionary[asyncio.AbstractEventLoop, BacklogTurns] = WeakKeyDictionary()


def backlog_turns() -> BacklogTurns:
    """Those of the running event loop."""
    loop = asyncio.get_running_loop()
    found = _TURNS.get(loop)
    if found is None:
        found = _TURNS[loop] = BacklogTurns(loop)
    return found
