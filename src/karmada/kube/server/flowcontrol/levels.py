"""Priority levels: each has a share of the server's seats, and divides it fairly among the flows that want some.

A request holds one seat or several while it is carried out. A level that is full lends itself what others leave free,
up to what they may lend; what then finds no seat waits (or is refused at once, as the level says). Each flow is charged
for the seats that it is given, and of those that wait the one that was charged least is next: somebody with a thousand
requests, or with a few that cost much, waits behind their own and not before others. What takes several seats has
half as many as the level for itself, so that what takes one never waits until a long list is done.
"""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from karmada.kube.objects.errors import TooManyRequests
from karmada.kube.objects.types import Obj

_MOST_FLOWS = 4_096
WAIT_SECONDS = 15.0
"""How long a request waits for a seat."""


def refused() -> TooManyRequests:
    return TooManyRequests("too many requests, please try again later.", retry_after=1)


@dataclass(slots=True)
class Level:
    name: str
    uid: str = ""
    exempt: bool = False
    shares: int = 0
    lendable: float = 0.0
    """The part of its seats that others may use while it does not."""
    borrowing: float = math.inf
    """How many seats it may have beyond its own, as a multiple of those."""
    queue_limit: int = 0
    """How many requests of one flow may wait; 0: none."""
    seats: int = 0
    used: int = 0
    """By requests of one seat."""
    wide: int = 0
    """Seats of requests that take several, of half as many as the level has."""
    waiting: OrderedDict[Hashable, deque[tuple[int, asyncio.Future[None]]]] = field(default_factory=OrderedDict)
    """How many seats each wants, by flow."""
    charged: dict[Hashable, float] = field(default_factory=dict)
    """The seats that flows were given since the level was idle. A flow that had none begins at `least`."""
    least: float = 0.0
    """What the flow was charged that was next the last time: nobody who waits was charged less."""

    @classmethod
    def of(cls, obj: Obj) -> Level:
        spec: Obj = obj.get("spec") or {}
        metadata = obj["metadata"]
        if spec.get("type") == "Exempt":
            return cls(metadata["name"], metadata.get("uid", ""), exempt=True)
        limited: Obj = spec.get("limited") or {}
        borrowing: Any = limited.get("borrowingLimitPercent")
        queuing = (limited.get("limitResponse") or {}).get("queuing") or {}
        return cls(
            metadata["name"],
            metadata.get("uid", ""),
            shares=int(limited.get("nominalConcurrencyShares", 30)),
            lendable=int(limited.get("lendablePercent") or 0) / 100,
            borrowing=math.inf if borrowing is None else int(borrowing) / 100,
            queue_limit=int(queuing.get("handSize") or 0) * int(queuing.get("queueLengthLimit") or 0),
        )

    @property
    def spare(self) -> int:
        """Return the seats that others may have now."""
        return max(0, min(math.floor(self.seats * self.lendable), self.seats - self.used))

    def charge(self, flow: Hashable, seats: float) -> None:
        """Charge a flow, or give back to it (down to the least)."""
        if len(self.charged) > _MOST_FLOWS:
            self.charged.clear()
        self.charged[flow] = max(self.least, self.charged.get(flow, self.least) + seats)

    def take(self, flow: Hashable, seats: int) -> None:
        if seats > 1:
            self.wide += seats
        else:
            self.used += 1
        self.charge(flow, seats)

    def next(self, fits: Callable[[Level, int], bool]) -> Hashable | None:
        """Return the flow that is next of those that wait and whose first request fits."""
        ready = [flow for flow, queue in self.waiting.items() if fits(self, queue[0][0])]
        return min(ready, key=lambda flow: self.charged.get(flow, self.least), default=None)

    @property
    def borrowed(self) -> int:
        return max(0, self.used - self.seats)


class Levels:
    """All levels of a server with `total` seats."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._queued = 0
        self._levels: dict[str, Level] = {}

    def configure(self, objects: Iterable[Obj]) -> None:
        """Take over a new configuration; requests that hold seats or wait for them go on under it."""
        new = {level.name: level for level in map(Level.of, objects)}
        for name, level in new.items():
            before = self._levels.get(name)
            if before is not None:
                level.used, level.wide, level.waiting = before.used, before.wide, before.waiting
                level.charged, level.least = before.charged, before.least
        for name, before in self._levels.items():
            if name not in new:
                new[name] = replace(before, shares=0)  # for the requests that are under way
        self._levels = new
        shares = sum(level.shares for level in new.values())
        for level in new.values():
            level.seats = math.ceil(self._total * level.shares / shares) if shares else 0
        self._hand_out()

    def get(self, name: str) -> Level | None:
        return self._levels.get(name)

    @property
    def waiting(self) -> int:
        return sum(len(queue) for level in self._levels.values() for queue in level.waiting.values())

    async def enter(self, name: str, flow: Hashable, wanted: int = 1) -> int:
        """Have so many seats, or half of what the level has, after a wait if need be; return how many to leave.

        TooManyRequests if none are to be had.
        """
        level = self._levels[name]
        if level.exempt:
            return 0
        seats = max(1, min(wanted, level.seats // 2))
        if flow not in level.waiting and self._are_free(level, seats) and self._next(level) is None:
            level.take(flow, seats)
            return seats
        queue = level.waiting.get(flow)
        if len(queue or ()) >= level.queue_limit:
            raise refused()
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        level.waiting.setdefault(flow, deque()).append((seats, turn))
        self._queued += 1
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await turn
        except TimeoutError:
            self._give_up(level, flow, seats, turn)
            raise refused() from None
        except asyncio.CancelledError:
            self._give_up(level, flow, seats, turn)
            raise
        finally:
            self._queued -= 1
        return seats

    def leave(self, name: str, seats: int = 1) -> None:
        level = self._levels[name]
        if seats > 1:
            level.wide -= seats
        else:
            level.used -= 1
        if not level.used and not level.wide and not level.waiting:
            level.charged.clear()  # what was before does not count when somebody waits
        if self._queued:
            self._hand_out()

    def charge(self, name: str, flow: Hashable, seats: int) -> None:
        """Charge a flow for seats that a request should have had besides, or give back those that it needed not."""
        self._levels[name].charge(flow, seats)

    def _are_free(self, level: Level, seats: int) -> bool:
        if seats > 1:
            return level.wide + seats <= level.seats // 2
        borrowed = level.used + 1 - level.seats
        if borrowed <= 0:
            return True
        if borrowed - 1 >= level.seats * level.borrowing:
            return False
        others = [other for other in self._levels.values() if other.name != level.name]
        return sum(other.spare for other in others) >= sum(other.borrowed for other in others) + borrowed

    def _hand_out(self) -> None:
        """Give free seats to those who wait, flow by flow."""
        for level in self._levels.values():
            while (flow := self._next(level)) is not None:
                queue = level.waiting[flow]
                seats, turn = queue.popleft()
                if not queue:
                    del level.waiting[flow]
                if not turn.done():
                    level.least = max(level.least, level.charged.get(flow, 0.0))
                    level.take(flow, seats)
                    turn.set_result(None)

    def _next(self, level: Level) -> Hashable | None:
        return level.next(self._are_free) if level.waiting else None

    def _give_up(self, level: Level, flow: Hashable, seats: int, turn: asyncio.Future[None]) -> None:
        if turn.done() and not turn.cancelled() and turn.exception() is None:
            self.leave(level.name, seats)  # its turn came at the same moment
            return
        queue = level.waiting.get(flow)
        if queue is not None and (seats, turn) in queue:
            queue.remove((seats, turn))
            if not queue:
                del level.waiting[flow]
