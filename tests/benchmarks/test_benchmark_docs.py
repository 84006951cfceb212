"""What is put into the page, and that the page explains every scenario."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.documentation import PLOTTED, NoMarkers, figures, filled, refresh
from benchmarks.registry import NAMES, scenario, selected
from benchmarks.report import compared, goal, number, table
from benchmarks.results import FigureResult, Spread
from benchmarks.scenario import Better
from tests.benchmarks.measurements import machine, results, scenario_result
from tests.support.cases import cases

DOCS = Path(__file__).parents[2] / "docs"
PAGE = """# Page

By hand.

<!-- figures: made by x -->
the figures before
<!-- end -->
"""


def test_figures_go_between_their_markers_and_the_rest_stays(tmp_path: Path) -> None:
    (tmp_path / "performance.md").write_text(PAGE)
    plotted = scenario_result(named=PLOTTED)
    written = refresh(tmp_path, results(scenarios=[scenario_result(), plotted]))
    page = (tmp_path / "performance.md").read_text()
    assert "By hand." in page
    assert "the figures before" not in page
    assert {path.name for path in written} == {"performance.md", "performance.svg"}
    assert (tmp_path / "performance.svg").read_text().startswith("<svg")


def test_the_table_has_the_figures_with_a_goal_at_the_largest_size_that_has_one() -> None:
    rows = figures(results()).splitlines()
    assert (
        "| `example` | 300 | things | 100 /s | 90.9 … 111 (20%) | 500: MISSED (about 115 at 35,000 rounds/s) |" in rows
    )
    assert "|  | 100 | done | 1.00 s | 0.9 … 1.10 (20%) | 1.50: reached |" in rows


@pytest.mark.parametrize(
    ("figure", "speeds", "expected"),
    [
        pytest.param(("ms", "lower", 3.0, 2.0), (17_500.0,), "2.00: MISSED (about 1.50 at 35,000 rounds/s)", id="time"),
        pytest.param(
            ("/s", "higher", 300.0, 450.0), (17_500.0,), "450: MISSED (about 600 at 35,000 rounds/s)", id="rate"
        ),
        pytest.param(("MiB", "lower", 3.0, 2.0), (17_500.0,), "2.00: MISSED", id="memory does not depend on it"),
        pytest.param(("ms", "lower", 3.0, 2.0), (36_000.0,), "2.00: MISSED", id="the machine was fast enough"),
        pytest.param(("ms", "lower", 3.0, 2.0), (), "2.00: MISSED", id="the speed is not known"),
        pytest.param(("ms", "lower", 1.0, 2.0), (17_500.0,), "2.00: reached", id="reached all the same"),
    ],
)
def test_a_goal_that_a_slow_machine_missed_has_an_estimate_beside_it(
    figure: tuple[str, Better, float, float], speeds: tuple[float, ...], expected: str
) -> None:
    unit, better, value, wanted = figure
    reached = value <= wanted if better == "lower" else value >= wanted
    found = FigureResult(unit=unit, better=better, spread=Spread.of([value]), goal=wanted, reached=reached)
    assert goal(found, Spread.of(speeds) if speeds else None) == expected


def test_a_scenario_without_goals_is_shown_by_its_first_figure() -> None:
    rows = figures(results(scenarios=[scenario_result(1_000)])).splitlines()
    assert rows[-1] == "| `example` | 1,000 | things | 100 /s | 90.9 … 111 (20%) |  |"


def test_refreshing_twice_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "performance.md").write_text(PAGE)
    refresh(tmp_path, results())
    once = (tmp_path / "performance.md").read_text()
    refresh(tmp_path, results())
    assert (tmp_path / "performance.md").read_text() == once


def test_a_page_without_markers_is_refused() -> None:
    with pytest.raises(NoMarkers, match="figures"):
        filled("# Nothing", {"figures": "x"})


def test_a_busy_machine_is_reported_in_the_page() -> None:
    assert "NOT IDLE" in figures(results(machine=machine(busy=1.9)))


def test_the_machines_speed_is_reported_and_a_change_of_it_warned_of() -> None:
    steady, unsteady = results(), results(scenarios=[scenario_result(speeds=(20_000.0, 30_000.0))])
    assert "speed during the run: 30,500 rounds/s, 30,000 … 31,000 (3%)." in figures(steady)
    assert "speed during the run: 25,000 rounds/s, 20,000 … 30,000 (40%)." in figures(unsteady)
    assert "100: the machine's speed: 25,000 rounds/s, CHANGING by 40%" in table(unsteady.scenarios[0])
    assert "the machine's speed" in compared(steady, unsteady)


def test_the_page_explains_every_scenario() -> None:
    page = (DOCS / "performance.md").read_text()
    assert [name for name in NAMES if f"| `{name}` |" not in page] == []


def test_scenarios_are_called_as_they_are_registered() -> None:
    assert [scenario(name).name for name in NAMES] == list(NAMES)
    assert [found.name for found in selected(["propagation", "cli"])] == [
        *(name for name in NAMES if name.startswith("propagation.")),
        "cli",
    ]


def test_figures_of_a_scenario_have_names_of_their_own() -> None:
    for found in selected([]):
        names = [figure.name for figure in found.figures]
        assert len(names) == len(set(names)), found.name


@cases((12_345.6, "12,346"), (123.4, "123"), (12.34, "12.3"), (1.234, "1.23"), (0.01234, "0.0123"), (0.0, "0"))
def test_numbers_have_three_digits_that_mean_something(value: float, text: str) -> None:
    assert number(value) == text


def test_a_table_has_spread_goal_use_growth_and_disturbance() -> None:
    found = scenario_result()
    found.errors.append("1,000 things: it broke")
    text = table(found)
    for part in (
        "90.9 … 111 (20%)",
        "50.0: reached",
        "500: MISSED",
        "2.00 s CPU",
        "80.0 proportional",
        "~ size^1.00",
        "FAILED: 1,000 things: it broke",
    ):
        assert part in text


def test_two_runs_are_compared_the_way_that_is_good() -> None:
    slow = results(plane="the other", scenarios=[scenario_result(100, 300, repeats=(10.0,))])
    text = compared(results(), slow).splitlines()
    assert "the other" in text[0]
    rate = next(line for line in text if "things, /s" in line)
    assert rate.split()[-2:] == ["×", "10.0"]
    done = next(line for line in text if "done, s" in line)
    assert done.split()[-2:] == ["×", "10.0"]
    assert not any("1,000" in line for line in text)
