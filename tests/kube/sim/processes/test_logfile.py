"""The log of a container: lines with their time and stream, selected, rotated and followed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karmada.kube.server.handlers.pod_logs import LogOptions
from karmada.kube.sim.processes.logfile import LINE_BYTES, LogFile, followed, history
from tests.support.cases import cases

NOW = 1_700_000_000.0


class Ticking:
    """A clock that goes on by a second with every line."""

    def __init__(self) -> None:
        self.time = NOW - 1

    def __call__(self) -> float:
        self.time += 1
        return self.time


@pytest.fixture
def file(tmp_path: Path) -> LogFile:
    return LogFile(tmp_path / "0.log", Ticking())


def shown(file: LogFile, options: LogOptions = LogOptions()) -> bytes:  # noqa: B008 - it is immutable
    return b"".join(history(file.path, options))


def test_lines_are_kept_whole_however_they_arrive(file: LogFile) -> None:
    file.write("stdout", b"one\ntw")
    assert shown(file) == b"one\n"
    file.write("stderr", b"other\n")
    file.write("stdout", b"o\nthree")
    assert shown(file) == b"one\nother\ntwo\n"
    file.close()
    assert shown(file) == b"one\nother\ntwo\nthree\n"


@given(st.lists(st.binary(max_size=40), max_size=8))
def test_nothing_is_lost_or_added(tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes]) -> None:
    file = LogFile(tmp_path_factory.mktemp("log") / "0.log", Ticking())
    for piece in pieces:
        file.write("stdout", piece)
    file.close()
    written = b"".join(pieces)
    assert shown(file) == (written if written.endswith(b"\n") or not written else written + b"\n")


def test_a_line_that_is_too_long_is_kept_in_parts_and_shown_as_one(file: LogFile) -> None:
    line = b"x" * (2 * LINE_BYTES + 5) + b"\n"
    file.write("stdout", line)
    assert shown(file) == line
    assert len(file.path.read_bytes().splitlines()) == 3


@cases(
    (LogOptions(tail=2), b"c\nd\n"),
    (LogOptions(tail=0), b""),
    (LogOptions(tail=9), b"a\nb\nc\nd\n"),
    (LogOptions(since=NOW + 2), b"c\nd\n"),
    (LogOptions(since=NOW + 1, tail=1), b"d\n"),
    (LogOptions(stream="Stderr"), b"b\n"),
    (LogOptions(limit=3), b"a\nb"),
    (LogOptions(tail=1, timestamps=True), b"2023-11-14T22:13:23.000000000Z d\n"),
)
def test_options_select_lines(options: LogOptions, expected: bytes, file: LogFile) -> None:
    file.write("stdout", b"a\n")
    file.write("stderr", b"b\n")
    file.write("stdout", b"c\nd\n")
    assert shown(file, options) == expected


def test_a_line_in_parts_counts_once(file: LogFile) -> None:
    line = b"x" * (3 * LINE_BYTES) + b"\n"
    file.write("stdout", b"first\n" + line)
    assert shown(file, LogOptions(tail=1)) == line


@cases(0, 1, 7, 1000, 4999, 5000, 9000)
def test_the_last_lines_of_a_long_log_are_those_of_all_of_it(tail: int, tmp_path: Path) -> None:
    file = LogFile(tmp_path / "0.log", Ticking(), limit=150_000)
    for number in range(5000):
        file.write("stderr" if number % 3 else "stdout", b"line %d %s\n" % (number, b"x" * (number % 50)))
    everything = shown(file).splitlines(keepends=True)
    assert shown(file, LogOptions(tail=tail)) == b"".join(everything[max(0, len(everything) - tail) :])


def test_the_log_of_a_container_that_wrote_nothing_is_empty(file: LogFile) -> None:
    file.close()
    assert shown(file) == b""


def test_a_log_is_limited_in_size_and_keeps_what_was_written_last(tmp_path: Path) -> None:
    file = LogFile(tmp_path / "0.log", Ticking(), limit=1000)
    for number in range(100):
        file.write("stdout", b"line %d\n" % number)
    lines = shown(file).splitlines()
    assert lines[-1] == b"line 99"
    assert lines == [b"line %d" % number for number in range(100 - len(lines), 100)]
    assert 15 < len(lines) < 50
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 2000


async def collected(pieces: AsyncIterator[bytes]) -> list[bytes]:
    return [piece async for piece in pieces]


async def test_a_follower_gets_what_there_is_and_then_each_line_until_the_end(file: LogFile) -> None:
    file.write("stdout", b"a\nb\n")
    following = asyncio.create_task(collected(followed(file, LogOptions(follow=True, tail=1))))
    for line in (b"c\n", b"d\n"):
        await asyncio.sleep(0)
        file.write("stdout", line)
    file.write("stdout", b"e")
    file.close()
    assert await following == [b"b\n", b"c\n", b"d\n", b"e\n"]


async def test_a_follower_loses_nothing_when_the_file_is_rotated(tmp_path: Path) -> None:
    file = LogFile(tmp_path / "0.log", Ticking(), limit=1000)
    following = asyncio.create_task(collected(followed(file, LogOptions(follow=True))))
    for number in range(100):
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        file.write("stdout", b"%d\n" % number)
    file.close()
    assert await following == [b"%d\n" % number for number in range(100)]


async def test_a_follower_of_a_run_that_has_ended_gets_its_log_and_the_end(file: LogFile) -> None:
    file.write("stdout", b"a\n")
    file.close()
    assert await collected(followed(file, LogOptions(follow=True))) == [b"a\n"]
