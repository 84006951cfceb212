"""Which process runs is known from locks, which end with it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from karmada.local.marks import Holder, Mark, Taken


@pytest.fixture
def mark(tmp_path: Path) -> Mark:
    return Mark(tmp_path / "program.pid")


def test_a_mark_that_was_never_taken_has_no_holder(mark: Mark) -> None:
    assert mark.holder() is None


def test_the_holder_is_known_until_it_releases_the_lock(mark: Mark) -> None:
    held = mark.take()
    assert mark.holder() == Holder(0)
    Mark.write(held, Holder(123, detached=True))
    assert mark.holder() == Holder(123, detached=True)
    os.close(held)
    assert mark.holder() is None


def test_one_at_a_time(mark: Mark, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("karmada.local.marks._TRY_SECONDS", 0.02)
    held = mark.take()
    with pytest.raises(Taken):
        mark.take()
    os.close(held)
    os.close(mark.take())


def test_a_mark_that_is_handed_down_ends_with_a_process_that_is_killed(mark: Mark) -> None:
    held = mark.take()
    process = subprocess.Popen(["sleep", "60"], pass_fds=(held,))
    Mark.write(held, Holder(process.pid))
    os.close(held)
    assert mark.holder() == Holder(process.pid)
    process.kill()
    process.wait(10)
    assert mark.holder() is None


def test_what_a_former_holder_wrote_is_not_shown_of_the_next(mark: Mark) -> None:
    held = mark.take()
    Mark.write(held, Holder(123456789, detached=True))
    os.close(held)
    held = mark.take()
    assert mark.holder() == Holder(0)
    os.close(held)


def test_the_file_is_for_its_owner_alone(mark: Mark, tmp_path: Path) -> None:
    os.close(mark.take())
    assert (tmp_path / "program.pid").stat().st_mode & 0o777 == 0o600
