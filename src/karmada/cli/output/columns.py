"""Columns of text, aligned as kubectl aligns them.

A column is as wide as its widest cell and three blanks, and at least six; the last cell of a row is not filled up. Rows
may have different numbers of cells: a column then reaches over the neighbouring rows that go on behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest


def columns(rows: Sequence[Sequence[str]], *, minimum: int = 6, padding: int = 3) -> str:
    """Return the rows as lines, each with its end; "" for none."""
    widths = _widths(rows, minimum, padding)
    return "".join(
        "".join(cell.ljust(width) for cell, width in zip(row, row_widths, strict=False))
        + (row[-1] if row else "")
        + "\n"
        for row, row_widths in zip(rows, widths, strict=True)
    )


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return lines with columns as wide as they must be; the last is not filled up."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["   ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def _widths(rows: Sequence[Sequence[str]], minimum: int, padding: int) -> list[list[int]]:
    """Return the widths of all cells but the last, for every row."""
    widths: list[list[int]] = [[] for _ in rows]
    for column in range(max(map(len, rows), default=0) - 1):
        block: list[int] = []
        for number, row in enumerate([*rows, ()]):
            if len(row) > column + 1:
                block.append(number)
                continue
            if block:
                width = max(minimum, padding + max(len(rows[member][column]) for member in block))
                for member in block:
                    widths[member].append(width)
            block = []
    return widths


class Growing:
    """A table that is written while it is still coming: columns never become narrower."""

    def __init__(self) -> None:
        self._widths: list[int] = []

    def lines(self, rows: Sequence[Sequence[str]]) -> str:
        if not rows:
            return ""
        now = [max(column) for column in zip(*_widths(rows, 6, 3), strict=False)]
        self._widths = [max(pair) for pair in zip_longest(now, self._widths, fillvalue=0)]
        return "".join(
            "".join(cell.ljust(width) for cell, width in zip(row[:-1], self._widths, strict=False)) + row[-1] + "\n"
            for row in rows
        )


def first_line(text: str) -> str:
    """Return what a cell shows of a text: of several lines the first, and nothing that would command a terminal."""
    for at, character in enumerate(text):
        if character in "\f\n\r":
            text = text[:at] + "..."
            break
    return text.replace("\x1b", "^[")
