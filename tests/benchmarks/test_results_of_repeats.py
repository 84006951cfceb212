"""Spread over repeats, goals, and the shape of the JSON."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.results import Results, Spread, Timed, collected
from benchmarks.scenario import Measurement, Sizes, Use
from tests.benchmarks.measurements import STEADY, Example, measurement, results, scenario_result
from tests.support.cases import cases


@cases(
    ([5.0], 5.0, 5.0, 5.0, 0.0),
    ([4.0, 6.0, 5.0], 4.0, 5.0, 6.0, 0.4),
    ([1.0, 3.0], 1.0, 2.0, 3.0, 1.0),
    ([0.0, 0.0], 0.0, 0.0, 0.0, 0.0),
)
def test_a_spread_is_least_median_and_greatest(
    values: list[float], least: float, median: float, greatest: float, relative: float
) -> None:
    found = Spread.of(values)
    assert (found.min, found.median, found.max) == (least, median, greatest)
    assert found.relative == pytest.approx(relative)
    assert found.values == values


@given(st.lists(st.floats(0.001, 1e6), min_size=1, max_size=9))
def test_the_median_lies_between_least_and_greatest(values: list[float]) -> None:
    found = Spread.of(values)
    assert found.min <= found.median <= found.max
    assert found.relative >= 0


def test_a_goal_is_held_against_the_median_of_its_own_size() -> None:
    hundred, three_hundred, thousand = scenario_result().sizes
    assert (hundred.figures["things"].goal, hundred.figures["things"].reached) == (50.0, True)
    assert (three_hundred.figures["things"].goal, three_hundred.figures["things"].reached) == (500.0, False)
    assert (thousand.figures["things"].goal, thousand.figures["things"].reached) == (None, None)
    assert hundred.figures["done"].reached is True


def test_a_figure_that_only_some_repeats_have_is_kept() -> None:
    without = Measurement(figures={"things": 1.0})
    found = collected(
        Example(), 100, [Timed(measurement(100, 1.0), 1.0, 0.0, STEADY), Timed(without, 1.0, 0.5, STEADY)]
    )
    assert found.figures["things"].spread.values == [100.0, 1.0]
    assert found.figures["done"].spread.values == [1.0]
    assert found.others == 0.5
    assert found.speed == Spread.of([*STEADY, *STEADY])


def test_results_from_before_the_machines_speed_was_measured_are_read(tmp_path: Path) -> None:
    old = results()
    old.scenarios[0].sizes = [msgspec.structs.replace(size, speed=None) for size in old.scenarios[0].sizes]
    old.write(tmp_path / "old.json")
    assert Results.read(tmp_path / "old.json").speed is None


def test_memory_that_could_not_be_read_everywhere_is_left_out() -> None:
    hidden = Use(cpu_seconds=1.0, resident=10.0, proportional=None, peak=10.0)
    timed = [Timed(Measurement(figures={}, processes={"etcd": hidden}), 1.0, 0.0, STEADY)]
    assert collected(Example(), 100, timed).processes["etcd"].proportional is None


def test_growth_is_that_of_the_medians() -> None:
    assert scenario_result().growth["until done, s"].exponent == pytest.approx(1.0)


@cases(
    (False, True, [20, 100, 300, 1_000, 5_000]),
    (False, False, [20, 1_000, 5_000]),
    (True, False, [10]),
    (True, True, [10, 30, 100]),
)
def test_sizes_follow_from_what_is_requested(quick: bool, growth: bool, sizes: list[int]) -> None:
    assert Sizes(quick=10, base=100, more=(20, 5_000)).of(quick=quick, growth=growth) == sizes


def test_the_json_has_machine_figures_spread_and_processes(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "results.json"
    results().write(file)
    found = msgspec.json.decode(file.read_bytes())
    assert found["format"] == 1
    assert found["machine"]["cores"] == 2
    assert found["machine"]["versions"] == {"orjson": "3"}
    assert found["machine"]["load"] == [0.0, 0.1, 0.2]
    [scenario] = found["scenarios"]
    assert scenario["growth"]["until done, s"]["exponent"] == pytest.approx(1.0)
    size = scenario["sizes"][0]
    assert (size["size"], size["repeats"], size["others"]) == (100, 3, 0.01)
    figure = size["figures"]["things"]
    assert (figure["unit"], figure["better"], figure["goal"], figure["reached"]) == ("/s", "higher", 50.0, True)
    assert set(figure["spread"]) == {"values", "min", "median", "max", "relative"}
    assert set(size["processes"]["control plane"]) == {"cpuSeconds", "resident", "proportional", "peak"}
    assert Results.read(file) == results()


def test_results_of_another_format_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    results(format=7).write(file)
    with pytest.raises(ValueError, match="format 7"):
        Results.read(file)
