"""The yardstick that the machine is held against."""

from __future__ import annotations

import time
from collections.abc import Iterable
from itertools import accumulate, chain, repeat

import pytest

from benchmarks.speed import Speeds, speed
from tests.support.eventually import eventually_blocking


@pytest.mark.parametrize(
    ("rounds", "expected"),
    [
        pytest.param(repeat(0.001), 900, id="one millisecond each, the last of ten for nothing"),
        pytest.param(chain([0.0, 5.0], repeat(0.001)), 900, id="one look that was disturbed does not count"),
        pytest.param(repeat(0.002), 400, id="half as fast"),
    ],
)
def test_the_speed_is_that_of_most_looks_in_rounds_for_a_second_of_cpu(
    monkeypatch: pytest.MonkeyPatch, rounds: Iterable[float], expected: float
) -> None:
    monkeypatch.setattr(time, "thread_time", accumulate(rounds).__next__)
    assert speed() == pytest.approx(expected, rel=0.02)


def test_this_machine_has_a_speed() -> None:
    assert speed() > 100


def test_the_speed_is_seen_before_during_and_after() -> None:
    with Speeds(every_seconds=0.001) as seen:
        eventually_blocking(lambda: len(seen.values) >= 3)
        during = len(seen.values)
    assert len(seen.values) > during
    assert min(seen.values) > 100


def test_what_fails_ends_the_look_at_the_speed() -> None:
    with pytest.raises(ValueError, match="five"), Speeds(every_seconds=60) as seen:
        raise ValueError("five")
    assert len(seen.values) == 2
