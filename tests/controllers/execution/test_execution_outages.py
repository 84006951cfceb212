"""Members that do not answer."""

from __future__ import annotations

from karmada.controllers.execution.outages import Outages
from karmada.kube.objects.clock import FakeClock


async def test_one_may_try_after_every_pause_and_pauses_grow(clock: FakeClock) -> None:
    outages = Outages(clock)
    outages.failed("a")
    pauses = []
    for _ in range(7):
        pauses.append(outages.hold("a"))
        await clock.advance(outages.hold("a"))
        assert outages.hold("a") == 0
        assert outages.hold("a") > 0
        outages.failed("a")
    assert pauses == [0.25, 0.5, 1, 2, 4, 8, 8]


async def test_failures_of_calls_that_were_under_way_together_count_once(clock: FakeClock) -> None:
    outages = Outages(clock)
    for _ in range(64):
        outages.failed("a")
    assert outages.hold("a") == 0.25
    assert "b" not in outages


async def test_who_tries_and_never_comes_back_is_followed_by_the_next(clock: FakeClock) -> None:
    outages = Outages(clock)
    outages.failed("a")
    await clock.advance(0.25)
    assert outages.hold("a") == 0
    assert outages.hold("a") == 0.25
    await clock.advance(0.25)
    assert outages.hold("a") == 0


async def test_an_answer_ends_it(clock: FakeClock) -> None:
    outages = Outages(clock)
    outages.failed("a")
    await clock.advance(0.25)
    assert outages.hold("a") == 0
    outages.failed("a")
    del outages["a"]
    outages.failed("a")
    assert outages.hold("a") == 0.25
