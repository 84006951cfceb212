"""Seats, borrowed ones, and turns."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from karmada.kube.objects.errors import TooManyRequests
from karmada.kube.objects.types import Obj
from karmada.kube.server.flowcontrol import levels as module
from karmada.kube.server.flowcontrol.levels import Levels


def level(name: str, shares: int, *, lendable: int = 0, queue: int = 0, borrowing: int | None = None) -> Obj:
    limited: Obj = {"nominalConcurrencyShares": shares, "lendablePercent": lendable}
    if borrowing is not None:
        limited["borrowingLimitPercent"] = borrowing
    if queue:
        limited["limitResponse"] = {"type": "Queue", "queuing": {"handSize": 1, "queueLengthLimit": queue}}
    return {"metadata": {"name": name}, "spec": {"type": "Limited", "limited": limited}}


def made(total: int, *found: Obj) -> Levels:
    levels = Levels(total)
    levels.configure(found)
    return levels


async def test_a_level_that_refuses_does_so_when_its_seats_are_taken() -> None:
    levels = made(2, level("a", 1), level("b", 1))
    assert await levels.enter("a", "x")
    with pytest.raises(TooManyRequests):
        await levels.enter("a", "y")
    assert await levels.enter("b", "x")
    levels.leave("a")
    assert await levels.enter("a", "y")


async def test_what_a_level_lends_is_used_while_it_needs_it_not_itself() -> None:
    levels = made(8, level("busy", 1), level("idle", 1, lendable=50))
    assert all([await levels.enter("busy", "x") for _ in range(4 + 2)])
    with pytest.raises(TooManyRequests):
        await levels.enter("busy", "x")
    assert all([await levels.enter("idle", "y") for _ in range(4)])


async def test_a_level_borrows_no_more_than_it_may() -> None:
    levels = made(8, level("busy", 1, borrowing=25), level("idle", 1, lendable=100))
    assert all([await levels.enter("busy", "x") for _ in range(4 + 1)])
    with pytest.raises(TooManyRequests):
        await levels.enter("busy", "x")


async def test_exempt_requests_never_wait_and_have_nothing_to_leave() -> None:
    levels = made(0, {"metadata": {"name": "exempt"}, "spec": {"type": "Exempt"}})
    assert not await levels.enter("exempt", "x")


async def waiting(levels: Levels, name: str, flows: Iterable[str]) -> tuple[list[str], list[asyncio.Task[None]]]:
    """Requests that note when their turn has come."""
    order: list[str] = []

    async def one(flow: str) -> None:
        await levels.enter(name, flow)
        order.append(flow)

    tasks = []
    for flow in flows:
        tasks.append(asyncio.create_task(one(flow)))
        await asyncio.sleep(0)
    return order, tasks


async def test_flows_take_turns() -> None:
    levels = made(1, level("a", 1, queue=50))
    await levels.enter("a", "first")
    order, tasks = await waiting(levels, "a", ["loud"] * 5 + ["quiet"])
    for _ in tasks:
        levels.leave("a")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert order[:3] == ["loud", "quiet", "loud"]
    await asyncio.gather(*tasks)


async def test_who_was_charged_least_is_next() -> None:
    levels = made(2, level("a", 1, queue=50))
    assert [await levels.enter("a", "heavy") for _ in range(2)] == [1, 1]
    order, tasks = await waiting(levels, "a", ["heavy"] * 2 + ["light"] * 3)
    for _ in range(5):
        levels.leave("a")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert order == ["light", "light", "heavy", "light", "heavy"]
    await asyncio.gather(*tasks)


async def test_what_takes_one_seat_does_not_wait_for_what_takes_several() -> None:
    levels = made(8, level("a", 1, queue=50))
    assert await levels.enter("a", "heavy", 4) == 4
    behind = asyncio.create_task(levels.enter("a", "heavy", 3))
    await asyncio.sleep(0)
    assert [await levels.enter("a", "light") for _ in range(8)] == [1] * 8
    assert not behind.done()
    levels.leave("a", 4)
    assert await behind == 3


async def test_what_a_request_has_cost_besides_is_charged_and_what_it_has_not_is_given_back() -> None:
    levels = made(1, level("a", 1, queue=50))
    await levels.enter("a", "first")
    levels.charge("a", "dear", 5)
    levels.charge("a", "cheap", 5)
    levels.charge("a", "cheap", -4)
    order, tasks = await waiting(levels, "a", ["dear", "cheap"])
    for _ in tasks:
        levels.leave("a")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert order == ["cheap", "dear"]
    await asyncio.gather(*tasks)


async def test_a_request_gets_no_more_than_half_of_the_seats_of_its_level() -> None:
    levels = made(6, level("a", 1))
    assert await levels.enter("a", "x", 10) == 3
    with pytest.raises(TooManyRequests):
        await levels.enter("a", "y", 2)
    levels.leave("a", 3)
    assert await levels.enter("a", "y", 2) == 2


async def test_flows_that_are_gone_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_FLOWS", 10)
    levels = made(2, level("a", 1, queue=50))
    found = levels.get("a")
    assert found is not None
    await levels.enter("a", "busy")
    for number in range(100):
        await levels.enter("a", number)
        levels.leave("a")
        assert len(found.charged) <= 12
    levels.leave("a")
    assert not found.charged


async def test_one_flow_can_fill_only_its_own_queue() -> None:
    levels = made(1, level("a", 1, queue=2))
    await levels.enter("a", "first")
    _, tasks = await waiting(levels, "a", ["loud", "loud", "quiet"])
    with pytest.raises(TooManyRequests):
        await levels.enter("a", "loud")
    assert levels.waiting == 3
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert levels.waiting == 0


async def test_who_waits_too_long_is_refused_and_leaves_the_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WAIT_SECONDS", 0.01)
    levels = made(1, level("a", 1, queue=2))
    await levels.enter("a", "first")
    with pytest.raises(TooManyRequests):
        await levels.enter("a", "second")
    levels.leave("a")
    assert await levels.enter("a", "third")


async def test_a_new_configuration_counts_what_is_under_way() -> None:
    levels = made(2, level("a", 1), level("b", 1))
    await levels.enter("a", "x")
    await levels.enter("b", "x")
    levels.configure([level("a", 1)])
    assert await levels.enter("a", "y")
    with pytest.raises(TooManyRequests):
        await levels.enter("a", "y")
    levels.leave("b")


@example([*"aaaaaaaa", *"bbbb", "c"])
@given(st.lists(st.sampled_from(["a", "b", "c", "-a", "-b", "-c"]), max_size=60))
def test_no_level_ever_takes_what_another_does_not_lend(steps: list[str]) -> None:
    """However requests come and go, a level finds its own seats at once, also those that it has lent meanwhile."""

    async def run() -> None:
        levels = made(12, level("a", 1, lendable=50), level("b", 1, lendable=0), level("c", 1, lendable=100))
        held = dict.fromkeys("abc", 0)
        for step in steps:
            name = step[-1]
            if step.startswith("-"):
                if held[name]:
                    levels.leave(name)
                    held[name] -= 1
                continue
            try:
                await levels.enter(name, "x")
                held[name] += 1
            except TooManyRequests:
                assert held[name] >= 4
            assert sum(max(0, seats - 4) for seats in held.values()) <= 2 + 4, "a and c lend so many"

    asyncio.run(run())
