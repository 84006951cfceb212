"""Property tests draw the same examples in every run of `make test`."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st


def drawn() -> list[tuple[int, str]]:
    found = []

    @settings(max_examples=200)
    @given(st.integers(), st.text())
    def draw(number: int, text: str) -> None:
        found.append((number, text))

    draw()
    return found


def test_two_runs_draw_the_same(pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch) -> None:
    """With another module loaded in between: its constants count for nothing."""
    if pytestconfig.getoption("hypothesis_profile") == "random":
        pytest.skip("this run draws others")
    first = drawn()
    module = ModuleType("loaded_later")
    module.__file__ = __file__
    monkeypatch.setitem(sys.modules, "loaded_later", module)
    assert drawn() == first
