"""Schedules that are accepted, which are more than those that can be carried out.

From five to seven fields: six are five with a year behind them (four digits) or with seconds before them. Names of
months and days in any case, lists, ranges, steps, and the marks of wider dialects: ? for any, L for the last, W for the
nearest working day, # for the n-th weekday of a month.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

WORDS = frozenset({
    "@yearly", "@annually", "@monthly", "@weekly", "@daily", "@hourly", "@always", "@5minutes", "@10minutes",
    "@15minutes", "@30minutes", "@everysecond",
})  # fmt: skip
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_YEAR = re.compile(r"[0-9]{4}")


class _Field(NamedTuple):
    low: int
    high: int
    names: tuple[str, ...] = ()
    marks: str = ""
    """A regular expression for what else an item may be."""


_SECOND = _MINUTE = _Field(0, 59)
_HOUR = _Field(0, 23)
_DAY = _Field(1, 31, marks=r"L|LW|WL|([1-9]|[12][0-9]|3[01])W")
_MONTH = _Field(1, 12, _MONTHS)
_WEEKDAY = _Field(0, 7, _DAYS, marks=rf"([0-7]|{'|'.join(_DAYS)})(L|#[1-5])")
_YEARS = _Field(1, 9999)
_USUAL = (_MINUTE, _HOUR, _DAY, _MONTH, _WEEKDAY)


@lru_cache(maxsize=1024)
def is_schedule(text: str) -> bool:
    text = text.strip()
    if text.startswith("@"):
        return text in WORDS
    parts = text.upper().split()
    fields = _fields(parts)
    return fields is not None and all(map(_fits, parts, fields))


def _fields(parts: list[str]) -> tuple[_Field, ...] | None:
    if len(parts) == 5:
        return _USUAL
    if len(parts) == 6:
        return (*_USUAL, _YEARS) if _YEAR.fullmatch(parts[5]) else (_SECOND, *_USUAL)
    return (_SECOND, *_USUAL, _YEARS) if len(parts) == 7 else None


def _fits(part: str, field: _Field) -> bool:
    return all(_item_fits(item, field) for item in part.split(","))


def _item_fits(item: str, field: _Field) -> bool:
    if field.marks and re.fullmatch(field.marks, item):
        return True
    span, slash, step = item.partition("/")
    if slash and not (step.isdecimal() and step.isascii() and int(step) > 0):
        return False
    if span in ("*", "?"):
        return True
    first, dash, last = span.partition("-")
    low, high = _number(first, field), _number(last if dash else first, field)
    return low is not None and high is not None and low <= high


def _number(text: str, field: _Field) -> int | None:
    if text in field.names:
        return field.names.index(text) + field.low
    if not (text.isdecimal() and text.isascii()):
        return None
    return int(text) if field.low <= int(text) <= field.high else None
