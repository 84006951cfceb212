"""What a newcomer does: a clone in an empty folder, an empty home, `make up`, and the tour of the README."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e import wheelhouse
from tests.e2e.pasting import blocks, paste_with

pytestmark = pytest.mark.e2e
ROOT = Path(__file__).parents[2]
INSTALL_SECONDS = 1200.0
"""Ends an installation that hangs, on however busy a machine."""
_OURS = ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "KUBECONFIG", "KARMADA_SIM_DIR", "MAKEFLAGS", "MAKELEVEL", "DATA")


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the repository as they are now, without what was made of them."""
    clone = tmp_path_factory.mktemp("newcomer") / "clone"
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, clone / name)
    return clone


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Nothing of the environment the tests run in but the packages in it; a home with nothing in it."""
    wheels = tmp_path_factory.mktemp("wheels")
    wheelhouse.fill(wheels, ROOT)
    own = os.environ.get("VIRTUAL_ENV", "/nowhere")
    path = os.pathsep.join(part for part in os.environ["PATH"].split(os.pathsep) if not part.startswith(own))
    kept = {name: value for name, value in os.environ.items() if name not in _OURS and not name.startswith("PYTEST")}
    pip = {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(wheels),
        "PIP_NO_COMPILE": "0",
    }  # the value of pip's option `compile`
    return {**kept, **pip, "HOME": str(tmp_path_factory.mktemp("home")), "PATH": path}


@contextmanager
def make_up(clone: Path, env: dict[str, str]) -> Iterator[list[str]]:
    """`make up` in a terminal of its own; what it said up to the moment when it runs."""
    process = subprocess.Popen(
        ["make", "up"],
        cwd=clone,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    said = []
    try:
        for line in process.stdout:
            said.append(line.rstrip())
            if "Ctrl-C stops it" in line:
                break
        yield said
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=60)


@pytest.mark.usefixtures("kubectl_path")
def test_make_up_and_the_tour_work_on_a_fresh_clone(clone: Path, env: dict[str, str]) -> None:
    steps = [block for block in blocks(clone / "README.md", "sh") if not block.startswith("make ")]
    with make_up(clone, env) as up:
        said = paste_with("\n".join(steps), env, clone)
    assert up[0].startswith("==> Making .venv")
    assert any(line.startswith("  member3: Ready, v1.36.0, 3 nodes") for line in up), up
    assert any(line.startswith("Everything runs (") for line in up), up
    for expected in (
        'deployment "nginx" successfully rolled out',
        "6/6",
        "nginx   member3   3/3",
        "member1   v1.36.0   Push   False",
        "Not Ready:   member1 (ClusterNotReachable",
        "the feature gate Failover is off: nothing is moved away from a failed cluster",
        "Then:       member1:1, member2:2, member3:3",
        "cluster member1: healed down",
        'deployment.apps "nginx" deleted',
        "Stopped karmada, karmada-sim",
    ):
        assert expected in said, f"{expected!r} is not in what the tour says:\n{said}"
    assert said.count("deployment.apps/nginx condition met") == 3, said
    assert said.count("cluster.cluster.karmada.io/member1 condition met") == 2, said
    assert "error" not in said.lower(), said


def test_make_test_works_there_too(clone: Path, env: dict[str, str]) -> None:
    """With a few tests of either sort: all of them are what runs this one."""
    few = ["UNIT=tests/local/test_choosing.py", "E2E=tests/e2e/test_documents.py -k access"]
    done = subprocess.run(
        ["make", "test", *few, "E2E_WORKERS=1", "UNIT_WORKERS=1"],
        cwd=clone,
        env=env,
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(" passed") == 2, done.stdout
