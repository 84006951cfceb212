"""What changed and was not handed on yet."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from karmada.kube.objects.gvrs import NODES, PODS
from karmada.search.pending import Part, Pending, Source

ONE, TWO = Source("member1", PODS), Source("member1", NODES)


def test_many_changes_of_one_object_are_one_entry() -> None:
    pending: Pending[str] = Pending(10)
    for _ in range(3):
        pending.note(ONE, "a")
    assert len(pending) == 1
    assert pending.take(5) == Part(ONE, ["a"])
    assert pending.take(5) is None


def test_more_entries_than_the_limit_are_everything() -> None:
    pending: Pending[int] = Pending(2)
    for number in range(5):
        pending.note(ONE, number)
    assert len(pending) == 1
    assert pending.take(5) == Part(ONE, None)


def test_sources_take_turns() -> None:
    pending: Pending[int] = Pending(10)
    for number in range(3):
        pending.note(ONE, number)
    pending.note(TWO, 9)
    taken = [pending.take(2), pending.take(2), pending.take(2)]
    assert taken == [Part(ONE, [0, 1]), Part(TWO, [9]), Part(ONE, [2])]


def test_everything_stands_for_all_entries_and_can_be_dropped() -> None:
    pending: Pending[str] = Pending(10)
    pending.note(ONE, "a")
    pending.everything(ONE)
    pending.note(ONE, "b")
    pending.note(TWO, "n")
    pending.drop(lambda source: source == ONE)
    assert pending.take(5) == Part(TWO, ["n"])


async def test_waiting_ends_with_the_first_entry() -> None:
    pending: Pending[str] = Pending(10)
    waiting = asyncio.create_task(pending.wait())
    await asyncio.sleep(0)
    assert not waiting.done()
    pending.note(ONE, "a")
    await waiting
    pending.take(1)
    assert pending.take(1) is None
    again = asyncio.create_task(pending.wait())
    await asyncio.sleep(0)
    assert not again.done()
    pending.everything(TWO)
    await again


@given(st.lists(st.tuples(st.sampled_from([ONE, TWO]), st.integers(0, 9))), st.integers(1, 4), st.integers(1, 12))
def test_whatever_is_noted_is_taken_by_name_or_as_everything(
    noted: list[tuple[Source, int]], count: int, most: int
) -> None:
    pending: Pending[int] = Pending(most)
    for source, key in noted:
        pending.note(source, key)
    left = set(noted)
    while part := pending.take(count):
        keys = range(10) if part.keys is None else part.keys
        assert part.keys is None or 0 < len(part.keys) <= count
        left -= {(part.source, key) for key in keys}
    assert not left
