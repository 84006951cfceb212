"""A semaphore for a bounded number of things under way, of which those that take long do not count.

A thousand requests at once are slower than the same in small groups: all of them time out together on a machine that
cannot keep up, and the event loop has them all ready in one turn. But who waits for a server that hangs must not keep
others from theirs. So a slot is lost after a while, and goes to the one that has waited longest.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque

from karmada.kube.objects.clock import Clock


class LeakySemaphore:
    def __init__(self, limit: int, clock: Clock, seconds: float = 1.0) -> None:
        """`seconds`: how long a slot is held at most."""
        self._limit = limit
        self._clock = clock
        self._seconds = seconds
        self._held: dict[int, float] = {}
        """When each was taken; the oldest is first."""
        self._waiting: deque[asyncio.Future[int]] = deque()
        self._tickets = itertools.count(1)
        self._expiring: asyncio.Task[None] | None = None

    @property
    def held(self) -> int:
        return len(self._held)

    def take(self) -> int | None:
        """Return a ticket for `leave`, if a slot is free and nobody waits for it."""
        return self._take() if len(self._held) < self._limit and not self._waiting else None

    async def enter(self) -> int:
        """Take a slot; wait while all are taken, behind those that wait already."""
        ticket = self.take()
        if ticket is not None:
            return ticket
        turn: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        if self._expiring is None:
            self._expiring = asyncio.get_running_loop().create_task(self._expire(), name="leaky semaphore")
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave(turn.result())
            raise

    def leave(self, ticket: int) -> None:
        """Give a slot back; nothing happens if it was lost meanwhile."""
        if self._held.pop(ticket, None) is not None:
            self._hand_on()

    def _take(self) -> int:
        ticket = next(self._tickets)
        self._held[ticket] = self._clock.monotonic()
        return ticket

    def _hand_on(self) -> None:
        while self._waiting and len(self._held) < self._limit:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(self._take())

    async def _expire(self) -> None:
        """While somebody waits: take slots away from those that have held them for too long."""
        try:
            while self._waiting:
                oldest = next(iter(self._held.values()), 0.0)
                await self._clock.sleep(max(0.0, oldest + self._seconds - self._clock.monotonic()))
                self._take_back(self._clock.monotonic() - self._seconds)
                self._hand_on()
        finally:
            self._expiring = None

    def _take_back(self, since: float) -> None:
        """Take back the slots that were taken before."""
        for ticket in list(itertools.takewhile(lambda held: self._held[held] <= since, self._held)):
            del self._held[ticket]
