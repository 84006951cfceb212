from __future__ import annotations

import asyncio

from karmada.kube.client.limiter import AdaptiveLimiter
from karmada.kube.objects.clock import FakeClock
from tests.support.eventually import LIMIT


async def test_it_lets_no_more_through_than_its_limit_and_serves_in_order() -> None:
    limiter = AdaptiveLimiter(initial=2)
    order: list[int] = []

    async def take(number: int) -> None:
        await limiter.acquire()
        order.append(number)

    tasks = [asyncio.ensure_future(take(n)) for n in range(4)]
    await asyncio.sleep(0)
    assert order == [0, 1]
    assert limiter.waiting == 2
    limiter.release(overloaded=True)
    limiter.release()
    await asyncio.sleep(0)
    assert order == [0, 1, 2]
    limiter.release()
    await asyncio.gather(*tasks)
    assert order == [0, 1, 2, 3]


async def test_successes_at_the_limit_raise_it_by_one_a_round() -> None:
    limiter = AdaptiveLimiter(initial=4)
    for _ in range(2):
        limit = limiter.limit
        for _ in range(limit):
            await limiter.acquire()
        for _ in range(limit + 1):
            limiter.release()
            await limiter.acquire()
        for _ in range(limit):
            limiter.release()
        assert limiter.limit == limit + 1


async def test_an_unused_limit_does_not_grow() -> None:
    limiter = AdaptiveLimiter(initial=4)
    for _ in range(100):
        await limiter.acquire()
        limiter.release()
    assert limiter.limit == 4


async def test_a_burst_of_refusals_halves_once_per_cooldown(clock: FakeClock) -> None:
    limiter = AdaptiveLimiter(initial=16, cooldown=1, clock=clock)
    for _ in range(16):
        await limiter.acquire()
    for _ in range(8):
        limiter.release(overloaded=True)
    assert limiter.limit == 8
    await clock.advance(1)
    for _ in range(8):
        limiter.release(overloaded=True)
    assert limiter.limit == 4
    await clock.advance(1)
    for _ in range(10):
        await limiter.acquire()
        await clock.advance(1)
        limiter.release(overloaded=True)
    assert limiter.limit == 1


async def test_a_waiter_that_gives_up_loses_nobody_a_turn() -> None:
    limiter = AdaptiveLimiter(initial=1)
    await limiter.acquire()
    first, second = asyncio.ensure_future(limiter.acquire()), asyncio.ensure_future(limiter.acquire())
    await asyncio.sleep(0)
    limiter.release()
    first.cancel()
    await asyncio.wait_for(second, LIMIT)
    limiter.release()
    assert limiter.in_flight == 0
    third = asyncio.ensure_future(limiter.acquire())
    fourth = asyncio.ensure_future(limiter.acquire())
    await asyncio.sleep(0)
    fourth.cancel()
    await asyncio.gather(fourth, return_exceptions=True)
    await third
    assert limiter.waiting == 0
