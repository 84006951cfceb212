"""The command line of the measurements, and what a run does with sizes, repeats and failures."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks import run as runs
from benchmarks.__main__ import main
from benchmarks.measuring import Failed, Order
from benchmarks.registry import selected
from benchmarks.results import Results, ScenarioResult, Timed
from benchmarks.run import Options, Run, Watcher
from benchmarks.scenario import Foreign, Skipped
from tests.benchmarks.measurements import STEADY, Example, machine, measurement, results
from tests.support.cases import cases


class Recorder(Watcher):
    def __init__(self) -> None:
        self.steps: list[str] = []
        self.outcomes: list[str] = []
        self.results: list[ScenarioResult] = []

    def begins(self, step: str) -> None:
        self.steps.append(step)

    def ends(self, outcome: str) -> None:
        self.outcomes.append(outcome)

    def finished(self, result: ScenarioResult) -> None:
        self.results.append(result)


class Measurements:
    """Takes the place of the processes that measure."""

    def __init__(self, seconds: float = 1.0) -> None:
        self.orders: list[Order] = []
        self.seconds = seconds
        self.wrong: dict[int, Exception] = {}

    def __call__(self, order: Order, *_: object) -> Timed:
        self.orders.append(order)
        if order.size in self.wrong:
            raise self.wrong[order.size]
        return Timed(measurement(order.size, 1.0), self.seconds, 0.0, STEADY)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Measurements:
    found = Measurements()
    monkeypatch.setattr(runs, "measured", found)
    monkeypatch.setattr(runs, "look", lambda _folder: machine())
    return found


def example(options: Options) -> tuple[Recorder, Results]:
    watcher = Recorder()
    return watcher, Run([Example()], options, watcher).all(lambda _: None)


def test_each_size_is_repeated_three_times(measured: Measurements, tmp_path: Path) -> None:
    watcher, found = example(Options(folder=tmp_path, sizes=[300, 100]))
    assert [order.size for order in measured.orders] == [100] * 3 + [300] * 3
    assert watcher.steps[3] == "[2/2] example, 300 things, 1 of 3"
    assert found.scenarios[0].growth["until done, s"].exponent == pytest.approx(1.0)


def test_a_long_one_is_not_repeated_unless_it_is_requested(measured: Measurements, tmp_path: Path) -> None:
    measured.seconds = runs.ENOUGH_SECONDS + 1
    example(Options(folder=tmp_path, sizes=[100]))
    assert len(measured.orders) == 1
    example(Options(folder=tmp_path, sizes=[100], repeats=5))
    assert len(measured.orders) == 1 + 5


def test_a_quick_run_measures_once(measured: Measurements, tmp_path: Path) -> None:
    _, found = example(Options(folder=tmp_path, quick=True, growth=False))
    assert [order.size for order in measured.orders] == [10]
    assert found.quick


def test_after_a_failure_larger_sizes_are_left_alone(measured: Measurements, tmp_path: Path) -> None:
    measured.wrong[300] = Failed("it broke")
    watcher, found = example(Options(folder=tmp_path, sizes=[100, 300, 1_000], repeats=1))
    assert [order.size for order in measured.orders] == [100, 300]
    assert found.scenarios[0].errors == ["300 things: it broke"]
    assert [size.size for size in found.scenarios[0].sizes] == [100]
    assert watcher.outcomes == ["1 s", "FAILED"]


def test_a_size_that_is_skipped_does_not_stop_the_others(measured: Measurements, tmp_path: Path) -> None:
    measured.wrong[100] = Skipped("no room")
    _, found = example(Options(folder=tmp_path, sizes=[100, 300], repeats=1))
    assert found.scenarios[0].skipped == ["100 things: no room"]
    assert [size.size for size in found.scenarios[0].sizes] == [300]


def test_a_foreign_control_plane_is_handed_on(measured: Measurements, tmp_path: Path) -> None:
    foreign = Foreign("plane.config", ["a.config:a", "b.config"], join=True, pids={"etcd": 7})
    _, found = example(Options(folder=tmp_path, sizes=[100], repeats=1, foreign=foreign))
    [order] = measured.orders
    assert order.foreign == Foreign("plane.config", ("a.config:a", "b.config"), join=True, pids={"etcd": 7})
    assert found.plane == "plane.config"


# the command line


def test_the_list_names_every_scenario_with_its_sizes() -> None:
    said = CliRunner().invoke(main, ["list"]).output
    assert "propagation.deployments  Deployments to two members (100, 1,000, 3,000, 10,000, 20,000 Deployments" in said
    assert "on any control plane" in said
    assert "restart" in said


@cases(((), False), (("clusters",), False), (("clusters.thousand",), True))
def test_the_largest_scenarios_run_by_their_own_name_only(names: tuple[str, ...], runs: bool) -> None:
    assert ("clusters.thousand" in [one.name for one in selected(names)]) is runs
    assert "clusters.thousand" in CliRunner().invoke(main, ["list"]).output


@cases(
    (["nonsense"], 'unknown scenario "nonsense" (known: server, '),
    (["--members", "a.config"], "--members, --join and --pid say something about a --control-plane"),
    (["--control-plane", "a", "--members", "b"], "needs at least two --members"),
    (
        ["cli", "--control-plane", "a", "--members", "b", "--members", "c"],
        "cannot be measured on another control plane: cli",
    ),
    (["--control-plane", "a", "--pid", "etcd"], '"etcd" is not of the form NAME=PID'),
    (["--sizes", "10,x"], "sizes are numbers greater than 0"),
    (["--repeats", "0"], "0 is not in the range"),
)
def test_what_makes_no_sense_is_refused(arguments: list[str], complaint: str) -> None:
    found = CliRunner().invoke(main, arguments)
    assert found.exit_code == 2
    assert complaint in " ".join(found.output.replace("│", " ").split())


def test_names_and_options_mean_run(measured: Measurements, tmp_path: Path) -> None:
    target = tmp_path / "out" / "found.json"
    arguments = ["memory", "--quick", "--folder", str(tmp_path), "--json", str(target)]
    found = CliRunner().invoke(main, arguments)
    assert found.exit_code == 0, found.output
    assert [order.scenario for order in measured.orders] == ["memory"]
    assert [result.name for result in Results.read(target).scenarios] == ["memory"]


def test_a_failure_is_the_exit_code(measured: Measurements, tmp_path: Path) -> None:
    measured.wrong[100] = Failed("it broke")
    found = CliRunner().invoke(main, ["memory", "--sizes", "100", "--folder", str(tmp_path)])
    assert found.exit_code == 1
    assert "FAILED: 100 Deployments: it broke" in found.output


def test_two_files_are_compared(tmp_path: Path) -> None:
    for name in ("one.json", "other.json"):
        results(plane=name).write(tmp_path / name)
    found = CliRunner().invoke(main, ["compare", str(tmp_path / "one.json"), str(tmp_path / "other.json")])
    assert found.exit_code == 0, found.output
    assert "one.json" in found.output
    assert "× 1.00" in found.output


def test_the_documentation_is_made_from_results_that_are_there(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "performance.md").write_text("<!-- figures: made by x -->\n<!-- end -->\n")
    results().write(tmp_path / "results.json")
    arguments = ["docs", "--from", str(tmp_path / "results.json"), "--docs", str(docs)]
    found = CliRunner().invoke(main, arguments)
    assert found.exit_code == 0, found.output
    assert "| `example` | 300 | things |" in (docs / "performance.md").read_text()
