"""Simulated members for measurements: the `karmada-sim` process, in memory, and orders to it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.processes import started
from benchmarks.scenario import Place
from karmada.kube.sim.admin_client import AdminClient

KUBECONFIG = "members.config"


@dataclass(frozen=True)
class Simulated:
    process: subprocess.Popen[str]
    folder: Path

    @property
    def kubeconfig(self) -> Path:
        """One context for each cluster, called like it."""
        return self.folder / KUBECONFIG

    def kubeconfig_of(self, cluster: str) -> Path:
        """Of one cluster: the file for all takes as long to read as there are clusters."""
        return self.folder / "clusters" / cluster / "admin.kubeconfig"

    def call(self, method: str, path: str, body: Any = None) -> Any:
        return AdminClient(self.folder).request(method, path, body)


@contextmanager
def simulated(place: Place, name: str = "sim") -> Iterator[Simulated]:
    """No cluster yet."""
    folder = place.folder / name
    command = ("karmada.components.sim", "--data-dir", str(folder), "--in-memory")
    with started(*command, says="simulated clusters", log=place.folder / f"{name}.log") as process:
        yield Simulated(process, folder)
