"""A whole fleet in memory on a fast clock that tests play scenarios on, one after the other."""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, Protocol, TypeVar

from karmada.controllers.context import Settings
from karmada.features import default_gates
from karmada.kube.sim.profile import INSTANT, NodePool, Profile
from karmada.rehearsal.event_loop import RehearsalLoop
from karmada.rehearsal.fleet import RehearsalFleet

T = TypeVar("T")


class PlayedFleet:
    """`gates` as in --feature-gates."""

    def __init__(self, folder: Path, *, settings: Settings | None = None, gates: str = "") -> None:
        enabled = default_gates()
        if gates:
            enabled.set(gates)
        self.fleet = RehearsalFleet(folder, settings or Settings(), enabled)
        self.client = self.fleet.client
        self._loop = RehearsalLoop()

    def play(self, scenario: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(scenario)

    async def add(self, name: str, nodes: int = 1) -> None:
        """A member with so many nodes, joined."""
        pools = (NodePool(count=nodes),)
        await self.fleet.add_member(Profile(name, latencies=INSTANT, pools=pools, system_pods=False))
        await self.fleet.join(name)

    def stop(self) -> None:
        self.play(self.fleet.stop())
        self._loop.close()


class Restorable(Protocol):
    """A fleet that can be started, and brought back to how it was."""

    def play(self, scenario: Coroutine[Any, Any, T]) -> T: ...

    async def start(self) -> None: ...

    async def clear(self) -> None: ...

    def stop(self) -> None: ...


F = TypeVar("F", bound=Restorable)


def started(fleet: F) -> Iterator[F]:
    """For a fixture of the module."""
    fleet.play(fleet.start())
    yield fleet
    fleet.stop()


def cleared(fleet: F) -> Iterator[F]:
    """For a fixture of each test."""
    yield fleet
    fleet.play(fleet.clear())
