"""CPU and memory of processes, and the machine they run on."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import machine as machines
from benchmarks.processes import DidNotStart, Meter, cpu_seconds, memory, started, tree, until_at_rest
from tests.benchmarks.measurements import machine
from tests.support.cases import cases
from tests.support.eventually import LIMIT, eventually_blocking

BUSY = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "while True: pass"])
print("on", flush=True)
child.wait()
"""


@pytest.fixture
def busy_parent() -> Iterator[subprocess.Popen[str]]:
    """A process that does nothing, with a child that works."""
    process = subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    pids = tree(process.pid)
    yield process
    for pid in reversed(pids):
        os.kill(pid, 9)
    process.communicate()


def test_the_work_of_a_child_is_its_parents(busy_parent: subprocess.Popen[str]) -> None:
    pid = busy_parent.pid
    assert len(tree(pid)) == 2
    meter = Meter({"it": pid})
    eventually_blocking(lambda: meter.cpu()["it"] >= 0.05)
    use = meter.use()["it"]
    assert use.cpu_seconds >= 0.05
    assert use.peak >= use.resident > 5
    assert use.proportional is not None
    assert use.proportional <= use.resident


def test_this_process_is_counted_alone(busy_parent: subprocess.Popen[str]) -> None:
    before = time.process_time()
    assert before <= cpu_seconds(os.getpid()) <= time.process_time()
    resident, _, peak = memory(os.getpid())
    assert peak >= resident > 5
    assert busy_parent.pid in tree(os.getpid())


def test_a_process_that_has_ended_uses_nothing() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert cpu_seconds(process.pid) == 0
    assert memory(process.pid) == (0, 0, 0)


async def test_waiting_for_rest_ends_at_its_limit(busy_parent: subprocess.Popen[str]) -> None:
    began = time.monotonic()
    await until_at_rest([busy_parent.pid], seconds=0.6)
    assert 0.5 <= time.monotonic() - began < LIMIT


def test_a_program_that_does_not_start_reports_why(tmp_path: Path) -> None:
    command = ("karmada.components.karmada", "--no-such-flag")
    with pytest.raises(DidNotStart, match="no-such-flag"), started(*command, says="at", log=tmp_path / "log"):
        pass


def test_the_machine_is_described() -> None:
    found = machines.look(Path("/proc"))
    assert found.cores >= 1
    assert found.memory > 100
    assert found.filesystem == "proc"
    assert {"orjson", "aiohttp", "uvloop", "sqlite"} <= set(found.versions)


@cases(
    ({}, ()),
    ({"busy": 1.5}, ("NOT IDLE",)),
    ({"load": (3.0, 1.0, 1.0)}, ("BUSY A MOMENT AGO",)),
    ({"load": (0.4, 1.0, 1.0)}, ()),
    ({"filesystem": "tmpfs"}, ("STORED IN MEMORY",)),
    ({"busy": 1.5, "filesystem": "tmpfs"}, ("NOT IDLE", "STORED IN MEMORY")),
)
def test_what_spoils_figures_is_warned_about(changes: dict[str, object], warned: tuple[str, ...]) -> None:
    found = machine(**changes).warnings
    assert len(found) == len(warned)
    assert all(part in warning for part, warning in zip(warned, found, strict=True))


def test_what_others_use_is_noticed(busy_parent: subprocess.Popen[str]) -> None:
    others = machines.Others()
    eventually_blocking(lambda: others.cores() > 0.1)
    assert busy_parent.poll() is None
