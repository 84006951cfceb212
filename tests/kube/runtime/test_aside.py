"""Long work aside: in a thread, in turns by owner, and what is cancelled is not done."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable

import pytest

from karmada.kube.objects.doc import Doc
from karmada.kube.runtime.aside import LARGE, Aside, is_large
from karmada.kube.runtime.time_slice import OWNER


@pytest.fixture
async def held() -> AsyncIterator[tuple[Aside, threading.Event]]:
    """A thread that is busy until the event is set."""
    aside, begun, free = Aside(), threading.Event(), threading.Event()

    def hold() -> None:
        begun.set()
        free.wait()

    holding = asyncio.create_task(aside.run(hold))
    await asyncio.to_thread(begun.wait)
    yield aside, free
    free.set()
    await holding


async def run_as(owner: str, aside: Aside, work: Callable[[str], None], argument: str) -> None:
    OWNER.set(owner)
    await aside.run(work, argument)


async def test_owners_take_turns(held: tuple[Aside, threading.Event]) -> None:
    aside, free = held
    done: list[str] = []
    work = [asyncio.create_task(run_as("red", aside, done.append, f"red-{number}")) for number in range(5)]
    await asyncio.sleep(0)
    work.append(asyncio.create_task(run_as("blue", aside, done.append, "blue")))
    await asyncio.sleep(0)
    free.set()
    await asyncio.gather(*work)
    assert done == ["red-0", "blue", "red-1", "red-2", "red-3", "red-4"]


async def test_what_is_cancelled_before_its_turn_is_not_done(held: tuple[Aside, threading.Event]) -> None:
    aside, free = held
    done: list[str] = []
    given_up = asyncio.create_task(aside.run(done.append, "given up"))
    await asyncio.sleep(0)
    given_up.cancel()
    await asyncio.sleep(0)
    free.set()
    await aside.run(done.append, "next")
    assert done == ["next"]


async def test_an_error_is_the_callers() -> None:
    def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await Aside().run(fail)


@pytest.mark.parametrize(("size", "large"), [(LARGE // 2, False), (LARGE, True)])
def test_an_object_is_large_by_its_bytes(size: int, large: bool) -> None:
    obj = {"metadata": {"name": "a"}, "data": {"text": "x" * size}}
    assert is_large(obj) is large
    assert is_large(Doc.of(obj).object()) is large
