"""/version: who this server says it is."""

from __future__ import annotations

import hashlib
import platform

from karmada.kube.objects.types import Obj


def version_info(kubernetes_version: str) -> Obj:
    """Clients parse gitVersion as a semantic version; the rest is for people."""
    major, minor = kubernetes_version.split(".")
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    return {
        "major": major,
        "minor": minor,
        "emulationMajor": major,
        "emulationMinor": minor,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": str(int(minor) - 1),
        "gitVersion": f"v{kubernetes_version}.0",
        "gitCommit": hashlib.sha1(f"pykarmada {kubernetes_version}".encode(), usedforsecurity=False).hexdigest(),
        "gitTreeState": "clean",
        "buildDate": "2026-11-15T00:00:00Z",
        "goVersion": "go1.26",
        "compiler": "gc",
        "platform": f"{platform.system().lower()}/{machine}",
    }
