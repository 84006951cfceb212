"""Long loops on the event loop, in slices.

Of all that wait for their next slice, one gets it in each turn of the event loop, and their owners take turns: however
many long loops there are, whoever has a short request waits for one or two slices, and whoever has one long list does
not wait for a thousand of somebody else. An owner is the user of a request; the control plane itself is one, too.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Iterable
from contextvars import ContextVar
from time import perf_counter
from typing import TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")

SLICE_SECONDS = 0.002
OWNER: ContextVar[str] = ContextVar("owner", default="")
"""The user for whom the current task works; empty for the control plane itself."""


class TimeSlice:
    """How long a loop may run before others get their turn: `if slice.is_over(): await slice.next()`."""

    __slots__ = ("_end",)

    def __init__(self) -> None:
        self._end = perf_counter() + SLICE_SECONDS

    def is_over(self) -> bool:
        return perf_counter() > self._end

    async def next(self) -> None:
        await _turns().next(OWNER.get())
        self._end = perf_counter() + SLICE_SECONDS


class SliceOfSteps(TimeSlice):
    """A slice of a loop whose steps may wait for something: while one does, others run, and that is turn enough.

    Without this, each write that took longer than a slice would line up behind all others for nothing.
    """

    __slots__ = ("_others_ran",)

    def __init__(self) -> None:
        super().__init__()
        self._begin()

    def _begin(self) -> None:
        self._others_ran = False
        asyncio.get_running_loop().call_soon(self._note)

    def _note(self) -> None:
        self._others_ran = True

    async def next(self) -> None:
        if self._others_ran:
            self._end = perf_counter() + SLICE_SECONDS
        else:
            await super().next()
        self._begin()


class _Turns:
    """Who waits for a slice on one event loop, by owner."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self._alone = False
        """The only one that wanted a slice is between two of them."""

    async def next(self, owner: str) -> None:
        if not self._waiting and not self._alone:
            self._alone = True
            try:
                await asyncio.sleep(0)
            finally:
                self._alone = False
            return
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        if not self._waiting:
            loop.call_soon(self._hand_out)
        self._waiting.setdefault(owner, deque()).append(turn)
        await turn

    def _hand_out(self) -> None:
        """Give one slice; runs once in each turn of the loop while somebody waits."""
        while self._waiting:
            owner, queue = self._waiting.popitem(last=False)
            turn = queue.popleft()
            if queue:
                self._waiting[owner] = queue  # behind the others
            if not turn.done():
                turn.set_result(None)
                break
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._hand_out)


_of_loops: WeakKeyDictionary[asyncio.AbstractEventLoop, _Turns] = WeakKeyDictionary()


def _turns() -> _Turns:
    loop = asyncio.get_running_loop()
    found = _of_loops.get(loop)
    if found is None:
        found = _of_loops[loop] = _Turns()
    return found


async def in_slices(items: Iterable[T]) -> AsyncIterator[T]:
    """Yield each item; others on the event loop run in between, whatever the number of items."""
    turn = TimeSlice()
    for item in items:
        yield item
        if turn.is_over():
            await turn.next()
