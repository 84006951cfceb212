"""resourceVersions as numbers, to see which of two states of an object is the newer one."""

from __future__ import annotations

from karmada.kube.objects.types import Obj


def number(text: str) -> int:
    """0 for what is no number."""
    return int(text) if text.isdecimal() else 0


def version(obj: Obj) -> int:
    return number(obj["metadata"].get("resourceVersion", ""))
