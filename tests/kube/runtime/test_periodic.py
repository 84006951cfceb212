"""Work that is due again and again."""

from __future__ import annotations

from karmada.kube.objects.clock import FakeClock
from karmada.kube.runtime.periodic import Periodic


async def test_a_round_follows_every_pause_even_after_a_failure() -> None:
    clock, rounds = FakeClock(), 0

    async def work() -> None:
        nonlocal rounds
        rounds += 1
        if rounds == 2:
            raise ValueError("not this time")

    periodic = Periodic("sweep", work, 60, clock)
    await periodic.start()
    await clock.advance(59)
    assert rounds == 0
    await clock.advance(1)
    assert rounds == 1
    await clock.advance(minutes=3)
    assert rounds == 4
    await periodic.stop()
    await clock.advance(minutes=3)
    assert rounds == 4


async def test_it_may_begin_with_a_round() -> None:
    clock, times = FakeClock(), list[float]()

    async def work() -> None:
        times.append(clock.monotonic())

    periodic = Periodic("sweep", work, 60, clock, at_once=True)
    began = clock.monotonic()
    await periodic.start()
    await clock.advance(60)
    assert [time - began for time in times] == [0, 60]
    await periodic.stop()


async def test_what_comes_before_the_first_round_is_tried_until_it_is_done() -> None:
    clock, done = FakeClock(), list[str]()

    async def before() -> None:
        done.append("before")
        if len(done) == 1:
            raise ValueError("not this time")

    async def work() -> None:
        done.append("round")

    periodic = Periodic("sweep", work, 60, clock, at_once=True, before=before)
    await periodic.start()
    await clock.advance(120)
    assert done == ["before", "before", "round", "round"]
    await periodic.stop()
