"""What one watch of a search has still to look at: changes of the index, up to a limit."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from karmada.search.index.service import Change, SearchIndex

MOST: Final = 1_000
"""Changes, of up to a batch of objects each, that may wait."""


class Watching:
    def __init__(self, index: SearchIndex) -> None:
        self._index = index
        self._waiting: deque[Change] = deque()
        self._some = asyncio.Event()
        self._late = False
        index.changed.append(self._changed)

    def _changed(self, change: Change) -> None:
        if len(self._waiting) >= MOST:
            self._late = True
        else:
            self._waiting.append(change)
        self._some.set()

    async def next(self) -> Change | None:
        """Return the next change; None when some were lost, because the client does not keep up."""
        while not self._waiting and not self._late:
            self._some.clear()
            await self._some.wait()
        return None if self._late else self._waiting.popleft()

    def close(self) -> None:
        self._index.changed.remove(self._changed)
