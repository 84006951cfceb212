"""The constants of the code under test, which hypothesis draws now and then."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


def read_constants() -> None:
    """At the first constant that it draws, hypothesis parses all modules: 3 s of CPU time, for each worker."""
    _draw()


@settings(max_examples=200, database=None, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers())
def _draw(_number: int) -> None:
    """One in twenty is a constant."""
