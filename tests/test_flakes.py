"""What failed in `make test` runs again alone: a flake is shown and remembered, and fails the run the second time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
INHERITED = {name: value for name, value in os.environ.items() if name not in ("CI", "BUILD_NUMBER")}
SETTINGS = "-c /dev/null --rootdir . -p no:cacheprovider -p tests.forked_workers -p tests.flakes"
ENV = {
    **INHERITED,
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    "PYTHONPATH": str(ROOT),
    "PYTEST_ADDOPTS": SETTINGS,
}
RUNS = """
import os, pytest, time
from pathlib import Path

def run(name):
    with open(name, "a") as file:
        file.write(".")
    return os.path.getsize(name)
"""
"""The number of the run of a test, from 1."""
FLAKE = "\ndef test_flakes(): assert run('flake') > 1, 'not yet'\n"
PERSISTENT = "\ndef test_fails(): assert run('fails') < 0, 'never'\n"


def python(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *words], cwd=folder, env=ENV, capture_output=True, text=True, check=False
    )


def recorded(folder: Path, tests: str, *words: str) -> None:
    """Run them once, with a record."""
    (folder / "test_one.py").write_text(RUNS + tests)
    python(folder, "pytest", "--forks", "2", "--record", "record.json", *words)


def judged(folder: Path, tests: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run them once, and what fails again."""
    recorded(folder, tests, *words)
    return python(folder, "tests.flakes", "record.json")


def found(folder: Path) -> dict[str, str]:
    file = folder / "build/flakes.json"
    loaded: dict[str, str] = json.loads(file.read_text()) if file.exists() else {}
    return loaded


def test_a_test_that_passes_alone_is_shown_and_remembered_and_the_run_succeeds(tmp_path: Path) -> None:
    done = judged(tmp_path, FLAKE)
    assert done.returncode == 0, done.stdout
    assert "==> test_one.py::test_flakes: FLAKE" in done.stdout
    assert "    AssertionError: not yet" in done.stdout
    assert "not yet" in found(tmp_path)["test_one.py::test_flakes"]


def test_earlier_flakes_stay_remembered(tmp_path: Path) -> None:
    (tmp_path / "build").mkdir()
    (tmp_path / "build/flakes.json").write_text('{"another": "its message"}')
    judged(tmp_path, FLAKE)
    assert found(tmp_path).keys() == {"another", "test_one.py::test_flakes"}


def test_a_flake_that_the_ledger_lists_fails_the_run(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/flakes.json").write_text('{"test_one.py::test_flakes": "seen before"}')
    done = judged(tmp_path, FLAKE)
    assert done.returncode == 1
    assert "tests/flakes.json lists it" in done.stdout


def test_what_fails_three_times_is_a_failure(tmp_path: Path) -> None:
    done = judged(tmp_path, FLAKE + PERSISTENT)
    assert done.returncode == 1
    assert "==> test_one.py::test_fails: FAILED again" in done.stdout
    assert (tmp_path / "fails").stat().st_size == 3
    assert found(tmp_path).keys() == {"test_one.py::test_flakes"}


def test_the_second_repetition_may_pass(tmp_path: Path) -> None:
    assert judged(tmp_path, "def test_flakes(): assert run('flake') > 2").returncode == 0


def test_only_the_case_that_failed_runs_again_and_is_listed_by_its_function(tmp_path: Path) -> None:
    cases = "@pytest.mark.parametrize('case', ['a', 'b c[d]::e'])\n"
    done = judged(tmp_path, cases + "def test_flakes(case): assert run(case) > len(case) / 8")
    assert done.returncode == 0, done.stdout
    assert (tmp_path / "a").stat().st_size == 1
    assert found(tmp_path).keys() == {"test_one.py::test_flakes"}


def test_tests_that_one_fixture_fails_are_repeated_together(tmp_path: Path) -> None:
    fixture = "@pytest.fixture(scope='module')\ndef plane(): assert run('plane') > 1, 'slow'\n"
    tests = "@pytest.mark.parametrize('case', range(9))\ndef test_it(plane, case): run('test')"
    done = judged(tmp_path, fixture + tests)
    assert done.returncode == 0, done.stdout
    assert (tmp_path / "plane").stat().st_size == 2
    assert (tmp_path / "test").stat().st_size == 9
    assert found(tmp_path).keys() == {"test_one.py"}


@pytest.mark.parametrize("end", ["os._exit(0)", "os._exit(3)", "os.abort()"])
def test_a_worker_that_dies_repeats_the_file_of_its_test(tmp_path: Path, end: str) -> None:
    done = judged(tmp_path, f"def test_before(): run('before')\ndef test_dies():\n    if run('death') == 1: {end}")
    assert done.returncode == 0, done.stdout
    assert (tmp_path / "before").stat().st_size == 2
    assert found(tmp_path)["test_one.py"].startswith("The worker died")


def test_a_file_that_kills_its_worker_each_time_is_a_failure(tmp_path: Path) -> None:
    assert judged(tmp_path, "def test_dies(): os.abort()").returncode == 1


def test_many_failures_are_no_accident(tmp_path: Path) -> None:
    tests = "@pytest.mark.parametrize('case', 'abcdef')\ndef test_flakes(case): assert run(case) > 1"
    done = judged(tmp_path, tests)
    assert done.returncode == 1
    assert "6 failures" in done.stdout
    assert (tmp_path / "a").stat().st_size == 1


@pytest.mark.parametrize(
    ("tests", "words"),
    [
        pytest.param(FLAKE, ["-x"], id="stopped"),
        pytest.param(FLAKE + "raise ValueError", [], id="not collected"),
        pytest.param(FLAKE + "raise ValueError", ["--continue-on-collection-errors"], id="partly collected"),
        pytest.param(FLAKE + "def test_ends(): pytest.exit('now')", [], id="exit"),
        pytest.param(FLAKE, ["-k", "nothing"], id="no tests"),
        pytest.param("def test_passes(): pass", [], id="no failure"),
    ],
)
def test_a_session_that_did_not_come_to_its_end_fails_the_run(tmp_path: Path, tests: str, words: list[str]) -> None:
    done = judged(tmp_path, tests, *words)
    assert done.returncode == 1, done.stdout
    assert "once more" not in done.stdout


def test_a_session_without_a_record_fails_the_run(tmp_path: Path) -> None:
    recorded(tmp_path, FLAKE)
    done = python(tmp_path, "tests.flakes", "record.json", "killed.json")
    assert done.returncode == 1
    assert "The session of killed.json did not come to its end" in done.stdout


def test_words_for_pytest_go_to_the_repetition(tmp_path: Path) -> None:
    recorded(tmp_path, FLAKE)
    assert python(tmp_path, "tests.flakes", "record.json", "--", "--no-such-option").returncode == 1
