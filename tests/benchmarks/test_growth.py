"""The exponent of growth."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.growth import fit
from tests.support.cases import cases


@cases(
    ([(1, 2.0), (3, 6.0), (10, 20.0)], 1.0),
    ([(1, 1.0), (3, 9.0), (10, 100.0)], 2.0),
    ([(100, 5.0), (300, 5.0), (1_000, 5.0)], 0.0),
    ([(10, 4.0), (1_000, 0.4)], -0.5),
)
def test_a_power_law_is_recognised(points: list[tuple[float, float]], exponent: float) -> None:
    found = fit(points)
    assert found is not None
    assert found.exponent == pytest.approx(exponent, abs=1e-9)
    assert found.residual == pytest.approx(0, abs=1e-9)
    assert [found.at(size) for size, _ in points] == pytest.approx([cost for _, cost in points])


@cases([], [(100, 1.0)], [(100, 1.0), (100, 2.0)], [(100, 0.0), (300, 1.0)], [(0, 1.0), (1, 1.0)])
def test_one_usable_size_is_no_growth(points: list[tuple[float, float]]) -> None:
    assert fit(points) is None


def test_a_constant_part_shows_as_a_residual() -> None:
    found = fit([(size, 10 + size) for size in (1, 10, 100)])
    assert found is not None
    assert 0 < found.exponent < 1
    assert found.residual > 0.2


@given(
    st.floats(-3, 3),
    st.floats(0.001, 1_000),
    st.lists(st.integers(1, 100_000), min_size=2, max_size=6, unique=True),
)
def test_what_follows_a_power_law_is_found_again(exponent: float, factor: float, sizes: list[int]) -> None:
    found = fit([(size, factor * size**exponent) for size in sizes])
    assert found is not None
    assert found.exponent == pytest.approx(exponent, abs=1e-6)
    assert found.factor == pytest.approx(factor, rel=1e-4)


@given(st.floats(0.01, 100), st.floats(0.1, 10))
def test_a_machine_of_another_speed_has_the_same_exponent(speed: float, noise: float) -> None:
    points = [(1, 1.0), (3, 3.0 * noise), (10, 10.0)]
    slow, fast = fit(points), fit([(size, cost / speed) for size, cost in points])
    assert slow is not None
    assert fast is not None
    assert slow.exponent == pytest.approx(fast.exponent, abs=1e-9)
