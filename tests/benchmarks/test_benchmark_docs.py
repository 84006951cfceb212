"""What is put into the page, and that the page shows what is beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.documentation import NoMarkers, filled, profile_shown, refresh, sections
from benchmarks.registry import NAMES, scenario, selected
from benchmarks.report import compared, number, table
from benchmarks.results import Results
from tests.benchmarks.measurements import machine, results, scenario_result

DOCS = Path(__file__).parents[2] / "docs"
PAGE = """# Page

By hand.

<!-- profile: made by x -->
the profile before
<!-- end -->

Between.

<!-- figures: made by x -->
<!-- end -->
"""


def test_figures_go_between_their_markers_and_the_rest_stays(tmp_path: Path) -> None:
    (tmp_path / "performance.md").write_text(PAGE)
    written = refresh(tmp_path, results(), flame="<svg/>")
    page = (tmp_path / "performance.md").read_text()
    assert "By hand." in page
    assert "Between." in page
    assert "the profile before" not in page
    assert "| 100 | things | 100 /s | 90.9 … 111 (20%) | 50.0: reached |" in page
    assert "![An example: growth](performance/example.svg)" in page
    assert "| `karmada/kube/server:commit` | 40.0% | 60.0% |" in page
    assert {path.name for path in written} == {"results.json", "example.svg", "profile.svg", "performance.md"}
    assert all(path.exists() for path in written)


def test_refreshing_twice_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "performance.md").write_text(PAGE)
    refresh(tmp_path, results())
    once = (tmp_path / "performance.md").read_text()
    refresh(tmp_path, results())
    assert (tmp_path / "performance.md").read_text() == once
    assert profile_shown(tmp_path) == results().profile


def test_a_profile_that_was_not_taken_leaves_the_one_that_is_shown() -> None:
    page = filled(PAGE, sections(results(profile=None)))
    assert "the profile before" in page


def test_a_page_without_markers_is_refused() -> None:
    with pytest.raises(NoMarkers, match="figures"):
        filled("# Nothing", {"figures": "x"})


def test_a_disturbed_machine_is_told_in_the_page() -> None:
    assert "NOT IDLE" in sections(results(machine=machine(busy=1.9)))["figures"]


def test_the_machines_speed_is_told_and_a_change_of_it_warned_of() -> None:
    steady, unsteady = results(), results(scenarios=[scenario_result(speeds=(20_000.0, 30_000.0))])
    assert "speed during the run: 30,500 rounds/s, 30,000 … 31,000 (3%)." in sections(steady)["figures"]
    assert "speed during the run: 25,000 rounds/s, 20,000 … 30,000 (40%)." in sections(unsteady)["figures"]
    assert "100: the machine's speed: 25,000 rounds/s, CHANGING by 40%" in table(unsteady.scenarios[0])
    assert "the machine's speed" in compared(steady, unsteady)


def test_the_page_shows_the_results_beside_it() -> None:
    page, beside = (DOCS / "performance.md").read_text(), DOCS / "performance" / "results.json"
    if not beside.exists():
        assert page.count("Not measured yet") == 2
        return
    assert filled(page, sections(Results.read(beside))) == page


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


@pytest.mark.parametrize(
    ("value", "text"),
    [(12_345.6, "12,346"), (123.4, "123"), (12.34, "12.3"), (1.234, "1.23"), (0.01234, "0.0123"), (0.0, "0")],
)
def test_numbers_have_three_digits_that_mean_something(value: float, text: str) -> None:
    assert number(value) == text


def test_a_table_tells_spread_goal_use_growth_and_disturbance() -> None:
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
