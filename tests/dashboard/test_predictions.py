"""Whose prediction is computed when: one of each user, few of all, none for long."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from karmada.dashboard.predictions import MOST_OF_ONE, Predictions
from karmada.kube.objects.errors import TooManyRequests
from karmada.prediction.errors import PredictionError
from tests.support.counting import let_others_run


class Computing:
    """Predictions that end when they are released; `running` are those that compute."""

    def __init__(self) -> None:
        self.running: list[str] = []
        self._ends: dict[str, asyncio.Event] = {}

    def of(self, name: str) -> Callable[[], Awaitable[str]]:
        self._ends[name] = asyncio.Event()

        async def predict() -> str:
            self.running.append(name)
            try:
                await self._ends[name].wait()
            finally:
                self.running.remove(name)
            return name

        return predict

    def release(self, name: str) -> None:
        self._ends[name].set()


async def test_each_user_has_one_turn_and_others_do_not_wait_behind_a_busy_user() -> None:
    predictions, computing = Predictions(), Computing()
    wanted = [("ann", "a1"), ("ann", "a2"), ("ann", "a3"), ("bob", "b1"), ("eve", "e1")]
    tasks = {name: asyncio.create_task(predictions.run(user, computing.of(name))) for user, name in wanted}
    await let_others_run()
    assert computing.running == ["a1", "b1"]
    computing.release("a1")
    await let_others_run()
    assert computing.running == ["b1", "e1"], "who waited longest is next"
    tasks["a2"].cancel()
    for name in ("b1", "e1", "a3"):
        computing.release(name)
    assert [await tasks[name] for name in ("a1", "b1", "e1", "a3")] == ["a1", "b1", "e1", "a3"]
    assert tasks["a2"].cancelled()
    assert computing.running == []


async def test_what_a_user_has_waiting_is_limited_and_the_limit_ends_with_it() -> None:
    predictions, computing = Predictions(), Computing()
    tasks = [asyncio.create_task(predictions.run("ann", computing.of(str(one)))) for one in range(MOST_OF_ONE)]
    await let_others_run()
    with pytest.raises(TooManyRequests, match="predictions of yours"):
        await predictions.run("ann", computing.of("more"))
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    again = asyncio.create_task(predictions.run("ann", computing.of("again")))
    await let_others_run()
    computing.release("again")
    assert await again == "again"


async def test_what_takes_too_long_is_given_up() -> None:
    computing = Computing()
    with pytest.raises(PredictionError, match="took longer than 0 s: select fewer"):
        await Predictions(seconds=0.0).run("ann", computing.of("a"))
    assert computing.running == []
