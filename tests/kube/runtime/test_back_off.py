"""Pauses grow, start over, and end early."""

from __future__ import annotations

import asyncio

from karmada.kube.objects.clock import FakeClock
from karmada.kube.runtime.back_off import Attempts, BackOff


def test_a_pause_doubles_with_each_failure_up_to_its_most() -> None:
    assert [BackOff(1, 5).pause(failures) for failures in (0, 1, 2, 3, 4, 10_000)] == [1, 2, 4, 5, 5, 5]


async def test_a_pause_is_no_longer_than_it_may_be(clock: FakeClock) -> None:
    attempts = Attempts(clock, BackOff(60, 60), jitter=0)
    pausing = asyncio.ensure_future(attempts.pause(at_most=1))
    await clock.advance(1)
    assert pausing.done()
    await attempts.pause(at_most=-5)


async def test_pauses_grow_to_their_most_and_start_over_after_a_quiet_time(clock: FakeClock) -> None:
    attempts = Attempts(clock, BackOff(1, 5), jitter=0, reset_after=60)
    assert [attempts.next() for _ in range(5)] == [1, 2, 4, 5, 5]
    await clock.advance(61)
    assert attempts.next() == 1
    assert attempts.next() == 2
    attempts.reset()
    assert attempts.next() == 1


async def test_a_pause_can_be_cut_short_and_the_next_is_the_shortest_again(clock: FakeClock) -> None:
    attempts = Attempts(clock, BackOff(1, 60), jitter=0)
    for _ in range(6):
        attempts.next()
    pausing = asyncio.ensure_future(attempts.pause())
    await clock.advance(1)
    assert not pausing.done()
    attempts.cut_short()
    await pausing
    assert attempts.next() == 1
    attempts.cut_short()  # nothing pauses
