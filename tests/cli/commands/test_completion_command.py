"""What can come next on a command line."""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from karmada.cli.commands.completion import script
from karmada.cli.karmadactl import main
from karmada.cli.parsing import complete
from karmada.kube.objects.clock import RealClock
from karmada.kube.objects.gvk import GVR
from tests.support.cases import cases
from tests.support.control_plane import ControlPlane, running


def candidates(*words: str) -> tuple[list[str], int]:
    """The values, and the directive."""
    result = CliRunner().invoke(main, ["__complete", *words])
    assert (result.exit_code, result.stderr) == (0, "")
    *values, directive = result.stdout.splitlines()
    return [value.partition("\t")[0] for value in values], int(directive.removeprefix(":"))


@pytest.fixture
def kubeconfig(tmp_path: Path) -> str:
    path = tmp_path / "config"
    path.write_text("contexts: [{name: east, context: {}}, {name: west, context: {}}]")
    return str(path)


@cases(
    (["co"], ["completion", "cordon"]),
    (["opt"], []),
    (["-n", "x", "cord"], ["cordon"]),
    (["help", "cord"], ["cordon"]),
    (["sim", "st"], ["start", "status", "stop"]),
    (["sim", "fail", "member1", "p"], ["partition", "pause", "pods", "pressure"]),
    (["token", ""], ["create", "delete", "list"]),
    (["completion", ""], ["bash", "zsh", "fish"]),
    (["completion", "bash", ""], []),
    (["addons", "enable", "karmada-s"], ["karmada-scheduler-estimator", "karmada-search"]),
    (["taint", ""], ["cluster", "clusters"]),
    (["cordon", "--ku"], ["--kubeconfig"]),
    (["cordon", "--dr"], ["--dry-run"]),
    (["join", "--cluster-z"], ["--cluster-zones"]),
    (["version", "--logt"], ["--logtostderr"]),
    (["sim", "fail", "m1", "partition", "--how", ""], ["hang", "refuse", "watches"]),
    (["sim", "fail", "m1", "partition", "--how=r"], ["--how=refuse"]),
    (["search", "-o", "wi"], ["wide"]),
    (["search", "--field"], ["--field-selector"]),
    (["get", "-s", ""], ["karmada", "members", "all"]),
    (["get", "--operation-scope=m"], ["--operation-scope=members"]),
    (["get", "-o", "w"], ["wide"]),
    (["get", "-o=ya"], []),
    (["label", "--output=ya"], ["--output=yaml"]),
    (["apply", "--dry-run=s"], ["--dry-run=server"]),
    (["nonsense", ""], []),
    (["cordon", "--nonsense", ""], []),
)
def test_without_a_server(words: list[str], expected: list[str]) -> None:
    assert candidates(*words) == (expected, 4)


@cases(["join", "m1", "--cluster-kubeconfig", ""], ["cordon", "--kubeconfig="])
def test_names_of_files_are_left_to_the_shell(words: list[str]) -> None:
    assert candidates(*words) == ([], 0)


def test_contexts_are_those_of_the_flags_own_kubeconfig(kubeconfig: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert candidates("cordon", "--kubeconfig", kubeconfig, "--karmada-context", "") == (["east", "west"], 4)
    assert candidates("--kubeconfig", kubeconfig, "cordon", "--karmada-context=w") == (["--karmada-context=west"], 4)
    assert candidates("join", "--cluster-kubeconfig", kubeconfig, "--cluster-context", "e") == (["east"], 4)
    monkeypatch.setenv("KUBECONFIG", kubeconfig)
    assert candidates("cordon", "--karmada-context", "") == (["east", "west"], 4)


def test_the_context_may_come_before_the_command(kubeconfig: str) -> None:
    assert candidates("--kubeconfig", kubeconfig, "--karmada-context", "w") == (["west"], 4)


def test_simulated_clusters_are_those_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "members.config").write_text("contexts: [{name: east, context: {}}, {name: west, context: {}}]")
    sim = ["sim", "--data-dir", str(tmp_path)]
    for words in (["fail", ""], ["heal", ""], ["scale", ""], ["delete", ""]):
        assert candidates(*sim, *words) == (["east", "west"], 4)
    assert candidates(*sim, "delete", "east", "") == (["west"], 4)
    assert candidates(*sim, "heal", "east", "") == ([], 4)


def test_nothing_is_said_of_what_goes_wrong(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text("{")
    for path in (str(broken), str(tmp_path / "none")):
        assert candidates("cordon", "--kubeconfig", path, "") == ([], 4)
        assert candidates("cordon", "--kubeconfig", path, "--karmada-context", "") == ([], 4)


def test_a_server_that_says_nothing_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(complete, "TIMEOUT_SECONDS", 0.1)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        path = tmp_path / "config"
        path.write_text(
            f"clusters: [{{name: a, cluster: {{server: 'https://127.0.0.1:{listening.getsockname()[1]}'}}}}]\n"
            "contexts: [{name: a, context: {cluster: a}}]\ncurrent-context: a\n"
        )
        assert candidates("cordon", "--kubeconfig", str(path), "") == ([], 4)


def test_a_value_that_goes_on_gets_no_blank() -> None:
    assert candidates("get", "-o", "jsonp") == (["jsonpath="], 4 | 2)


# what servers know


@pytest.fixture
async def plane(tmp_path: Path) -> AsyncIterator[ControlPlane]:
    async with running(tmp_path / "plane", clock=RealClock()) as plane:
        for name in ("east-1", "east-2", "west-1"):
            await plane.add_cluster(name)
        for name in ("settings", "secrets"):
            metadata = {"name": name, "namespace": "default"}
            await plane.client.create(GVR("", "v1", "configmaps"), {"metadata": metadata})
        yield plane


async def test_clusters_types_names_and_namespaces_come_from_the_control_plane(plane: ControlPlane) -> None:
    before = ["--kubeconfig", str(plane.server.kubeconfig)]

    async def found(*words: str) -> list[str]:
        values, directive = await asyncio.to_thread(candidates, *before, *words)
        assert directive == 4
        return values

    assert await found("cordon", "") == ["east-1", "east-2", "west-1"]
    assert await found("cordon", "w") == ["west-1"]
    assert await found("cordon", "west-1", "") == []
    assert await found("search", "-C", "w") == ["west-1"]
    assert await found("search", "--kind", "pods,deploym") == ["pods,deployments"]
    assert await found("taint", "clusters", "ea") == ["east-1", "east-2"]
    assert await found("get", "--clusters", "east-1,ea") == ["east-1,east-2"]
    assert await found("get", "--clusters=w") == ["--clusters=west-1"]
    assert await found("get", "-n", "kube-s") == ["kube-system"]
    assert await found("get", "configm") == ["configmaps"]
    assert await found("get", "configmaps,propag") == ["configmaps,propagationpolicies"]
    assert await found("get", "cm", "se") == ["secrets", "settings"]
    assert await found("get", "cm", "secrets", "se") == ["settings"]
    assert await found("get", "cm/set") == ["cm/settings"]
    assert await found("get", "no-such-type", "") == []


# scripts


@cases("bash", "zsh", "fish")
def test_the_script_of_a_shell(shell: str) -> None:
    result = CliRunner().invoke(main, ["completion", shell])
    assert result.exit_code == 0
    assert result.stdout == script(shell, "karmadactl") + "\n"
    assert "SPDX-License-Identifier: Apache-2.0" in result.stdout
    assert result.stdout.startswith("#compdef karmadactl\n") == (shell == "zsh")
    assert "@" not in result.stdout.replace("[@]", "").replace("(@", "").replace('"$@"', "")


@cases("bash", "zsh", "fish")
def test_the_shell_can_read_its_script(shell: str, tmp_path: Path) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"no {shell} here")
    path = tmp_path / "script"
    path.write_text(script(shell, "karmadactl"))
    subprocess.run([program, "-n", str(path)], check=True)


@cases(
    ("karmadactl cordo", ["cordon"]),
    ("karmadactl sim st", ["start", "status", "stop"]),
    ("karmadactl completion ", ["bash", "zsh", "fish"]),
    ("karmadactl sim fail m1 partition --how=re", ["refuse"]),
    ("karmadactl sim fail m1 partition --how=", ["hang", "refuse", "watches"]),
    ("karmadactl nonsense ", []),
)
def test_bash_completes_with_it(line: str, replies: list[str], tmp_path: Path) -> None:
    program = shutil.which("bash")
    if program is None:
        pytest.skip("no bash here")
    (tmp_path / "karmadactl").write_text(f'#!/bin/sh\nexec {sys.executable} -m karmada.cli.karmadactl "$@"\n')
    (tmp_path / "karmadactl").chmod(0o755)
    (tmp_path / "script").write_text(script("bash", "karmadactl"))
    pieces = [piece for part in line.split() for piece in part.replace("=", " = ").split()]
    pieces += [""] if line.endswith(" ") else []
    words = " ".join(f"'{piece}'" for piece in pieces)
    commands = (
        f"PATH={tmp_path}:$PATH; source {tmp_path}/script; compopt() {{ :; }}\n"
        f"COMP_LINE='{line}'; COMP_POINT={len(line)}; COMP_WORDS=({words}); COMP_CWORD={len(pieces) - 1}\n"
        "__karmadactl_complete; printf '%s\\n' \"${COMPREPLY[@]}\""
    )
    done = subprocess.run([program, "-c", commands], capture_output=True, text=True, check=True)
    assert (done.stdout.split(), done.stderr) == (replies, "")
