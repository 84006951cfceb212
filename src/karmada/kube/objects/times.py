"""Timestamps and durations in the forms of the API: RFC 3339, MicroTime, Go durations, and kubectl's short ages.

Inside the code a time is a float of seconds since the epoch and a duration a float of seconds; Go durations also come
as whole nanoseconds, because a float cannot hold them all.
"""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime
from functools import lru_cache

from karmada.kube.objects.quoting import go_quote

_LAYOUT = "2006-01-02T15:04:05Z07:00"
_TIME = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?(?:Z|([+-])([0-9]{2}):([0-9]{2}))"
)
_PIECES = [
    (re.compile(pattern), piece)
    for pattern, piece in (
        ("[0-9]{4}", "2006"), ("-", "-"), ("[0-9]{2}", "01"), ("-", "-"), ("[0-9]{2}", "02"), ("T", "T"),
        ("[0-9]{2}", "15"), (":", ":"), ("[0-9]{2}", "04"), (":", ":"), (r"[0-9]{2}(?:[.,][0-9]+)?", "05"),
        ("Z|[+-][0-9]{2}:[0-9]{2}", "Z07:00"),
    )
]  # fmt: skip


@lru_cache(maxsize=256)
def _whole_seconds(seconds: int) -> str:
    moment = time.gmtime(seconds)
    return (
        f"{moment.tm_year:04d}-{moment.tm_mon:02d}-{moment.tm_mday:02d}"
        f"T{moment.tm_hour:02d}:{moment.tm_min:02d}:{moment.tm_sec:02d}Z"
    )


def rfc3339(seconds: float) -> str:
    """Time as metav1.Time prints it: UTC, whole seconds (cut, not rounded)."""
    return _whole_seconds(int(seconds // 1))


def micro_time(seconds: float) -> str:
    """Time as metav1.MicroTime prints it: UTC, six fractional digits."""
    whole, micros = divmod(round(seconds * 1_000_000), 1_000_000)
    return f"{_whole_seconds(whole)[:-1]}.{micros:06d}Z"


@lru_cache(maxsize=16384)
def parse_time(text: str) -> float:
    """RFC 3339 with or without a fraction, in any offset; raises ValueError with Go's text."""
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError(_what_is_wrong(text))
    year, month, day, hour, minute, second, fraction, sign, offset_hours, offset_minutes = match.groups()
    try:
        moment = datetime(int(year), int(month), int(day), int(hour), int(minute), int(second), tzinfo=UTC)
    except ValueError:
        raise ValueError(f"parsing time {go_quote(text)}: {_out_of_range(match)} out of range") from None
    seconds = (moment - _EPOCH).total_seconds()
    if fraction:
        seconds += float(f"0.{fraction}")
    if sign:
        offset = int(offset_hours) * 3600 + int(offset_minutes) * 60
        seconds += -offset if sign == "+" else offset
    return seconds


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _out_of_range(match: re.Match[str]) -> str:
    limits = (("month", 2, 1, 12), ("hour", 4, 0, 23), ("minute", 5, 0, 59), ("second", 6, 0, 59))
    for name, group, low, high in limits:
        if not low <= int(match[group]) <= high:
            return name
    return "day" if match[1] != "0000" else "year"


def _what_is_wrong(text: str) -> str:
    at = 0
    for pattern, piece in _PIECES:
        match = pattern.match(text, at)
        if match is None:
            rest = go_quote(text[at:])
            return f'parsing time {go_quote(text)} as "{_LAYOUT}": cannot parse {rest} as "{piece}"'
        at = match.end()
    return f"parsing time {go_quote(text)}: extra text: {go_quote(text[at:])}"


def human_duration(seconds: float) -> str:
    """Return an age as kubectl shows it: the larger it is, the coarser.

    Clocks may differ by less than two seconds.
    """
    total = int(seconds)
    if total < 0:
        return "0s" if total > -2 else "<invalid>"
    if total < 120:
        return f"{total}s"
    minutes, hours, days = total // 60, total // 3600, total // 86400
    if minutes < 10:
        return _two(minutes, "m", total % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if days < 2 * 365:
        return f"{days}d"
    if days < 8 * 365:
        return _two(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"


_NANOS = {
    "ns": 1, "us": 10**3, "\u00b5s": 10**3, "\u03bcs": 10**3, "ms": 10**6,
    "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9,
}  # fmt: skip
_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]*)")
_MAX_NANOS = 2**63 - 1


@lru_cache(maxsize=4096)
def parse_duration_ns(text: str) -> int:
    """Return a Go duration ("1h30m", "300ms", "-1.5s") in nanoseconds; raises ValueError with Go's text."""
    bad = f"time: invalid duration {go_quote(text)}"
    negative, rest = text[:1] == "-", text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return 0
    if not rest or len(rest) > 200:
        raise ValueError(bad)
    total = at = 0
    while at < len(rest):
        match = _PART.match(rest, at)
        if match is None or not (match[1] or match[2]):
            raise ValueError(bad)
        whole, fraction, unit = match[1], match[2] or "", match[3]
        if not unit:
            raise ValueError(f"time: missing unit in duration {go_quote(text)}")
        scale = _NANOS.get(unit)
        if scale is None:
            raise ValueError(f"time: unknown unit {go_quote(unit)} in duration {go_quote(text)}")
        total += int(whole or "0") * scale
        if fraction:
            total += int(fraction) * scale // 10 ** len(fraction)
        at = match.end()
    if total > _MAX_NANOS + negative:
        raise ValueError(bad)
    return -total if negative else total


def format_duration_ns(nanos: int) -> str:
    """As Go prints a duration: 1h30m0s, 1.5s, 300ms."""
    if nanos == 0:
        return "0s"
    sign, size = ("-", -nanos) if nanos < 0 else ("", nanos)
    if size < 10**9:
        for unit, scale in (("ms", 10**6), ("\u00b5s", 10**3), ("ns", 1)):
            if size >= scale:
                return f"{sign}{_fraction(size, scale)}{unit}"
    minutes, rest = divmod(size, 60 * 10**9)
    text = f"{_fraction(rest, 10**9)}s"
    if minutes:
        hours, minutes = divmod(minutes, 60)
        text = f"{hours}h{minutes}m{text}" if hours else f"{minutes}m{text}"
    return sign + text


def _fraction(size: int, scale: int) -> str:
    whole, rest = divmod(size, scale)
    if not rest:
        return str(whole)
    digits = str(rest).zfill(len(str(scale)) - 1).rstrip("0")
    return f"{whole}.{digits}"


def parse_duration(text: str) -> float:
    """Return a Go duration in seconds; raises ValueError with Go's text."""
    return parse_duration_ns(text) / 10**9


def format_duration(seconds: float) -> str:
    """Seconds as Go prints a duration."""
    return format_duration_ns(round(seconds * 10**9))
