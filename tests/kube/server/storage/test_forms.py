"""Texts that differ in some values only are packed by their form, and are what they were when they are read."""

from __future__ import annotations

import uuid
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karmada.kube.objects.codec import ZlibDictionary
from karmada.kube.server.storage.interface import StoreFull, StoreUnavailable, Write
from karmada.kube.server.storage.packing import HOLE, UUID_HOLE, Form, form, restored, unpack, uuid_bytes
from karmada.kube.server.storage.sqlite import SqliteStore
from karmada.kube.server.storage.sqlite_reader import SqliteReader

KEY = "core/events/default/web.18e"
SAMPLE = ZlibDictionary(b'{"name":"\0","uid":"\2","message":"\0"}')
_json = st.text().map(lambda text: orjson.dumps(text)[1:-1])


@given(
    pieces=st.lists(_json, min_size=3, max_size=6),
    values=st.data(),
    uuids=st.lists(st.tuples(st.integers(0, 5), st.uuids()), max_size=3),
)
def test_every_text_is_read_as_it_was_packed(
    pieces: list[bytes], values: st.DataObject, uuids: list[tuple[int, uuid.UUID]]
) -> None:
    holes = [values.draw(_json.filter(bool) | st.sampled_from([b"web", b"web.1", b"a web"])) for _ in pieces[1:]]
    form_text, text, binary = pieces[0], pieces[0], b""
    for at, piece in enumerate(pieces[1:]):
        for _, identity in (one for one in uuids if one[0] == at):
            form_text, text = form_text + UUID_HOLE, text + str(identity).encode()
            binary += uuid_bytes(str(identity).encode())
        form_text, text = form_text + HOLE + piece, text + holes[at] + piece
    packed = Form(form_text, SAMPLE, b"m").packed(holes, binary)
    assert packed[:1] == b"m"
    assert restored(SAMPLE, packed[1:]) == text


def test_an_empty_value_is_the_one_before() -> None:
    packed = Form(b"\0 \0 \0 \0", SAMPLE, b"").packed([b"web.1", b"web", b"at 1", b""], b"")
    assert restored(SAMPLE, packed) == b"web.1 web at 1 at 1"


@pytest.mark.parametrize("cut", [b"", b"\0", b"\0\x10\xff", b"\0\0a\0b"])
def test_what_is_cut_off_is_refused(cut: bytes) -> None:
    with pytest.raises(StoreUnavailable, match="cannot be unpacked"):
        unpack(KEY, b"\x03" + cut)


def test_values_that_do_not_fit_the_form_are_refused() -> None:
    good = Form(b"\0\2\0", SAMPLE, b"").packed([b"a", b"b"], bytes(16))
    assert restored(SAMPLE, good) == b"a00000000-0000-0000-0000-000000000000b"
    for bad in (good + b"\0c", good[:-2], good[:-10]):
        with pytest.raises(ValueError, match="do not fit"):
            restored(SAMPLE, bad)


async def test_a_store_keeps_what_a_writer_has_packed(tmp_path: Path) -> None:
    made = form(b'{"apiVersion":"v1","kind":"Event","metadata":{"name":"\0","uid":"\2"},"message":"\0"}')
    value = b'{"apiVersion":"v1","kind":"Event","metadata":{"name":"web","uid":"%b"},"message":"of web"}'
    values = [value % str(uuid.UUID(int=number)).encode() for number in range(3)]
    writes = [
        Write(f"{KEY}{number}", None, 0, made.packed([b"web", b"of web"], uuid.UUID(int=number).bytes))
        for number in range(len(values))
    ]
    store = SqliteStore(tmp_path / "s.db", synced=False)
    await store.open()
    assert await store.write_all(writes) == [1, 2, 3]
    await store.close()
    store = SqliteStore(tmp_path / "s.db", synced=False)
    await store.open()
    reader = SqliteReader(tmp_path / "s.db")
    await reader.open()
    for source in (store, reader):
        assert [stored.value for stored in (await source.range("")).items] == values
    assert [stored.value for stored in store.scan("")] == [write.packed for write in writes]
    assert [event.value for event in await store.history("", since=0, until=3)] == values
    await reader.close()
    await store.close()


async def test_on_a_full_disk_what_a_writer_has_packed_is_no_deletion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteStore(tmp_path / "s.db", synced=False)
    await store.open()
    revision = await store.write(KEY, b"{}", expected=0)
    store._space.exceed("no space")
    monkeypatch.setattr(store._space, "check", lambda: None)
    packed = form(b"\0 \0").packed([b"a", b"b"], b"")
    refused, deleted = await store.write_all([Write(f"{KEY}2", None, 0, packed), Write(KEY, None, revision)])
    assert (type(refused), deleted) == (StoreFull, revision + 1)
    await store.close()
