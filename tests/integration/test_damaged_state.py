"""A server whose state is damaged does not start as if nothing had happened."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from karmada.cli.commands.check_store import check_store
from karmada.kube.server.app import ApiServer
from karmada.kube.server.config import ServerConfig
from karmada.kube.server.storage.interface import StoreDamaged


async def served(folder: Path, *, accept_loss: bool = False) -> None:
    server = ApiServer(ServerConfig(data_dir=folder, port=0, accept_loss=accept_loss))
    try:
        await server.start()
    finally:
        await server.stop()


async def test_an_empty_state_beside_certificates_is_no_new_control_plane(tmp_path: Path) -> None:
    await served(tmp_path)
    for file in os.listdir(tmp_path):
        if file.startswith("state.db"):
            os.unlink(tmp_path / file)
    for _ in range(2):
        with pytest.raises(StoreDamaged, match=r"state\.db is empty, but .*admin\.kubeconfig shows .* --accept-loss"):
            await served(tmp_path)
    await served(tmp_path, accept_loss=True)
    await served(tmp_path)


async def test_certificates_of_a_first_start_that_was_interrupted_do_not_hinder_the_next(tmp_path: Path) -> None:
    ApiServer(ServerConfig(data_dir=tmp_path, port=0))
    assert (tmp_path / "pki" / "ca.crt").exists()
    await served(tmp_path)


async def test_a_row_that_is_no_object_is_named_at_the_start_and_by_check_store(tmp_path: Path) -> None:
    await served(tmp_path)
    with closing(sqlite3.connect(tmp_path / "state.db")) as db:
        db.execute("UPDATE log SET value = 'rubbish', sum = NULL WHERE key = 'core/namespaces/default'")
        db.commit()
    with pytest.raises(StoreDamaged, match=r"state\.db is damaged: the value of core/namespaces/default at"):
        await served(tmp_path)
    checked = CliRunner().invoke(check_store, ["--storage", f"sqlite://{tmp_path}/state.db"])
    assert checked.exit_code == 1
    assert "the value of core/namespaces/default at revision" in checked.output
    await served(tmp_path, accept_loss=True)
    checked = CliRunner().invoke(check_store, ["--storage", f"sqlite://{tmp_path}/state.db"])
    assert (checked.exit_code, checked.output) == (0, f"sqlite://{tmp_path}/state.db is in order\n")
