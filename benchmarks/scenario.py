"""What a scenario is, and what one measurement of it gives.

A scenario is measured at several sizes, each several times, every time in a process of its own that starts whatever it
needs in an empty folder: no measurement finds caches warm or memory used by another one. What it gives are figures
(declared beforehand, with unit, direction and goal), the use that every process made of the machine, and costs: the
amounts whose growth with the size is fitted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol, TypeAlias, runtime_checkable

import msgspec

Better: TypeAlias = Literal["higher", "lower"]
STEPS = (1, 3, 10)
"""Growth is looked at over so many times the base size."""


class Skipped(Exception):
    """Why a scenario cannot be measured here; for people."""


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """`goals` says for which size how much is wanted."""

    name: str
    unit: str = ""
    better: Better = "lower"
    goals: Mapping[int, float] = {}

    def reached(self, size: int, value: float) -> bool | None:
        """None where nothing is wanted."""
        goal = self.goals.get(size)
        if goal is None:
            return None
        return value >= goal if self.better == "higher" else value <= goal


class Use(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a process, its children included, used. Memory is in MiB; proportional is None where it may not be read."""

    cpu_seconds: float
    resident: float
    proportional: float | None
    peak: float


class Measurement(msgspec.Struct, kw_only=True):
    """One run at one size. `costs` are amounts, unit in the name, that can be expected to grow with the size."""

    figures: dict[str, float]
    processes: dict[str, Use] = {}
    costs: dict[str, float] = {}
    notes: list[str] = []


class Sizes(msgspec.Struct, frozen=True, kw_only=True):
    """`base` and its multiples show growth; `more` are measured besides, as sizes that users compare."""

    quick: int
    base: int
    more: tuple[int, ...] = ()

    def of(self, *, quick: bool, growth: bool) -> list[int]:
        first = self.quick if quick else self.base
        steps = [first * step for step in STEPS]
        if quick:
            return steps if growth else [first]
        return sorted({*self.more, *(steps if growth else steps[-1:])})


@dataclass(frozen=True)
class Foreign:
    """A control plane that runs already, reached by kubeconfigs only."""

    control: str
    members: Sequence[str]
    """Kubeconfigs, each with :context behind it where it is not the current one."""
    join: bool = False
    pids: Mapping[str, int] = field(default_factory=dict)
    """Processes that may be looked at, by the names they get in the results."""


def _quiet(_text: str) -> None:
    """Progress is dropped."""


@contextmanager
def _unobserved(_pids: Mapping[str, int]) -> Iterator[None]:
    """No observer."""
    yield


@dataclass(frozen=True)
class Place:
    """Where a measurement happens: an empty folder, and perhaps somebody else's control plane."""

    folder: Path
    foreign: Foreign | None = None
    progress: Callable[[str], None] = _quiet
    runner: tuple[str, ...] = ()
    """A module that runs the programs of ours that are measured, which are its first argument; else they run alone."""
    looking_at: Callable[[Mapping[str, int]], AbstractContextManager[None]] = _unobserved
    """Entered with the processes of the control plane, by name, while they do what is measured."""


class Scenario(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str:
        """What is measured, for the heading of its table."""

    @property
    def counted(self) -> str:
        """What the size is a number of."""

    @property
    def sizes(self) -> Sizes: ...

    @property
    def figures(self) -> Sequence[Figure]: ...

    @property
    def foreign(self) -> bool:
        """Whether it can be measured on any control plane, given kubeconfigs."""

    async def run(self, size: int, place: Place) -> Measurement: ...


@runtime_checkable
class Profilable(Scenario, Protocol):
    """A scenario with processes of ours that are under a load of their own."""

    async def load(self, size: int, place: Place) -> Measurement:
        """The part of a run that `Place.looking_at` is for."""
