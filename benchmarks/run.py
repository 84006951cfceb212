"""A whole run: the selected scenarios, each at its sizes, each size several times.

Unless it is said how often, a size is repeated up to three times, but no more once that has taken a while: one
measurement of minutes averages over more than three of seconds do. What is found is written after every scenario, so
that a run that is cut short has not been in vain.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from benchmarks.machine import Machine, look
from benchmarks.measuring import Failed, Order, measured
from benchmarks.results import Results, ScenarioResult, Timed, collected, growth_of
from benchmarks.scenario import Foreign, Scenario, Skipped

REPEATS = 3
ENOUGH_SECONDS = 15.0
"""A size that has taken so many seconds is not repeated again."""
OURS = "pykarmada"


@dataclass(frozen=True)
class Options:
    folder: Path
    quick: bool = False
    growth: bool = True
    repeats: int | None = None
    seconds: float = 900.0
    foreign: Foreign | None = None
    sizes: Sequence[int] = field(default=())
    """Others than the scenario's own."""

    def sizes_of(self, scenario: Scenario) -> list[int]:
        return sorted(self.sizes) or scenario.sizes.of(quick=self.quick, growth=self.growth)

    @property
    def most(self) -> int:
        return self.repeats or (1 if self.quick else REPEATS)


class Watcher:
    """Observer of a run: what starts, and how it ended. This one ignores all of it."""

    def starts(self, machine: Machine) -> None: ...

    def begins(self, step: str) -> None: ...

    def progress(self, text: str) -> None: ...

    def ends(self, outcome: str) -> None: ...

    def finished(self, result: ScenarioResult) -> None: ...


class Run:
    def __init__(self, scenarios: Sequence[Scenario], options: Options, watcher: Watcher) -> None:
        self._scenarios = scenarios
        self._options = options
        self._watcher = watcher
        self._steps = sum(len(options.sizes_of(scenario)) for scenario in scenarios)
        self._step = 0

    def all(self, keep: Callable[[Results], None]) -> Results:
        """`keep` gets what is there after every scenario."""
        options, began = self._options, time.perf_counter()
        options.folder.mkdir(parents=True, exist_ok=True)
        results = Results(
            machine=look(options.folder),
            taken=datetime.now(UTC).isoformat(timespec="seconds"),
            plane=options.foreign.control if options.foreign else OURS,
            quick=options.quick,
        )
        self._watcher.starts(results.machine)
        for scenario in self._scenarios:
            found = self._scenario(scenario)
            results.scenarios.append(found)
            results.seconds = time.perf_counter() - began
            keep(results)
            self._watcher.finished(found)
        return results

    def _scenario(self, scenario: Scenario) -> ScenarioResult:
        found = ScenarioResult(name=scenario.name, title=scenario.title, counted=scenario.counted)
        for size in self._options.sizes_of(scenario):
            self._step += 1
            if found.errors:
                continue  # where a small size fails, a larger one is no use
            try:
                repeats = self._size(scenario, size)
            except Skipped as reason:
                self._watcher.ends("skipped")
                found.skipped.append(f"{size:,} {scenario.counted}: {reason}")
            except Failed as error:
                self._watcher.ends("FAILED")
                found.errors.append(f"{size:,} {scenario.counted}: {error}")
            else:
                found.sizes.append(collected(scenario, size, repeats))
        found.growth = growth_of(found.sizes)
        return found

    def _size(self, scenario: Scenario, size: int) -> list[Timed]:
        options, repeats = self._options, list[Timed]()
        log = options.folder / f"{scenario.name}-{size}.log"
        while len(repeats) < options.most:
            where = f"[{self._step}/{self._steps}] {scenario.name}, {size:,} {scenario.counted}"
            self._watcher.begins(f"{where}, {len(repeats) + 1} of {options.most}")
            repeats.append(measured(_order(scenario, size, options), log, self._watcher.progress))
            self._watcher.ends(f"{repeats[-1].seconds:.0f} s")
            if options.repeats is None and sum(timed.seconds for timed in repeats) > ENOUGH_SECONDS:
                break
        return repeats


def _order(scenario: Scenario, size: int, options: Options) -> Order:
    order = Order(scenario=scenario.name, size=size, folder=str(options.folder), seconds=options.seconds)
    if options.foreign is None:
        return order
    given = options.foreign
    return msgspec.structs.replace(
        order, control=given.control, members=tuple(given.members), join=given.join, pids=dict(given.pids)
    )
