"""promote and interpret as people use them: the commands of their pages can be pasted, and nothing restarts."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from karmada.kube.objects.gvrs import DEPLOYMENTS, PODS
from tests.e2e.pasting import blocks
from tests.e2e.propagating import CONFIG_MAPS, MANAGED, WORKS, Propagation
from tests.support import forking
from tests.support.eventually import eventually_blocking

pytestmark = pytest.mark.e2e
DOCS = Path(__file__).parents[2] / "docs"


def paste(script: str, env: dict[str, str], folder: Path) -> str:
    tools = forking.shell_path()
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail"], input=script, capture_output=True, text=True, cwd=folder, timeout=120,
        env={**env, "PATH": tools}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def uids(fleet: Propagation, label: str) -> set[str]:
    return {pod["metadata"]["uid"] for pod in fleet.members["member1"].list(PODS, "default", label)}


def no_work(fleet: Propagation, prefix: str) -> bool:
    return not any(work["metadata"]["name"].startswith(prefix) for work in fleet.here.list(WORKS))


@pytest.fixture
def cleaned(three_members: Propagation) -> Callable[[], None]:
    def clean() -> None:
        fleet = three_members
        for name in ("legacy", "everywhere", "old"):
            for kind in ("propagationpolicy", "deployment", "configmap"):
                found = fleet.ours("get", kind, "-o", "name").lines
                mine = [line for line in found if f"/{name}" in line]
                if mine:
                    fleet.ours("delete", "--wait=false", *mine)
            eventually_blocking(partial(no_work, fleet, name))  # else what is deleted in members is made again
            for member in fleet.members:
                fleet.sims.ours(member)("delete", "deploy,cm", name, f"{name}-settings", "--ignore-not-found")

    return clean


def test_the_page_on_promotion_can_be_pasted(three_members: Propagation, cleaned: Callable[[], None]) -> None:
    fleet = three_members
    script = "\n".join(blocks(DOCS / "promote.md", "sh")).replace(
        "~/.karmada/sim/members.config", str(fleet.sims.kubeconfig)
    )
    try:
        said = paste(script, fleet.kubectl.env, fleet.sims.home)
        for line in (*blocks(DOCS / "promote.md", "text")[0].splitlines(), "configmap/everywhere created"):
            assert line in said, f"{line!r} is not in what the page says:\n{said}"
        fleet.members["member2"].until(DEPLOYMENTS, "legacy", lambda obj: obj)
        for name in ("member1", "member2"):
            fleet.members[name].until(CONFIG_MAPS, "everywhere", lambda obj: obj)
    finally:
        cleaned()


def test_what_is_promoted_goes_on_running(three_members: Propagation, cleaned: Callable[[], None]) -> None:
    fleet = three_members
    member = fleet.members["member1"]
    try:
        fleet.sims.kubectl("member1")("create", "deployment", "old", "--image=nginx:1.27", "--replicas=2")
        member.until(DEPLOYMENTS, "old", lambda obj: obj.get("status", {}).get("readyReplicas") == 2)
        before = uids(fleet, "app=old")
        fleet.ctl("promote", "deployment", "old", "-C", "member1")
        member.until(DEPLOYMENTS, "old", lambda obj: obj["metadata"].get("labels", {}).get(MANAGED) == "true")
        assert len(before) == 2
        assert uids(fleet, "app=old") == before
    finally:
        cleaned()


def test_the_page_on_customizations_can_be_pasted(tmp_path: Path) -> None:
    """There is no server, and none is missed."""
    env = {**os.environ, "HOME": str(tmp_path), "KUBECONFIG": str(tmp_path / "none")}
    said = paste("\n".join(blocks(DOCS / "interpret.md", "sh")), env, tmp_path)
    assert said.count("PASS") == 4
    assert blocks(DOCS / "interpret.md", "text")[0] in said
    assert "workers: 2" in said
    assert "# [1/1] healthy:\ntrue\n" in said
    assert said.endswith("status:\n  ready: 4\n")
