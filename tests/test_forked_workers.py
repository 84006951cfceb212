"""What runs the tests: pytest that collects once and forks its workers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.eventually import eventually_blocking

ROOT = Path(__file__).parents[1]
# With CI set, pytest shows more of a failure in its summary.
INHERITED = {name: value for name, value in os.environ.items() if name not in ("CI", "BUILD_NUMBER")}
ENV = {**INHERITED, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT)}


def command(*arguments: str) -> list[str]:
    plugins = ["-p", "tests.forked_workers", "-p", "no:cacheprovider"]
    return [sys.executable, "-m", "pytest", "-c", "/dev/null", "--rootdir", ".", *plugins, *arguments]


def ran(folder: Path, *arguments: str, **files: str) -> subprocess.CompletedProcess[str]:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    return subprocess.run(command(*arguments), cwd=folder, env=ENV, capture_output=True, text=True, check=False)


ALL_ENDS = """
import os, signal, warnings, pytest

@pytest.fixture(scope="session")
def pair():
    yield
    (open("torn-down", "a")).write(f"{os.getpid()} ")

def test_passes(pair): pass
def test_fails(pair):
    print("words to the output")
    assert [1] == [2]
@pytest.mark.skip(reason="not here")
def test_is_skipped(): pass
def test_warns(): warnings.warn("a warning")
def test_exits(): os._exit(3)
def test_follows(): pass
def test_is_killed(): os.kill(os.getpid(), signal.SIGKILL)
def test_is_the_last(pair): pass
"""


def test_reports_are_those_of_pytest_and_a_worker_that_dies_is_a_failure_of_its_test(tmp_path: Path) -> None:
    done = ran(tmp_path, "--forks", "2", "-rfs", test_one=ALL_ENDS, test_two="def test_other(): pass")
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    said = done.stdout
    for shown in ("At index 0 diff: 1 != 2", "\nwords to the output\n", "UserWarning: a warning", "not here"):
        assert said.count(shown) == 1, said
    assert "FAILED test_one.py::test_exits - The worker died: exit code 3" in said
    assert "FAILED test_one.py::test_is_killed - The worker died: killed by SIGKILL" in said
    assert "3 failed, 5 passed, 1 skipped, 1 warning" in said
    assert len((tmp_path / "torn-down").read_text().split()) == 1, "by the last worker; the others were killed"


def test_the_first_failure_may_end_the_session(tmp_path: Path) -> None:
    done = ran(tmp_path, "--forks", "1", "-x", "-k", "not test_passes", test_one=ALL_ENDS)
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert "stopping after 1 failures" in done.stdout
    assert "1 failed, 1 deselected" in done.stdout
    assert (tmp_path / "torn-down").exists()


def test_a_test_that_hangs_shows_where_and_fails(tmp_path: Path) -> None:
    hanging = "import threading\ndef test_hangs(): threading.Event().wait()\ndef test_next(): pass"
    done = ran(tmp_path, "--forks", "1", "-o", "faulthandler_timeout=0.5", test_one=hanging)
    assert "FAILED test_one.py::test_hangs - The worker died: killed by SIGABRT" in done.stdout
    assert "1 failed, 1 passed" in done.stdout
    assert "in test_hangs" in done.stderr


GROUPING = """
def pytest_group(item):
    return "together" if item.path.stem in ("test_a", "test_c") else None
"""
NOTING = """
import os
def note(folders): print(os.getpid(), folders.getbasetemp(), file=open({!r}, "a"))
def test_one(tmp_path_factory): note(tmp_path_factory)
def test_two(tmp_path_factory): note(tmp_path_factory)
"""


def test_the_tests_of_a_group_run_in_one_worker_with_its_own_temporary_folder(tmp_path: Path) -> None:
    names = ["test_a", "test_b", "test_c"]
    files = {name: NOTING.format(f"{name}.pid") for name in names}
    done = ran(tmp_path, "--forks", "3", conftest=GROUPING, **files)
    assert "6 passed" in done.stdout
    a, b, c = [(tmp_path / f"{name}.pid").read_text().splitlines() for name in names]
    assert len({*a, *c}) == 1
    assert len(a) == len(b) == 2
    assert len({*b}) == 1
    folders = dict(line.split() for line in (*a, *b))
    assert len({*folders.values()}) == len(folders), "by process"


def test_an_interrupt_tears_down_in_the_workers(tmp_path: Path) -> None:
    waiting = "def test_waits(pair):\n    open('begun', 'w')\n    import time\n    while True: time.sleep(0.01)"
    (tmp_path / "test_one.py").write_text(ALL_ENDS + waiting)
    process = subprocess.Popen(
        command("--forks", "1", "-k", "test_waits"), cwd=tmp_path, env=ENV, stdout=subprocess.PIPE
    )
    eventually_blocking((tmp_path / "begun").exists)
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert process.returncode == pytest.ExitCode.INTERRUPTED
    assert (tmp_path / "torn-down").exists()


def test_a_process_with_threads_is_not_forked(tmp_path: Path) -> None:
    threaded = "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True, name='left').start()\n"
    done = ran(tmp_path, "--forks", "1", test_one=threaded + "def test_it(): pass")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "--forks: 2 threads run after the collection" in done.stderr
    assert "left" in done.stderr
