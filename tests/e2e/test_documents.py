"""What the README and the docs tell people to paste works as it is written."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fleets import plane_process
from programs import Program, ServerProcess, eventually

pytestmark = pytest.mark.e2e
ROOT = Path(__file__).parents[2]


def blocks(path: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", path.read_text(), re.DOTALL | re.MULTILINE)


def paste(text: str, kubeconfig: Path, home: Path) -> subprocess.CompletedProcess[str]:
    """Run shell text the way a person pastes it: line after line, whatever the last one answered."""
    lines = [line for line in text.splitlines() if not line.startswith("export ")]
    tools = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = {**os.environ, "HOME": str(home), "KUBECONFIG": str(kubeconfig), "PATH": tools}
    return subprocess.run(
        ["bash"], input="\n".join(lines), capture_output=True, text=True, env=env, timeout=120, check=False, cwd=home
    )


def test_the_tour_of_the_readme(tmp_path: Path) -> None:
    home = tmp_path / "home"
    plane = plane_process(home / ".karmada")
    plane.start()
    steps = [block for block in blocks(ROOT / "README.md", "sh") if "make " not in block]
    try:
        done = paste("\n".join(steps), plane.kubeconfig, home)
    finally:
        plane.stop()
    said = done.stdout + done.stderr
    assert "command not found" not in said
    for expected in (
        "cluster member3 created",
        "cluster(member3) is joined successfully",
        "cluster.cluster.karmada.io/member3 condition met",
        'deployment "nginx" successfully rolled out',
        "6/6",
        "{member1:2, member2:4}",
        'cluster member1: fault "pods"',
        "cluster member3 deleted",
        "stopped",
    ):
        assert expected in said, f"{expected!r} is not in what the tour says:\n{said}"
    assert said.count("deployment.apps/nginx condition met") == 2, said
    assert "error" not in said.lower(), said


def test_the_tour_of_the_api_server(own_server: ServerProcess, tmp_path: Path) -> None:
    steps = blocks(ROOT / "docs/api-server.md", "sh")
    said = ""
    for step in steps:
        done = paste(step, own_server.kubeconfig, tmp_path)
        assert "command not found" not in done.stderr
        said += done.stdout + done.stderr
    for expected in (
        "deployment.apps/web created",
        "deployment.apps/web scaled",
        "3 nginx:1.28",
        'Apply failed with 1 conflict: conflict with "team-a": .data.colour',
        'The Ship "petrel" is invalid: spec: Invalid value: "object": every mast needs a sailor',
        "ship.harbour.example.com/petrel created",
        "system:serviceaccount:default:reader",
        "no",
    ):
        assert expected in said, f"{expected!r} is not in what the tour says:\n{said}"


def test_the_ways_to_give_access(own_server: ServerProcess, tmp_path: Path) -> None:
    said = ""
    for block in blocks(ROOT / "docs/access.md", "sh"):
        done = paste(block, own_server.kubeconfig, tmp_path)
        said += done.stdout + done.stderr
    assert "certificatesigningrequest.certificates.k8s.io/jane approved" in said
    assert "rolebinding.rbac.authorization.k8s.io/deployer created" in said
    assert "error" not in said.lower(), said


def test_the_example_of_a_controller(own_server: ServerProcess, kubectl_path: str, tmp_path: Path) -> None:
    [source] = blocks(ROOT / "docs/controllers.md", "python")
    (tmp_path / "greeter.py").write_text(source)
    kubectl = Program([kubectl_path], tmp_path, own_server.kubeconfig)
    greeter = subprocess.Popen([sys.executable, str(tmp_path / "greeter.py")], env=kubectl.env)
    try:
        kubectl("create", "configmap", "note")
        kubectl("label", "configmap", "note", "greet=world")
        eventually(lambda: kubectl("get", "cm", "note", "-o", "jsonpath={.data.hello}").out == "hello world")
        assert greeter.poll() is None
    finally:
        greeter.kill()
        greeter.wait()
