"""os.time and os.date of scripts."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

_DIRECTIVES: dict[str, str] = {
    "a": "%a", "A": "%A", "b": "%b", "B": "%B", "c": "%d %b %y %H:%M %Z", "d": "%d", "F": "%Y-%m-%d", "H": "%H",
    "I": "%I", "m": "%m", "M": "%M", "p": "%p", "S": "%S", "x": "%m/%d/%y", "X": "%H:%M:%S", "y": "%y", "Y": "%Y",
    "z": "%z", "Z": "%Z",
}  # fmt: skip


def seconds_of(fields: Any, now: Callable[[], float]) -> int:
    """Seconds since the epoch: now, or at a local time given by its fields."""
    if fields is None:
        return int(now())
    if not isinstance(fields, dict):
        raise ValueError("table expected")
    day = [_field(fields, name) for name in ("year", "month", "day")]
    clock = [_field(fields, name, default) for name, default in (("hour", 12), ("min", 0), ("sec", 0))]
    return int(time.mktime((day[0], day[1], day[2], clock[0], clock[1], clock[2], 0, 0, -1)))


def _field(fields: dict[str, Any], name: str, default: int | None = None) -> int:
    value = fields.get(name, default)
    if value is None:
        raise ValueError(f"field '{name}' missing in date table")
    return int(value)


def date_text(arguments: list[Any], now: Callable[[], float]) -> Any:
    """Return a time as text, or as its fields when the form is `*t`."""
    form = arguments[0] if arguments and arguments[0] is not None else "%c"
    seconds = arguments[1] if len(arguments) > 1 else None
    if not isinstance(form, str):
        form = str(form)
    utc = form.startswith("!")
    form = form[1:] if utc else form
    moment = time.gmtime(now()) if utc and seconds is None else time.localtime(now() if seconds is None else seconds)
    if form == "*t":
        return {
            "year": moment.tm_year, "month": moment.tm_mon, "day": moment.tm_mday, "hour": moment.tm_hour,
            "min": moment.tm_min, "sec": moment.tm_sec, "wday": (moment.tm_wday + 1) % 7 + 1, "yday": 0,
            "isdst": False,
        }  # fmt: skip
    return _formatted(form, moment)


def _formatted(form: str, moment: time.struct_time) -> str:
    out, at = [], 0
    while at < len(form):
        if form[at] != "%" or at + 1 == len(form):
            out.append(form[at])
            at += 1
            continue
        out.append(_directive(form[at + 1], moment))
        at += 2
    return "".join(out)


def _directive(letter: str, moment: time.struct_time) -> str:
    if letter == "P":
        return time.strftime("%p", moment).lower()
    if letter == "w":
        return str((moment.tm_wday + 1) % 7)
    known = _DIRECTIVES.get(letter)
    return time.strftime(known, moment) if known else f"%{letter}"
