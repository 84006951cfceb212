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
from collections.abc import Collection, Iterable
from heapq import heappop, heappush
from itertools import count
from time import monotonic, process_time
from typing import ClassVar, NamedTuple
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


class Turn(NamedTuple):
    """A turn that a worker waits for; of equal names, first come, first served."""

    name: str
    order: int
    granted: asyncio.Future[None]


def goes_ahead(name: str, reached: Iterable[str]) -> bool:
    """Return whether a delivery is under way that has not come to this name."""
    return any(name > come for come in reached)


def next_turn(
    first: Turn | None, replay: Turn | None, oldest: Turn, granted: int, reached: Collection[str]
) -> Turn | None:
    """Decide whose turn is next, of three: the first by name, the first replay by name, and the oldest.

    The lesser name wins, but a replay does not go ahead of a delivery, and one of so many turns is the oldest's.
    """
    if granted % _BY_AGE == _BY_AGE - 1:
        return oldest
    if replay is not None and goes_ahead(replay.name, reached):
        replay = None
    return min((turn for turn in (first, replay) if turn is not None), default=None)


class Backlog:
    """The turns of all workers of an event loop that handle a backlog."""

    urgent: ClassVar[int] = 0
    """How often something urgent was begun in this process, which has one busy loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._by_name: list[Turn] = []
        self._replays: list[Turn] = []
        """Queues whose keys do not go ahead of a delivery."""
        self._by_age: deque[Turn] = deque()
        """Both; those that are done are dropped when they come first."""
        self._order = count()
        self._granted = 0
        self._granting = False
        self.iteration = 0
        """Raised by each iteration of the loop in which turns may be granted."""
        self._reached: dict[object, str] = {}
        """How far each delivery has come that is under way."""

    async def turn(self, name: str = "", *, replay: bool = False) -> None:
        """Wait for a turn; for a `replay`, until a delivery has come to the name, too."""
        turn = Turn(name, next(self._order), self._loop.create_future())
        heappush(self._replays if replay else self._by_name, turn)
        self._by_age.append(turn)
        if not self._granting:
            self._granting = True
            self._loop.call_soon(self._grant)
        await turn.granted

    def reached(self, delivery: object, name: str | None) -> None:
        """Record that a delivery has come to this name, or (None) has ended."""
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
            turn = self._next()
            if turn is None:
                break
            self._granted += 1
            turn.granted.set_result(None)
        self._granting = self._waits()
        if self._granting:
            self._loop.call_soon(self._grant)

    def _next(self) -> Turn | None:
        if not self._waits():
            return None
        first, replay = (heap[0] if heap else None for heap in (self._by_name, self._replays))
        return next_turn(first, replay, self._by_age[0], self._granted, self._reached.values())

    def goes_ahead(self, name: str) -> bool:
        """Return whether a delivery is under way that has not come to this name."""
        return goes_ahead(name, self._reached.values())

    def _waits(self) -> bool:
        """Return whether anybody waits; drops turns that were granted, or whose worker was cancelled."""
        for heap in (self._by_name, self._replays):
            while heap and heap[0].granted.done():
                heappop(heap)
        while self._by_age and self._by_age[0].granted.done():
            self._by_age.popleft()
        return bool(self._by_age)


_BACKLOGS: WeakKeyDictionary[asyncio.AbstractEventLoop, Backlog] = WeakKeyDictionary()


def backlog() -> Backlog:
    """Return the backlog of the running event loop."""
    loop = asyncio.get_running_loop()
    found = _BACKLOGS.get(loop)
    if found is None:
        found = _BACKLOGS[loop] = Backlog(loop)
    return found
