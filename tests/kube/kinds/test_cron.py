from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st

from karmada.kube.kinds.cron import MANY, missed, next_time, upcoming
from karmada.kube.kinds.schedule import parse_schedule
from karmada.kube.objects.times import parse_time, rfc3339
from tests.support.cases import cases


def at(schedule: str, after: str, zone: str = "UTC") -> str | None:
    found = next_time(parse_schedule(schedule), parse_time(after), ZoneInfo(zone))
    return None if found is None else datetime.fromtimestamp(found, ZoneInfo(zone)).isoformat()


@cases(
    ("* * * * *", "2026-01-01T00:00:00Z", "2026-01-01T00:01:00+00:00"),
    ("* * * * *", "2026-01-01T00:00:59Z", "2026-01-01T00:01:00+00:00"),
    ("*/15 * * * *", "2026-01-01T00:46:00Z", "2026-01-01T01:00:00+00:00"),
    ("5-10/2 3 * * *", "2026-01-01T03:07:00Z", "2026-01-01T03:09:00+00:00"),
    ("5-10/2 3 * * *", "2026-01-01T03:09:00Z", "2026-01-02T03:05:00+00:00"),
    ("0 9 * * mon-fri", "2026-01-02T09:00:00Z", "2026-01-05T09:00:00+00:00"),
    ("0 0 29 feb *", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00+00:00"),
    ("0 0 31 4,6 *", "2026-01-01T00:00:00Z", None),
    ("@yearly", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00+00:00"),
    ("@weekly", "2026-01-01T00:00:00Z", "2026-01-04T00:00:00+00:00"),
    ("@hourly", "2026-01-01T00:59:59Z", "2026-01-01T01:00:00+00:00"),
    ("@every 90s", "2026-01-01T00:00:10Z", "2026-01-01T00:01:40+00:00"),
)
def test_the_next_time_of_a_schedule(schedule: str, after: str, expected: str | None) -> None:
    assert at(schedule, after) == expected


@cases(
    ("0 0 13 * fri", "2026-01-02T00:00:00+00:00"),  # both restricted: either is enough
    ("0 0 13 * *", "2026-01-13T00:00:00+00:00"),
    ("0 0 * * fri", "2026-01-02T00:00:00+00:00"),
    ("0 0 */2 * fri", "2026-01-02T00:00:00+00:00"),  # a star with a step restricts
    ("0 0 */1 * fri", "2026-01-02T00:00:00+00:00"),
)
def test_day_of_month_and_day_of_week_are_alternatives_when_both_are_given(schedule: str, expected: str) -> None:
    assert at(schedule, "2026-01-01T12:00:00Z") == expected


def test_a_time_zone_moves_the_time_and_follows_summer_time() -> None:
    assert at("0 9 * * *", "2026-01-10T00:00:00Z", "Europe/Berlin") == "2026-01-10T09:00:00+01:00"
    assert at("0 9 * * *", "2026-07-10T00:00:00Z", "Europe/Berlin") == "2026-07-10T09:00:00+02:00"
    assert at("30 5 * * *", "2026-01-10T00:00:00Z", "Asia/Kathmandu") == "2026-01-11T05:30:00+05:45"


def test_an_hour_that_is_skipped_in_spring_does_not_fire() -> None:
    assert at("30 2 * * *", "2026-03-29T00:00:00Z", "Europe/Berlin") == "2026-03-30T02:30:00+02:00"


def test_an_hour_that_comes_twice_in_autumn_fires_twice() -> None:
    zone = "Europe/Berlin"
    assert at("30 2 * * *", "2026-10-24T23:00:00Z", zone) == "2026-10-25T02:30:00+02:00"
    assert at("30 2 * * *", "2026-10-25T00:30:00Z", zone) == "2026-10-25T02:30:00+01:00"
    assert at("30 2 * * *", "2026-10-25T01:30:00Z", zone) == "2026-10-26T02:30:00+01:00"


def test_a_change_by_half_an_hour_loses_no_minute() -> None:
    zone = "Australia/Lord_Howe"  # 2026-04-05 at 02:00 the clocks go back to 01:30
    assert at("45 1 * * *", "2026-04-04T14:00:00Z", zone) == "2026-04-05T01:45:00+11:00"
    assert at("45 1 * * *", "2026-04-04T14:45:00Z", zone) == "2026-04-05T01:45:00+10:30"


def test_nothing_is_missed_before_the_first_time() -> None:
    start = parse_time("2026-01-01T00:00:00Z")
    assert missed(parse_schedule("0 * * * *"), start, start + 3599) == (None, 0)


@cases("* * * * *", "@every 1m")
def test_missed_times_are_counted_up_to_a_bound_and_the_latest_is_exact(schedule: str) -> None:
    start = parse_time("2026-01-01T00:00:00Z")
    parsed = parse_schedule(schedule)
    assert missed(parsed, start, start + 60) == (start + 60, 1)
    assert missed(parsed, start, start + 60 * 7 + 5) == (start + 60 * 7, 7)
    assert missed(parsed, start, start + 60 * 100_000 + 5) == (start + 60 * 100_000, MANY + 1)


def test_the_latest_of_very_many_missed_times_is_found_across_a_long_pause() -> None:
    start, now = parse_time("2026-01-01T00:00:00Z"), parse_time("2026-12-24T00:00:00Z")
    assert rfc3339(missed(parse_schedule("* * * jan *"), start, now).latest or 0) == "2026-01-31T23:59:00Z"


def test_every_counts_from_the_last_time() -> None:
    schedule = parse_schedule("@every 10m")
    assert upcoming(schedule, 1000.0, 1000.0) == 1600.0
    assert upcoming(schedule, 1000.0, 1600.0) == 2200.0
    assert upcoming(schedule, 1000.0, 5000.0) == 5200.0


_FIELD = st.sampled_from(["*", "*/7", "3", "1,5", "2-6"])
_SCHEDULES = st.builds(lambda *parts: " ".join(parts), *([_FIELD] * 5))
_MOMENTS = st.integers(1_500_000_000, 1_900_000_000)
_ZONES = st.sampled_from(["UTC", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"])


@settings(max_examples=60)
@given(_SCHEDULES, _MOMENTS, _ZONES)
def test_a_next_time_is_later_fits_the_fields_and_has_nothing_between(text: str, after: int, zone: str) -> None:
    schedule, place = parse_schedule(text), ZoneInfo(zone)
    found = next_time(schedule, after, place)
    assert found is not None
    assert found > after

    def fits(moment: float) -> bool:
        wall = datetime.fromtimestamp(moment, place)
        day, weekday = wall.day in schedule.days, wall.isoweekday() % 7 in schedule.weekdays
        days = (day and weekday) if schedule.any_day or schedule.any_weekday else (day or weekday)
        return (
            days and wall.month in schedule.months and wall.hour in schedule.hours and wall.minute in schedule.minutes
        )

    assert fits(found)
    first_minute = (after // 60 + 1) * 60
    minutes = range(max(first_minute, int(found) - 3 * 86400), int(found), 60)
    assert not any(fits(moment) for moment in minutes)


@settings(max_examples=40)
@given(_SCHEDULES, _MOMENTS, st.integers(0, 40 * 86400))
def test_nothing_fires_between_the_latest_missed_time_and_now(text: str, since: int, span: int) -> None:
    schedule, now = parse_schedule(text), since + span
    latest, count = missed(schedule, since, now, UTC)
    following = next_time(schedule, since if latest is None else latest, UTC)
    assert following is None or following > now
    assert (latest is None) == (count == 0)
    assert latest is None or since < latest <= now
