"""`karmadactl local-up` in a home of its own, steered as people do it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from karmada.api.cluster import Cluster
from karmada.kube.client.client import Client
from karmada.kube.client.http_transport import HttpTransport
from karmada.kube.client.kubeconfig import load_config
from karmada.kube.objects import meta
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.types import Obj
from karmada.local.folder import Folder
from karmada.local.programs import found
from tests.support.eventually import LIMIT, eventually_blocking
from tests.support.programs import Program, Result

START_SECONDS = 60.0
PORT = ("--port", "0")
"""Others use the usual port on this machine."""


class LocalEnvironment:
    def __init__(self, root: Path, kubectl: str = "kubectl") -> None:
        self.home = root / "home"
        self.home.mkdir(parents=True)
        self.folder = self.home / ".karmada"
        self.control_kubeconfig = self.folder / "karmada-apiserver.config"
        self.members_kubeconfig = self.folder / "members.config"
        self._command = [sys.executable, "-m", "karmada.cli.karmadactl"]
        self.ctl = Program(self._command, self.home, self.control_kubeconfig)
        self.kubectl = Program([kubectl], self.home, self.control_kubeconfig)
        self._kubectl = kubectl

    def member(self, name: str) -> Program:
        return Program([self._kubectl, "--context", name], self.home, self.members_kubeconfig)

    def up(self, *flags: str, check: bool = True) -> Result:
        """In the background; returns when everything runs."""
        return self.ctl("local-up", "--detach", *flags, check=check, timeout=START_SECONDS)

    @contextmanager
    def foreground(self, *flags: str) -> Iterator[Foreground]:
        """In the foreground, up to the moment when it says how to go on; killed at the end if it still runs."""
        process = self.ctl.start("local-up", *flags)
        try:
            yield Foreground(process)
        finally:
            if process.poll() is None:
                process.kill()
            process.communicate()
            eventually_blocking(lambda: not self.pids())

    def down(self, *flags: str) -> Result:
        return self.ctl("local-down", *flags)

    def status(self) -> dict[str, Any]:
        return dict(self.ctl("local-status", "-o", "json", check=False).json())

    def pids(self) -> dict[str, int]:
        """Of those that run."""
        return {name: holder.pid for name, holder in found(Folder(self.folder)).items()}

    def clusters(self) -> dict[str, Obj]:
        return {meta.name(cluster): cluster for cluster in listed(self.control_kubeconfig, Cluster.gvr)}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        """Stop; no program must have had anything unexpected to complain about."""
        self.down()
        if kind is None:
            for log in self.folder.glob("logs/*.log"):
                assert "Traceback" not in log.read_text(), log.read_text()


def listed(kubeconfig: Path, kind: GVR, context: str = "", namespace: str = "", labels: str = "") -> list[Obj]:
    """As `kubectl get` does, without a program: for what is waited for."""

    async def look() -> list[Obj]:
        client = Client(HttpTransport(load_config(kubeconfig, context=context)))
        try:
            return (await client.list_all(kind, namespace, label_selector=labels)).items
        finally:
            await client.close()

    return asyncio.run(look())


class Foreground:
    """A `local-up` that stays."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.said: list[str] = []
        assert process.stdout is not None
        for line in process.stdout:
            self.said.append(line.rstrip())
            if "Logs are in" in line:
                break

    def interrupt(self) -> str:
        self._process.send_signal(signal.SIGINT)
        return self.end()

    def kill(self) -> None:
        os.kill(self._process.pid, signal.SIGKILL)
        self._process.wait(LIMIT)

    def end(self) -> str:
        """What it said from then on, when it has ended by itself."""
        out, err = self._process.communicate(timeout=LIMIT)
        return out + err

    @property
    def code(self) -> int:
        return self._process.wait(LIMIT)


def contexts(kubeconfig: Path, kubectl: Program) -> list[str]:
    return kubectl("--kubeconfig", str(kubeconfig), "config", "get-contexts", "-o", "name").lines


def settings(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "local.json").read_bytes()))
