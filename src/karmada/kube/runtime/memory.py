"""Memory that was needed for a while is given back to the system, where the C library would keep it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

GIVE_BACK_SECONDS = 10.0
"""How long after a peak; further peaks until then are one with it."""


class GivesBack:
    """Gives free memory back, rarely and aside."""

    def __init__(self) -> None:
        self._is_due = False

    def soon(self) -> None:
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_later(GIVE_BACK_SECONDS, self._now)

    def _now(self) -> None:
        self._is_due = False
        asyncio.get_running_loop().run_in_executor(None, give_back)


def give_back() -> None:
    """Return the free parts of the heap to the system; do nothing where that is not glibc's."""
    import ctypes

    trim: Callable[[int], int] | None = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
