"""Leader election for processes that must go on while the server of their lease is away.

Two leases: the first, in a remote place, elects; the second, the fence, is where the work is done. A leader that cannot
renew its leases because a server does not respond still leads: it stops only when it sees that another holds one of
them. Who wins the first lease takes the fence, even from one that still renews it, and then waits until that one must
have noticed: a holder renews the fence within its deadline, and if it cannot reach the fence, it cannot work there
either. A candidate observes the fence from the beginning, so that one whose holder has died is free by then.
"""

from __future__ import annotations

import asyncio
import contextlib

from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.errors import ApiError
from karmada.kube.runtime.leader import LeaderElector
from karmada.kube.runtime.waiting import cancel_and_wait, with_timeout


class FencedElector:
    def __init__(self, lease: LeaderElector, fence: LeaderElector, clock: Clock) -> None:
        self.name = lease.name
        self._lease = lease
        self._fence = fence
        self._clock = clock
        self._leading = False

    @property
    def leading(self) -> bool:
        """Return whether no other was seen to lead since this one did."""
        return self._leading

    async def try_acquire(self) -> bool:
        """Return one attempt; it takes long only where another holds the fence."""
        await self._fence.observe()
        return await self._lease.try_acquire() and await self._take_fence()

    async def acquire(self) -> None:
        while True:
            await self._lease.acquire()
            if await self._take_fence():
                return

    async def _take_fence(self) -> bool:
        """Return False when the lease was lost meanwhile.

        A fence that cannot be reached is taken later, by `hold`.
        """
        holding = asyncio.create_task(self._lease.hold(), name="lease")
        taking = asyncio.create_task(self._seize(), name="fence")
        try:
            await asyncio.wait({holding, taking}, return_when=asyncio.FIRST_COMPLETED)
            self._leading = taking.done() and not holding.done()
            if taking.done():
                taking.result()
            return self._leading
        finally:
            await cancel_and_wait(holding, taking)

    async def _seize(self) -> None:
        if await self._fence.try_acquire():
            return
        try:
            previous = await self._fence.seize()
        except (ApiError, ConnectionFailed, TimeoutError) as error:
            self._fence.log.info("The fence cannot be taken now", err=str(error))
            return
        if previous:
            self._fence.log.info("Waiting until the previous leader has stopped", leader=previous)
            with contextlib.suppress(TimeoutError):
                await with_timeout(self._clock, self._fence.hold(), self._fence.renew_deadline)

    async def hold(self) -> None:
        """Renews both; returns when another holds one of them."""
        following = [
            asyncio.create_task(self._until_another(elector), name="lease") for elector in (self._lease, self._fence)
        ]
        try:
            ended, _ = await asyncio.wait(following, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                task.result()
        finally:
            await cancel_and_wait(*following)
        self._leading = False

    async def _until_another(self, elector: LeaderElector) -> None:
        while True:
            await elector.hold()
            if elector.leader not in ("", elector.identity):
                return
            elector.log.info("The lease cannot be renewed, and nobody else is known to hold it: going on")
            while not await elector.try_acquire():
                if elector.leader not in ("", elector.identity):
                    return
                await self._clock.sleep(elector.retry_period)

    async def release(self) -> None:
        self._leading = False
        await self._fence.release()
        await self._lease.release()
