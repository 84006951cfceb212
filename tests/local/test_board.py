"""Progress: drawn over on a terminal, printed line by line elsewhere."""

from __future__ import annotations

import io
import re

import pytest

from karmada.local.board import Board


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True

    def picture(self) -> list[str]:
        """What one sees: lines, with the cursor moved up where requested."""
        lines: list[str] = [""]
        row = 0
        for token in re.findall(r"\x1b\[\d*[A-Za-z]|\n|\r|[^\x1b\n\r]+", self.getvalue()):
            if token == "\n":
                row += 1
                if row == len(lines):
                    lines.append("")
            elif token == "\r":
                lines[row] = ""
            elif token.endswith("A") and token.startswith("\x1b"):
                row -= int(token[2:-1])
            elif token == "\x1b[K" and not lines[row]:
                continue
            elif not token.startswith("\x1b"):
                lines[row] += token
        return lines[:-1]


class Time:
    now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_rows_are_drawn_over_on_a_terminal() -> None:
    out, time = Terminal(), Time()
    board = Board(out, now=time)
    async with board:
        board.say("Starting")
        board.doing("control plane", "starts")
        board.doing("member1", "waits")
        time.now = 1.26
        board.done("control plane", "https://127.0.0.1:5443")
        board.fail("member1", "did not answer")
        time.now = 9.0
    assert out.picture() == [
        "Starting",
        "  ✓ control plane  https://127.0.0.1:5443  1.3 s",
        "  ✗ member1        did not answer",
    ]
    assert board.failed == ["member1"]


async def test_what_is_said_later_stands_above_the_rows() -> None:
    out = Terminal()
    board = Board(out, now=Time())
    async with board:
        board.done("control plane", "serves")
        board.say("port 5443 is in use")
    assert out.picture() == ["port 5443 is in use", "  ✓ control plane  serves  0.0 s"]


async def test_a_line_never_is_longer_than_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    out = Terminal()
    board = Board(out, now=Time())
    async with board:
        board.fail("member1", "x" * 500)
    assert len(out.picture()[0]) <= 80


async def test_elsewhere_there_is_a_line_for_what_came_of_each() -> None:
    out, time = io.StringIO(), Time()
    board = Board(out, now=time)
    async with board:
        board.doing("member1", "waits")
        time.now = 2.04
        board.done("member1", "Ready")
        board.done("member1", "Ready")
        board.fail("member2", "is dead")
    assert out.getvalue() == "  member1: Ready (2.0 s)\n  member2: FAILED: is dead\n"
