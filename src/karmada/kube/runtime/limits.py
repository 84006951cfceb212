"""Limits on how many keys of a queue are worked on at once: of all, and of one group."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter, deque
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from karmada.kube.objects.clock import Clock

K = TypeVar("K", bound=Hashable)


class GroupShares(Generic[K]):
    """At most so many keys of a group are reconciled at once; the others are parked until one of them is done.

    For reconciles that wait for a server which may be slow, such as a webhook: a worker that only waits for it is
    missing to all other keys. A key that gives up its turn passes it to the one of its group that has waited longest,
    which is then queued. So no turn is lost, whatever becomes of the object of that key.
    """

    def __init__(self, add: Callable[[K], None]) -> None:
        """`add` queues a key that got a turn."""
        self._add = add
        self._group_of: dict[K, Hashable] = {}
        self._taken: Counter[Hashable] = Counter()
        self._waiting: dict[Hashable, dict[K, None]] = {}
        self._waits_in: dict[K, Hashable] = {}

    def take(self, key: K, group: Hashable, limit: int) -> bool:
        """Return whether the key has one of the group's turns now; else it is queued when it gets one."""
        if self._group_of.get(key) == group:
            return True
        self.give_up(key)
        if self._waits_in.get(key, group) != group:
            self._leave(key)
        if self._taken[group] < limit:
            self._leave(key)
            self._assign(key, group)
            return True
        self._waiting.setdefault(group, {})[key] = None
        self._waits_in[key] = group
        return False

    def give_up(self, key: K) -> None:
        """Give up the turn of a key that was reconciled; nothing happens if it has none."""
        group = self._group_of.pop(key, None)
        if group is None:
            return
        self._taken[group] -= 1
        following = next(iter(self._waiting.get(group, ())), None)
        if following is not None:
            self._leave(following)
            self._assign(following, group)
            self._add(following)
        elif not self._taken[group]:
            del self._taken[group]

    def drop(self, concerns: Callable[[Hashable], bool]) -> None:
        """Forget groups, with those that wait in them."""
        self._group_of = {key: group for key, group in self._group_of.items() if not concerns(group)}
        self._taken = Counter(self._group_of.values())
        self._waiting = {group: keys for group, keys in self._waiting.items() if not concerns(group)}
        self._waits_in = {key: group for key, group in self._waits_in.items() if not concerns(group)}

    def _leave(self, key: K) -> None:
        """Wait no longer."""
        group = self._waits_in.pop(key, None)
        if group is not None:
            del self._waiting[group][key]
            if not self._waiting[group]:
                del self._waiting[group]

    def _assign(self, key: K, group: Hashable) -> None:
        self._group_of[key] = group
        self._taken[group] += 1


class LeakySemaphore:
    """A bounded number of things under way, of which those that take long do not count.

    A thousand requests at once are slower than the same in small groups: all of them time out together on a machine
    that cannot keep up, and the event loop has them all ready in one turn. But who waits for a server that hangs must
    not keep others from theirs. So a slot is lost after a while, and goes to the one that has waited longest.
    """

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
        if self._waiting or len(self._held) >= self._limit:
            return None
        ticket = next(self._tickets)
        self._held[ticket] = self._clock.monotonic()
        return ticket

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
        if self._held.pop(ticket, None) is not None and self._waiting:
            self._hand_on()

    def _hand_on(self) -> None:
        while self._waiting and len(self._held) < self._limit:
            turn = self._waiting.popleft()
            if not turn.done():
                ticket = next(self._tickets)
                self._held[ticket] = self._clock.monotonic()
                turn.set_result(ticket)

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
