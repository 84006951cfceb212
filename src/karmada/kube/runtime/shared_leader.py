"""The lease of a whole group: while its members share the work, nobody else is elected to do it, and the reverse.

Members hold the lease by which others are elected under one identity, that of the group, beside the Lease that each has
for itself (see membership). So replicas that share and a replica that leads never work at the same time.
"""

from __future__ import annotations

import asyncio

from karmada.kube.runtime.leader import LeaderElector
from karmada.kube.runtime.membership import Membership
from karmada.kube.runtime.waiting import cancel_and_wait


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
        holding = [asyncio.create_task(part.hold()) for part in (self._lease, self._membership)]
        try:
            ended, _ = await asyncio.wait(holding, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                task.result()
        finally:
            await cancel_and_wait(*holding)

    async def release(self) -> None:
        """Leave; the last one releases the lease, too."""
        alone = self._membership.is_alone
        await self._membership.release()
        if alone:
            await self._lease.release()
