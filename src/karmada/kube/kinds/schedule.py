"""Cron schedules: five fields of numbers, names, ranges, steps and lists, or one of the @ words.

Only the syntax is parsed here; `cron` computes when a schedule fires.
"""

from __future__ import annotations

import zoneinfo
from functools import lru_cache
from typing import NamedTuple

from karmada.kube.objects.times import parse_duration

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: tuple[tuple[int, int, dict[str, int]], ...] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, {name: index + 1 for index, name in enumerate(_MONTHS)}),
    (0, 6, {name: index for index, name in enumerate(_DAYS)}),
)
_WORDS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


class Schedule(NamedTuple):
    """The times that the fields of a schedule allow, or, with `every` above 0, the seconds between two times.

    `any_day` and `any_weekday` say that the field was left open: of two restricted ones either is enough.
    """

    minutes: frozenset[int] = frozenset()
    hours: frozenset[int] = frozenset()
    days: frozenset[int] = frozenset()
    months: frozenset[int] = frozenset()
    weekdays: frozenset[int] = frozenset()
    """0 is Sunday."""
    any_day: bool = False
    any_weekday: bool = False
    every: float = 0.0
    zone: str = ""
    """Where the schedule itself names a time zone."""


def schedule_problem(text: str) -> str:
    """Return what is wrong with a schedule; empty when nothing is."""
    try:
        parse_schedule(text)
    except ValueError as error:
        return str(error)
    return ""


@lru_cache(maxsize=1024)
def parse_schedule(text: str) -> Schedule:
    """Raise ValueError with what is wrong, in the words that Kubernetes uses."""
    zone = ""
    if text.startswith(("TZ=", "CRON_TZ=")):
        prefix, _, text = text.partition(" ")
        zone = prefix.partition("=")[2]
        if not zone_is_known(zone):
            raise ValueError(f"provided bad location {zone}: unknown time zone {zone}")
        text = text.strip()
    if not text:
        raise ValueError("empty spec string")
    return (_from_word(text) if text.startswith("@") else _from_fields(text))._replace(zone=zone)


def _from_word(text: str) -> Schedule:
    if text in _WORDS:
        return _from_fields(_WORDS[text])
    if text.startswith("@every "):
        try:
            seconds = parse_duration(text[7:])
        except ValueError as error:
            raise ValueError(f"failed to parse duration {text}: {error}") from None
        return Schedule(every=max(1.0, float(int(seconds))))
    raise ValueError(f"unrecognized descriptor: {text}")


def _from_fields(text: str) -> Schedule:
    fields = text.split()
    if len(fields) != 5:
        raise ValueError(f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]")
    allowed: list[frozenset[int]] = []
    for field, (low, high, words) in zip(fields, _FIELDS, strict=True):
        numbers: set[int] = set()
        for part in field.split(","):
            numbers.update(_range(part, low, high, words))
        allowed.append(frozenset(numbers))
    minutes, hours, days, months, weekdays = allowed
    return Schedule(minutes, hours, days, months, weekdays, any_day=_open(fields[2]), any_weekday=_open(fields[4]))


def _open(field: str) -> bool:
    """Return a star without a step."""
    return any(part in ("*", "?", "*/1", "?/1") for part in field.split(","))


def _range(part: str, low: int, high: int, words: dict[str, int]) -> range:
    bounds, *steps = part.split("/")
    first, *rest = bounds.split("-")
    if len(rest) > 1:
        raise ValueError(f"too many hyphens: {part}")
    if first in ("*", "?"):
        start, end = low, high
    else:
        start = _number(first, words)
        end = _number(rest[0], words) if rest else start
    if len(steps) > 1:
        raise ValueError(f"too many slashes: {part}")
    step = _number(steps[0], {}) if steps else 1
    if steps and not rest and first not in ("*", "?"):
        end = high
    if start < low:
        raise ValueError(f"beginning of range ({start}) below minimum ({low}): {part}")
    if end > high:
        raise ValueError(f"end of range ({end}) above maximum ({high}): {part}")
    if start > end:
        raise ValueError(f"beginning of range ({start}) beyond end of range ({end}): {part}")
    if step == 0:
        raise ValueError(f"step of range should be a positive number: {part}")
    return range(start, end + 1, step)


def _number(text: str, words: dict[str, int]) -> int:
    named = words.get(text.lower())
    if named is not None:
        return named
    if not (text.lstrip("+-").isdecimal() and text.isascii()):
        raise ValueError(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax')
    number = int(text)
    if number < 0:
        raise ValueError(f"negative number ({number}) not allowed: {text}")
    return number


@lru_cache(maxsize=256)
def zone_is_known(name: str) -> bool:
    """Return an IANA time zone; on a machine without the database every plausible name passes."""
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return not zoneinfo.available_timezones() and bool(name)
    return True
