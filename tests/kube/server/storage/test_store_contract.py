"""What every store promises, whatever it stands on.

Revisions are counted from where the store is at the start: an etcd counts the writes of all its users.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest

from karmada.kube.server.storage.interface import (
    Compacted,
    Event,
    FutureRevision,
    RevisionConflict,
    Store,
    Stored,
    StoreUnavailable,
    Write,
    prefix_end,
    write_all,
)
from karmada.kube.server.storage.local import LocalStore
from tests.support.cases import cases
from tests.support.eventually import LIMIT


async def take(watch: AsyncIterator[list[Event]], count: int) -> list[Event]:
    events: list[Event] = []
    async with asyncio.timeout(LIMIT):
        while len(events) < count:
            events += await anext(watch)
    assert len(events) == count
    return events


async def fill(store: Store, count: int, prefix: str = "core/pods/a/") -> list[str]:
    keys = [f"{prefix}p{i:05}" for i in range(count)]
    await asyncio.gather(*(store.write(key, b"v", expected=0) for key in keys))
    return keys


async def test_a_write_gets_the_next_revision_and_can_be_read_back(store: Store) -> None:
    start = store.revision
    first = await store.write("core/pods/a/x", b"1", expected=0)
    second = await store.write("core/pods/a/y", b"2", expected=0)
    assert (first, second) == (start + 1, start + 2)
    assert store.revision == second
    assert await store.get("core/pods/a/x") == Stored("core/pods/a/x", b"1", first)
    assert await store.get("core/pods/a/z") is None


async def test_a_write_needs_the_last_revision_of_its_key(store: Store) -> None:
    first = await store.write("k", b"1", expected=0)
    with pytest.raises(RevisionConflict) as conflict:
        await store.write("k", b"2", expected=0)
    assert conflict.value.revision == first
    await store.write("other", b"", expected=0)
    second = await store.write("k", b"2", expected=first)
    with pytest.raises(RevisionConflict):
        await store.write("k", None, expected=first)
    assert await store.get("k") == Stored("k", b"2", second)
    assert store.revision == second


async def test_of_many_writes_at_once_each_has_an_outcome_of_its_own(store: Store) -> None:
    known = await store.write("k", b"1", expected=0)
    writes = [Write("a", b"2", 0), Write("k", b"3", 0), Write("k", b"4", known), Write("b", b"5", 0)]
    first, conflict, second, third = await write_all(store, writes)
    assert isinstance(conflict, RevisionConflict)
    assert {first, second, third} == {known + 1, known + 2, known + 3}
    found = [await store.get(key) for key in "akb"]
    assert [(stored.value, stored.revision) for stored in found if stored] == [
        (b"2", first),
        (b"4", second),
        (b"5", third),
    ]


async def test_a_deleted_key_is_gone_and_can_be_made_again(store: Store) -> None:
    first = await store.write("k", b"1", expected=0)
    deleted = await store.write("k", None, expected=first)
    assert deleted > first
    assert await store.get("k") is None
    with pytest.raises(RevisionConflict) as conflict:
        await store.write("k", b"2", expected=first)
    assert conflict.value.revision == 0
    assert await store.write("k", b"2", expected=0) > deleted


async def test_deleting_without_a_revision_is_a_mistake(store: Store) -> None:
    with pytest.raises(ValueError, match="revision"):
        await store.write("k", None, expected=0)


async def test_of_concurrent_writes_to_one_revision_exactly_one_wins(store: Store) -> None:
    base = await store.write("k", b"0", expected=0)
    results = await asyncio.gather(
        *(store.write("k", b"%d" % i, expected=base) for i in range(20)), return_exceptions=True
    )
    won = [r for r in results if isinstance(r, int)]
    assert len(won) == 1
    assert all(isinstance(r, RevisionConflict) and r.revision == won[0] for r in results if not isinstance(r, int))
    assert store.revision == won[0]


async def test_chained_writes_in_one_turn_see_one_another(local_store: Store) -> None:
    store = local_store
    first, second, third = await asyncio.gather(
        store.write("k", b"1", expected=0), store.write("k", b"2", expected=1), store.write("k", None, expected=2)
    )
    assert (first, second, third) == (1, 2, 3)
    events = await take(store.watch("", since=0), 3)
    assert [(e.value, e.previous and e.previous.revision) for e in events] == [(b"1", None), (b"2", 1), (None, 2)]


async def test_a_key_may_be_deleted_and_made_again_in_one_turn(local_store: Store) -> None:
    first = await local_store.write("k", b"1", expected=0)
    deleted, made = await asyncio.gather(
        local_store.write("k", None, expected=first), local_store.write("k", b"2", expected=0)
    )
    assert await local_store.get("k") == Stored("k", b"2", made)
    events = await take(local_store.watch("", since=deleted), 1)
    assert [(e.value, e.previous) for e in events] == [(b"2", None)]


async def test_a_range_is_in_byte_order_within_its_prefix(store: Store) -> None:
    keys = ["core/pods/a-b/x", "core/pods/a/x", "core/pods/a/x-1", "core/pods/a.c/x", "core/podsets/a/x", "core/é/x"]
    random.Random(1).shuffle(keys)
    for key in keys:
        await store.write(key, key.encode(), expected=0)
    page = await store.range("core/pods/")
    assert [s.key for s in page.items] == ["core/pods/a-b/x", "core/pods/a.c/x", "core/pods/a/x", "core/pods/a/x-1"]
    assert all(s.value == s.key.encode() for s in page.items)
    everything = [s.key for s in (await store.range("")).items]
    assert everything == sorted(keys, key=str.encode)
    assert (page.remaining, page.revision) == (0, store.revision)


async def test_pages_show_one_moment_however_much_is_written_between_them(store: Store) -> None:
    keys = await fill(store, 25)
    revisions = {stored.key: stored.revision for stored in (await store.range("core/pods/")).items}
    page = await store.range("core/pods/", limit=10)
    seen, snapshot = list(page.items), page.revision
    assert page.remaining == 15
    await store.write(keys[12], None, expected=revisions[keys[12]])
    await store.write(keys[20], b"new", expected=revisions[keys[20]])
    await store.write("core/pods/a/p00015a", b"new", expected=0)
    while page.remaining:
        page = await store.range("core/pods/", after=seen[-1].key, limit=10, revision=snapshot)
        assert page.revision == snapshot
        seen += page.items
    assert [s.key for s in seen] == keys
    assert {s.value for s in seen} == {b"v"}
    now = await store.range("core/pods/", after=keys[9], limit=10)
    assert (len(now.items), now.remaining) == (10, 5)


async def test_reading_at_a_revision_that_does_not_exist_yet_fails(store: Store) -> None:
    await fill(store, 3)
    latest = store.revision
    with pytest.raises(FutureRevision) as future:
        await store.range("", revision=latest + 1)
    assert future.value.revision == latest


async def test_a_watch_replays_history_and_then_goes_on_live(store: Store) -> None:
    [first, second, third] = [await store.write(f"core/pods/a/{name}", b"v", expected=0) for name in "xyz"]
    await fill(store, 2, "core/nodes/")
    watch = store.watch("core/pods/", since=first)
    assert [e.revision for e in await take(watch, 2)] == [second, third]
    await store.write("core/nodes/x", b"", expected=0)
    changed = await store.write("core/pods/a/y", b"w", expected=second)
    [event] = await take(watch, 1)
    assert event == Event("core/pods/a/y", b"w", changed, Stored("core/pods/a/y", b"v", second))
    deleted = await store.write("core/pods/a/y", None, expected=changed)
    [event] = await take(watch, 1)
    assert event == Event("core/pods/a/y", None, deleted, Stored("core/pods/a/y", b"w", changed))
    await watch.aclose()  # type: ignore[attr-defined]


async def test_a_watch_misses_nothing_while_many_write(store: Store) -> None:
    written: list[int] = []

    async def writer(number: int) -> None:
        written.extend([await store.write(f"k/{number}/{i}", b"", expected=0) for i in range(100)])

    watch = store.watch("k/", since=store.revision)
    collecting = asyncio.create_task(take(watch, 800))
    await asyncio.gather(*(writer(n) for n in range(8)))
    assert [e.revision for e in await collecting] == sorted(written)


async def test_long_histories_come_in_pages(store: Store) -> None:
    start = store.revision
    keys = await fill(store, 1300)
    end = store.revision
    everything = await store.history("", since=start, until=end)
    assert sorted(e.key for e in everything) == keys
    assert [e.revision for e in everything] == list(range(start + 1, end + 1))
    first = await store.history("core/", since=start, until=end - 50, limit=1000)
    rest = await store.history("core/", since=first[-1].revision, until=end - 50, limit=1000)
    assert (len(first), first + rest) == (1000, everything[:-50])
    assert await store.history("apps/", since=start, until=end, limit=10) == []
    some = await take(store.watch("core/pods/a/p0129", since=start), 10)
    assert some == [e for e in everything if e.key.startswith("core/pods/a/p0129")]


async def test_listeners_are_notified_of_a_write_before_its_writer(local_store: Store) -> None:
    store = local_store
    assert isinstance(store, LocalStore)
    notified: list[int] = []
    stop = store.listen(lambda events: notified.extend(e.revision for e in events))
    for i in range(3):
        revision = await store.write(f"k{i}", b"", expected=0)
        assert notified[-1] == revision
    stop()
    await store.write("k", b"", expected=0)
    assert notified == [1, 2, 3]


async def test_compaction_keeps_the_state_and_forgets_the_way_to_it(store: Store) -> None:
    first = await store.write("a", b"1", expected=0)
    second = await store.write("a", b"2", expected=first)
    gone = await store.write("b", b"1", expected=0)
    deleted = await store.write("b", None, expected=gone)
    last = await store.write("a", b"3", expected=second)
    await store.compact(deleted)
    assert [s.value for s in (await store.range("", revision=deleted)).items] == [b"2"]
    assert [s.value for s in (await store.range("")).items] == [b"3"]
    for reading in (store.range("", revision=deleted - 1), store.history("", since=gone, until=last)):
        with pytest.raises(Compacted) as compacted:
            await reading
        assert compacted.value.revision == deleted
    with pytest.raises(Compacted):
        await anext(store.watch("", since=first))
    [event] = await take(store.watch("", since=deleted), 1)
    assert event == Event("a", b"3", last, Stored("a", b"2", second))
    assert await store.write("b", b"again", expected=0) > last


async def test_a_watch_that_falls_behind_a_compaction_ends_with_it_or_has_it_all(store: Store) -> None:
    """A remote store may have sent what it forgets then."""
    start = store.revision
    await fill(store, 1)
    watch = store.watch("", since=start)
    await take(watch, 1)
    keys = await fill(store, 5, "x/")
    await store.compact(start + 4)
    [outcome] = await asyncio.gather(take(watch, 5), return_exceptions=True)
    if isinstance(store, LocalStore) or isinstance(outcome, BaseException):
        assert isinstance(outcome, Compacted)
        assert outcome.revision == start + 4
    else:
        assert sorted(e.key for e in outcome) == keys


async def test_compacting_again_or_beyond_the_end_changes_nothing_more(store: Store) -> None:
    start = store.revision
    keys = await fill(store, 5)
    end = store.revision
    await store.compact(end + 100)
    await store.compact(start + 2)
    assert [s.key for s in (await store.range("", revision=end)).items] == keys
    with pytest.raises(Compacted):
        await store.range("", revision=end - 1)
    assert await store.write("k", b"", expected=0) == end + 1


async def test_compaction_agrees_with_a_model_of_the_state(store: Store) -> None:
    rng = random.Random(7)
    model: dict[str, tuple[int, bytes]] = {}
    states: dict[int, dict[str, tuple[int, bytes]]] = {}
    compacted = start = store.revision
    states = {start: {}}
    for step in range(400):
        key = f"k/{rng.randrange(12)}"
        current = model.get(key, (0, b""))[0]
        value = b"%d" % step if not current or rng.random() < 0.7 else None
        revision = await store.write(key, value, expected=current)
        model.pop(key, None)
        if value is not None:
            model[key] = (revision, value)
        states[revision] = dict(model)
        if rng.random() < 0.05:
            compacted = rng.randrange(compacted, revision + 1)
            await store.compact(compacted)
        at = rng.randrange(max(compacted, start + 1), revision + 1)
        page = await store.range("k/", revision=at)
        assert {s.key: (s.revision, s.value) for s in page.items} == states[at]
        assert len(page.items) == len(states[at])


async def test_a_cancelled_writer_disturbs_nobody(store: Store) -> None:
    tasks = [asyncio.create_task(store.write(f"k{i}", b"", expected=0)) for i in range(5)]
    await asyncio.sleep(0)
    tasks[2].cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    written: list[Any] = [r for i, r in enumerate(results) if i != 2]
    assert all(isinstance(r, int) for r in written)
    assert len({*written}) == 4


async def test_a_closed_store_refuses_writes_and_ends_its_watches(store: Store) -> None:
    start = store.revision
    await fill(store, 1)
    watch = store.watch("", since=start)
    await take(watch, 1)
    waiting = asyncio.ensure_future(anext(watch))
    await asyncio.sleep(0)
    assert store.last_error is None
    await store.close()
    with pytest.raises(StoreUnavailable):
        await waiting
    with pytest.raises(StoreUnavailable):
        await store.write("k", b"", expected=0)
    assert store.last_error is not None


@cases(("", ""), ("a/", "a0"), ("é", "ê"), ("a\U0010ffff", "b"), ("\U0010ffff", ""), ("\ud7ff", "\ue000"))
def test_the_end_of_a_prefix_is_the_next_key_after_all_that_start_with_it(prefix: str, end: str) -> None:
    assert prefix_end(prefix) == end
