"""karmadactl backup and restore, as an administrator uses them."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.programs import Program, ServerProcess

pytestmark = pytest.mark.e2e
KINDS = "namespaces,configmaps,secrets,serviceaccounts,clusterroles,services,deployments"


def karmadactl(home: Path) -> Program:
    return Program([sys.executable, "-m", "karmada.cli.karmadactl"], home, home / "none")


def test_a_running_servers_state_is_copied_and_comes_back(
    own_server: ServerProcess, kubectl_path: str, tmp_path: Path
) -> None:
    kubectl = Program([kubectl_path], tmp_path, own_server.kubeconfig)
    kubectl("create", "deployment", "web", "--image=nginx")
    kubectl("create", "secret", "generic", "password", "--from-literal=word=sesame")
    copied = karmadactl(tmp_path)(
        "backup", str(tmp_path / "copy"), "--storage", f"sqlite://{own_server.data_dir}/state.db"
    )
    assert "objects in" in copied.out
    before = kubectl("get", KINDS, "-A", "-o", "json", "--show-managed-fields").json()
    kubectl("delete", "deployment", "web")

    other = ServerProcess(tmp_path / "other")
    other.data_dir.mkdir()
    shutil.copytree(own_server.data_dir / "pki", other.data_dir / "pki")
    karmadactl(tmp_path)("restore", str(tmp_path / "copy"), "--storage", f"sqlite://{other.data_dir}/state.db")
    other.start()
    try:
        restored = Program([kubectl_path], tmp_path, other.kubeconfig)
        after = restored("get", KINDS, "-A", "-o", "json", "--show-managed-fields").json()
        assert [without_version(o) for o in after["items"]] == [without_version(o) for o in before["items"]]
    finally:
        other.stop()


def without_version(obj: dict[str, Any]) -> dict[str, Any]:
    obj["metadata"].pop("resourceVersion")
    return obj


def test_mistakes_get_clear_answers(own_server: ServerProcess, tmp_path: Path) -> None:
    ctl = karmadactl(tmp_path)
    storage = f"sqlite://{own_server.data_dir}/state.db"
    (tmp_path / "there").write_text("precious")
    assert (
        "exists; remove it or choose another name"
        in ctl("backup", str(tmp_path / "there"), "--storage", storage, check=False).err
    )
    ctl("backup", str(tmp_path / "copy"), "--storage", storage)
    assert (
        "is in use by another process" in ctl("restore", str(tmp_path / "copy"), "--storage", storage, check=False).err
    )
    assert (
        "is not a whole backup"
        in ctl("restore", str(tmp_path / "there"), "--storage", f"sqlite://{tmp_path}/new.db", check=False).err
    )
    assert "unknown store" in ctl("backup", str(tmp_path / "x"), "--storage", "tape://reel", check=False).err
