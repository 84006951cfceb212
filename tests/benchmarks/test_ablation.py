"""Mechanisms that exist for speed are switched off in every other burst, and nothing else changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import ablation


async def test_a_burst_arrives_with_and_without_a_mechanism(tmp_path: Path) -> None:
    lines: list[str] = []
    await ablation.show(ablation.trials(tmp_path, ["follow-ups"], pairs=1, size=2), lines.append)
    assert lines[0].startswith("switched off")
    assert lines[1].startswith("follow-ups ")
    assert len(lines) == 2


@pytest.mark.parametrize("name", ablation.MECHANISMS)
def test_a_mechanism_is_on_again_after_it_was_off(name: str) -> None:
    mechanism = ablation.MECHANISMS[name]
    before = getattr(mechanism.owner, mechanism.attribute)
    with mechanism.switched_off():
        assert getattr(mechanism.owner, mechanism.attribute) is mechanism.off
    assert getattr(mechanism.owner, mechanism.attribute) is before
