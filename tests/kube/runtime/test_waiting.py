from __future__ import annotations

import asyncio

import pytest

from karmada.kube.objects.clock import FakeClock
from karmada.kube.runtime.waiting import cancel_and_wait, finish_within, until_one_ends, with_timeout


async def answer(value: int) -> int:
    return value


async def test_an_answer_in_time_is_returned_and_an_error_raised(clock: FakeClock) -> None:
    assert await with_timeout(clock, answer(3), 5) == 3

    async def fail() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        await with_timeout(clock, fail(), 5)
    assert len(asyncio.all_tasks()) == 1


async def test_work_that_takes_too_long_is_ended(clock: FakeClock) -> None:
    ended = asyncio.Event()

    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    waiting = asyncio.ensure_future(with_timeout(clock, slow(), 5))
    await clock.advance(4.9)
    assert not waiting.done()
    await clock.advance(0.1)
    with pytest.raises(TimeoutError, match="no response within 5s"):
        await waiting
    assert ended.is_set()


@pytest.mark.parametrize("responds", [True, False])
async def test_while_the_process_does_not_run_one_step_of_a_timeout_passes(clock: FakeClock, responds: bool) -> None:
    response = asyncio.Event()
    waiting = asyncio.ensure_future(with_timeout(clock, response.wait(), 8, steps=4))
    await clock.advance(1)
    clock.skip_to(clock.now() + 60)
    await clock.advance(5.9)
    assert not waiting.done()
    if responds:
        response.set()
        assert await waiting
        return
    await clock.advance(0.2)
    with pytest.raises(TimeoutError, match="no response within 8s"):
        await waiting


async def test_cancelling_the_wait_ends_the_work(clock: FakeClock) -> None:
    waiting = asyncio.ensure_future(with_timeout(clock, asyncio.Event().wait(), 5))
    await clock.advance(1)
    await cancel_and_wait(waiting)
    assert len(asyncio.all_tasks()) == 1


async def test_tasks_may_finish_within_their_grace(clock: FakeClock) -> None:
    quick = asyncio.ensure_future(clock.sleep(1))
    stuck = asyncio.ensure_future(asyncio.Event().wait())
    finishing = asyncio.ensure_future(finish_within(clock, [quick, stuck], 3))
    await clock.advance(2)
    assert quick.done()
    assert not stuck.done()
    await clock.advance(1)
    await finishing
    assert not quick.cancelled()
    assert stuck.cancelled()


async def test_when_one_ends_the_others_are_ended_and_its_failure_is_raised() -> None:
    ended: list[str] = []

    async def wait_for_ever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("waiting")

    async def fail() -> None:
        raise LookupError("gone")

    async def finish() -> None:
        ended.append("finished")

    await until_one_ends(wait_for_ever(), finish())
    assert ended == ["finished", "waiting"]
    with pytest.raises(LookupError, match="gone"):
        await until_one_ends(fail(), wait_for_ever())
    assert ended == ["finished", "waiting", "waiting"]
