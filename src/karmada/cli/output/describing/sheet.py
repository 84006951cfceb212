"""The output of describers: lines of cells, indented by level, aligned when all is written.

A column spans neighbouring lines that have a cell after it, so that each block of lines is aligned by itself. Cells
come from the cluster and may contain anything: tabs in them make cells, newlines make lines, and control characters are
escaped.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from karmada.cli.output.columns import columns

NONE = "<none>"
UNSET = "<unset>"
UNKNOWN = "<unknown>"
_INDENT = "  "
_VISIBLE = str.maketrans({"\x1b": "^[", "\r": "\\r", "\v": "\t", "\f": "\n"})


class Sheet:
    def __init__(self) -> None:
        self._lines: list[str] = []

    def row(self, level: int, *cells: Any) -> None:
        """Write one line."""
        self._lines.append(_INDENT * level + "\t".join(map(shown, cells)))

    def blank(self) -> None:
        self._lines.append("")

    def field(self, title: str, value: Any, level: int = 0) -> None:
        """`Title:  value`."""
        self.row(level, f"{title}:", value)

    def optional(self, title: str, value: Any, level: int = 0) -> None:
        """Write a field unless it is empty."""
        if value not in (None, "", [], {}):
            self.field(title, value, level)

    def known(self, title: str, value: Any, level: int = 0) -> None:
        """Write a field unless it is null."""
        if value is not None:
            self.field(title, value, level)

    def heads(self, level: int, *titles: str) -> None:
        """Write the titles of columns, underlined."""
        self.row(level, *titles)
        self.row(level, *("-" * len(title) for title in titles))

    def column(self, title: str, values: Iterable[Any], level: int = 0, inner: str = "", none: str = NONE) -> None:
        """Write a field with a value on each of several lines, one below the other, each behind `inner`."""
        first, *rest = [f"{inner}{shown(value)}" for value in values] or [none]
        self.row(level, f"{title}:", first)
        for value in rest:
            self.row(level, "", value)

    def text(self) -> str:
        raw = "\n".join(self._lines).translate(_VISIBLE)
        return columns([line.split("\t") for line in raw.split("\n")], minimum=0, padding=2) if raw else ""


def shown(value: Any) -> str:
    """Return a value of JSON as Go prints it."""
    if isinstance(value, str):
        return value
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{shown(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list | tuple):
        return f"[{' '.join(map(shown, value))}]"
    return str(value)


def _float(number: float) -> str:
    """Return the shortest form; with an exponent when it would be very long."""
    if number == int(number) and abs(number) < 1e21:
        return str(int(number))
    text = repr(number)
    if "e" not in text and abs(number) >= 1e-4:
        return text
    mantissa, _, exponent = f"{number:e}".partition("e") if "e" not in text else text.partition("e")
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    return f"{mantissa}e{exponent[0] if exponent[0] in '+-' else '+'}{exponent.lstrip('+-').zfill(2)}"
