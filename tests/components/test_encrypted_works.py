"""A control plane stores Works encrypted unless configured otherwise: they hold the Secrets that go to clusters."""

from __future__ import annotations

import asyncio
from pathlib import Path

from click.testing import CliRunner

from karmada.cli.commands.backup import backup, restore
from karmada.cli.commands.check_store import check_store
from karmada.cli.commands.encryption import rewrite
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import NAMESPACES
from karmada.kube.server.storage.sqlite_reader import SqliteReader
from tests.support.karmada_server import serving
from tests.support.objects import kube_object

WORKS = GVR("work.karmada.io", "v1alpha1", "works")
SPACE = "karmada-es-member1"
SECRET = kube_object("v1", "Secret", "password", "default", data={"word": "c2VzYW1l"})
WORK = {"metadata": {"name": "password"}, "spec": {"workload": {"manifests": [SECRET]}}}


async def stored(folder: Path) -> bytes:
    reader = SqliteReader(folder / "state.db")
    await reader.open()
    [item] = (await reader.range("work.karmada.io/works/")).items
    await reader.close()
    return item.value


async def test_a_work_with_a_secret_is_encrypted_at_rest_by_default(tmp_path: Path) -> None:
    async with serving(tmp_path, storage=f"sqlite://{tmp_path}/state.db") as server:
        client = server.client()
        await client.create(NAMESPACES, {"metadata": {"name": SPACE}})
        await client.create(WORKS, WORK, namespace=SPACE)
        assert (await stored(tmp_path)).startswith(b"k8s:enc:aesgcm:v1:key-")
    assert b"c2VzYW1l" not in (tmp_path / "state.db").read_bytes()


async def test_a_store_with_plain_works_opens_and_its_works_are_encrypted_when_written_again(tmp_path: Path) -> None:
    earlier = tmp_path / "pki" / "encryption.yaml"
    url = f"sqlite://{tmp_path}/state.db"
    async with serving(tmp_path, storage=url) as server:
        client = server.client()
        await client.create(NAMESPACES, {"metadata": {"name": SPACE}})
    earlier.write_text(earlier.read_text().replace("- works.work.karmada.io", "- configmaps"))
    async with serving(tmp_path, storage=url) as server:
        await server.client().create(WORKS, WORK, namespace=SPACE)
    assert (await stored(tmp_path)).startswith(b"{")

    earlier.write_text(earlier.read_text().replace("  - configmaps\n", ""))
    async with serving(tmp_path, storage=url) as server:
        found = await server.client().get(WORKS, "password", SPACE)
        assert found["spec"]["workload"]["manifests"][0]["data"] == SECRET["data"]
        words = ["--kubeconfig", str(tmp_path / "admin.kubeconfig")]
        result = await asyncio.to_thread(CliRunner().invoke, rewrite, words)
        assert "1 works.work.karmada.io are stored with the current key" in result.output
    assert (await stored(tmp_path)).startswith(b"k8s:enc:aesgcm:v1:key-")


async def test_check_store_backup_and_restore_take_the_data_directory(tmp_path: Path) -> None:
    folder, other = tmp_path / "a%20b", tmp_path / "other"
    async with serving(folder, storage="") as server:
        await server.client().create(NAMESPACES, {"metadata": {"name": SPACE}})
        await server.client().create(WORKS, WORK, namespace=SPACE)
    run = CliRunner().invoke
    copy = str(tmp_path / "copy")
    for command, words in (
        (check_store, ["--data-dir", str(folder)]),
        (backup, [copy, "--data-dir", str(folder)]),
        (restore, [copy, "--data-dir", str(other)]),
        (check_store, ["--data-dir", str(other)]),
    ):
        result = await asyncio.to_thread(run, command, words)
        assert result.exit_code == 0, result.output
    assert await stored(other) == await stored(folder)
    for words in ([], ["--data-dir", str(folder), "--storage", "memory://"]):
        refused = run(check_store, words)
        assert (refused.exit_code, "either --storage or --data-dir is required" in refused.output) == (2, True)
