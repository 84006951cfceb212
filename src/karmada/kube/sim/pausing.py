"""A reconciler that can be made to hold still: its workers wait before the next key until they may go on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from karmada.kube.runtime.controller import Reconciler, Result, Watch
from karmada.kube.runtime.keys import Key


class Pausable:
    def __init__(self, inner: Reconciler) -> None:
        self.inner = inner
        self.workers = int(getattr(inner, "workers", 1))
        self._going = asyncio.Event()
        self._going.set()

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def watches(self) -> Sequence[Watch]:
        return self.inner.watches

    def attach(self, add: Callable[[Key], None]) -> None:
        attach = getattr(self.inner, "attach", None)
        if attach is not None:
            attach(add)

    def pause(self) -> None:
        self._going.clear()

    def resume(self) -> None:
        self._going.set()

    async def reconcile(self, key: Key) -> Result | None:
        if not self._going.is_set():
            await self._going.wait()
        return await self.inner.reconcile(key)
