"""Standard input and output of commands that stream: input that never comes or never goes, output nobody wants."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator

import pytest

from karmada.cli.streams.streaming import Input, plain_output
from karmada.cli.targeting.connect import failure
from tests.support.eventually import LIMIT


@pytest.fixture
def keyboard(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Write to it, and it is there on standard input."""
    reading, writing = os.pipe()
    with os.fdopen(reading) as stream:
        monkeypatch.setattr("sys.stdin", stream)
        yield writing


async def test_pieces_come_in_order_and_then_the_end(keyboard: int) -> None:
    taken: list[bytes] = []
    ended = asyncio.Event()

    async def take(piece: bytes) -> None:
        taken.append(piece)
        if not piece:
            ended.set()

    async with Input(take):
        os.write(keyboard, b"one")
        os.write(keyboard, b"two")
        os.close(keyboard)
        async with asyncio.timeout(LIMIT):
            await ended.wait()
    assert b"".join(taken) == b"onetwo"


async def test_input_that_never_comes_keeps_nobody(keyboard: int) -> None:
    async def take(_piece: bytes) -> None:
        raise AssertionError("nothing was written")

    async with asyncio.timeout(LIMIT), Input(take):
        pass
    os.close(keyboard)


async def test_input_that_nobody_takes_keeps_nobody(keyboard: int) -> None:
    busy = asyncio.Event()

    async def take(_piece: bytes) -> None:
        busy.set()
        await asyncio.Event().wait()

    async with asyncio.timeout(LIMIT), Input(take):
        os.write(keyboard, b"x")
        await busy.wait()
    os.close(keyboard)


def test_output_that_nobody_wants_ends_without_a_word(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended, plain_output():
        raise KeyboardInterrupt
    assert ended.value.code == 130
    assert capfd.readouterr() == ("", "")


def test_other_failures_are_reported_as_ever() -> None:
    with pytest.raises(Exception, match="error: no"), plain_output():
        raise failure("no")
