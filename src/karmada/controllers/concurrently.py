"""The same call for many items, a bounded number of them at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, TypeVar

from karmada.controllers.errors import raise_together

_LIMIT: Final = 32
T = TypeVar("T")


async def for_each(items: Iterable[T], call: Callable[[T], Awaitable[None]], *, limit: int = _LIMIT) -> None:
    """Await `call(item)` for every item; raises after the last one, with all errors in one."""
    slots = asyncio.Semaphore(limit)

    async def one(item: T) -> None:
        async with slots:
            await call(item)

    raise_together(await asyncio.gather(*(one(item) for item in items), return_exceptions=True))
