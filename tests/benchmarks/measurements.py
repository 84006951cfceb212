"""Results for tests, as if something had been measured."""

from __future__ import annotations

from benchmarks.machine import Machine
from benchmarks.results import Results, ScenarioResult, Timed, collected, growth_of
from benchmarks.scenario import Figure, Measurement, Place, Sizes, Use

STEADY = (30_000.0, 31_000.0)
"""The machine's speed before and after."""
USE = Use(cpu_seconds=2.0, resident=100.0, proportional=80.0, peak=120.0)


class Example:
    """A scenario that takes as many seconds as its size says."""

    name = "example"
    title = "An example"
    counted = "things"
    sizes = Sizes(quick=10, base=100, more=(20, 5_000))
    foreign = False
    figures = (
        Figure(name="things", unit="/s", better="higher", goals={100: 50.0, 300: 500.0}),
        Figure(name="done", unit="s", goals={100: 1.5}),
    )

    async def run(self, size: int, place: Place) -> Measurement:  # noqa: ARG002 - it needs none
        return measurement(size, 1.0)


def measurement(size: int, slower: float) -> Measurement:
    seconds = size / 100 * slower
    figures = {"things": size / seconds, "done": seconds}
    return Measurement(figures=figures, processes={"control plane": USE}, costs={"until done, s": seconds})


def machine(**changes: object) -> Machine:
    values: dict[str, object] = {
        "model": "An old one", "cores": 2, "memory": 4_096, "kernel": "6.1", "python": "CPython 3.11",
        "versions": {"orjson": "3"}, "commit": "abc", "filesystem": "ext4", "load": (0.0, 0.1, 0.2), "busy": 0.01,
    }  # fmt: skip
    return Machine(**{**values, **changes})  # type: ignore[arg-type]


def scenario_result(
    *sizes: int,
    repeats: tuple[float, ...] = (1.0, 1.1, 0.9),
    speeds: tuple[float, ...] = STEADY,
    named: str = Example.name,
) -> ScenarioResult:
    scenario = Example()
    found = ScenarioResult(name=named, title=scenario.title, counted=scenario.counted)
    for size in sizes or (100, 300, 1_000):
        timed = [Timed(measurement(size, slower), 3.0, 0.01, speeds) for slower in repeats]
        found.sizes.append(collected(scenario, size, timed))
    found.growth = growth_of(found.sizes)
    return found


def results(**changes: object) -> Results:
    values: dict[str, object] = {
        "machine": machine(), "taken": "2026-01-02T03:04:05+00:00", "plane": "pykarmada", "seconds": 90.0,
        "scenarios": [scenario_result()],
    }  # fmt: skip
    return Results(**{**values, **changes})  # type: ignore[arg-type]
