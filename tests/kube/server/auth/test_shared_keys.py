"""Servers on one store share their keys."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner

from karmada.cli.commands.rotate_authority import rotate_authority as rotate_authority_command
from karmada.kube.server.auth.pki import Pki
from karmada.kube.server.auth.shared_keys import FILES, ForeignKeys, rotate_authority, share_keys
from karmada.kube.server.storage.interface import Stored
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


class _Overtaken(MemoryStore):
    """Between a read and what follows from it, others have their turn."""

    async def get(self, key: str) -> Stored | None:
        found = await super().get(key)
        await asyncio.sleep(0)
        return found


async def test_servers_that_start_together_on_an_empty_store_have_the_same_keys(tmp_path: Path) -> None:
    store = _Overtaken()
    await store.open()
    folders = [tmp_path / name for name in ("one", "two", "three")]
    await asyncio.gather(*(share_keys(store, folder) for folder in folders))
    assert len({Pki.open(folder).ca.cert_pem for folder in folders}) == 1
    for folder in folders:
        await share_keys(store, folder)


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


async def test_a_new_authority_in_the_store_reaches_every_server_and_the_former_one_is_kept(tmp_path: Path) -> None:
    store = await opened()
    for name in ("a", "b"):
        await share_keys(store, tmp_path / name)
    former = (tmp_path / "a" / "ca.crt").read_bytes()
    assert await rotate_authority(store) == former
    before = Pki.open(tmp_path / "a")
    for name in ("a", "b"):
        await share_keys(store, tmp_path / name)
        assert (tmp_path / name / "old-ca.crt").read_bytes() == former
    fresh = [Pki.open(tmp_path / name) for name in ("a", "b")]
    assert fresh[0].ca.cert_pem == fresh[1].ca.cert_pem != former
    assert fresh[0].signing_key_pem == before.signing_key_pem, "tokens of ServiceAccounts stay good"
    assert fresh[0].serving != before.serving
    await rotate_authority(store)
    await share_keys(store, tmp_path / "a")
    await share_keys(store, tmp_path / "c")
    assert (tmp_path / "a" / "ca.crt").read_bytes() == (tmp_path / "c" / "ca.crt").read_bytes()


async def test_an_authority_that_the_store_never_had_is_refused_with_the_way(tmp_path: Path) -> None:
    store = await opened()
    await share_keys(store, tmp_path / "a")
    Pki.open(tmp_path / "foreign")
    with pytest.raises(ForeignKeys, match="karmadactl rotate-authority"):
        await share_keys(store, tmp_path / "foreign")


def test_the_authority_of_a_server_on_sqlite_is_replaced_at_its_next_start(tmp_path: Path) -> None:
    before = Pki.open(tmp_path / "pki")
    result = CliRunner().invoke(rotate_authority_command, ["--data-dir", str(tmp_path)])
    assert result.exit_code == 0, result.output
    after = Pki.open(tmp_path / "pki")
    assert after.ca.cert_pem != before.ca.cert_pem
    assert (tmp_path / "pki" / "old-ca.crt").read_bytes() == before.ca.cert_pem
    assert after.signing_key_pem == before.signing_key_pem
