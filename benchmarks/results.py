"""What a run found, as it is written to JSON: for each scenario and size every figure with its spread over the repeats.

Every single value is kept; least, median and greatest are made from them once, here, so that the table, the plots, the
documentation and whoever reads the file later say the same.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from benchmarks.growth import Fit, fit
from benchmarks.machine import Machine
from benchmarks.scenario import Better, Figure, Measurement, Scenario, Use

FORMAT = 1


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    values: list[float]
    min: float
    median: float
    max: float
    relative: float
    """Between the least and the greatest, as a share of the median."""

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        found = list(values)
        middle, least, most = statistics.median(found), min(found), max(found)
        relative = (most - least) / abs(middle) if middle else 0.0
        return cls(values=found, min=least, median=middle, max=most, relative=relative)


class FigureResult(msgspec.Struct, frozen=True, kw_only=True):
    unit: str
    better: Better
    spread: Spread
    goal: float | None = None
    reached: bool | None = None


class UseResult(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Of one process; memory in MiB."""

    cpu_seconds: Spread
    resident: Spread
    proportional: Spread | None
    peak: Spread

    @classmethod
    def of(cls, uses: Sequence[Use]) -> UseResult:
        shares = [use.proportional for use in uses if use.proportional is not None]
        return cls(
            cpu_seconds=Spread.of(use.cpu_seconds for use in uses),
            resident=Spread.of(use.resident for use in uses),
            proportional=Spread.of(shares) if len(shares) == len(uses) else None,
            peak=Spread.of(use.peak for use in uses),
        )


class SizeResult(msgspec.Struct, frozen=True, kw_only=True):
    size: int
    repeats: int
    seconds: Spread
    """What a repeat took as a whole, setting up included."""
    others: float
    """Cores that others used meanwhile, in the repeat that was disturbed most."""
    speed: Spread | None = None
    """The machine's, before, during and after each repeat (see benchmarks.speed); results of old do not have it."""
    figures: dict[str, FigureResult]
    processes: dict[str, UseResult]
    costs: dict[str, Spread]
    notes: list[str]


class Timed(msgspec.Struct, frozen=True):
    """A measurement, what it took as a whole, how many cores others used meanwhile, and how fast the machine was."""

    measurement: Measurement
    seconds: float
    others: float
    speeds: tuple[float, ...]
    """Before, during and after."""


class ScenarioResult(msgspec.Struct, kw_only=True):
    name: str
    title: str
    counted: str
    sizes: list[SizeResult] = []
    growth: dict[str, Fit] = {}
    """Of each cost."""
    skipped: list[str] = []
    errors: list[str] = []


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """Of the samples of a profile: those in this place itself, and those in it or in what it called."""

    name: str
    self: float
    cumulative: float


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    scenario: str
    process: str
    size: int
    samples: int
    packages: list[Share]
    functions: list[Share]


class Results(msgspec.Struct, kw_only=True):
    machine: Machine
    taken: str
    plane: str
    """Whose control plane was measured."""
    quick: bool = False
    seconds: float = 0.0
    scenarios: list[ScenarioResult] = []
    format: int = FORMAT

    @property
    def speed(self) -> Spread | None:
        """The machine's, during the whole run."""
        speeds = [size.speed for found in self.scenarios for size in found.sizes if size.speed is not None]
        return Spread.of(value for speed in speeds for value in speed.values) if speeds else None

    def scenario(self, name: str) -> ScenarioResult | None:
        return next((found for found in self.scenarios if found.name == name), None)

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n")

    @classmethod
    def read(cls, path: Path) -> Results:
        found = msgspec.json.decode(path.read_bytes(), type=cls)
        if found.format != FORMAT:
            raise ValueError(f"{path} has format {found.format}, this program reads {FORMAT}")
        return found


def collected(scenario: Scenario, size: int, repeats: Sequence[Timed]) -> SizeResult:
    """All repeats of one size."""
    measured = [timed.measurement for timed in repeats]
    return SizeResult(
        size=size,
        repeats=len(repeats),
        seconds=Spread.of(timed.seconds for timed in repeats),
        others=max(timed.others for timed in repeats),
        speed=Spread.of(speed for timed in repeats for speed in timed.speeds),
        figures={
            figure.name: _figure(figure, size, values)
            for figure in scenario.figures
            if (values := [one.figures[figure.name] for one in measured if figure.name in one.figures])
        },
        processes={
            name: UseResult.of([one.processes[name] for one in measured if name in one.processes])
            for name in _names(one.processes for one in measured)
        },
        costs={
            name: Spread.of(one.costs[name] for one in measured if name in one.costs)
            for name in _names(one.costs for one in measured)
        },
        notes=_names(one.notes for one in measured),
    )


def growth_of(sizes: Sequence[SizeResult]) -> dict[str, Fit]:
    """The medians of each cost, against the sizes."""
    found = {}
    for name in _names(size.costs for size in sizes):
        fitted = fit([(size.size, size.costs[name].median) for size in sizes if name in size.costs])
        if fitted is not None:
            found[name] = fitted
    return found


def _figure(figure: Figure, size: int, values: Sequence[float]) -> FigureResult:
    spread = Spread.of(values)
    return FigureResult(
        unit=figure.unit,
        better=figure.better,
        spread=spread,
        goal=figure.goals.get(size),
        reached=figure.reached(size, spread.median),
    )


def _names(groups: Iterable[Iterable[str]]) -> list[str]:
    """All of them, each once, in the order in which they came."""
    return list(dict.fromkeys(name for group in groups for name in group))
