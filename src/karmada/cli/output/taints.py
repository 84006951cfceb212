"""Taints as text."""

from __future__ import annotations

from karmada.kube.objects.types import Obj


def taint_text(taint: Obj) -> str:
    """`key=value:effect`, without what it does not have."""
    value = f"={taint['value']}" if taint.get("value") else ""
    effect = f":{taint['effect']}" if taint.get("effect") else ""
    return f"{taint['key']}{value}{effect}"
