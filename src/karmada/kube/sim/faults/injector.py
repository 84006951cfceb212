"""Injects faults into a running cluster and heals them.

Every fault has a name; healing by name, or of all, undoes exactly what that fault did. A fault may expire after some
seconds of real time. Faults act on the cluster through `FaultTarget`, the operations that a cluster offers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from karmada.kube.runtime.logging import get_logger
from karmada.kube.runtime.waiting import cancel_and_wait
from karmada.kube.server.registry import Registry
from karmada.kube.sim.behaviours import Rule
from karmada.kube.sim.faults.gate import FaultGate, names
from karmada.kube.sim.faults.kinds import (
    Clock,
    Down,
    Fault,
    Flap,
    Isolated,
    Matched,
    NodeLost,
    Partition,
    Paused,
    Pods,
    Pressure,
    Unavailable,
    Watches,
)

log = get_logger("faults")


class FaultTarget(Protocol):
    """The operations on a cluster that faults need."""

    gate: FaultGate

    @property
    def registry(self) -> Registry: ...

    async def listen(self) -> None: ...

    async def stop_listening(self) -> None: ...

    def cut(self, which: Matched) -> None: ...

    def nodes_of(self, nodes: Iterable[str], pool: str, zone: str) -> list[str]: ...

    def stop_nodes(self, nodes: Iterable[str]) -> None: ...

    def resume_nodes(self, nodes: Iterable[str]) -> None: ...

    def set_pressure(self, nodes: Iterable[str], condition: str, on: bool) -> None: ...

    def add_rule(self, name: str, rule: Rule) -> None: ...

    def remove_rule(self, name: str) -> None: ...

    def isolate(self, faults: Iterable[Isolated]) -> None:
        """Exactly these hold from now on; ValueError if the cluster runs no processes."""

    async def pause(self, component: str) -> None: ...

    async def resume(self, component: str) -> None: ...

    def change_clock(self, rate: float, skip: float) -> None: ...

    def reset_clock(self) -> None: ...


@dataclass(slots=True)
class Injected:
    name: str
    fault: Fault
    task: asyncio.Task[None] | None = None
    """A flapping cluster's."""
    end: asyncio.TimerHandle | None = None
    nodes: tuple[str, ...] = ()
    """The affected nodes."""


class UnknownFault(KeyError):
    """No active fault has that name."""


class Injector:
    def __init__(self, target: FaultTarget) -> None:
        self._target = target
        self.active: dict[str, Injected] = {}
        self._lock = asyncio.Lock()
        self._ending: set[asyncio.Task[None]] = set()

    async def inject(self, fault: Fault, *, name: str = "", seconds: float | None = None) -> str:
        """Inject a fault and return its name. One of the same name is healed first."""
        async with self._lock:
            name = name or self._free_name(type(fault).__struct_config__.tag)
            injected = Injected(name, fault)
            try:
                if name in self.active:
                    await self._undo(self.active[name])
                await self._do(injected)
                self.active[name] = injected
            finally:
                self._update_gate()
            if seconds is not None:
                injected.end = asyncio.get_running_loop().call_later(seconds, self._expire, injected)
        log.info("A fault began", fault=name, kind=type(fault).__name__)
        return name

    async def heal(self, name: str = "") -> list[str]:
        """Heal one fault, or all; return their names. UnknownFault when there is none of that name."""
        async with self._lock:
            if name and name not in self.active:
                raise UnknownFault(name)
            healed = [name] if name else list(self.active)
            try:
                for each in healed:
                    await self._undo(self.active[each])
            finally:
                self._update_gate()
        for each in healed:
            log.info("A fault is healed", fault=each)
        return healed

    def _free_name(self, kind: str | int | None) -> str:
        names = (f"{kind}" if not number else f"{kind}-{number + 1}" for number in range(len(self.active) + 1))
        return next(name for name in names if name not in self.active)

    def _expire(self, injected: Injected) -> None:
        async def end() -> None:
            if self.active.get(injected.name) is injected:
                await self.heal(injected.name)

        task = asyncio.get_running_loop().create_task(end(), name=f"end of fault {injected.name}")
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    def _update_gate(self) -> None:
        faults = tuple(injected.fault for injected in self.active.values())
        self._target.gate.set(faults)
        unavailable = [fault for fault in faults if isinstance(fault, Unavailable)]
        registry = self._target.registry
        registry.hide(r.gvr for r in registry if any(names(fault, r.gvr) for fault in unavailable))
        for fault in faults:
            if isinstance(fault, (Watches, Partition)) and fault.how in ("cut", "refuse", "expire"):
                self._target.cut(fault)

    async def _do(self, injected: Injected) -> None:
        target, fault = self._target, injected.fault
        match fault:
            case Down():
                await target.stop_listening()
            case Flap():
                injected.task = asyncio.create_task(self._flap(fault), name=f"fault {injected.name}")
            case NodeLost():
                injected.nodes = tuple(target.nodes_of(fault.nodes, fault.pool, fault.zone))
                target.stop_nodes(injected.nodes)
            case Pressure():
                injected.nodes = tuple(target.nodes_of(fault.nodes, fault.pool, fault.zone))
                target.set_pressure(injected.nodes, fault.condition, True)
            case Pods():
                target.add_rule(injected.name, fault.rule)
            case Isolated():
                target.isolate([*self._isolated(injected), fault])
            case Paused():
                await target.pause(fault.component)
            case Clock():
                target.change_clock(fault.rate, fault.skip)
            case _:
                """The gate does the rest."""

    async def _undo(self, injected: Injected) -> None:
        """Heal a fault and remove it from the list; it stays there if that fails."""
        target, fault = self._target, injected.fault
        if injected.end is not None:
            injected.end.cancel()
        if injected.task is not None:
            await cancel_and_wait(injected.task)
        match fault:
            case Down() | Flap():
                if not any(isinstance(other.fault, (Down, Flap)) for other in self._others(injected)):
                    await target.listen()
            case NodeLost():
                target.resume_nodes(self._no_longer(injected))
            case Pressure():
                target.set_pressure(self._no_longer(injected), fault.condition, False)
            case Pods():
                target.remove_rule(injected.name)
            case Isolated():
                target.isolate(self._isolated(injected))
            case Paused():
                if not any(other.fault == fault for other in self._others(injected)):
                    await target.resume(fault.component)
            case Clock():
                target.reset_clock()
                for other in self._others(injected):
                    if isinstance(other.fault, Clock):
                        target.change_clock(other.fault.rate, other.fault.skip)
            case _:
                """The gate does the rest."""
        del self.active[injected.name]

    def _others(self, injected: Injected) -> list[Injected]:
        return [other for other in self.active.values() if other is not injected]

    def _isolated(self, injected: Injected) -> list[Isolated]:
        """Return the other faults that isolate pods."""
        return [other.fault for other in self._others(injected) if isinstance(other.fault, Isolated)]

    def _no_longer(self, injected: Injected) -> list[str]:
        """Return those of a fault's nodes that no other fault of its kind has."""
        others = [other for other in self._others(injected) if _same_effect(other.fault, injected.fault)]
        still = {node for other in others for node in other.nodes}
        return [node for node in injected.nodes if node not in still]

    async def _flap(self, fault: Flap) -> None:
        while True:
            await self._target.stop_listening()
            await asyncio.sleep(fault.down)
            try:
                await self._target.listen()
            except OSError as error:
                log.warning("The port is taken, staying down for another turn", err=str(error))
                continue
            await asyncio.sleep(fault.up)

    async def close(self) -> None:
        """Stop with the cluster: faults no longer expire, and hanging requests are released."""
        self._target.gate.set(())
        for injected in self.active.values():
            if injected.end is not None:
                injected.end.cancel()
            if injected.task is not None:
                await cancel_and_wait(injected.task)
        await cancel_and_wait(*self._ending)


def _same_effect(one: Fault, other: Fault) -> bool:
    if isinstance(one, Pressure) and isinstance(other, Pressure):
        return one.condition == other.condition
    return isinstance(one, NodeLost) and isinstance(other, NodeLost)
