"""Letting faults into a running cluster and taking them back.

Every fault has a name; healing by name, or of all, undoes exactly what that fault did. A fault may end by itself after
some seconds of real time. What a fault does to the cluster goes through `Patient`, a few verbs that a cluster offers.
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


class Patient(Protocol):
    """What a cluster lets faults do to it."""

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
    """Those that it concerns."""


class UnknownFault(KeyError):
    """No fault of that name is at work."""


class Injector:
    def __init__(self, patient: Patient) -> None:
        self._patient = patient
        self.active: dict[str, Injected] = {}
        self._lock = asyncio.Lock()
        self._ending: set[asyncio.Task[None]] = set()

    async def inject(self, fault: Fault, *, name: str = "", seconds: float | None = None) -> str:
        """Let a fault in; returns its name. One of the same name is healed first."""
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
        """Take one fault back, or all; their names. UnknownFault when there is none of that name."""
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
        self._patient.gate.set(faults)
        unavailable = [fault for fault in faults if isinstance(fault, Unavailable)]
        registry = self._patient.registry
        registry.hide(r.gvr for r in registry if any(names(fault, r.gvr) for fault in unavailable))
        for fault in faults:
            if isinstance(fault, (Watches, Partition)) and fault.how in ("cut", "refuse", "expire"):
                self._patient.cut(fault)

    async def _do(self, injected: Injected) -> None:
        patient, fault = self._patient, injected.fault
        match fault:
            case Down():
                await patient.stop_listening()
            case Flap():
                injected.task = asyncio.create_task(self._flap(fault), name=f"fault {injected.name}")
            case NodeLost():
                injected.nodes = tuple(patient.nodes_of(fault.nodes, fault.pool, fault.zone))
                patient.stop_nodes(injected.nodes)
            case Pressure():
                injected.nodes = tuple(patient.nodes_of(fault.nodes, fault.pool, fault.zone))
                patient.set_pressure(injected.nodes, fault.condition, True)
            case Pods():
                patient.add_rule(injected.name, fault.rule)
            case Paused():
                await patient.pause(fault.component)
            case Clock():
                patient.change_clock(fault.rate, fault.skip)
            case _:
                """The gate does the rest."""

    async def _undo(self, injected: Injected) -> None:
        """Take a fault back and strike it off the list; it stays there if that fails."""
        patient, fault = self._patient, injected.fault
        if injected.end is not None:
            injected.end.cancel()
        if injected.task is not None:
            await cancel_and_wait(injected.task)
        match fault:
            case Down() | Flap():
                if not any(isinstance(other.fault, (Down, Flap)) for other in self._others(injected)):
                    await patient.listen()
            case NodeLost():
                patient.resume_nodes(self._no_longer(injected))
            case Pressure():
                patient.set_pressure(self._no_longer(injected), fault.condition, False)
            case Pods():
                patient.remove_rule(injected.name)
            case Paused():
                if not any(other.fault == fault for other in self._others(injected)):
                    await patient.resume(fault.component)
            case Clock():
                patient.reset_clock()
                for other in self._others(injected):
                    if isinstance(other.fault, Clock):
                        patient.change_clock(other.fault.rate, other.fault.skip)
            case _:
                """The gate does the rest."""
        del self.active[injected.name]

    def _others(self, injected: Injected) -> list[Injected]:
        return [other for other in self.active.values() if other is not injected]

    def _no_longer(self, injected: Injected) -> list[str]:
        """Those of a fault's nodes that no other fault of its kind has."""
        others = [other for other in self._others(injected) if _same_harm(other.fault, injected.fault)]
        still = {node for other in others for node in other.nodes}
        return [node for node in injected.nodes if node not in still]

    async def _flap(self, fault: Flap) -> None:
        while True:
            await self._patient.stop_listening()
            await asyncio.sleep(fault.down)
            try:
                await self._patient.listen()
            except OSError as error:
                log.warning("The port is taken, staying down for another turn", err=str(error))
                continue
            await asyncio.sleep(fault.up)

    async def close(self) -> None:
        """The cluster stops: faults no longer expire, and hanging requests are released."""
        self._patient.gate.set(())
        for injected in self.active.values():
            if injected.end is not None:
                injected.end.cancel()
            if injected.task is not None:
                await cancel_and_wait(injected.task)
        await cancel_and_wait(*self._ending)


def _same_harm(one: Fault, other: Fault) -> bool:
    if isinstance(one, Pressure) and isinstance(other, Pressure):
        return one.condition == other.condition
    return isinstance(one, NodeLost) and isinstance(other, NodeLost)
