"""A reconciler that can be paused: its workers wait before the next key until it is resumed."""

from __future__ import annotations

import asyncio

from karmada.kube.runtime.controller import Enqueue, Reconciler, Result
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.queue import WorkQueue


class Pausable(Reconciler):
    def __init__(self, inner: Reconciler) -> None:
        self.inner = inner
        self.name, self.watches = inner.name, inner.watches
        self.workers, self.options, self.metrics = inner.workers, inner.options, inner.metrics
        self._going = asyncio.Event()
        self._going.set()

    def attach(self, add: Enqueue) -> None:
        self.inner.attach(add)

    def follow_queue(self, queue: WorkQueue[Key]) -> None:
        self.inner.follow_queue(queue)

    async def stop(self) -> None:
        await self.inner.stop()

    def pause(self) -> None:
        self._going.clear()

    def resume(self) -> None:
        self._going.set()

    async def reconcile(self, key: Key) -> Result | None:
        if not self._going.is_set():
            await self._going.wait()
        return await self.inner.reconcile(key)
