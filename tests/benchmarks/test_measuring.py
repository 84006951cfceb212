"""One measurement, from inside and from outside."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from benchmarks.measuring import Failed, Order, measure, measured
from benchmarks.planes import Member, Plane
from benchmarks.propagating import Space, each
from benchmarks.scenario import Measurement, Place
from tests.benchmarks.measurements import Example


class Endless(Example):
    async def run(self, size: int, place: Place) -> Measurement:  # noqa: ARG002 - it never gets anywhere
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError as cut:
            cut.add_note("member1 has 3 of 10")
            raise
        raise AssertionError("nobody sets the event")


class Undeclared(Example):
    async def run(self, size: int, place: Place) -> Measurement:  # noqa: ARG002 - it measures nonsense
        return Measurement(figures={"warmth": 1.0})


async def test_a_measurement_that_takes_too_long_reports_where_it_stood(tmp_path: Path) -> None:
    with pytest.raises(Failed, match=r"not done within 0\.01 s: member1 has 3 of 10"):
        await measure(Endless(), 10, Place(tmp_path), 0.01)


async def test_only_what_is_declared_can_be_measured(tmp_path: Path) -> None:
    with pytest.raises(Failed, match="example has measured what it does not declare: warmth"):
        await measure(Undeclared(), 10, Place(tmp_path), 10)


def test_a_process_that_breaks_reports_why(tmp_path: Path) -> None:
    order = Order(
        scenario="propagation.deployments",
        size=1,
        folder=str(tmp_path),
        seconds=10,
        control=str(tmp_path / "missing.config"),
        members=("a.config", "b.config"),
    )
    with pytest.raises(Failed, match=r"missing\.config"):
        measured(order, tmp_path / "log", lambda _: None)


async def test_a_wait_that_is_cut_short_reports_what_is_in_the_members() -> None:
    class Standing:
        member = Member("member1", None, None)  # type: ignore[arg-type]

        async def until_there(self, _count: int) -> None:
            await asyncio.Event().wait()

        def __str__(self) -> str:
            return "member1 has 2"

    plane = Plane(None, [], {}, ours=True)  # type: ignore[arg-type]
    space = Space(plane, None, "here", [Standing()])  # type: ignore[arg-type, list-item]
    with pytest.raises(TimeoutError) as failed:
        async with asyncio.timeout(0.01):
            await space.until_there(3)
    cut = failed.value.__context__  # not its cause before Python 3.11.3
    assert cut is not None
    assert cut.__notes__ == ["member1 has 2"]


async def test_each_works_on_so_many_at_once_and_on_all() -> None:
    running, most, done = 0, 0, []

    async def act(item: int) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        done.append(item)

    await each(range(20), act, at_once=4)
    assert most == 4
    assert sorted(done) == list(range(20))


async def test_what_fails_for_one_fails_for_all() -> None:
    async def act(item: int) -> None:
        if item == 5:
            raise ValueError("five")

    with pytest.raises(ValueError, match="five"):
        await each(range(20), act, at_once=4)
