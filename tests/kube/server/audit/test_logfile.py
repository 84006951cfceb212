from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from karmada.kube.objects.clock import FakeClock
from karmada.kube.server.audit.logfile import LogFile

DAY = 86400.0
EVENT = {"auditID": "x" * 80}
SIZE = len(json.dumps(EVENT, separators=(",", ":"))) + 1


def files(directory: Path) -> list[Path]:
    return sorted(directory.iterdir())


def backups(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir() if path.name != "audit.log")


async def test_a_full_file_is_rotated_and_nothing_is_lost(tmp_path: Path) -> None:
    clock, path = FakeClock(start=1_700_000_000.123), tmp_path / "audit.log"
    log = LogFile(path, clock, max_bytes=2 * SIZE)
    for _ in range(5):
        log.write(EVENT)
        await clock.advance(1)
    await log.close()
    assert backups(tmp_path) == ["audit-2023-11-14T22-13-22.123.log", "audit-2023-11-14T22-13-24.123.log"]
    assert sum(len(file.read_text().splitlines()) for file in files(tmp_path)) == 5
    assert {file.stat().st_mode & 0o777 for file in files(tmp_path)} == {0o600}


async def test_a_restart_goes_on_where_the_file_ends(tmp_path: Path) -> None:
    clock, path = FakeClock(), tmp_path / "audit.log"
    for _ in range(3):
        log = LogFile(path, clock, max_bytes=2 * SIZE)
        log.write(EVENT)
        await log.close()
    assert len(backups(tmp_path)) == 1
    assert len(path.read_text().splitlines()) == 1


async def test_only_so_many_rotated_files_are_kept(tmp_path: Path) -> None:
    clock, path = FakeClock(), tmp_path / "audit.log"
    (tmp_path / "audit-notes.log").write_text("not a rotated file")
    log = LogFile(path, clock, max_bytes=SIZE, max_backups=2)
    for _ in range(6):
        log.write(EVENT)
        await clock.advance(1)
    await log.close()
    assert len(backups(tmp_path)) == 3
    assert backups(tmp_path)[-1] == "audit-notes.log"


async def test_old_rotated_files_are_removed(tmp_path: Path) -> None:
    clock, path = FakeClock(), tmp_path / "audit.log"
    log = LogFile(path, clock, max_bytes=SIZE, max_days=2)
    for _ in range(6):
        log.write(EVENT)
        await clock.advance(DAY)
    await log.close()
    assert len(backups(tmp_path)) == 3


async def test_a_place_that_does_not_take_events_fails_no_request(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = LogFile(Path("/dev/full"), FakeClock(), max_bytes=SIZE)
    for _ in range(3):
        log.write(EVENT)
    assert log.failed == 3
    assert caplog.text.count("Audit events cannot be written") == 1
    await log.close()


async def test_standard_output_is_not_rotated(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    monkeypatch.setattr("sys.stdout", os.fdopen(writer, "w"))
    log = LogFile(Path("-"), FakeClock(), max_bytes=1)
    log.write(EVENT)
    log.write(EVENT)
    await log.close()
    assert len(os.read(reader, 4096).splitlines()) == 2
    os.close(reader)
