"""Time as the client needs it: any runtime Clock fits, and this room needs no import from above.

`SYSTEM` is the machine's own time, the default of everything here that waits.
"""

from __future__ import annotations

import asyncio
import time
from typing import Final, Protocol


class Timing(Protocol):
    def now(self) -> float: ...

    def monotonic(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...


class _System:
    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


SYSTEM: Final[Timing] = _System()
