"""The loop of a rehearsal: it is at rest when everything in it waits."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from karmada.rehearsal import event_loop
from karmada.rehearsal.event_loop import RehearsalLoop, rehearse
from karmada.rehearsal.fleet import RehearsalFleet


async def at_rest() -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, RehearsalLoop)
    await loop.at_rest()


def test_everything_that_is_ready_is_done_before() -> None:
    async def scenario() -> list[int]:
        done: list[int] = []

        async def work(number: int) -> None:
            for _ in range(number):
                await asyncio.sleep(0)
            done.append(number)

        tasks = [asyncio.create_task(work(number)) for number in (1, 100, 10)]
        await at_rest()
        assert all(task.done() for task in tasks)
        return done

    assert rehearse(scenario()) == [1, 10, 100]


def test_what_a_thread_does_is_awaited_with_what_follows() -> None:
    async def scenario() -> None:
        started, go_on = threading.Event(), threading.Event()

        def blocking() -> bool:
            started.set()
            return go_on.wait(30)

        following = asyncio.create_task(asyncio.to_thread(blocking))
        resting = asyncio.create_task(at_rest())
        await asyncio.sleep(0)
        started.wait(30)
        assert not resting.done()
        go_on.set()
        await resting
        assert following.done()

    rehearse(scenario())


def test_timers_and_streams_are_not_awaited() -> None:
    async def scenario() -> None:
        sleeping = asyncio.create_task(asyncio.sleep(3600))
        reading = asyncio.create_task(asyncio.StreamReader().read())
        await at_rest()
        assert not reading.done()
        assert not sleeping.done()

    rehearse(scenario())


def test_several_may_wait_for_rest() -> None:
    async def scenario() -> None:
        await asyncio.gather(*(at_rest() for _ in range(3)))

    rehearse(scenario())


def test_work_without_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_loop, "_MOST_ROUNDS", 100)

    async def scenario() -> None:
        loop = asyncio.get_running_loop()

        def again() -> None:
            loop.call_soon(again)

        again()
        with pytest.raises(RuntimeError, match="does not come to rest"):
            await at_rest()

    rehearse(scenario())


async def test_a_rehearsal_in_another_loop_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="runs in a RehearsalLoop"):
        await RehearsalFleet(tmp_path).settle()
