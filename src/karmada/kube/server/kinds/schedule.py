"""Is this a cron schedule? Five fields of numbers, names, ranges, steps and lists, or one of the @ words.

Only the syntax matters to the API server; when a schedule fires is the CronJob controller's business.
"""

from __future__ import annotations

import zoneinfo
from functools import lru_cache

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
_WORDS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")


def schedule_problem(text: str) -> str:
    """What is wrong with a schedule; empty when nothing is."""
    if text.startswith(("TZ=", "CRON_TZ=")):
        zone, _, text = text.partition(" ")
        if not zone_is_known(zone.partition("=")[2]):
            return f"provided bad location {zone.partition('=')[2]}: unknown time zone {zone.partition('=')[2]}"
        text = text.strip()
    if not text:
        return "empty spec string"
    if text.startswith("@"):
        return _word_problem(text)
    fields = text.split()
    if len(fields) != 5:
        return f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]"
    for field, (low, high, words) in zip(fields, _FIELDS, strict=True):
        for part in field.split(","):
            try:
                _range(part, low, high, words)
            except ValueError as error:
                return str(error)
    return ""


def _word_problem(text: str) -> str:
    if text in _WORDS:
        return ""
    if text.startswith("@every "):
        try:
            parse_duration(text[7:])
        except ValueError as error:
            return f"failed to parse duration {text}: {error}"
        return ""
    return f"unrecognized descriptor: {text}"


def _range(part: str, low: int, high: int, words: dict[str, int]) -> None:
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
    """An IANA time zone; on a machine without the database every plausible name passes."""
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return not zoneinfo.available_timezones() and bool(name)
    return True
