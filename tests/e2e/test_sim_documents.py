"""The commands of docs/simulated-clusters.md work as it is written."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import msgspec
import pytest

from karmada.cli.commands.sim_faults import fail
from karmada.kube.sim.behaviours import parse_outcome
from karmada.kube.sim.profile import Profile
from tests.e2e.pasting import blocks
from tests.support import forking

pytestmark = pytest.mark.e2e
DOCUMENT = Path(__file__).parents[2] / "docs/simulated-clusters.md"
PAGE = DOCUMENT.read_text()


@pytest.mark.usefixtures("kubectl_path")
def test_the_page_can_be_pasted(tmp_path: Path) -> None:
    script = "\n".join(blocks(DOCUMENT, "sh"))
    env = {**os.environ, "HOME": str(tmp_path), "PATH": forking.shell_path()}
    try:
        done = subprocess.run(
            ["bash", "-e"],
            input=script,
            capture_output=True,
            text=True,
            env=env,
            cwd=tmp_path,
            timeout=120,
            check=False,
        )
    finally:
        if (tmp_path / ".karmada/sim/admin.json").exists():
            subprocess.run(["karmadactl", "sim", "stop"], env=env, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    for expected in (
        "cluster member1 created in",
        "member3-node-5",
        'deployment "web" successfully rolled out',
        "cluster member1: pool node has 5 nodes",
        "cluster member1: deployment/web has total-cpu=2 http_requests=50",
        "cluster member1: deployment/web has total-http_requests_per_second=900",
        'cluster member1: fault "down" for 5 s',
        "lost,pods",
        "cluster member2: healed lost\n",
        "cluster member2: healed pods\n",
        'cluster member1: fault "clock" for 10 s',
        "cluster big created in",
        "3 clusters run; kubeconfig:",
    ):
        assert expected in said, f"{expected!r} is not in what the page says:\n{said}"


def words(heading: str) -> list[str]:
    """The first column of the table under a heading, by the words in backquotes."""
    section = PAGE.split(heading, 1)[1]
    table = re.search(r"^\|---.*\n((?:\|.*\n)+)", section, re.MULTILINE)
    assert table is not None
    rows = [re.split(r"(?<!\\)\|", row)[1] for row in table[1].splitlines()]
    return [word for row in rows for word in re.findall(r"`([^`]+)`", row)]


def test_the_page_lists_every_fault_and_no_other() -> None:
    assert {fault.split()[0] for fault in words("## Break things")} == set(fail.commands)


def test_the_page_lists_every_setting_and_no_other() -> None:
    assert set(words("## Describe a cluster")) == {field.name for field in msgspec.structs.fields(Profile)} - {"name"}


def test_the_outcomes_on_the_page_are_understood() -> None:
    for outcome in words("### Pods"):
        assert parse_outcome(outcome).kind == outcome.split()[0]
