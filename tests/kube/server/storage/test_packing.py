"""Values are stored compressed, and are what they were when they are read."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import uuid
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karmada.kube.objects.codec import ZlibDictionary
from karmada.kube.server.storage import packing
from karmada.kube.server.storage.dump import back_up, restore
from karmada.kube.server.storage.encryption import Encryption, make_configuration, read_encryption
from karmada.kube.server.storage.etcd import Layout
from karmada.kube.server.storage.interface import StoreUnavailable
from karmada.kube.server.storage.packing import PACKED, pack, unpack
from karmada.kube.server.storage.sqlite import SqliteStore
from karmada.kube.server.storage.sqlite_log import FORMAT
from karmada.kube.server.storage.sqlite_reader import SqliteReader
from tests.support.cases import cases
from tests.support.objects import kube_object

KEY = "work.karmada.io/works/karmada-es-member1/web-5d8f9"


def work(number: int = 1) -> bytes:
    container = {"name": "web", "image": f"registry.example.com/web:{number}", "imagePullPolicy": "IfNotPresent"}
    spec = {"replicas": number, "template": {"spec": {"containers": [container], "restartPolicy": "Always"}}}
    manifest = kube_object("apps/v1", "Deployment", f"web-{number}", spec=spec)
    metadata = {"namespace": "karmada-es-member1", "name": f"web-{number}", "uid": os.urandom(16).hex()}
    body = {"spec": {"workload": {"manifests": [manifest] * 3}}}
    return orjson.dumps({"apiVersion": "work.karmada.io/v1alpha1", "kind": "Work", "metadata": metadata, **body})


async def opened(path: Path, encryption: Encryption | None = None) -> SqliteStore:
    store = SqliteStore(path) if encryption is None else SqliteStore(path, encryption=encryption)
    await store.open()
    return store


def rows(path: Path) -> list[bytes]:
    with closing(sqlite3.connect(path)) as db:
        return [value for (value,) in db.execute("SELECT value FROM log ORDER BY rev")]


@given(
    st.one_of(
        st.binary(),
        st.binary().map(lambda raw: raw * 200),
        st.just(b""),
        st.binary().map(PACKED[0].__add__),
        st.binary().map(PACKED[1].__add__),
    )
)
def test_every_value_is_read_as_it_was_written(value: bytes) -> None:
    assert unpack(KEY, pack(value)) == value


def test_an_object_that_resembles_the_usual_ones_takes_a_fifth() -> None:
    value = work()
    assert len(pack(value)) < len(value) / 5
    assert pack(b'{"small":true}') == b'{"small":true}'
    rubbish = b"{" + os.urandom(2000)
    assert pack(rubbish) == rubbish


def test_an_event_is_packed_with_a_dictionary_of_its_own() -> None:
    about = {"kind": "Work", "namespace": "karmada-es-m9", "name": "shop-6f7d", "uid": str(uuid.uuid4())}
    managed = {"manager": "karmada-controller-manager", "fieldsV1": {"f:reason": {}, "f:message": {}, "f:count": {}}}
    event = kube_object("v1", "Event", "shop-6f7d.18e", managedFields=[managed], uid=str(uuid.uuid4())) | {
        "involvedObject": about,
        "reason": "SyncSucceed",
        "message": "Sync work(karmada-es-m9/shop-6f7d) to cluster(m9) successful.",
        "source": {"component": "execution-controller", "host": "vm"},
        "firstTimestamp": "2026-03-04T05:06:07Z",
    }
    value = orjson.dumps(event)
    assert len(pack(value)) < len(value) / 3
    assert unpack(KEY, pack(value)) == value


@cases(
    (packing._dictionary, "40af2fb64df86d5728a9df7951e725d70fa142cd39c9c43da3bd9fb33aa38c68"),
    (packing._dictionary_of_events, "03163080ecf0ca6bb11b21e30963da9fdc5b366195ab6d54a1f7ee83f8eadae8"),
    (packing._dictionary_of_forms, "53d2742d4f55c37c9f2d7306559bbff51a1dd081037b945848a2460f4e49370c"),
)
def test_a_dictionary_never_changes(dictionary: Callable[[], ZlibDictionary], digest: str) -> None:
    """What it packed could not be read any more. A better one is another one."""
    assert hashlib.sha256(dictionary().text).hexdigest() == digest


def test_what_a_later_version_has_packed_otherwise_is_named() -> None:
    for mark in PACKED:
        with pytest.raises(StoreUnavailable, match=f"the value of {KEY} cannot be unpacked"):
            unpack(KEY, mark + b"\xff\xff")


async def test_a_store_is_read_after_a_restart_and_beside_the_server(tmp_path: Path) -> None:
    values = {f"{KEY}-{number}": work(number) for number in range(20)}
    store = await opened(tmp_path / "s.db")
    for key, value in values.items():
        await store.write(key, value, expected=0)
    await store.close()
    assert all(row.startswith(PACKED) for row in rows(tmp_path / "s.db"))
    store, reader = await opened(tmp_path / "s.db"), SqliteReader(tmp_path / "s.db")
    await reader.open()
    for source in (store, reader):
        assert {stored.key: stored.value for stored in (await source.range("")).items} == values
    assert [event.value for event in await store.history("", since=0, until=20)] == list(values.values())
    await reader.close()
    await store.close()


@cases(2, 3, 4, 5)
async def test_values_of_an_earlier_format_stand_beside_those_of_this_one(version: int, tmp_path: Path) -> None:
    store = await opened(tmp_path / "s.db")
    await store.write("core/configmaps/default/a", b"{}", expected=0)
    await store.close()
    with closing(sqlite3.connect(tmp_path / "s.db")) as db:
        db.execute("DROP TABLE starts")
        db.execute(f"PRAGMA user_version = {version}")
    store = await opened(tmp_path / "s.db")
    await store.write(KEY, work(), expected=0)
    assert (await store.range("")).items[0].value == b"{}"
    assert store._db.execute("PRAGMA user_version").fetchone() == (FORMAT,)
    await store.close()


async def test_encrypted_values_are_packed_first_and_backups_of_them_need_no_key(tmp_path: Path) -> None:
    make_configuration(tmp_path / "keys.yaml", ["works.work.karmada.io"])
    encryption, value = read_encryption(tmp_path / "keys.yaml"), work()
    store = await opened(tmp_path / "s.db", encryption)
    await store.write(KEY, value, expected=0)
    await store.write("core/configmaps/default/a", value, expected=0)
    await store.close()
    sealed = rows(tmp_path / "s.db")[0]
    assert sealed.startswith(b"k8s:enc:aesgcm:v1:")
    assert len(sealed) < len(value) / 3
    keyless = await opened(tmp_path / "s.db")
    await back_up(keyless, tmp_path / "backup")
    await keyless.close()
    copy = await opened(tmp_path / "copy.db")
    await restore(copy, tmp_path / "backup")
    await copy.close()
    store = await opened(tmp_path / "copy.db", read_encryption(tmp_path / "keys.yaml"))
    assert [stored.value for stored in (await store.range("")).items] == [value, value]
    await store.close()


def test_etcd_stores_json_and_understands_what_is_packed() -> None:
    """Servers of two successive versions may share an etcd: a form is understood by one before the next writes it."""
    layout, value = Layout("/registry"), work()
    assert layout.stamped(KEY, value).startswith(value)
    assert layout.value(KEY, layout.stamped(KEY, pack(value))) == value
