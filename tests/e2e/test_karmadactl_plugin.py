"""`kubectl karmada`: the same commands as a plug-in of a real kubectl."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.e2e.plugin import install_plugin
from tests.support.cases import cases

pytestmark = pytest.mark.e2e


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    path = f"{install_plugin(tmp_path)}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "HOME": str(tmp_path), "KUBECONFIG": ""}


@cases(
    ("version", 0, "kubectl karmada version: version.Info{", ""),
    ("help cordon", 0, "Mark CLUSTER", ""),
    ("cordon --foo", 1, "", "error: unknown flag: --foo\nSee 'kubectl karmada cordon --help' for usage.\n"),
    ("gte", 1, "", 'error: unknown command "gte" for "kubectl karmada"\n\nDid you mean this?\n\tget\n\n'),
    ("--kubeconfig=/none cordon m1", 1, "", "error: stat /none: no such file or directory\n"),
    ("init --port 0", 1, "", "error: --port: 0 is not a port\n"),
)  # fmt: skip
def test_kubectl_karmada(
    args: str, code: int, out: str, err: str, kubectl_path: str, environment: dict[str, str]
) -> None:
    done = subprocess.run([kubectl_path, "karmada", *args.split()], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (code, err)
    assert done.stdout.startswith(out)
    assert bool(done.stdout) == bool(out)
    assert "karmadactl" not in done.stdout


def test_kubectl_completes_its_plugin(kubectl_path: str, environment: dict[str, str]) -> None:
    words = [kubectl_path, "__complete", "karmada", "cor"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[0].startswith("cordon\t")
