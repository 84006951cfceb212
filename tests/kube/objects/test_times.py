"""Timestamps, Go durations and ages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karmada.kube.objects import times
from tests.support.cases import cases

MINUTE, HOUR, DAY, YEAR = 60, 3600, 86400, 365 * 86400


@cases(
    ("1970-01-01T00:00:00Z", 0), ("2023-11-14T22:13:20Z", 1_700_000_000),
    ("2023-11-14T22:13:20.5Z", 1_700_000_000.5),
    ("2023-11-14T22:13:20.123456789Z", 1_700_000_000.123456789), ("2023-11-15T00:13:20+02:00", 1_700_000_000),
    ("2023-11-14T16:43:20-05:30", 1_700_000_000), ("1969-12-31T23:59:59Z", -1),
    ("0001-01-01T00:00:00Z", -62135596800),
)  # fmt: skip
def test_rfc3339_times_are_read(text: str, seconds: float) -> None:
    assert times.parse_time(text) == seconds


@cases(
    ("", 'parsing time "" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "2006"'),
    ("now", 'parsing time "now" as "2006-01-02T15:04:05Z07:00": cannot parse "now" as "2006"'),
    ("2023-11-14", 'parsing time "2023-11-14" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "T"'),
    ("2023-11-14t22:13:20Z",
     'parsing time "2023-11-14t22:13:20Z" as "2006-01-02T15:04:05Z07:00": cannot parse "t22:13:20Z" as "T"'),
    ("2023-11-14T22:13:20",
     'parsing time "2023-11-14T22:13:20" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "Z07:00"'),
    ("2023-13-14T22:13:20Z", 'parsing time "2023-13-14T22:13:20Z": month out of range'),
    ("2023-02-29T22:13:20Z", 'parsing time "2023-02-29T22:13:20Z": day out of range'),
    ("2023-02-28T24:13:20Z", 'parsing time "2023-02-28T24:13:20Z": hour out of range'),
    ("2023-11-14T22:13:20ZZ", 'parsing time "2023-11-14T22:13:20ZZ": extra text: "Z"'),
)  # fmt: skip
def test_what_is_no_time_is_refused_with_gos_text(text: str, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        times.parse_time(text)
    assert str(caught.value) == message


def test_times_are_printed_in_utc_seconds_and_microseconds() -> None:
    assert times.rfc3339(1_700_000_000.999) == "2023-11-14T22:13:20Z"
    assert times.micro_time(1_700_000_000.25) == "2023-11-14T22:13:20.250000Z"
    assert times.micro_time(1_700_000_000) == "2023-11-14T22:13:20.000000Z"
    assert times.micro_time(1_700_000_000.9999999) == "2023-11-14T22:13:21.000000Z"
    assert times.rfc3339(-0.5) == "1969-12-31T23:59:59Z"


@given(st.integers(0, 4_000_000_000))
def test_whole_seconds_survive_printing_and_reading(seconds: int) -> None:
    assert times.parse_time(times.rfc3339(seconds)) == seconds
    assert times.parse_time(times.micro_time(seconds)) == seconds


@cases(
    (-2, "<invalid>"), (-1.9, "0s"), (0, "0s"), (0.9, "0s"), (119, "119s"), (120, "2m"), (125, "2m5s"),
    (599, "9m59s"),
    (600, "10m"), (659, "10m"), (3 * HOUR - 1, "179m"), (3 * HOUR, "3h"), (3 * HOUR + 61, "3h1m"),
    (8 * HOUR - 1, "7h59m"),
    (8 * HOUR, "8h"), (48 * HOUR - 1, "47h"), (2 * DAY, "2d"), (2 * DAY + HOUR, "2d1h"), (8 * DAY - 1, "7d23h"),
    (8 * DAY, "8d"), (2 * YEAR - 1, "729d"), (2 * YEAR, "2y"), (2 * YEAR + DAY, "2y1d"), (8 * YEAR - 1, "7y364d"),
    (8 * YEAR, "8y"), (20 * YEAR + 5 * DAY, "20y"),
)  # fmt: skip
def test_ages_grow_coarser_with_time(seconds: float, text: str) -> None:
    assert times.human_duration(seconds) == text


@cases(
    ("0", 0, "0s"), ("0s", 0, "0s"), ("1h30m", 5400, "1h30m0s"), ("300ms", 0.3, "300ms"), ("1m0s", 60, "1m0s"),
    ("90s", 90, "1m30s"), ("1.5s", 1.5, "1.5s"), ("1.5h", 5400, "1h30m0s"), ("-1m", -60, "-1m0s"), ("+5s", 5, "5s"),
    ("1us", 1e-6, "1µs"), ("1µs", 1e-6, "1µs"), ("1μs", 1e-6, "1µs"), ("10ns", 1e-8, "10ns"), (".5s", 0.5, "500ms"),
    ("1.s", 1, "1s"), ("1h1ns", 3600.000000001, "1h0m0.000000001s"), ("1m1h", 3660, "1h1m0s"),
    ("1500us", 0.0015, "1.5ms"),
)  # fmt: skip
def test_go_durations_are_read_and_printed_as_go_prints_them(text: str, seconds: float, printed: str) -> None:
    assert times.parse_duration(text) == pytest.approx(seconds, rel=1e-12)
    assert times.format_duration_ns(times.parse_duration_ns(text)) == printed


def test_seconds_are_printed_as_go_prints_durations() -> None:
    assert [times.format_duration(each) for each in (0, 0.25, 1, 61, 3600, 86400)] == [
        "0s", "250ms", "1s", "1m1s", "1h0m0s", "24h0m0s",
    ]  # fmt: skip


@cases(
    ("", 'time: invalid duration ""'), ("-", 'time: invalid duration "-"'), ("x", 'time: invalid duration "x"'),
    (".s", 'time: invalid duration ".s"'), ("1", 'time: missing unit in duration "1"'),
    ("1h2", 'time: missing unit in duration "1h2"'), ("1d", 'time: unknown unit "d" in duration "1d"'),
    ("1h m", 'time: unknown unit "h m" in duration "1h m"'), ("9999999h", 'time: invalid duration "9999999h"'),
)  # fmt: skip
def test_what_is_no_duration_is_refused_with_gos_text(text: str, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        times.parse_duration(text)
    assert str(caught.value) == message


@given(st.integers(-(2**63), 2**63 - 1))
def test_every_go_duration_survives_printing_and_reading(nanos: int) -> None:
    assert times.parse_duration_ns(times.format_duration_ns(nanos)) == nanos
