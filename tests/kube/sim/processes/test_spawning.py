"""Processes that are started and ended, and those that a killed simulator left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from karmada.kube.sim.processes import spawning
from tests.support.eventually import eventually, eventually_blocking
from tests.support.programs import alive

CHILD = "import subprocess, sys, time; print(subprocess.Popen(['sleep', '100']).pid, flush=True); time.sleep(100)"


def record_of(folder: Path) -> Path:
    path = folder / "uid/containers/main/process.json"
    path.parent.mkdir(parents=True)
    return path


@pytest.mark.parametrize(("code", "expected"), [(0, 0), (3, 3), (-15, 143), (-9, 137)])
def test_exit_codes_are_those_of_a_container(code: int, expected: int) -> None:
    assert spawning.exit_code(code) == expected


async def test_a_process_that_ends_by_sigterm_is_not_killed(tmp_path: Path) -> None:
    process = await spawning.spawn(["sleep", "100"], {}, tmp_path)
    await spawning.end(process, 30.0)
    assert process.returncode == -signal.SIGTERM


async def test_a_process_that_ignores_sigterm_is_killed_after_its_grace(tmp_path: Path) -> None:
    script = "import signal, time; signal.signal(15, signal.SIG_IGN); print('ready', flush=True); time.sleep(100)"
    process = await spawning.spawn([sys.executable, "-c", script], {}, tmp_path)
    assert process.stdout is not None
    assert await process.stdout.readline() == b"ready\n"
    await spawning.end(process, 0.01)
    assert process.returncode == -signal.SIGKILL


async def test_what_a_process_started_ends_with_it(tmp_path: Path) -> None:
    process = await spawning.spawn(
        [sys.executable, "-c", CHILD.replace("time.sleep(100)", "sys.exit(3)")], {}, tmp_path
    )
    assert process.stdout is not None
    child = int(await process.stdout.readline())
    assert await spawning.finished(process) == 3
    await eventually(lambda: not alive(child))


async def test_a_program_that_is_not_there_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        await spawning.spawn(["/no/such/program"], {}, tmp_path)


async def test_nothing_of_the_environment_is_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_THE_SIMULATOR", "x")
    process = await spawning.spawn(["env"], {"A": "1", "PATH": os.defpath}, tmp_path)
    out, _ = await process.communicate()
    assert sorted(out.split()) == [b"A=1", f"PATH={os.defpath}".encode()]


async def test_what_a_killed_simulator_left_is_killed_with_its_children(tmp_path: Path) -> None:
    process = await spawning.spawn([sys.executable, "-c", CHILD], {}, tmp_path)
    assert process.stdout is not None
    child = int(await process.stdout.readline())
    path = record_of(tmp_path)
    spawning.record(path, process.pid)
    assert spawning.kill_left(tmp_path) == 2
    await spawning.exited(process)
    await eventually(lambda: not alive(child))
    assert not path.exists()


async def test_children_are_found_after_their_parent_has_ended(tmp_path: Path) -> None:
    process = await spawning.spawn([sys.executable, "-c", CHILD], {}, tmp_path)
    assert process.stdout is not None
    child = int(await process.stdout.readline())
    spawning.record(record_of(tmp_path), process.pid)
    os.kill(process.pid, signal.SIGKILL)
    await spawning.exited(process)
    assert alive(child)
    assert spawning.kill_left(tmp_path) == 1
    await eventually(lambda: not alive(child))


def test_another_process_with_a_recorded_number_is_left_alone(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "100"], start_new_session=True) as other:
        record_of(tmp_path).write_bytes(msgspec.json.encode(spawning.Record(other.pid, 1)))
        assert spawning.kill_left(tmp_path) == 0
        assert alive(other.pid)
        other.kill()


def test_a_process_ends_with_the_simulator(tmp_path: Path) -> None:
    script = f"""
import asyncio
from pathlib import Path
from karmada.kube.sim.processes.spawning import spawn
async def main():
    process = await spawn(["sleep", "100"], {{}}, Path({str(tmp_path)!r}))
    print(process.pid, flush=True)
    await asyncio.sleep(100)
asyncio.run(main())
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as simulator:
        assert simulator.stdout is not None
        pid = int(simulator.stdout.readline())
        assert alive(pid)
        simulator.kill()
    eventually_blocking(lambda: not alive(pid))
