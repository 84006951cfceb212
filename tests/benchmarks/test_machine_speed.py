"""The yardstick that the machine is held against."""

from __future__ import annotations

import time
from collections.abc import Iterable
from itertools import accumulate, chain, repeat

import pytest

from benchmarks.speed import speed


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
    monkeypatch.setattr(time, "process_time", accumulate(rounds).__next__)
    assert speed() == pytest.approx(expected, rel=0.02)


def test_this_machine_has_a_speed() -> None:
    assert speed() > 100
