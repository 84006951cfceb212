"""What is large is read for a fiftieth of the time at most, and nobody is shown for long what is no more."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from karmada.dashboard.paced import LONGEST, REST, SHORTEST, Paced
from karmada.dashboard.viewer import Identity, Viewer
from karmada.kube.client.config import RestConfig
from karmada.kube.objects.clock import FakeClock


class Counting:
    """Each reading has the next number, and takes so many seconds."""

    def __init__(self, clock: FakeClock, seconds: float = 0.0) -> None:
        self.readings, self._clock, self._seconds = 0, clock, seconds
        self.began: list[float] = []

    async def read(self) -> int:
        self.readings += 1
        self.began.append(self._clock.monotonic())
        number = self.readings
        await self._clock.sleep(self._seconds)
        return number


async def until_read(clock: FakeClock, reading: Awaitable[int]) -> None:
    task = asyncio.ensure_future(reading)
    while not task.done():
        await clock.advance(0.25)


async def test_a_pause_is_as_long_as_its_reading_demands() -> None:
    for seconds, pause in ((0.0, SHORTEST), (0.25, 0.25 * REST), (2.0, LONGEST)):
        clock = FakeClock()
        counting, paced = Counting(clock, seconds), Paced[int](clock)
        for _ in range(2):
            await until_read(clock, paced.next(counting.read))
        first, second = counting.began
        assert pause <= second - first - seconds <= pause + 0.5


async def test_all_who_wait_get_the_same_and_it_is_read_after_they_came() -> None:
    clock = FakeClock()
    counting = Counting(clock)
    viewer = Viewer(Identity("a"), RestConfig("https://127.0.0.1:1"), clock)
    assert await viewer.paced("x", counting.read) == 1
    waiting = [asyncio.create_task(viewer.paced("x", counting.read)) for _ in range(5)]
    await asyncio.sleep(0)
    assert counting.readings == 1
    await clock.advance(SHORTEST)
    assert [await one for one in waiting] == [2] * 5
    await viewer.close()


async def test_who_looks_at_it_now_gets_what_is_fresh_or_reads_at_once() -> None:
    clock = FakeClock()
    counting = Counting(clock)
    viewer = Viewer(Identity("a"), RestConfig("https://127.0.0.1:1"), clock)

    async def look(suits: Callable[[int], bool] | None = None) -> int:
        return await viewer.paced("x", counting.read, wait=False, suits=suits)

    assert [await look(), await look()] == [1, 1]
    assert await look(lambda found: found > 1) == 2, "what was read for another page is read anew"
    await clock.advance(SHORTEST)
    assert await look() == 3
    await viewer.close()
