"""The commands of the README and the docs work as it is written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.local_environment import PORT, LocalEnvironment
from tests.e2e.pasting import blocks, paste_with
from tests.support import forking
from tests.support.eventually import eventually_blocking
from tests.support.programs import Program, ServerProcess

pytestmark = pytest.mark.e2e
ROOT = Path(__file__).parents[2]


def paste(text: str, kubeconfig: Path, home: Path) -> subprocess.CompletedProcess[str]:
    """Run shell text the way a person pastes it: line after line, whatever the last one answered."""
    lines = [line for line in text.splitlines() if not line.startswith("export ")]
    tools = forking.shell_path()
    env = {**os.environ, "HOME": str(home), "KUBECONFIG": str(kubeconfig), "PATH": tools}
    return subprocess.run(
        ["bash"], input="\n".join(lines), capture_output=True, text=True, env=env, timeout=120, check=False, cwd=home
    )


def test_the_tour_without_kubectl(tmp_path: Path) -> None:
    forbidden = tmp_path / "bin" / "kubectl"
    forbidden.parent.mkdir()
    forbidden.write_text("#!/bin/sh\necho kubectl was called >&2\n")
    forbidden.chmod(0o755)
    with LocalEnvironment(tmp_path) as local:
        local.up(*PORT)
        steps = [block for block in blocks(ROOT / "docs/tour-without-kubectl.md", "sh") if "local-up" not in block]
        path = "export PATH=$PWD/.venv/bin:$PATH\n"
        text = "\n".join(steps)
        assert path in text
        env = {**local.ctl.env, "PATH": f"{forbidden.parent}:{forking.shell_path()}"}
        said = paste_with(text.replace(path, ""), env, ROOT)
        assert not local.pids()
    assert "kubectl was called" not in said
    for expected in (
        "deployment.apps/nginx created",
        "propagationpolicy.policy.karmada.io/nginx created",
        "Result: {member1:1, member2:2, member3:3}",
        "image: registry.example.com/nginx:1.27",
        'cluster member1: fault "down"',
        "Not Ready:   member1 (ClusterNotReachable",
        "the feature gate Failover is off: nothing is moved away from a failed cluster",
        "cluster member1: healed down",
        'deployment.apps "nginx" deleted',
        "Stopped karmada, karmada-sim",
    ):
        assert expected in said, f"{expected!r} is not in what the tour says:\n{said}"
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
        'The Ship "petrel" is invalid: spec: Invalid value: every mast needs a sailor',
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
    kubectl = Program([kubectl_path], tmp_path, own_server.kubeconfig)
    greeter = subprocess.Popen([sys.executable, str(ROOT / "examples/greeter.py")], env=kubectl.env)
    try:
        kubectl("create", "configmap", "note")
        kubectl("label", "configmap", "note", "greet=world")
        eventually_blocking(lambda: kubectl("get", "cm", "note", "-o", "jsonpath={.data.hello}").out == "hello world")
        assert greeter.poll() is None
    finally:
        greeter.kill()
        greeter.wait()
