from __future__ import annotations

import asyncio
import time

import pytest

from karmada.kube.sim.clocks import ClusterClock
from tests.support.eventually import LIMIT


async def test_time_passes_at_the_rate_it_is_given() -> None:
    clock = ClusterClock(rate=1000.0)
    began, real = clock.monotonic(), time.monotonic()
    await clock.sleep(20)
    early = 0.001 * clock.rate  # timers of the event loop are whole milliseconds
    assert clock.monotonic() - began >= 20 - early
    assert time.monotonic() - real < 20


async def test_a_jump_wakes_those_whose_time_it_passes_and_leaves_the_others() -> None:
    clock = ClusterClock()
    soon, later = asyncio.create_task(clock.sleep(600)), asyncio.create_task(clock.sleep(7200))
    await asyncio.sleep(0)
    clock.change(skip=3600)
    await asyncio.wait_for(soon, LIMIT)
    assert not later.done()
    later.cancel()


async def test_a_new_rate_holds_for_those_who_already_sleep() -> None:
    clock = ClusterClock()
    sleeping = asyncio.create_task(clock.sleep(3600))
    await asyncio.sleep(0)
    clock.change(rate=1_000_000)
    await asyncio.wait_for(sleeping, LIMIT)


async def test_wall_time_may_go_back_but_durations_do_not() -> None:
    clock = ClusterClock()
    now, ticks = clock.now(), clock.monotonic()
    clock.change(skip=-3600)
    assert clock.now() == pytest.approx(now - 3600, abs=1)
    assert clock.monotonic() >= ticks
    clock.reset()
    assert clock.offset == pytest.approx(0, abs=0.1)


@pytest.mark.parametrize("rate", [0, -1])
def test_a_clock_that_stands_still_or_runs_backwards_is_refused(rate: float) -> None:
    with pytest.raises(ValueError, match="above 0"):
        ClusterClock(rate=rate)
