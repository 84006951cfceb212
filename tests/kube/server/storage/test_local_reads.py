"""Stores inside this process are read without waiting: the same as the reads that wait."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from karmada.kube.server.storage.interface import Compacted, FutureRevision, PushStore, Store
from karmada.kube.server.storage.memory import MemoryStore
from karmada.kube.server.storage.packing import PACKED, unpack
from karmada.kube.server.storage.sqlite import SqliteStore
from tests.support.cases import cases

_LARGE = b'{"a":"%b"}' % (b"x" * 2_000)


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    store: Store = MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "s.db", synced=False)
    await store.open()
    for key in ("a/x/1", "a/x/2", "a/y/ns/1", "b/x/1", "b/x/2", "b/x/3"):
        await store.write(key, _LARGE, expected=0)
    await store.write("a/x/1", b"{}", expected=1)
    await store.write("b/x/2", None, expected=5)
    yield store
    await store.close()


@pytest.mark.parametrize("revision", [0, 3, 6, 8])
@pytest.mark.parametrize("after", ["", "a/x/1", "b/x/1"])
@pytest.mark.parametrize("limit", [0, 1, 2, 10])
@pytest.mark.parametrize("prefix", ["", "a/", "b/x/"])
async def test_a_scan_is_a_range_of_packed_values(
    store: Store, prefix: str, limit: int, after: str, revision: int
) -> None:
    assert isinstance(store, PushStore)
    found = store.scan(prefix, after=after, limit=limit, revision=revision)
    page = await store.range(prefix, after=after, limit=limit, revision=revision)
    assert [stored._replace(value=unpack(stored.key, stored.value)) for stored in found] == page.items


async def test_what_is_large_comes_packed_from_a_disk(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "s.db", synced=False)
    await store.open()
    await store.write("a/x/1", _LARGE, expected=0)
    assert store.scan("a/")[0].value.startswith(PACKED)
    await store.close()


@cases("a/x/1", "b/x/2", "b/x/9")
async def test_a_look_at_a_key_is_a_get(key: str, store: Store) -> None:
    assert isinstance(store, PushStore)
    assert store.peek(key) == await store.get(key)


async def test_a_scan_has_no_revision_that_is_compacted_or_to_come(store: Store) -> None:
    assert isinstance(store, PushStore)
    await store.compact(4)
    with pytest.raises(Compacted):
        store.scan("", revision=3)
    with pytest.raises(FutureRevision):
        store.scan("", revision=9)


@cases(
    ("", 10, {"a/x/": 2, "a/y/": 1, "b/x/": 2}),
    ("", 2, {"a/x/": 2, "a/y/": 1, "b/x/": 2}),
    ("b/", 10, {"b/x/": 2}),
    ("c/", 10, {}),
)
async def test_sizes_are_counted_by_resource_up_to_a_limit(
    prefix: str, most: int, expected: dict[str, int], store: Store
) -> None:
    assert isinstance(store, PushStore)
    await store.compact(8)
    assert store.sizes(prefix, most) == expected


async def test_the_oldest_are_in_the_order_of_their_last_writes(store: Store) -> None:
    assert isinstance(store, PushStore)
    assert [(s.key, s.revision) for s in store.oldest("", since=0, limit=10)] == [
        ("a/x/2", 2), ("a/y/ns/1", 3), ("b/x/1", 4), ("b/x/3", 6), ("a/x/1", 7)
    ]  # fmt: skip
    assert store.oldest("a/", since=2, limit=1) == [("a/y/ns/1", _LARGE, 3)]
