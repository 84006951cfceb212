"""Priority levels: each has a share of the server's seats, and divides it fairly among the flows that want some.

A request holds a seat while it is carried out. A level that is full lends itself what others leave free, up to what
they may lend; what then finds no seat waits (or is refused at once, as the level says), and waiting flows take turns,
so that somebody with a thousand requests waits behind their own and not before others.
"""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict, deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from karmada.kube.objects.errors import TooManyRequests
from karmada.kube.objects.types import Obj

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
    waiting: OrderedDict[Hashable, deque[asyncio.Future[None]]] = field(default_factory=OrderedDict)

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
                level.used, level.waiting = before.used, before.waiting
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

    async def enter(self, name: str, flow: Hashable) -> bool:
        """Have a seat, after a wait if need be; whether there is one to leave. TooManyRequests if none is to be had."""
        level = self._levels[name]
        if level.exempt:
            return False
        if not level.waiting and self._is_free(level):
            level.used += 1
            return True
        queue = level.waiting.get(flow)
        if len(queue or ()) >= level.queue_limit:
            raise refused()
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        level.waiting.setdefault(flow, deque()).append(turn)
        self._queued += 1
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await turn
        except TimeoutError:
            self._give_up(level, flow, turn)
            raise refused() from None
        except asyncio.CancelledError:
            self._give_up(level, flow, turn)
            raise
        finally:
            self._queued -= 1
        return True

    def leave(self, name: str) -> None:
        self._levels[name].used -= 1
        if self._queued:
            self._hand_out()

    def _is_free(self, level: Level) -> bool:
        if level.used < level.seats:
            return True
        if level.borrowed >= level.seats * level.borrowing:
            return False
        others = [other for other in self._levels.values() if other.name != level.name]
        return sum(other.spare for other in others) > sum(other.borrowed for other in others) + level.borrowed

    def _hand_out(self) -> None:
        """Give free seats to those who wait, flow by flow."""
        for level in self._levels.values():
            while level.waiting and self._is_free(level):
                flow, queue = level.waiting.popitem(last=False)
                turn = queue.popleft()
                if queue:
                    level.waiting[flow] = queue  # behind the others
                if not turn.done():
                    level.used += 1
                    turn.set_result(None)

    def _give_up(self, level: Level, flow: Hashable, turn: asyncio.Future[None]) -> None:
        if turn.done() and not turn.cancelled() and turn.exception() is None:
            self.leave(level.name)  # its turn came at the same moment
            return
        queue = level.waiting.get(flow)
        if queue is not None and turn in queue:
            queue.remove(turn)
            if not queue:
                del level.waiting[flow]
