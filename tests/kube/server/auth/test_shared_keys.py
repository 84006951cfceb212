"""Servers on one store share their keys."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from karmada.kube.server.auth.pki import Pki
from karmada.kube.server.auth.shared_keys import FILES, ForeignKeys, share_keys
from karmada.kube.server.storage.memory import MemoryStore


async def opened() -> MemoryStore:
    store = MemoryStore()
    await store.open()
    return store


async def test_the_second_server_takes_the_keys_of_the_first(tmp_path: Path) -> None:
    store = await opened()
    await share_keys(store, tmp_path / "one")
    await share_keys(store, tmp_path / "two")
    for name in FILES:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
        assert stat.S_IMODE((tmp_path / "two" / name).stat().st_mode) == 0o600
    first, second = Pki.open(tmp_path / "one"), Pki.open(tmp_path / "two")
    assert first.ca.cert_pem == second.ca.cert_pem
    assert first.signing_key_pem == second.signing_key_pem


async def test_keys_that_are_there_already_are_the_ones_that_are_shared(tmp_path: Path) -> None:
    own = Pki.open(tmp_path / "one").ca.cert_pem
    store = await opened()
    await share_keys(store, tmp_path / "one")
    await share_keys(store, tmp_path / "two")
    assert Pki.open(tmp_path / "two").ca.cert_pem == own


async def test_sharing_again_changes_nothing(tmp_path: Path) -> None:
    store = await opened()
    await share_keys(store, tmp_path / "one")
    before = (store.revision, {name: (tmp_path / "one" / name).read_bytes() for name in FILES})
    await share_keys(store, tmp_path / "one")
    assert (store.revision, {name: (tmp_path / "one" / name).read_bytes() for name in FILES}) == before


async def test_foreign_keys_are_refused_and_left_alone(tmp_path: Path) -> None:
    store = await opened()
    await share_keys(store, tmp_path / "one")
    other = Pki.open(tmp_path / "other").ca.cert_pem
    with pytest.raises(ForeignKeys, match="another control plane"):
        await share_keys(store, tmp_path / "other")
    assert Pki.open(tmp_path / "other").ca.cert_pem == other
