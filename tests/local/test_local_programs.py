"""Programs of a local environment: noticed when they serve and when they end, stopped, found again, not left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from karmada.local import programs
from karmada.local.folder import Folder, Refused
from karmada.local.marks import Holder
from karmada.local.programs import KARMADA, SIM, Program, Running, end, found, mark_of, start, stop_found, tail
from tests.support.eventually import LIMIT, eventually_blocking

SERVES = "import os, sys, time; print('hello', flush=True); os.write(int(sys.argv[2]), b'ready'); time.sleep(60)"
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + SERVES
FAILS = "import sys; print('bad weather'); sys.exit(3)"


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    folder = Folder(tmp_path)
    folder.make()
    return folder


@pytest.fixture
async def started(folder: Folder) -> AsyncIterator[list[Running]]:
    """Whatever a test starts ends with it."""
    made: list[Running] = []
    yield made
    for running in made:
        await running.stop(0.0)


def python(text: str, name: str = KARMADA) -> Program:
    return Program(name, [sys.executable, "-c", text])


async def test_a_program_reports_when_it_serves(folder: Folder, started: list[Running]) -> None:
    started.append(start(folder, python(SERVES), detached=False))
    await asyncio.wait_for(started[0].served(), LIMIT)
    assert not started[0].ended.done()
    holder = found(folder)[KARMADA]
    assert holder.pid > 0
    assert not holder.detached
    await started[0].stop()
    assert found(folder) == {}


async def test_a_program_reports_what_else_it_serves(folder: Folder, started: list[Running]) -> None:
    said = SERVES.replace("b'ready'", "b'ready dashboard=https://localhost:5480\\n'")
    started.append(start(folder, python(said), detached=False))
    await asyncio.wait_for(started[0].served(), LIMIT)
    assert started[0].addresses == {"dashboard": "https://localhost:5480"}


async def test_the_end_of_a_program_is_reported_with_its_last_lines(folder: Folder, started: list[Running]) -> None:
    folder.log(KARMADA).write_text("of an earlier run\n")
    started.append(start(folder, python(FAILS), detached=False))
    await asyncio.wait_for(started[0].ended, LIMIT)
    said = started[0].exit_report()
    assert said.startswith("karmada ended with exit code 3; the last lines of ")
    assert said.endswith("karmada.log:\n  bad weather")
    assert folder.log(KARMADA).read_text() == "of an earlier run\nbad weather\n"


async def test_a_program_that_was_killed_is_said_to_have_been(folder: Folder, started: list[Running]) -> None:
    started.append(start(folder, python(SERVES), detached=False))
    await asyncio.wait_for(started[0].served(), LIMIT)
    os.kill(found(folder)[KARMADA].pid, signal.SIGKILL)
    await asyncio.wait_for(started[0].ended, LIMIT)
    assert "karmada was killed by SIGKILL; the last lines of" in started[0].exit_report()


async def test_a_program_that_does_not_listen_is_killed(folder: Folder, started: list[Running]) -> None:
    started.append(start(folder, python(STUBBORN), detached=False))
    await asyncio.wait_for(started[0].served(), LIMIT)
    await started[0].stop(0.1)
    assert found(folder) == {}


async def test_one_of_each_kind(folder: Folder, started: list[Running], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("karmada.local.marks._TRY_SECONDS", 0.02)
    started.append(start(folder, python(SERVES), detached=False))
    with pytest.raises(Refused, match="karmada runs already in"):
        start(folder, python(SERVES), detached=False)


async def test_a_program_that_does_not_exist_is_refused(folder: Folder) -> None:
    with pytest.raises(Refused, match=r"karmada cannot be started: .*No such file"):
        start(folder, Program(KARMADA, ["/nowhere/karmada"]), detached=False)
    assert found(folder) == {}


async def test_programs_that_others_have_started_are_stopped(folder: Folder, started: list[Running]) -> None:
    started += [start(folder, python(SERVES), detached=True), start(folder, python(STUBBORN, SIM), detached=True)]
    for running in started:
        await asyncio.wait_for(running.served(), LIMIT)
    assert found(folder)[SIM].detached
    assert await stop_found(folder, [KARMADA, SIM], 0.3) == [KARMADA, SIM]
    assert await stop_found(folder, [KARMADA, SIM]) == []
    assert not await end(mark_of(folder, KARMADA))


async def test_logs_are_for_their_owner_alone_and_a_long_one_is_put_aside(
    folder: Folder, started: list[Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "MAX_BYTES", 10)
    log = folder.log(KARMADA)
    log.write_text("quite a lot of text")
    started.append(start(folder, python(FAILS), detached=False))
    await asyncio.wait_for(started[0].ended, LIMIT)
    assert log.read_text() == "bad weather\n"
    assert log.stat().st_mode & 0o777 == 0o600
    assert log.with_name("karmada.log.1").read_text() == "quite a lot of text"


async def test_a_program_that_logs_a_lot_puts_its_log_aside_while_it_runs(
    folder: Folder, started: list[Running]
) -> None:
    text = (
        "import sys; from karmada.kube.runtime import log_file, logging\n"
        "log_file.RotatingHandler.__init__.__defaults__ = (20_000,)\n"
        "logging.setup(); log = logging.get_logger('x')\n"
        "for number in range(1000): log.info('line', number=number)\n"
        "print('last words'); sys.exit(3)"
    )
    started.append(start(folder, python(text), detached=False))
    await asyncio.wait_for(started[0].ended, LIMIT)
    log = folder.log(KARMADA)
    before = log.with_name("karmada.log.1").read_text()
    assert len(log.read_text()) + len(before) < 60_000
    assert "number=999" in before + log.read_text()
    assert "last words" in started[0].exit_report()


def test_a_tail_is_the_last_lines_from_a_place_on(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("".join(f"{number}\n" for number in range(100)))
    assert tail(log, lines=3) == ["97", "98", "99"]
    assert tail(log, log.stat().st_size - 3, lines=3) == ["99"]


PARENT = """
import asyncio, sys
from pathlib import Path
from karmada.local.folder import Folder
from karmada.local.programs import KARMADA, Program, start

async def main():
    running = start(Folder(Path(sys.argv[1])), Program(KARMADA, [sys.executable, "-c", sys.argv[2]]),
                    detached=sys.argv[3] == "detached")
    await running.served()
    print("ready", flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux signals the end of a parent")
@pytest.mark.parametrize("mode", ["attached", "detached"])
def test_a_program_ends_with_a_parent_that_is_killed_unless_it_is_detached(folder: Folder, mode: str) -> None:
    command = [sys.executable, "-c", PARENT, str(folder.root), SERVES, mode]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    assert parent.stdout.readline() == "ready\n"
    holder = found(folder)[KARMADA]
    assert holder == Holder(holder.pid, mode == "detached")
    parent.kill()
    parent.wait(10)
    if mode == "detached":
        assert found(folder) == {KARMADA: holder}
        assert asyncio.run(end(mark_of(folder, KARMADA)))
    else:
        eventually_blocking(lambda: not found(folder))
    parent.stdout.close()
