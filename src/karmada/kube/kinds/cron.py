"""When a schedule fires: the next time, the latest one that is past, and how many were missed.

`next_time` steps through time and compares the local time at each step: from a month or day that does not match to the
next midnight, from an hour to the next full one. So an hour that daylight saving time skips never fires, and one that
it repeats fires twice. The latest past time is found by halving: "does anything fire
between x and now" is true up to that time and false from it on. Moments are seconds since the epoch.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from karmada.kube.kinds.schedule import Schedule

MANY = 100
"""From more missed times than this on, a warning is emitted."""
_MACHINE = Path("/etc/localtime")
_YEARS = 5
"""A schedule that does not fire within so many years (30 February) never does."""


class Missed(NamedTuple):
    """The latest missed time, and how many were missed since the last check (at most MANY + 1)."""

    latest: float | None
    times: int


@lru_cache(maxsize=256)
def zone_of(name: str) -> tzinfo:
    """Raise what zoneinfo raises for a name it does not know."""
    return ZoneInfo(name) if name else UTC


def local_zone() -> tzinfo:
    """Return the time zone of this process: that of TZ, else of the machine, else UTC."""
    name = os.environ.get("TZ", "").lstrip(":")
    try:
        if name:
            return ZoneInfo(name)
        with _MACHINE.open("rb") as rules:
            return ZoneInfo.from_file(rules, "local")
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return UTC


def next_time(schedule: Schedule, after: float, zone: tzinfo = UTC) -> float | None:
    """Return the first time after a moment; None when there is none."""
    if schedule.every:
        return after // 1 + schedule.every
    zone = zone_of(schedule.zone) if schedule.zone else zone
    at = int(after // 60 + 1) * 60
    last_year = datetime.fromtimestamp(at, zone).year + _YEARS
    while True:
        wall = datetime.fromtimestamp(at, zone)
        if wall.second:
            at += 60 - wall.second
        elif wall.year > last_year:
            return None
        elif not _day_matches(schedule, wall):
            at = _next_day(schedule, wall)
        elif wall.hour not in schedule.hours:
            at += (60 - wall.minute) * 60
        else:
            minute = min((m for m in schedule.minutes if m >= wall.minute), default=60)
            if minute == wall.minute:
                return float(at)
            at = _later(at, (minute - wall.minute) * 60, zone)


def _later(at: int, seconds: int, zone: tzinfo) -> int:
    """On by so much, but not past a moment at which the clocks are changed: the minutes after it count anew."""
    before, after = datetime.fromtimestamp(at, zone), datetime.fromtimestamp(at + seconds, zone)
    if before.utcoffset() == after.utcoffset():
        return at + seconds
    return at + 60


def _day_matches(schedule: Schedule, wall: datetime) -> bool:
    if wall.month not in schedule.months:
        return False
    day, weekday = wall.day in schedule.days, wall.isoweekday() % 7 in schedule.weekdays
    if schedule.any_day or schedule.any_weekday:
        return day and weekday
    return day or weekday


def _next_day(schedule: Schedule, wall: datetime) -> int:
    """Return the beginning of the next day, or of the next month when this one is not wanted."""
    if wall.month in schedule.months:
        day = wall.date() + timedelta(days=1)
    else:
        day = (wall.date().replace(day=1) + timedelta(days=32)).replace(day=1)
    midnight = datetime(day.year, day.month, day.day, tzinfo=wall.tzinfo)
    return max(int(midnight.timestamp()), int(wall.timestamp()) + 60)


def upcoming(schedule: Schedule, since: float, now: float, zone: tzinfo = UTC) -> float | None:
    """Return the first time after now; `since` is where a schedule of the form "every …" counts from."""
    if schedule.every:
        first = since // 1 + schedule.every
        return first if first > now else first + ((now - first) // schedule.every + 1) * schedule.every
    return next_time(schedule, now, zone)


def missed(schedule: Schedule, since: float, now: float, zone: tzinfo = UTC) -> Missed:
    """Return what fired after `since` and not after `now`."""
    first = next_time(schedule, since, zone)
    if first is None or first > now:
        return Missed(None, 0)
    if schedule.every:
        more = (now - first) // schedule.every
        return Missed(first + more * schedule.every, min(int(more) + 1, MANY + 1))
    count, at = 1, first
    while count <= MANY:
        following = next_time(schedule, at, zone)
        if following is None or following > now:
            return Missed(at, count)
        count, at = count + 1, following
    return Missed(_latest(schedule, at, now, zone), count)


def _latest(schedule: Schedule, fired: float, now: float, zone: tzinfo) -> float:
    """Return the last time up to now, given one; between `low` and it something fires, from `high` on nothing does."""
    low, high = int(fired) - 1, int(now // 1) + 1
    while high - low > 1:
        middle = (low + high) // 2
        following = next_time(schedule, middle, zone)
        if following is not None and following <= now:
            low = middle
        else:
            high = middle
    found = next_time(schedule, low, zone)
    return fired if found is None else found
