"""Reads an AdmissionConfiguration: the configuration of admission plug-ins, inline or in files of their own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from karmada.kube.objects.types import Obj
from karmada.kube.schema.yamlio import load_yaml

GROUP = "apiserver.config.k8s.io"


def read_admission_configuration(path: Path) -> dict[str, Obj]:
    """Return the configuration of each plug-in that the file names; ValueError says what is wrong with the file."""
    raw = _load(path)
    if raw.get("kind") != "AdmissionConfiguration" or not str(raw.get("apiVersion") or "").startswith(f"{GROUP}/"):
        raise ValueError(f"{path}: must be an AdmissionConfiguration of {GROUP}/v1")
    found: dict[str, Obj] = {}
    for plugin in raw.get("plugins") or ():
        if not isinstance(plugin, Mapping) or not plugin.get("name"):
            raise ValueError(f"{path}: every entry of plugins must have a name")
        other = plugin.get("path")
        found[plugin["name"]] = _load(path.parent / other) if other else plugin.get("configuration") or {}
    return found


def _load(path: Path) -> Obj:
    loaded: Any = load_yaml(path.read_bytes())
    if not isinstance(loaded, dict):
        raise ValueError(f"{path}: must hold one object")
    return loaded
