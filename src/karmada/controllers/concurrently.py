"""The same call for many items, a bounded number of them at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, TypeVar

from karmada.controllers.errors import raise_together
from karmada.kube.runtime.time_slice import SliceOfSteps

_LIMIT: Final = 32
T = TypeVar("T")
R = TypeVar("R")


async def for_each(items: Iterable[T], call: Callable[[T], Awaitable[None]], *, limit: int = _LIMIT) -> None:
    """Await `call(item)` for every item; raises after the last one, with all errors in one."""
    raise_together(await outcomes_of(items, call, limit=limit))


async def outcomes_of(
    items: Iterable[T], call: Callable[[T], Awaitable[R]], *, limit: int = _LIMIT
) -> list[R | BaseException]:
    """Return what `call(item)` returned or raised, for every item in order, by `limit` tasks.

    One at a time, they run in the caller's own task. Calls that never wait run in slices.
    """
    waiting = list(items)
    outcomes: list[R | BaseException] = [asyncio.CancelledError()] * len(waiting)
    following = iter(range(len(waiting)))

    turn = SliceOfSteps()  # of all of them together

    async def work() -> None:
        for position in following:
            if turn.is_over():
                await turn.next()
            try:
                outcomes[position] = await call(waiting[position])
            except Exception as error:  # noqa: BLE001 - the caller decides
                outcomes[position] = error

    tasks = min(limit, len(waiting))
    if tasks > 1:
        await asyncio.gather(*(work() for _ in range(tasks)))
    else:
        await work()
    return outcomes
