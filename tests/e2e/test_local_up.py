"""`karmadactl local-up`: a control plane with members in seconds, and again as it was."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import socket
import ssl
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.local_environment import PORT, LocalEnvironment, contexts, settings
from tests.support import forking
from tests.support.eventually import LIMIT, eventually_blocking

pytestmark = pytest.mark.e2e


@pytest.fixture
def local(tmp_path: Path, kubectl_path: str) -> Iterator[LocalEnvironment]:
    with LocalEnvironment(tmp_path, kubectl_path) as local:
        yield local


def elsewhere(spec: dict[str, Any]) -> dict[str, Any]:
    """Without the address: another program may have taken the port meanwhile, and then the member gets another."""
    return {field: value for field, value in spec.items() if field != "apiEndpoint"}


def test_one_command_makes_everything_and_an_interrupt_ends_it_and_a_second_start_goes_on(
    local: LocalEnvironment,
) -> None:
    began = time.monotonic()
    with local.foreground(*PORT) as up:
        assert time.monotonic() - began < 2 * LIMIT, up.said
        assert [line for line in up.said if re.fullmatch(r"  member\d: Ready, v1\.36\.0, 3 nodes \(\d\.\d s\)", line)]
        assert "  export KUBECONFIG=~/.karmada/karmada-apiserver.config" in up.said
        assert [line for line in up.said if re.fullmatch(r"  https://localhost:\d+ +# the dashboard: log in .*", line)]
        assert os.listdir(local.home) == [".karmada"]
        for file in (local.control_kubeconfig, local.members_kubeconfig, *local.folder.glob("logs/*")):
            assert file.stat().st_mode & 0o777 == 0o600
        assert local.folder.stat().st_mode & 0o777 == 0o700
        assert contexts(local.control_kubeconfig, local.kubectl) == ["karmada-apiserver"]
        assert contexts(local.members_kubeconfig, local.kubectl) == ["member1", "member2", "member3"]
        local.kubectl("create", "configmap", "note")
        before = local.clusters()
        assert sorted(before) == ["member1", "member2", "member3"]
        assert local.ctl("local-status").code == 0
        assert set(local.pids()) == {"karmada", "karmada-sim"}
        assert "Stopped; the state is kept" in up.interrupt()
        assert up.code == 0
    assert local.pids() == {}
    assert local.ctl("local-status", check=False).code == 1
    began = time.monotonic()
    with local.foreground("--", "--dashboard-port=0") as up:
        assert time.monotonic() - began < 2 * LIMIT, up.said
        address = re.findall(r"  dashboard at (\S+)", (local.folder / "logs" / "karmada.log").read_text())[-1]
        assert [line for line in up.said if line.split("#")[0].strip() == address], "flags of its own decide"
        assert local.ctl("local-status").lines[-1] == f"Dashboard: {address}"
        assert local.kubectl("get", "configmap", "note", "-o", "name").out == "configmap/note\n"
        for name, cluster in local.clusters().items():
            ready = next(one for one in cluster["status"]["conditions"] if one["type"] == "Ready")
            assert ready["status"] == "True"
            assert cluster["metadata"]["uid"] == before[name]["metadata"]["uid"]
            assert elsewhere(cluster["spec"]) == elsewhere(before[name]["spec"])
        up.interrupt()


def test_in_the_background_a_second_start_adds_what_is_missing(local: LocalEnvironment) -> None:
    local.up(*PORT, "--members", "1")
    pids = local.pids()
    again = local.up()
    assert "Already running" in again.out
    assert local.ctl("local-up", "--members", "2").lines[-1].startswith("Logs are in")
    assert sorted(local.clusters()) == ["member1", "member2"]
    assert local.pids() == pids
    refused = local.up("--port", "1", check=False)
    assert refused.code == 1
    assert "it runs already in ~/.karmada with another port or store; karmadactl local-down first" in refused.err
    status = local.status()
    assert status["healthy"]
    assert status["mode"] == "detached"
    assert [one["name"] for one in status["clusters"]] == ["member1", "member2"]
    assert local.down().out == "Stopped karmada, karmada-sim\n"
    assert local.down().out == "Nothing runs in ~/.karmada\n"
    refused = local.ctl("local-down", "--purge", check=False)
    assert refused.err == "error: --purge needs confirmation and standard input is closed: add --force\n"
    assert local.folder.exists()
    local.down("--purge", "--force")
    assert not local.folder.exists()


def test_a_real_cluster_is_attached_and_left_alone_later(local: LocalEnvironment, tmp_path: Path) -> None:
    other = tmp_path / "other"
    local.ctl("sim", "--data-dir", str(other), "create", "real")
    try:
        local.up(*PORT, "--members", "1", "--attach", f"{other}/members.config:real=west")
        assert sorted(local.clusters()) == ["member1", "west"]
        assert "west" in local.up("--attach", f"{other}/members.config=west").out
        taken = local.up("--attach", f"{other}/members.config=member1", check=False)
        assert "member1 is the name of a simulated member" in taken.err
        twice = local.up("--attach", f"{other}/members.config=east", check=False)
        assert twice.code == 1
        assert "the cluster name east has been registered" in twice.out
        local.ctl("unjoin", "west", "--cluster-kubeconfig", f"{other}/members.config", "--cluster-context", "real")
        assert "west" not in local.up().out
        assert sorted(local.clusters()) == ["member1"]
    finally:
        local.ctl("sim", "--data-dir", str(other), "stop")


def test_the_state_can_be_in_a_real_etcd(local: LocalEnvironment) -> None:
    local.up(*PORT, "--members", "1", "--etcd")
    assert set(local.pids()) == {"karmada", "karmada-sim", "etcd"}
    local.kubectl("create", "configmap", "note")
    assert not (local.folder / "state.db").exists()
    port = settings(local.folder)["etcd_ports"][0]
    foreign = ssl.create_default_context(cafile=local.folder / "etcd/pki/ca.crt")
    assert "certificate" in _refusal_of_etcd(foreign, port)
    local.down()
    local.up()
    assert local.kubectl("get", "configmap", "note", "-o", "name").out == "configmap/note\n"
    assert local.status()["healthy"]


def test_on_a_terminal_progress_is_drawn_and_ctrl_c_stops_everything(local: LocalEnvironment) -> None:
    primary, secondary = pty.openpty()
    command = [sys.executable, "-m", "karmada.cli.karmadactl", "local-up", *PORT, "--members", "1"]
    process = forking.start(
        command, stdin=secondary, stdout=secondary, stderr=secondary, env=local.ctl.env, start_new_session=True
    )
    os.close(secondary)
    said = _read_until(primary, "Ctrl-C stops it")
    assert "\x1b[3A" in said, "three rows, drawn over"
    assert re.search(r"member1 +Ready, v1\.36\.0, 3 nodes", said)
    os.killpg(process.pid, signal.SIGINT)
    _read_until(primary, "Stopped; the state is kept")
    assert process.wait(LIMIT) == 0
    os.close(primary)
    eventually_blocking(lambda: not local.pids())


def _refusal_of_etcd(context: ssl.SSLContext, port: int) -> str:
    """The response to a client that trusts it and has no certificate."""
    with socket.create_connection(("127.0.0.1", port)) as plain:
        try:
            with context.wrap_socket(plain, server_hostname="127.0.0.1") as connection:
                connection.sendall(b"GET /version HTTP/1.0\r\n\r\n")
                return connection.recv(1000).decode()
        except ssl.SSLError as error:
            return str(error).lower().replace("_", " ")


def _read_until(terminal: int, text: str, seconds: float = 30.0) -> str:
    said, end = "", time.monotonic() + seconds
    while text not in said:
        ready, _, _ = select.select([terminal], [], [], max(0.0, end - time.monotonic()))
        assert ready, said
        said += os.read(terminal, 10_000).decode()
    return said
