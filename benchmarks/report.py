"""Results as people read them: tables for a terminal and for the documentation, and a comparison of two runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.machine import Machine
from benchmarks.results import FigureResult, Profile, Results, ScenarioResult, SizeResult, Spread, UseResult
from benchmarks.speed import REFERENCE

DISTURBED = 0.1
"""Cores that others used; more than that is reported."""
UNSTEADY = 0.15
"""Between the machine's least and greatest speed; more than that is reported."""
_TIMES = ("s", "ms", "µs")
"""Units of figures that a slow machine makes greater; rates, which it makes smaller, end with /s."""
_SHOWN = 12
"""So many lines of a profile."""


def number(value: float) -> str:
    """Three digits that mean something, or all before the point."""
    size = abs(value)
    if size >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if size >= 10 else f"{value:.2f}" if size >= 1 else f"{value:.3g}"


def spread(found: Spread) -> str:
    if len(found.values) == 1:
        return "once"
    return f"{number(found.min)} … {number(found.max)} ({found.relative:.0%})"


def goal(figure: FigureResult, speed: Spread | None) -> str:
    """A goal that was missed on a slow machine has beside it what the figure would be at the speed goals are for."""
    if figure.goal is None:
        return ""
    if figure.reached:
        return f"{number(figure.goal)}: reached"
    estimate = _at_reference(figure, speed)
    beside = "" if estimate is None else f" (about {number(estimate)} at {number(REFERENCE)} rounds/s)"
    return f"{number(figure.goal)}: MISSED{beside}"


def _at_reference(figure: FigureResult, speed: Spread | None) -> float | None:
    """None for what does not depend on the speed, and where that was high enough."""
    if speed is None or speed.median >= REFERENCE:
        return None
    if figure.unit in _TIMES:
        return figure.spread.median * speed.median / REFERENCE
    return figure.spread.median * REFERENCE / speed.median if figure.unit.endswith("/s") else None


def use(name: str, found: UseResult) -> str:
    proportional = f", {number(found.proportional.median)} proportional" if found.proportional else ""
    return (
        f"{name}: {number(found.cpu_seconds.median)} s CPU, {number(found.resident.median)} MiB resident"
        f"{proportional}, {number(found.peak.median)} peak"
    )


def speed(found: Spread) -> str:
    changed = f", CHANGING by {found.relative:.0%}" if found.relative > UNSTEADY else ""
    return f"the machine's speed: {number(found.median)} rounds/s{changed}"


def growth(result: ScenarioResult) -> list[str]:
    return [f"{name} ~ size^{found.exponent:.2f}" for name, found in result.growth.items()]


def described(machine: Machine) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in machine.versions.items() if version)
    return (
        f"{machine.cores} × {machine.model}, {machine.memory:,} MiB, Linux {machine.kernel}, {machine.filesystem}; "
        f"{machine.python}; {versions}; commit {machine.commit or 'unknown'}; load average {machine.load[0]:.2f}"
    )


# for a terminal


def table(result: ScenarioResult) -> str:
    rows: list[tuple[str, ...]] = [("", "", "median", "least … greatest", "goal")]
    for size in result.sizes:
        rows += _rows(size)
    lines = [f"{result.name}: {result.title}"]
    lines += aligned(rows) if result.sizes else []
    for size in result.sizes:
        lines += [f"  {size.size:,}: {use(name, found)}" for name, found in size.processes.items()]
        lines += [f"  {size.size:,}: {note}" for note in size.notes]
        if size.others > DISTURBED:
            lines.append(f"  {size.size:,}: DISTURBED, others used {size.others:.2f} cores meanwhile")
        if size.speed is not None:
            lines.append(f"  {size.size:,}: {speed(size.speed)}")
    lines += [f"  growth: {line}" for line in growth(result)]
    lines += [f"  skipped: {reason}" for reason in result.skipped]
    lines += [f"  FAILED: {error}" for error in result.errors]
    return "\n".join(lines)


def _rows(size: SizeResult) -> Iterator[tuple[str, ...]]:
    label = f"{size.size:,}"
    for name, figure in size.figures.items():
        median, wanted = f"{number(figure.spread.median)} {figure.unit}", goal(figure, size.speed)
        yield label, name, median, spread(figure.spread), wanted
        label = ""


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """The first two columns to the left, as names are; the others to the right, as numbers are."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if column < 2 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  " + "  ".join(cells).rstrip())
    return lines


def profile_table(found: Profile) -> str:
    lines = [f"{found.scenario}, {found.size:,}: {found.samples:,} samples of the {found.process} at work"]
    for heading, shares in (("package", found.packages), ("function", found.functions)):
        rows = [("", heading, "self", "with callees")]
        rows += [("", share.name, f"{share.self:.1%}", f"{share.cumulative:.1%}") for share in shares[:_SHOWN]]
        lines += aligned(rows)
    return "\n".join(lines)


# for the documentation


def summary(results: Results) -> str:
    """One Markdown table: of each scenario the figures with a goal, or else its first, at the largest size."""
    head = ["| Scenario | Size | Figure | median | least … greatest | goal |", "|---|---:|---|---:|---:|---|"]
    return "\n".join([*head, *(row for result in results.scenarios for row in _headlines(result))])


def _headlines(result: ScenarioResult) -> Iterator[str]:
    latest = {name: (size, figure) for size in result.sizes for name, figure in size.figures.items()}
    goals = {
        name: (size, figure)
        for size in result.sizes
        for name, figure in size.figures.items()
        if figure.goal is not None
    }
    label = f"`{result.name}`"
    for name, (size, figure) in (goals or dict(list(latest.items())[:1])).items():
        median = f"{number(figure.spread.median)} {figure.unit}"
        wanted = goal(figure, size.speed)
        yield f"| {label} | {size.size:,} | {name} | {median} | {spread(figure.spread)} | {wanted} |"
        label = ""


# two runs


def compared(one: Results, other: Results) -> str:
    """Every figure that both have; the factor says how much better the first is."""
    rows: list[tuple[str, ...]] = [("", "", one.plane, other.plane, "better by")]
    if one.speed is not None and other.speed is not None:
        speeds = one.speed.median, other.speed.median
        rows.append(("the machine's speed", "rounds, /s", *map(number, speeds), _factor(*speeds)))
    for mine in one.scenarios:
        theirs = other.scenario(mine.name)
        sizes = {size.size: size for size in theirs.sizes} if theirs else {}
        for size in mine.sizes:
            if size.size in sizes:
                rows += _compared(mine.name, size, sizes[size.size])
    return "\n".join(aligned(rows))


def _compared(name: str, mine: SizeResult, theirs: SizeResult) -> Iterator[tuple[str, ...]]:
    label = f"{name}, {mine.size:,}"
    for title, figure in mine.figures.items():
        other = theirs.figures.get(title)
        if other is None:
            continue
        values = figure.spread.median, other.spread.median
        factor = _factor(*values) if figure.better == "higher" else _factor(*reversed(values))
        yield label, f"{title}, {figure.unit}", number(values[0]), number(values[1]), factor
        label = ""


def _factor(good: float, bad: float) -> str:
    return f"× {number(good / bad)}" if bad else ""
