"""The key that Secrets are stored with changes by commands, as an administrator uses them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from karmada.kube.server.storage.sqlite_reader import SqliteReader
from tests.support.programs import Program, ServerProcess

pytestmark = pytest.mark.e2e


async def keys_in_use(server: ServerProcess) -> dict[str, str]:
    """Of each Secret in namespace default: the name of the key it is stored with."""
    reader = SqliteReader(server.data_dir / "state.db")
    await reader.open()
    page = await reader.range("core/secrets/default/")
    await reader.close()
    return {item.key.rsplit("/", 1)[1]: item.value.split(b":")[4].decode() for item in page.items}


async def test_a_new_key_takes_over_by_rewrite_and_by_get_and_replace(
    own_server: ServerProcess, kubectl_path: str, tmp_path: Path
) -> None:
    kubectl = Program([kubectl_path], tmp_path, own_server.kubeconfig)
    ctl = Program([sys.executable, "-m", "karmada.cli.karmadactl"], tmp_path, own_server.kubeconfig)
    for name in ("one", "two"):
        kubectl("create", "secret", "generic", name, "--from-literal=word=sesame")
    before = await keys_in_use(own_server)
    assert len(set(before.values())) == 1

    def new_key() -> str:
        said = ctl("new-encryption-key", str(own_server.data_dir / "pki" / "encryption.yaml")).out
        own_server.stop()
        own_server.start()
        return said.split('"')[1]

    second = new_key()
    assert await keys_in_use(own_server) == before
    assert ctl("rewrite").out.endswith(" secrets are stored with the current key\n")
    assert await keys_in_use(own_server) == dict.fromkeys(before, second)

    third = new_key()
    kubectl("replace", "-f", "-", stdin=kubectl("get", "secrets", "-A", "-o", "json").out)
    assert await keys_in_use(own_server) == dict.fromkeys(before, third)
    assert kubectl("get", "secret", "one", "-o", "jsonpath={.data.word}").out == "c2VzYW1l"
