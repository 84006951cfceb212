"""Members that do not answer."""

from __future__ import annotations

import pytest

from karmada.controllers.execution.outages import Outages
from karmada.kube.objects.clock import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


async def test_pauses_grow_with_every_failure_after_a_pause(clock: FakeClock) -> None:
    outages = Outages(clock)
    pauses = []
    for _ in range(8):
        outages.failed("a")
        pauses.append(outages.left("a"))
        await clock.advance(outages.left("a"))
        assert outages.left("a") == 0
    assert pauses == [0.25, 0.5, 1, 2, 4, 8, 8, 8]


async def test_failures_of_calls_that_were_under_way_together_count_once(clock: FakeClock) -> None:
    outages = Outages(clock)
    for _ in range(64):
        outages.failed("a")
    assert outages.left("a") == 0.25
    assert outages.left("b") == 0


async def test_an_answer_ends_it(clock: FakeClock) -> None:
    outages = Outages(clock)
    outages.failed("a")
    await clock.advance(0.25)
    outages.failed("a")
    outages.over("a")
    assert outages.left("a") == 0
    outages.failed("a")
    assert outages.left("a") == 0.25
