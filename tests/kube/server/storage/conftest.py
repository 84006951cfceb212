"""A fresh store of each kind, for the contract that all of them keep; etcd is a real one."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from karmada.kube.server.storage import memory, packing
from karmada.kube.server.storage.interface import Store
from karmada.kube.server.storage.open import open_store
from tests.support.etcd_cluster import EtcdCluster

_numbers = itertools.count()


@pytest.fixture(autouse=True)
def _packed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here stores in memory compress as they do in a server."""
    monkeypatch.setattr(memory, "pack", packing.pack)


@pytest.fixture(scope="session")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdCluster]:
    """One member for all tests that do not harm it; each store has a prefix of its own."""
    cluster = EtcdCluster(tmp_path_factory.mktemp("etcd"))
    cluster.start()
    yield cluster
    cluster.stop()


@pytest.fixture(params=["memory", "sqlite", "unsynced", "etcd"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    store = open_store(_url(request, tmp_path))
    await store.open()
    yield store
    await store.close()


@pytest.fixture(params=["memory", "sqlite"])
async def local_store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """One inside this process, which orders the writes of one turn of the loop and notifies listeners first."""
    store = open_store(_url(request, tmp_path))
    await store.open()
    yield store
    await store.close()


def _url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "memory":
        return "memory://"
    if request.param == "unsynced":
        return f"sqlite://{tmp_path}/state.db?sync=off"
    if request.param == "sqlite":
        return f"sqlite://{tmp_path}/state.db"
    etcd: EtcdCluster = request.getfixturevalue("etcd")
    return f"{etcd.url}?prefix=/contract/{next(_numbers)}"
