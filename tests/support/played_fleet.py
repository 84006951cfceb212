"""A whole fleet in memory on a fast clock that tests play scenarios on, one after the other."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from karmada.controllers.context import Settings
from karmada.features import default_gates
from karmada.kube.objects import meta
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.types import Obj
from karmada.kube.sim.profile import INSTANT, NodePool, Profile
from karmada.rehearsal.event_loop import RehearsalLoop
from karmada.rehearsal.fleet import RehearsalFleet

T = TypeVar("T")


class PlayedFleet:
    """`gates` as in --feature-gates."""

    def __init__(self, folder: Path, *, settings: Settings | None = None, gates: str = "") -> None:
        enabled = default_gates()
        enabled.set(gates)
        self.fleet = RehearsalFleet(folder, settings or Settings(), enabled)
        self.client = self.fleet.client
        self._loop = RehearsalLoop()

    def play(self, scenario: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(scenario)

    async def start(self) -> None:
        await self.begin()

    async def clear(self) -> None:
        """Bring it back to how it was after `start`."""

    async def begin(self, *names: str, nodes: int = 1, seconds: float = 45) -> None:
        """Start the fleet with members that have so many nodes each."""
        await self.fleet.start()
        for name in names:
            await self.add(name, nodes)
        await self.fleet.start_controllers()
        await self.fleet.run(seconds)

    async def add(
        self, name: str, nodes: int | NodePool = 1, *, objects: Iterable[Obj] = (), cluster: Obj | None = None
    ) -> None:
        """Join a member with so many nodes that has these objects; `cluster`: with its labels, region and so on."""
        pool = NodePool(count=nodes) if isinstance(nodes, int) else nodes
        profile = Profile(name, latencies=INSTANT, pools=(pool,), system_pods=False)
        await self.fleet.add_member(profile, objects=objects)
        await self.fleet.join(name, cluster)

    async def remove(self, *kinds: GVR) -> None:
        """Delete everything of these kinds."""
        for kind in kinds:
            for found in (await self.client.list_all(kind, "default")).items:
                await self.client.delete(kind, meta.name(found), "default")

    def stored(self, kind: GVR, namespace: str = "default", *, member: str = "") -> dict[str, Obj]:
        """Return the objects of a kind by name, in the control plane or in a member."""
        server = self.fleet.members[member].sim.server if member else self.fleet.server
        return {meta.name(obj): obj for obj in server.cache.list(kind.group_resource, namespace)}

    def stop(self) -> None:
        self.play(self.fleet.stop())
        self._loop.close()


F = TypeVar("F", bound=PlayedFleet)


def started(fleet: F) -> Iterator[F]:
    """For a fixture of the module."""
    fleet.play(fleet.start())
    yield fleet
    fleet.stop()


def cleared(fleet: F) -> Iterator[F]:
    """For a fixture of each test."""
    yield fleet
    fleet.play(fleet.clear())
