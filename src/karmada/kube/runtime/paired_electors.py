"""Electors that hold two leases, or a lease and a membership: a process leads while it has both.

`SharedLeader` is for a group whose members share the work. They hold the lease by which others are elected under one
identity, that of the group, beside the Lease that each has for itself (see membership). So replicas that share and a
replica that leads never work at the same time.

`TwoServerElector` is for processes that must go on while the server of their lease is away. The first lease, in a
remote place, elects; the second, the local one, is where the work is done. A leader that cannot renew its leases
because a server does not respond still leads: it stops only when it sees that another holds one of them. Who wins the
first lease takes the local one, even from one that still renews it, and then waits until that one must have noticed: a
holder renews the local lease within its deadline, and if it cannot reach that, it cannot work there either. A candidate
observes the local lease from the beginning, so that one whose holder has died is free by then.
"""

from __future__ import annotations

import asyncio
import contextlib

from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.errors import ApiError
from karmada.kube.runtime.leader import LeaderElector
from karmada.kube.runtime.membership import Membership
from karmada.kube.runtime.waiting import cancel_and_wait, until_one_ends, with_timeout


class SharedLeader:
    """An elector (see manager): it leads while it is a member of the group, and the group has the lease."""

    def __init__(self, lease: LeaderElector, membership: Membership) -> None:
        """`lease`: its identity is the group's, the same for all members."""
        self.name = lease.name
        self._lease = lease
        self._membership = membership

    @property
    def leading(self) -> bool:
        return self._lease.leading and self._membership.leading

    async def try_acquire(self) -> bool:
        return await self._lease.try_acquire() and await self._membership.try_acquire()

    async def acquire(self) -> None:
        await self._lease.acquire()
        await self._membership.acquire()

    async def hold(self) -> None:
        """Wait until either is lost."""
        await until_one_ends(self._lease.hold(), self._membership.hold())

    async def release(self) -> None:
        """Leave; the last one releases the lease, too."""
        alone = self._membership.is_alone
        await self._membership.release()
        if alone:
            await self._lease.release()


class TwoServerElector:
    def __init__(self, lease: LeaderElector, local: LeaderElector, clock: Clock) -> None:
        self.name = lease.name
        self._lease = lease
        self._local = local
        self._clock = clock
        self.leading = False
        """True if no other was seen to lead since this one did."""

    async def try_acquire(self) -> bool:
        """Return one attempt; it takes long only where another holds the local lease."""
        await self._local.observe()
        return await self._lease.try_acquire() and await self._take_local()

    async def acquire(self) -> None:
        while True:
            await self._lease.acquire()
            if await self._take_local():
                return

    async def _take_local(self) -> bool:
        """Return False when the lease was lost meanwhile.

        A local lease that cannot be reached is taken later, by `hold`.
        """
        holding = asyncio.create_task(self._lease.hold(), name="lease")
        taking = asyncio.create_task(self._seize(), name="local lease")
        try:
            await asyncio.wait({holding, taking}, return_when=asyncio.FIRST_COMPLETED)
            self.leading = taking.done() and not holding.done()
            if taking.done():
                taking.result()
            return self.leading
        finally:
            await cancel_and_wait(holding, taking)

    async def _seize(self) -> None:
        if await self._local.try_acquire():
            return
        try:
            previous = await self._local.seize()
        except (ApiError, ConnectionFailed, TimeoutError) as error:
            self._local.log.info("The local lease cannot be taken now", err=str(error))
            return
        if previous:
            self._local.log.info("Waiting until the previous leader has stopped", leader=previous)
            with contextlib.suppress(TimeoutError):
                await with_timeout(self._clock, self._local.hold(), self._local.renew_deadline)

    async def hold(self) -> None:
        """Renew both; return when another holds one of them."""
        await until_one_ends(self._until_another(self._lease), self._until_another(self._local))
        self.leading = False

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
        self.leading = False
        await self._local.release()
        await self._lease.release()
