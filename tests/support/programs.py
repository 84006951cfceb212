"""The programs the end-to-end tests run: the server as a process, kubectl and helm with homes of their own."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.support import forking
from tests.support.eventually import LIMIT
from tests.support.ports import free_port

READY_SECONDS = LIMIT


@dataclass
class ServerProcess:
    """A karmada-apiserver process over one data directory; it can be killed and started again.

    `module` and `greeting`, its first line, select another server with the same life cycle.
    """

    data_dir: Path
    arguments: list[str] = field(default_factory=list)
    port: int = field(default_factory=free_port)
    module: str = "karmada.components.apiserver"
    greeting: str = "Kubernetes API"
    env: dict[str, str] | None = None
    process: subprocess.Popen[str] | None = None

    @property
    def kubeconfig(self) -> Path:
        return self.data_dir / "admin.kubeconfig"

    @property
    def url(self) -> str:
        return str(yaml.safe_load(self.kubeconfig.read_text())["clusters"][0]["cluster"]["server"])

    def start(self) -> None:
        """Start and wait until it reports that it serves; restarts keep the port."""
        command = [sys.executable, "-m", self.module, "--data-dir", str(self.data_dir)]
        command += ["--port", str(self.port), *self.arguments]
        log = (self.data_dir / "server.log").open("a") if self.data_dir.exists() else None
        if log is None:
            self.data_dir.mkdir(parents=True)
            log = (self.data_dir / "server.log").open("a")
        self.process = forking.start(command, stdout=subprocess.PIPE, stderr=log, text=True, env=self.env)
        log.close()
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if self.greeting not in line:
            self.process.wait(READY_SECONDS)
            raise AssertionError(f"the server did not start: {line!r}\n{self.log()}")
        self.process.stdout.readline()
        self.port = int(self.url.rsplit(":", 1)[1])

    def log(self) -> str:
        return (self.data_dir / "server.log").read_text()

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait(READY_SECONDS)

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(READY_SECONDS)


@dataclass
class Result:
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.strip().splitlines()

    def json(self) -> Any:
        return json.loads(self.out)


class Program:
    """kubectl or helm with a home of its own, isolated from caches and settings of the machine."""

    def __init__(self, command: list[str], home: Path, kubeconfig: Path) -> None:
        self._command = command
        self.home = home
        self.env = {**os.environ, "HOME": str(home), "KUBECONFIG": str(kubeconfig), "NO_COLOR": "1"}

    def __call__(self, *arguments: str, stdin: str = "", check: bool = True, timeout: float = LIMIT) -> Result:
        done = forking.run([*self._command, *arguments], input=stdin, text=True, timeout=timeout, env=self.env)
        result = Result(done.returncode, done.stdout, done.stderr)
        if check and done.returncode != 0:
            raise AssertionError(f"{arguments} failed ({done.returncode}):\n{done.stdout}\n{done.stderr}")
        return result

    def start(self, *arguments: str, **kwargs: Any) -> subprocess.Popen[str]:
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return forking.start([*self._command, *arguments], text=True, env=self.env, **{**streams, **kwargs})


@dataclass
class ComponentProcess:
    """A component of the control plane as a process of its own; `greeting` is how its first line begins."""

    module: str
    arguments: list[str]
    log_file: Path
    greeting: str
    line: str = ""
    process: subprocess.Popen[str] | None = None

    def __enter__(self) -> ComponentProcess:
        command = [sys.executable, "-m", f"karmada.components.{self.module}", *self.arguments]
        with self.log_file.open("a") as log:
            self.process = forking.start(command, stdout=subprocess.PIPE, stderr=log, text=True)
        assert self.process.stdout is not None
        self.line = self.process.stdout.readline()
        assert self.line.startswith(self.greeting), f"{self.line!r}\n{self.log_file.read_text()}"
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.wait(READY_SECONDS)


def alive(pid: int) -> bool:
    """Whether the process runs; one that only waits for its parent does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):  # the latter when it ends between opening and reading
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def columns(result: Result) -> list[str]:
    return re.split(r"\s{2,}", result.lines[0].strip())
