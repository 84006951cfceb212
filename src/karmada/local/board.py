"""Progress of a start: one row per part, redrawn on a terminal; elsewhere a line per result, or per change."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TextIO

from karmada.kube.runtime.waiting import cancel_and_wait

_TICK_SECONDS = 0.1
_TURNING = {True: "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", False: "|/-\\"}
_SIGNS = {True: {"done": "✓", "failed": "✗"}, False: {"done": "+", "failed": "x"}}
_COLOURS = {"done": "\x1b[32m", "failed": "\x1b[31m", "doing": "\x1b[36m"}
_PLAIN, _CLEAR, _UP = "\x1b[0m", "\x1b[K", "\x1b[{}A"


@dataclass(slots=True)
class Row:
    text: str
    state: str = "doing"
    seconds: float = 0.0


class Board:
    def __init__(
        self,
        out: TextIO,
        *,
        live: bool | None = None,
        changes: bool = False,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Show rows; `changes`: off a terminal, print a line for everything that a row shows, not for results alone."""
        self._out = out
        self._changes = changes
        self._live = out.isatty() if live is None else live
        self._fancy = (out.encoding or "").lower().replace("-", "") == "utf8"
        self._now = now
        self._began = now()
        self._rows: dict[str, Row] = {}
        self._drawn = 0
        self._turn = 0
        self._ticking: asyncio.Task[None] | None = None

    @property
    def seconds(self) -> float:
        """Since the start."""
        return self._now() - self._began

    @property
    def failed(self) -> list[str]:
        return [name for name, row in self._rows.items() if row.state == "failed"]

    async def __aenter__(self) -> Board:
        if self._live:
            self._ticking = asyncio.create_task(self._tick(), name="progress")
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._ticking is not None:
            await cancel_and_wait(self._ticking)
            self._ticking = None
        self._draw()
        self._drawn = 0  # what is said from now on is not above the rows

    # updates

    def doing(self, name: str, text: str) -> None:
        self._set(name, text, "doing")

    def done(self, name: str, text: str) -> None:
        self._set(name, text, "done")

    def fail(self, name: str, text: str) -> None:
        self._set(name, text, "failed")

    def say(self, text: str) -> None:
        """Print a permanent line above the rows."""
        if self._live and self._drawn:
            self._out.write(_UP.format(self._drawn) + "".join(f"\r{_CLEAR}{line}\n" for line in text.splitlines()))
            self._drawn = 0
            self._draw()
        else:
            self._out.write(f"{text}\n")
        self._out.flush()

    def _set(self, name: str, text: str, state: str) -> None:
        row = self._rows.setdefault(name, Row(""))
        if (row.text, row.state) == (text, state):
            return
        row.text, row.state, row.seconds = text, state, self.seconds
        if self._live:
            self._draw()
        elif state != "doing" or self._changes:
            sign, after = ("FAILED: ", "") if state == "failed" else ("", f" ({row.seconds:.1f} s)")
            self._out.write(f"  {name}: {sign}{text}{after}\n")
            self._out.flush()

    # drawing

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(_TICK_SECONDS)
            self._turn += 1
            if any(row.state == "doing" for row in self._rows.values()):
                self._draw()

    def _draw(self) -> None:
        if not self._live:
            return
        width = shutil.get_terminal_size().columns
        names = max((len(name) for name in self._rows), default=0)
        lines = [self._line(name.ljust(names), row, width) for name, row in self._rows.items()]
        up = _UP.format(self._drawn) if self._drawn else ""
        self._out.write(up + "".join(f"\r{line}{_CLEAR}\n" for line in lines))
        self._out.flush()
        self._drawn = len(lines)

    def _line(self, name: str, row: Row, width: int) -> str:
        turning = _TURNING[self._fancy]
        sign = turning[self._turn % len(turning)] if row.state == "doing" else _SIGNS[self._fancy][row.state]
        seconds = row.seconds if row.state == "done" else self.seconds
        text = f"{name}  {row.text}" + (f"  {seconds:.1f} s" if row.state != "failed" else "")
        return f"  {_COLOURS[row.state]}{sign}{_PLAIN} {text[: max(width - 5, 10)]}"
