"""Work that is not urgent takes turns, and leaves workers to what is new."""

from __future__ import annotations

import asyncio
import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karmada.kube.objects.clock import FakeClock
from karmada.kube.runtime import backlog as backlog_module
from karmada.kube.runtime import queue as queue_module
from karmada.kube.runtime.backlog import Turn, backlog, goes_ahead, next_turn
from karmada.kube.runtime.queue import Priority, WorkQueue
from tests.support.eventually import eventually

OLD = Priority.BACKLOG


async def test_turns_are_granted_in_the_order_of_requests_a_few_in_each_iteration_of_the_loop() -> None:
    granted: list[int] = []
    seen: list[int] = []

    async def wait(number: int) -> None:
        await backlog().turn()
        granted.append(number)

    waiting = [asyncio.ensure_future(wait(number)) for number in range(20)]
    while len(granted) < 20:
        await asyncio.sleep(0)
        seen.append(len(granted))
    assert granted == list(range(20))
    assert set(seen) <= {*range(0, 21, 2)}, "others run in between"
    await asyncio.gather(*waiting)


async def test_a_turn_that_nobody_waits_for_any_more_is_given_to_the_next() -> None:
    first, second = (asyncio.ensure_future(backlog().turn()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await second
    assert first.cancelled()


class Held:
    """Work that ends when the test says so."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.open = asyncio.Event()

    async def __call__(self, key: str) -> None:
        self.begun.append(key)
        await self.open.wait()


@pytest.mark.parametrize(("workers", "behind"), [(1, 1), (5, 4), (64, 8)])
async def test_a_backlog_gets_a_part_of_the_workers_and_what_is_new_the_others(workers: int, behind: int) -> None:
    work = Held()
    lanes: WorkQueue[str] = WorkQueue("test", work, limit=workers, clock=FakeClock())
    lanes.start()
    for number in range(100):
        lanes.add(f"old-{number}", OLD)
    await eventually(lambda: len(work.begun) == behind)
    for number in range(100):
        lanes.add(f"new-{number}")
    await eventually(lambda: lanes.working == workers)
    assert [key for key in work.begun if key.startswith("new")] == [f"new-{n}" for n in range(workers - behind)]
    work.open.set()
    await eventually(lambda: lanes.idle)
    assert len(work.begun) == 200
    late = work.begun.index("new-99")
    assert work.begun[:late].count("old-99") == 0, "what is new leaves the queue first"
    await lanes.stop(0)


async def test_a_key_that_becomes_urgent_waits_for_no_turn() -> None:
    work = Held()
    lanes: WorkQueue[str] = WorkQueue("test", work, limit=5, clock=FakeClock())
    lanes.start()
    for number in range(100):
        lanes.add(f"old-{number}", OLD)
    await eventually(lambda: len(work.begun) == 4)
    lanes.add("old-99", 0)
    await eventually(lambda: len(work.begun) == 5)
    assert work.begun[-1] == "old-99"
    work.open.set()
    await eventually(lambda: lanes.idle)
    assert sorted(work.begun) == sorted({*work.begun}), "each once"
    await lanes.stop(0)


async def test_turns_go_by_name_so_that_all_controllers_work_on_the_same_objects() -> None:
    granted: list[tuple[str, str]] = []

    async def controller(which: str) -> None:
        for number in range(30):
            await backlog().turn(f"web-{number:02}")
            granted.append((f"web-{number:02}", which))

    await asyncio.gather(controller("binding"), controller("status"), controller("execution"))
    apart = [abs(int(a[0][4:]) - int(b[0][4:])) for a, b in pairwise(granted)]
    assert max(apart) <= 1, "none is ahead of the others"


async def test_a_name_that_others_always_precede_gets_its_turn_all_the_same() -> None:
    others = 0

    async def again() -> None:
        nonlocal others
        while not last.done():
            await backlog().turn("a")
            others += 1

    last = asyncio.ensure_future(backlog().turn("z"))
    await asyncio.gather(*(again() for _ in range(20)))
    assert 20 < others < 200


async def test_a_backlog_begins_when_nothing_urgent_was_begun_for_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A moment of so many iterations of the loop, however long they take."""
    monkeypatch.setattr(backlog_module, "_QUIET_SECONDS", 0)
    monkeypatch.setattr(backlog_module, "_LONGEST_SECONDS", math.inf)
    monkeypatch.setattr(backlog_module, "_LONGEST_CPU_SECONDS", math.inf)
    begun: list[str] = []

    async def work(key: str) -> None:
        await asyncio.sleep(0)
        begun.append(key)

    lanes: WorkQueue[str] = WorkQueue("test", work, limit=1, clock=FakeClock())
    lanes.start()
    quiet = asyncio.ensure_future(backlog().until_quiet())
    for number in range(5):
        lanes.add(f"new-{number}")
        for _ in range(backlog_module._QUIET_ITERATIONS // 2):
            await asyncio.sleep(0)
        assert not quiet.done(), "something is begun in every moment"
    await quiet
    assert begun == [f"new-{number}" for number in range(5)]
    await lanes.stop(0)


async def test_a_backlog_does_not_wait_for_a_quiet_moment_that_never_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(_key: str) -> None:
        await asyncio.sleep(0)

    monkeypatch.setattr(backlog_module, "_LONGEST_SECONDS", 0.2)
    lanes: WorkQueue[str] = WorkQueue("test", work, limit=1, clock=FakeClock())
    lanes.start()
    quiet = asyncio.ensure_future(backlog().until_quiet())
    while not quiet.done():
        lanes.add("again")
        await asyncio.sleep(0.01)
    await lanes.stop(0)


@pytest.mark.parametrize("priority", [OLD, Priority.REPLAY])
@pytest.mark.parametrize(("seconds", "least", "most"), [(60.0, 3, 10), (0.0, 40, 50)])
async def test_a_turn_is_for_some_keys_unless_they_take_long(
    priority: int, seconds: float, least: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_module, "TURN_SECONDS", seconds)
    done: list[str] = []

    async def work(key: str) -> None:
        done.append(key)

    lanes: WorkQueue[str] = WorkQueue("test", work, limit=5, clock=FakeClock())
    lanes.start()
    before = backlog()._granted
    for number in range(40):
        lanes.add(f"key-{number:02}", priority)
    await eventually(lambda: len(done) == 40)
    assert done == sorted(done)
    assert least <= backlog()._granted - before <= most
    await lanes.stop(0)


async def test_a_turn_ends_when_a_key_has_had_to_wait() -> None:
    turns, done = backlog(), list[str]()

    async def work(key: str) -> None:
        done.append(key)
        await turns.turn()  # as long as others have theirs

    lanes: WorkQueue[str] = WorkQueue("test", work, limit=5, clock=FakeClock())
    lanes.start()
    for number in range(12):
        lanes.add(f"key-{number:02}", OLD)
    before = turns._granted
    await eventually(lambda: len(done) == 12)
    await eventually(lambda: lanes.idle)
    assert turns._granted - before >= 24, "one for each key, and those that it waits for"
    await lanes.stop(0)


async def test_keys_that_wait_for_a_delivery_do_not_hold_up_others_of_their_lane() -> None:
    turns, done = backlog(), list[str]()

    async def work(key: str) -> None:
        done.append(key)

    lanes: WorkQueue[str] = WorkQueue("test", work, limit=5, clock=FakeClock(), order_of=str)
    lanes.start()
    turns.reached(lanes, "b")
    for number in range(20):
        lanes.add(f"c-{number:02}", Priority.REPLAY)
    for _ in range(10):
        await asyncio.sleep(0)
    assert not done
    lanes.add("d", OLD)
    await eventually(lambda: "d" in done)
    assert len(done) <= 2, "the others still wait"
    turns.reached(lanes, None)
    await eventually(lambda: len(done) == 21)
    await lanes.stop(0)


async def test_a_worker_whose_key_others_took_does_not_go_ahead_of_a_delivery() -> None:
    turns, done = backlog(), list[str]()

    async def work(key: str) -> None:
        done.append(key)

    lanes: WorkQueue[str] = WorkQueue("test", work, limit=5, clock=FakeClock(), order_of=str)
    lanes.start()
    turns.reached(lanes, "b")
    lanes.add("a", OLD)
    lanes.add("c", Priority.REPLAY)  # the worker for it waits for a turn for the first key, as the other does
    await eventually(lambda: done)
    for _ in range(20):
        await asyncio.sleep(0)
    assert done == ["a"]
    turns.reached(lanes, "c")
    await eventually(lambda: done == ["a", "c"])
    await lanes.stop(0)


@given(
    st.lists(st.tuples(st.sampled_from("abcdef"), st.booleans()), min_size=1, max_size=20),
    st.lists(st.sampled_from("abcdef"), max_size=2),
    st.integers(0, 200),
)
def test_the_next_turn_is_that_of_the_least_name_that_may_go(
    waiting: list[tuple[str, bool]], reached: list[str], granted: int
) -> None:
    future: asyncio.Future[None] = asyncio.Future(loop=asyncio.new_event_loop())
    turns = [(Turn(name, order, future), replay) for order, (name, replay) in enumerate(waiting)]
    first = min((turn for turn, replay in turns if not replay), default=None)
    replayed = min((turn for turn, replay in turns if replay), default=None)
    found = next_turn(first, replayed, turns[0][0], granted, reached)
    may_go = [turn for turn, replay in turns if not replay or not goes_ahead(turn.name, reached)]
    if granted % 64 == 63:
        assert found == turns[0][0], "the oldest, whatever its name"
    else:
        assert found == min(may_go, default=None)
    future.get_loop().close()
