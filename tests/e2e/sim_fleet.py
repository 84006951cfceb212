"""A folder of simulated clusters, steered as people do it: with karmadactl, kubectl and helm."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from karmada.kube.sim.admin_client import AdminClient
from tests.support import forking
from tests.support.eventually import eventually_blocking
from tests.support.karmadactl import Karmadactl
from tests.support.programs import Program, alive

QUICK = """
latencies:
  schedule: {low: 0.0}
  pull: {low: 0.01}
  start: {low: 0.01}
  ready: {low: 0.02}
  stop: {low: 0.01}
  load_balancer: {low: 0.05}
  provision: {low: 0.02}
first_sample: 0
"""
"""A profile for tests in which no one wants to see how long things take."""


class SimFleet:
    def __init__(self, root: Path, kubectl: str = "kubectl") -> None:
        self.folder = root / "sim"
        self.home = root / "home"
        self.home.mkdir(parents=True)
        self._kubectl = kubectl
        self.ctl: Program = Karmadactl(self.home, self.kubeconfig, "sim", "--data-dir", str(self.folder))

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "members.config"

    def kubectl(self, cluster: str, namespace: str = "default") -> Program:
        return Program([self._kubectl, "--context", cluster, "-n", namespace], self.home, self.kubeconfig)

    def ours(self, cluster: str, namespace: str = "default") -> Karmadactl:
        """karmadactl in place of kubectl, in this process: for what a test prepares, looks up and removes."""
        return Karmadactl(self.home, self.kubeconfig, "--karmada-context", cluster, "-n", namespace)

    def helm(self, cluster: str, namespace: str) -> Program:
        binary = Path(sys.executable).with_name("helm")
        program = Program([str(binary), "--kube-context", cluster, "-n", namespace], self.home, self.kubeconfig)
        for name in ("HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME", "XDG_CACHE_HOME"):
            program.env[name] = str(self.home / name.lower())
        return program

    def create(self, *arguments: str, profile: str = QUICK) -> None:
        file = self.home / "profile.yaml"
        file.write_text(profile)
        self._run()
        self.ctl("create", *arguments, "--profile", str(file))

    def _run(self) -> None:
        """As `sim create` does unless the process runs, with one that need not load first."""
        client = AdminClient(self.folder)
        if client.running():
            return
        self.folder.mkdir(mode=0o700, exist_ok=True)
        command = [sys.executable, "-m", "karmada.components.sim", "--data-dir", str(self.folder)]
        with (self.folder / "sim.log").open("ab") as log:
            streams = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
            process = forking.start(command, **streams, start_new_session=True)
        eventually_blocking(lambda: client.running() or process.poll() is not None)

    def clusters(self) -> dict[str, dict[str, Any]]:
        """What `list -o json` shows, without starting a program."""
        return {cluster["name"]: cluster for cluster in AdminClient(self.folder).request("GET", "/clusters")}

    @property
    def pid(self) -> int:
        return int(json.loads((self.folder / "admin.json").read_bytes())["pid"])

    def kill(self) -> None:
        """As when the machine loses its power."""
        pid = self.pid
        os.kill(pid, signal.SIGKILL)
        eventually_blocking(lambda: not alive(pid))

    def __enter__(self) -> SimFleet:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        """Stop; the process must not have had anything unexpected to complain about."""
        if (self.folder / "admin.json").exists():
            self.ctl("stop", check=False)
        log = self.folder / "sim.log"
        if kind is None and log.exists():
            assert "Traceback" not in log.read_text(), log.read_text()


def names(kubectl: Program, *what: str) -> list[str]:
    return kubectl("get", *what, "-o", "name").lines


def field(kubectl: Program, path: str, *what: str) -> str:
    return kubectl("get", *what, "-o", f"jsonpath={{{path}}}").out
