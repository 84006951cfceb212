"""A component that is no controller, where replicas share the work: it runs on the one that owns its shard."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karmada.kube.runtime.sharing import Assignment, by_controller

if TYPE_CHECKING:
    from karmada.kube.runtime.manager import Component
    from karmada.kube.runtime.membership import Membership


class OwnedComponent:
    """`component` must be one that can be started again after it was stopped."""

    def __init__(self, component: Component, membership: Membership) -> None:
        self.name = component.name
        self._component = component
        self._membership = membership
        self._shard = by_controller(component.name)
        self._started = False
        self._runs = False
        membership.add(self)

    async def start(self) -> None:
        self._started = True
        await self._follow()

    async def stop(self) -> None:
        self._started = False
        await self._follow()

    async def disown(self) -> None:
        await self._follow()

    async def take_over(self, _before: Assignment, _now: Assignment) -> None:
        await self._follow()

    async def _follow(self) -> None:
        wanted = self._started and self._membership.owns(self._shard)
        if wanted and not self._runs:
            self._runs = True
            await self._component.start()
        elif self._runs and not wanted:
            self._runs = False
            await self._component.stop()
