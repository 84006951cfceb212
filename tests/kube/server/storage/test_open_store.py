from __future__ import annotations

from pathlib import Path

import pytest

from karmada.kube.server.storage.memory import MemoryStore
from karmada.kube.server.storage.open import open_store
from karmada.kube.server.storage.sqlite import SqliteStore
from tests.support.cases import cases


@cases(
    ("sqlite:///var/lib/x/state.db", "/var/lib/x/state.db"),
    ("sqlite:///a%20b.db", "/a b.db"),
    ("sqlite:relative/state.db", "relative/state.db"),
)
def test_a_sqlite_address_names_a_file(url: str, path: str) -> None:
    store = open_store(url)
    assert isinstance(store, SqliteStore)
    assert store.path == Path(path)


@cases("sqlite:///x.db?sync=maybe", "sqlite:///x.db?cache=1")
def test_an_unknown_option_of_sqlite_is_refused_with_the_known_ones(url: str) -> None:
    with pytest.raises(ValueError, match="known: sync=on, sync=off"):
        open_store(url)


def test_memory_needs_no_place() -> None:
    assert isinstance(open_store("memory://"), MemoryStore)


@cases("", "sqlite://", "sqlite:///", "sqlite://host/path", "memory://x", "mysql://x", "/a/b")
def test_other_addresses_are_refused_with_the_known_ones(url: str) -> None:
    with pytest.raises(ValueError, match=r"unknown store .*memory://"):
        open_store(url)
