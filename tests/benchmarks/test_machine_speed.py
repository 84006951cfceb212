"""The yardstick that the machine is held against."""

from __future__ import annotations

from benchmarks.speed import speed


def test_the_same_work_is_done_at_about_the_same_speed() -> None:
    speeds = sorted(speed() for _ in range(5))
    assert speeds[0] > 100
    assert speeds[2] < 10 * speeds[0]
