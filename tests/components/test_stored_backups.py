"""Backups that earlier versions have made: this one restores them, into either store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from karmada.kube.objects.gvrs import SECRETS
from karmada.kube.server.storage.dump import restore
from karmada.kube.server.storage.open import open_store
from tests.support.etcd_cluster import EtcdCluster
from tests.support.karmada_server import served
from tests.support.stored_state import backup_of, contents, label, plane_of, stored_states, unpack

MADE = [packed for packed in stored_states() if backup_of(packed).exists()]


@pytest.fixture(params=["sqlite", "etcd"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Of an empty store."""
    if request.param == "sqlite":
        yield f"sqlite://{tmp_path}/restored.db"
        return
    etcd = EtcdCluster(tmp_path / "etcd")
    etcd.start()
    yield etcd.url
    etcd.stop()


def test_there_is_one() -> None:
    assert MADE


@pytest.mark.parametrize("packed", MADE, ids=label)
async def test_every_object_is_restored_and_served(packed: Path, tmp_path: Path, url: str) -> None:
    folder = tmp_path / "plane"
    held = unpack(packed, folder)
    raw = open_store(url)
    await raw.open()
    assert await restore(raw, backup_of(packed)) == len(held)
    await raw.close()
    store = plane_of(folder, url).server.store
    await store.open()
    restored = await contents(store)
    await store.close()
    assert {key: obj for key, (_, obj) in restored.items()} == {key: obj for key, (_, obj) in held.items()}
    async with served(plane_of(folder, url).server) as server:
        secret = await server.client(user_agent="tests").get(SECRETS, "stored", "default")
    assert secret["data"] == {"password": "aHVudGVyMg=="}
