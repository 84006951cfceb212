"""`python -m benchmarks way`: count what one Deployment passes through on its way to two members and back.

Control plane, members and client run in one process, on one event loop. After a few Deployments, when caches and
connections are warm, every call of a function of this project is counted from the request that creates another one
until both members have it, its status is back and nothing more happens. These counts do not depend on how busy the
machine is, so two versions can be compared by them.
"""

from __future__ import annotations

import asyncio
import dis
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import karmada
from benchmarks import objects
from benchmarks.planes import is_applied, one_process
from karmada.api.work import ResourceBinding
from karmada.kube.client.client import Client
from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.gvrs import EVENTS

_NAMESPACE = "way"
_WARM, _MEASURED = 5, 12
"""So many Deployments go before; of so many the one with the fewest calls counts: what happens now and then (leases,
statuses of clusters) is no part of its way."""
_QUIET_SECONDS = 0.5
"""Without a call for so long, a Deployment has arrived with all that follows."""
_LIMIT_SECONDS = 60.0
_COMPREHENSIONS = frozenset({"<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>"})
_SOURCE = str(Path(karmada.__path__[0]))


@dataclass
class Way:
    """Calls by function; a function is (file below the package, qualified name)."""

    calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    events: int = 0
    """Event objects about the Deployment, its binding and its Works."""

    @property
    def total(self) -> int:
        return self.calls.total()

    @property
    def functions(self) -> int:
        return len(self.calls)

    @property
    def files(self) -> int:
        return len({file for file, _ in self.calls})

    def by_package(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for (file, _), count in self.calls.items():
            found[_package(file)] += count
        return found

    def files_of(self, package: str) -> int:
        return len({file for file, _ in self.calls if _package(file) == package})


def _package(file: str) -> str:
    parts = file.split("/")
    return "/".join(parts[:2] if parts[0] == "kube" else parts[:1])


class Counting:
    """Counts calls of functions of this project by a profile hook, while it is on."""

    def __init__(self) -> None:
        self._by_code: Counter[CodeType] = Counter()
        self._begins: dict[CodeType, int] = {}
        self.total = 0

    def on(self) -> None:
        sys.setprofile(self._hook)

    def off(self) -> None:
        sys.setprofile(None)

    def _hook(self, frame: FrameType, event: str, _: Any) -> None:
        """Count a call of a function; a coroutine that resumes where it waited is not called again."""
        if event != "call":
            return
        code = frame.f_code
        begins = self._begins.get(code)
        if begins is None:
            begins = self._begins[code] = _begin(code)
        if frame.f_lasti <= begins:
            self._by_code[code] += 1
            self.total += 1

    def way(self) -> Way:
        found = Way()
        for code, count in self._by_code.items():
            found.calls[code.co_filename.removeprefix(_SOURCE + "/"), code.co_qualname] += count
        return found


def _begin(code: CodeType) -> int:
    """Return the offset up to which a frame of this code has not run yet; -2 for what is not counted.

    A comprehension belongs to the function that it stands in; later versions of Python do not call it either.
    """
    if not code.co_filename.startswith(_SOURCE) or code.co_name in _COMPREHENSIONS:
        return -2
    return next((op.offset for op in dis.get_instructions(code) if op.opname == "RESUME" and op.arg == 0), 0)


async def _settled(counting: Counting) -> None:
    while True:
        before = counting.total
        await asyncio.sleep(_QUIET_SECONDS)
        if counting.total == before:
            return


async def _until(counting: Counting, condition: Callable[[], Awaitable[bool]]) -> None:
    """Poll a condition; what it calls is not counted."""
    async with asyncio.timeout(_LIMIT_SECONDS):
        while True:
            counting.off()
            met = await condition()
            counting.on()
            if met:
                return
            await asyncio.sleep(0.05)


async def measured(folder: Path) -> Way:
    """Return what one Deployment for two members calls, after some others."""
    async with one_process(folder, _NAMESPACE) as control:
        ways = []
        for number in range(_WARM + _MEASURED):
            counting = Counting()
            await _deploy(control, number, counting)
            ways.append(counting.way())
        for number, way in enumerate(ways):  # after them: Events that somebody has listed stay in memory
            way.events = await _events_about(control, objects.numbered(number))
        return min(ways[_WARM:], key=lambda way: way.total)


async def _deploy(control: Client, number: int, counting: Counting) -> None:
    name = objects.numbered(number)
    made = objects.deployment(name, _NAMESPACE)

    async def arrived() -> bool:
        try:
            return is_applied(await control.get(ResourceBinding.gvr, f"{name}-deployment", _NAMESPACE))
        except NotFound:
            return False

    counting.on()
    await control.create(objects.DEPLOYMENTS, made)
    await _until(counting, arrived)
    await _settled(counting)
    counting.off()


async def _events_about(control: Client, name: str) -> int:
    events = (await control.list_all(EVENTS)).items
    return sum(event["involvedObject"]["name"].startswith(name) for event in events)


def described(way: Way, most: int) -> Sequence[str]:
    lines = [f"{way.files} files, {way.functions} functions, {way.total} calls, {way.events} Events", ""]
    lines += [f"{'package':<24} {'calls':>6} {'files':>6}"]
    lines += [
        f"{package:<24} {count:>6} {way.files_of(package):>6}" for package, count in way.by_package().most_common()
    ]
    if most:
        lines += ["", f"{'calls':>6} function"]
        lines += [f"{count:>6} {file} {name}" for (file, name), count in way.calls.most_common(most)]
    return lines
