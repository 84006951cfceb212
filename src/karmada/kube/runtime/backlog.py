"""Turns for work that is not urgent, so that what is new never waits for long behind what is checked again.

After a start, or when a policy changes, tens of thousands of keys are reconciled, most of them without a request that
would let others run in between. They have the priority BACKLOG or REPLAY, and their workers, of all controllers of an
event loop, take turns: some keys in each iteration of the loop, so that each iteration is short.

Turns go by name. A template, its binding and its Works have names that begin alike, so all controllers work on the same
objects at the same time, and what one of them has parsed the others need not. Now and then a turn goes to whoever has
waited longest, so that no name waits for ever.

Existing objects are delivered by name (see delivery). Keys that were queued for another reason, when all templates or
all objects of a member were listed, do not go ahead of that: their objects would be parsed, and many reconciled, twice.

What makes a backlog, or reads all there is, begins when nothing urgent was begun for a moment (`until_quiet`): what was
created while the process started goes first.
"""

from __future__ import annotations

import asyncio
from collections import deque
from heapq import heappop, heappush
from itertools import count
from time import monotonic, process_time
from typing import ClassVar, TypeAlias
from weakref import WeakKeyDictionary

KEYS_IN_A_TURN, TURN_SECONDS = 16, 0.005
"""A turn ends with whichever comes first. Keys that follow each other find the code in the processor's caches."""
_AT_ONCE = 2
"""Turns in an iteration."""
_BY_AGE = 64
"""One of so many turns goes to whoever has waited longest."""
_QUIET_SECONDS, _QUIET_ITERATIONS = 0.05, 50
"""A moment: on a busy machine, or while much is listed, an iteration of the loop takes long."""
_LONGEST_SECONDS, _LONGEST_CPU_SECONDS = 5.0, 2.0
"""For how long a backlog waits for a quiet moment."""


_Waiting: TypeAlias = tuple[str, int, asyncio.Future[None]]


class BacklogTurns:
    """The least name first; of equal ones, first come, first served."""

    urgent: ClassVar[int] = 0
    """How often something urgent was begun in this process, which has one busy loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._by_name: list[_Waiting] = []
        self._following: list[_Waiting] = []
        """Those that do not go ahead of a delivery."""
        self._by_age: deque[asyncio.Future[None]] = deque()
        """Both; those that are done are dropped when they come first."""
        self._order = count()
        self._granted = 0
        self._granting = False
        self.iteration = 0
        """Raised by each iteration of the loop in which turns may be granted."""
        self._reached: dict[object, str] = {}
        """How far each delivery has come that is under way."""

    async def next(self, name: str = "", *, following: bool = False) -> None:
        """Wait for a turn; if `following`, until a delivery has come to the name, too."""
        turn = self._loop.create_future()
        heappush(self._following if following else self._by_name, (name, next(self._order), turn))
        self._by_age.append(turn)
        if not self._granting:
            self._granting = True
            self._loop.call_soon(self._grant)
        await turn

    def reached(self, delivery: object, name: str | None) -> None:
        """A delivery has come to this name, or (None) has ended."""
        if name is None:
            self._reached.pop(delivery, None)
        else:
            self._reached[delivery] = name

    async def until_quiet(self) -> None:
        """Wait until nothing urgent was begun for a moment, or that takes long."""
        end, cpu_end, begun = monotonic() + _LONGEST_SECONDS, process_time() + _LONGEST_CPU_SECONDS, -1
        while begun != self.urgent and monotonic() < end and process_time() < cpu_end:
            begun = self.urgent
            await asyncio.sleep(_QUIET_SECONDS)
            for _ in range(_QUIET_ITERATIONS):
                await asyncio.sleep(0)

    def _grant(self) -> None:
        self.iteration += 1
        for _ in range(_AT_ONCE):
            turn = self._take()
            if turn is None:
                break
            turn.set_result(None)
        self._granting = self._waits()
        if self._granting:
            self._loop.call_soon(self._grant)

    def _take(self) -> asyncio.Future[None] | None:
        if not self._waits():
            return None
        if self._granted % _BY_AGE == _BY_AGE - 1:
            self._granted += 1
            return self._by_age.popleft()
        heaps = [heap for heap in (self._by_name, self._may_follow()) if heap]
        if not heaps:
            return None
        self._granted += 1
        return heappop(min(heaps))[2]

    def _may_follow(self) -> list[_Waiting]:
        """Those that follow, unless even the first of them would go ahead."""
        waiting = self._following
        return [] if waiting and self.goes_ahead(waiting[0][0]) else waiting

    def goes_ahead(self, name: str) -> bool:
        """Whether a delivery is under way that has not come to this name."""
        return any(name > reached for reached in self._reached.values())

    def _waits(self) -> bool:
        """Whether anybody waits; drops what was granted by the other order, or whose worker was cancelled."""
        for heap in (self._by_name, self._following):
            while heap and heap[0][2].done():
                heappop(heap)
        while self._by_age and self._by_age[0].done():
            self._by_age.popleft()
        return bool(self._by_age)


_TURNS: WeakKeyDictionary[asyncio.AbstractEventLoop, BacklogTurns] = WeakKeyDictionary()


def backlog_turns() -> BacklogTurns:
    """Those of the running event loop."""
    loop = asyncio.get_running_loop()
    found = _TURNS.get(loop)
    if found is None:
        found = _TURNS[loop] = BacklogTurns(loop)
    return found
