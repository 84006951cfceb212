"""A Deadline keeps the rules of asyncio.timeout."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from karmada.kube.objects.deadline import Deadline


async def test_what_is_done_in_time_is_not_touched() -> None:
    for seconds in (None, 60.0):
        with Deadline(seconds) as deadline:
            await asyncio.sleep(0)
        assert not deadline.expired


async def test_what_takes_longer_is_cancelled_and_the_caller_gets_a_time_out() -> None:
    deadline = Deadline(0.0)
    with pytest.raises(TimeoutError) as found, deadline:
        await asyncio.Event().wait()
    assert deadline.expired
    assert isinstance(found.value.__cause__, asyncio.CancelledError)
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_errors_of_what_is_inside_pass() -> None:
    with pytest.raises(KeyError), Deadline(60.0):
        raise KeyError("its own")


async def test_a_task_that_others_cancel_stays_cancelled() -> None:
    async def limited() -> None:
        with Deadline(0.0):
            await asyncio.Event().wait()

    task = asyncio.create_task(limited())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_an_end_that_comes_at_the_same_moment_as_the_time_out_leaves_no_cancellation_behind() -> None:
    with Deadline(0.0) as deadline, suppress(asyncio.CancelledError):  # finished all the same
        await asyncio.Event().wait()
    assert deadline.expired
    await asyncio.sleep(0)
