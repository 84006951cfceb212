"""The server as a process: clear refusals, private files, silence about secrets, and rest when nothing is to do."""

from __future__ import annotations

import base64
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.support import forking
from tests.support.cases import cases
from tests.support.eventually import eventually_blocking
from tests.support.programs import Program, ServerProcess

pytestmark = pytest.mark.e2e


def run_to_the_end(*arguments: str, seconds: float = 20) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "karmada.components.apiserver", *arguments]
    return forking.run(command, text=True, timeout=seconds)


def refused(*arguments: str) -> str:
    """The one line with which a start that cannot be is refused."""
    done = run_to_the_end(*arguments)
    assert done.returncode == 1, done
    assert done.stdout == ""
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("Error: ")
    return lines[0]


def test_a_second_process_on_the_same_data_is_refused(own_server: ServerProcess) -> None:
    assert own_server.process is not None
    said = refused("--data-dir", str(own_server.data_dir), "--port", "0")
    assert said == f"Error: {own_server.data_dir}/state.db is in use by another process (pid {own_server.process.pid})"


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = refused("--data-dir", str(tmp_path / "data"), "--port", str(port))
    assert str(port) in said
    assert "address already in use" in said


def test_a_failed_start_leaves_nothing_running_and_the_next_one_works(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        refused("--data-dir", str(tmp_path / "data"), "--port", str(taken.getsockname()[1]))
    server = ServerProcess(tmp_path / "data")
    server.start()
    server.stop()
    assert server.process is not None
    assert server.process.returncode == 0


@pytest.mark.parametrize("where", ["/proc/karmada", "{tmp}/file/data"], ids=["not writable", "not a directory"])
def test_a_data_directory_that_cannot_be_made_is_named(tmp_path: Path, where: str) -> None:
    (tmp_path / "file").write_text("")
    directory = where.format(tmp=tmp_path)
    assert directory in refused("--data-dir", directory, "--port", "0")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_data_directory_without_write_permission_is_named(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    directory.mkdir(mode=0o500)
    said = refused("--data-dir", str(directory), "--port", "0")
    assert str(directory) in said
    assert "Permission denied" in said


@cases(
    (["--storage", "redis://x"], 'unknown store "redis://x"'),
    (["--kubernetes-version", "1.99"], "no definitions of Kubernetes 1.99"),
    (["--service-cluster-ip-range", "nonsense"], "nonsense"),
    (["--bind-address", "192.0.2.1"], "192.0.2.1"),
)
def test_settings_that_make_no_sense_are_named(arguments: list[str], text: str, tmp_path: Path) -> None:
    assert text in refused("--data-dir", str(tmp_path / "data"), "--port", "0", *arguments)


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    directory.mkdir()
    (directory / "state.db").write_bytes(b"this is not a database, it only lies where one should be" * 100)
    assert "state.db" in refused("--data-dir", str(directory), "--port", "0")
    assert (directory / "state.db").read_bytes().startswith(b"this is not a database")


@pytest.fixture(scope="module")
def talkative(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that made its data directory itself, with a token file, an audit log and a detailed log."""
    parent = tmp_path_factory.mktemp("talkative")
    (parent / "tokens.csv").write_text('static-token-0123456789,tester,7,"system:masters"\n')
    log, audit = parent / "server.log", parent / "audit.log"
    data = parent / "data"
    server = ServerProcess(data)
    command = [sys.executable, "-m", "karmada.components.apiserver", "--data-dir", str(data), "--port", "0", "-v", "6"]
    command += ["--token-auth-file", str(parent / "tokens.csv"), "--audit-log-path", str(audit)]
    with log.open("w") as stderr:
        server.process = forking.start(command, stdout=subprocess.PIPE, stderr=stderr, text=True, umask=0o022)
    assert server.process.stdout is not None
    assert "Kubernetes API" in server.process.stdout.readline(), log.read_text()
    server.process.stdout.readline()
    yield server
    server.stop()


def test_nobody_else_can_read_the_data(talkative: ServerProcess) -> None:
    assert talkative.data_dir.stat().st_mode & 0o777 == 0o700
    for path in talkative.data_dir.rglob("*"):
        wanted = 0o700 if path.is_dir() else 0o600
        assert path.stat().st_mode & 0o777 == wanted, path
    assert (talkative.data_dir.parent / "audit.log").stat().st_mode & 0o777 == 0o600


def test_no_secret_gets_into_a_log(talkative: ServerProcess, kubectl_path: str, tmp_path: Path) -> None:
    kubectl = Program([kubectl_path], tmp_path, talkative.kubeconfig)
    secrets = {
        "static-token-0123456789",
        "0123456789abcdef",
        "the-password",
        base64.b64encode(b"the-password").decode(),
    }
    kubectl("create", "secret", "generic", "login", "--from-literal=password=the-password")
    kubectl("patch", "secret", "login", "-p", json.dumps({"stringData": {"other": "the-password"}}))
    kubectl("create", "secret", "generic", "bootstrap-token-abcdef", "-n", "kube-system",
            "--type=bootstrap.kubernetes.io/token", "--from-literal=token-id=abcdef",
            "--from-literal=token-secret=0123456789abcdef",
            "--from-literal=usage-bootstrap-authentication=true")  # fmt: skip
    token = kubectl("create", "token", "default").out.strip()
    secrets |= {token, token.rsplit(".", 1)[1]}
    kubectl("apply", "-f", "-", stdin=yaml.safe_dump({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
        "metadata": {"name": "legacy", "annotations": {"kubernetes.io/service-account.name": "default"}},
    }))  # fmt: skip
    filled = eventually_blocking(lambda: kubectl("get", "secret", "legacy", "-o", "jsonpath={.data.token}").out)
    secrets |= {filled, base64.b64decode(filled).decode().rsplit(".", 1)[1]}
    bare = yaml.safe_load(talkative.kubeconfig.read_text())
    bare["users"][0]["user"] = {}
    (tmp_path / "bare").write_text(json.dumps(bare))
    anonymous = Program([kubectl_path], tmp_path, tmp_path / "bare")
    for good in (token, "static-token-0123456789", "abcdef.0123456789abcdef", base64.b64decode(filled).decode()):
        assert anonymous(f"--token={good}", "auth", "whoami", "-o", "name").code == 0
    for bad in ("static-token-9876543210", token[:-4] + "AAAA", "abcdef.fedcba9876543210", "eyJhbGciOiJub25lIn0.e30."):
        assert anonymous(f"--token={bad}", "get", "pods", check=False).code != 0
        secrets.add(bad)
    for key in (talkative.data_dir / "pki").glob("*.key"):
        secrets |= {line for line in key.read_text().splitlines() if len(line) > 30 and "KEY" not in line}
    kubectl("delete", "secret", "login", "legacy")
    for log in ("server.log", "audit.log"):
        text = (talkative.data_dir.parent / log).read_text()
        assert text, f"{log} is empty, so this proves nothing"
        assert not [secret for secret in secrets if secret in text], f"secrets in {log}"


def cpu_seconds(pid: int) -> float:
    numbers = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(numbers[11]) + int(numbers[12])) / os.sysconf("SC_CLK_TCK")


def test_an_idle_server_rests(own_server: ServerProcess, kubectl_path: str, tmp_path: Path) -> None:
    """With things in it that somebody could poll: a namespace and a definition that cannot go, and a pending Job."""
    kubectl = Program([kubectl_path], tmp_path, own_server.kubeconfig)
    kubectl("create", "namespace", "stuck")
    kubectl("apply", "-f", "-", stdin=yaml.safe_dump({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "held", "namespace": "stuck", "finalizers": ["example.com/hold"]},
    }))  # fmt: skip
    kubectl("delete", "namespace", "stuck", "--wait=false")
    eventually_blocking(lambda: "SomeFinalizersRemain" in kubectl("get", "namespace", "stuck", "-o", "json").out)
    assert own_server.process is not None
    pid = own_server.process.pid

    def rests() -> bool:
        """Over some five seconds; what follows from the writes above may take longer on a busy machine."""
        before, started = cpu_seconds(pid), time.monotonic()
        time.sleep(5)  # this is the measurement
        share = (cpu_seconds(pid) - before) / (time.monotonic() - started)
        assert share < 0.01, f"idle: {share:.2%} of a core"
        return True

    eventually_blocking(rests)
