"""`python -m benchmarks ablation`: what each mechanism that exists for speed gives, by switching it off.

Control plane, two members and client run in one process. Bursts of Deployments are propagated, with the mechanism off
in every other one; the CPU of the process for each Work is compared within a pair, as the machine may change its speed.
The row `nothing` switches nothing off: what it shows is the error of the method. A mechanism of which
three trials show nothing, and that saves no memory or latency either, does not earn its concept.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import objects
from benchmarks.planes import is_applied, one_process
from karmada.api.work import ResourceBinding
from karmada.controllers.templates import Templates
from karmada.kube.client.client import Client
from karmada.kube.objects.doc import Doc
from karmada.kube.runtime.events import EventRecorder
from karmada.kube.runtime.follow_ups import FollowUps
from karmada.kube.schema import conforming
from karmada.kube.server.handlers.group_creates import GroupCreates

_NAMESPACE = "ablation"
_WORKS_OF_EACH = 2
_QUIET_SECONDS, _QUIET_CPU = 6.0, 0.1
"""With less CPU than this in so many seconds nothing is left to do; Events are written some seconds after the rest."""
_LIMIT_SECONDS = 300.0


@dataclass(frozen=True)
class Mechanism:
    """Something that exists for speed: what it saves, and the attribute that is replaced to switch it off."""

    saves: str
    owner: Any
    attribute: str
    off: Any

    @contextmanager
    def switched_off(self) -> Iterator[None]:
        on = getattr(self.owner, self.attribute)
        setattr(self.owner, self.attribute, self.off)
        try:
            yield
        finally:
            setattr(self.owner, self.attribute, on)


async def _nothing_done(*_: Any) -> None:
    """Have objects created one by one, or each Event of a group pass every step of a create."""


def _no_event(*_: Any, **_more: Any) -> None:
    """Emit nothing."""


class _Nothing:
    unchanged = None


class _Everything:
    """Names of parts that are not tested: all of them."""

    def __contains__(self, _name: str) -> bool:
        return True


MECHANISMS: Mapping[str, Mechanism] = {
    "nothing": Mechanism("the error of the method", _Nothing, "unchanged", None),
    "group-creates": Mechanism(
        "a request and a transaction for each Event", GroupCreates, "create", _nothing_done
    ),
    "event-encoder": Mechanism(
        "decoding, defaults, admission and validation of each Event", GroupCreates, "_event_encoder", _nothing_done
    ),
    "events": Mechanism("all Events: what they cost, no mechanism", EventRecorder, "event", _no_event),
    "follow-ups": Mechanism(
        "a write for the claim of a template, and one for the decision on a binding", FollowUps, "of", lambda *_: None
    ),
    "adopted-objects": Mechanism(
        "parsing what was just encoded, and comparing what an update left alone", Doc, "adopt", Doc.object
    ),
    "recent-templates": Mechanism(
        "a read of the template for each controller on its way", Templates, "_known", lambda *_: None
    ),
    "conforming": Mechanism(
        "the walks of defaulting, pruning and validation over custom resources in order",
        conforming, "_IDENTITY", _Everything(),
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Trial:
    """CPU of one burst with the mechanism off in proportion to that of its neighbour with it on, pair by pair."""

    name: str
    factors: Sequence[float]
    milliseconds: float
    """CPU for each Work with everything on: the median."""

    @property
    def gain(self) -> float:
        return median(self.factors) - 1


async def trials(folder: Path, names: Sequence[str], *, pairs: int, size: int) -> AsyncIterator[Trial]:
    """Yield the trial of each mechanism when it is done."""
    async with one_process(folder, _NAMESPACE) as control:
        bursts = _Bursts(control, size)
        await bursts.cpu()
        for name in names:
            yield await _trial(bursts, name, pairs)


async def show(found: AsyncIterator[Trial], line: Callable[[str], object]) -> None:
    """Write a table, row by row."""
    line(f"{'switched off':<18} {'CPU':>7} {'least … greatest pair':>23} {'with it':>9}  what it saves")
    async for trial in found:
        line(_row(trial))


async def _trial(bursts: _Bursts, name: str, pairs: int) -> Trial:
    factors, usual = [], []
    for number in range(pairs):
        first_off = number % 2 == 1  # what comes second in a pair finds more in the store
        costs = {}
        for off in (first_off, not first_off):
            costs[off] = await bursts.cpu(MECHANISMS[name] if off else None)
        factors.append(costs[True] / costs[False])
        usual.append(costs[False])
    return Trial(name, factors, median(usual) / (bursts.size * _WORKS_OF_EACH) * 1000)


class _Bursts:
    """Deployments that are created at once, and awaited with all that follows."""

    def __init__(self, control: Client, size: int) -> None:
        self.size = size
        self._control = control
        self._made = 0

    async def cpu(self, off: Mechanism | None = None) -> float:
        """Return the seconds of CPU of one burst, until the process is at rest."""
        gc.collect()
        gc.disable()  # one pass costs as much as fifty Works, and comes now and then
        try:
            if off is None:
                return await self._burst()
            with off.switched_off():
                return await self._burst()
        finally:
            gc.enable()

    async def _burst(self) -> float:
        names = [objects.numbered(self._made + number) for number in range(self.size)]
        self._made += self.size
        before = time.process_time()
        creates = (self._control.create(objects.DEPLOYMENTS, objects.deployment(name, _NAMESPACE)) for name in names)
        await asyncio.gather(*creates)
        async with asyncio.timeout(_LIMIT_SECONDS):
            while True:
                await self._rest()
                used = time.process_time() - before
                if await self._all_applied(names):
                    return used

    async def _rest(self) -> None:
        """Wait until the process does hardly anything: there is nothing left to do, or others have the machine."""
        used = time.process_time()
        while True:
            await asyncio.sleep(_QUIET_SECONDS)
            before, used = used, time.process_time()
            if used - before < _QUIET_CPU:
                return

    async def _all_applied(self, names: Sequence[str]) -> bool:
        for name in names:
            if not is_applied(await self._control.get(ResourceBinding.gvr, f"{name}-deployment", _NAMESPACE)):
                return False
        return True


def _row(trial: Trial) -> str:
    spread = f"{min(trial.factors) - 1:+.0%} … {max(trial.factors) - 1:+.0%}"
    saves = MECHANISMS[trial.name].saves
    return f"{trial.name:<18} {trial.gain:>+7.1%} {spread:>23} {trial.milliseconds:>6.2f} ms  {saves}"
