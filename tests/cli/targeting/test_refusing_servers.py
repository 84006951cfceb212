"""A server that refuses, or that cannot be trusted: what commands report."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from karmada.cli.karmadactl import main
from karmada.kube.objects.clock import RealClock
from tests.support.control_plane import ControlPlane, running


@pytest.fixture
async def plane(tmp_path: Path) -> AsyncIterator[ControlPlane]:
    async with running(tmp_path / "plane", clock=RealClock()) as plane:
        yield plane


def edited(plane: ControlPlane, path: Path, **changes: object) -> str:
    """A kubeconfig like the plane's own; `user` and `cluster` are put in place of what it has."""
    config = yaml.safe_load(plane.server.kubeconfig.read_text())
    for section, name in (("clusters", "cluster"), ("users", "user")):
        if name in changes:
            config[section][0][name] = changes[name]
    path.write_text(yaml.safe_dump(config))
    return str(path)


async def refusal(*args: str) -> tuple[int, str, str]:
    result = await asyncio.to_thread(CliRunner().invoke, main, args)
    return result.exit_code, result.stdout, result.stderr


async def test_who_has_no_name_must_log_in(plane: ControlPlane, tmp_path: Path) -> None:
    path = edited(plane, tmp_path / "config", user={"token": "nonsense"})
    said = "error: You must be logged in to the server (Unauthorized)\n"
    assert await refusal("cordon", "m1", "--kubeconfig", path) == (1, "", said)


async def test_a_missing_right_is_named(plane: ControlPlane, tmp_path: Path) -> None:
    _, made, _ = await refusal("token", "create", "--kubeconfig", str(plane.server.kubeconfig))
    path = edited(plane, tmp_path / "config", user={"token": made.strip()})
    code, out, err = await refusal("cordon", "m1", "--kubeconfig", path)
    assert (code, out) == (1, "")
    assert err == (
        'Error from server (Forbidden): clusters.cluster.karmada.io "m1" is forbidden: '
        f'User "system:bootstrap:{made[:6]}" cannot get resource "clusters" in API group "cluster.karmada.io" at the '
        "cluster scope\n"
    )


async def test_a_server_nobody_vouches_for(plane: ControlPlane, tmp_path: Path) -> None:
    config = yaml.safe_load(plane.server.kubeconfig.read_text())
    path = edited(plane, tmp_path / "config", cluster={"server": config["clusters"][0]["cluster"]["server"]})
    code, out, err = await refusal("cordon", "m1", "--kubeconfig", path)
    assert (code, out) == (1, "")
    start = "Unable to connect to the server: tls: failed to verify certificate: x509: "
    assert err.startswith(f"{start}certificate signed by unknown authority")
    assert err.count("\n") == 1


async def test_a_server_that_answers_to_another_name(plane: ControlPlane, tmp_path: Path) -> None:
    cluster = yaml.safe_load(plane.server.kubeconfig.read_text())["clusters"][0]["cluster"]
    path = edited(plane, tmp_path / "config", cluster={**cluster, "tls-server-name": "other.example"})
    code, _, err = await refusal("cordon", "m1", "--kubeconfig", path)
    assert code == 1
    assert err.startswith("Unable to connect to the server: tls: failed to verify certificate: x509: Hostname mismatch")
