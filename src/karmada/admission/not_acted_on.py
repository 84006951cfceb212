"""Kinds that are stored and validated although nothing acts on them without a feature gate: a write gets a warning."""

from __future__ import annotations

from typing import Final

from karmada.admission.context import Settings
from karmada.kube.objects.gvk import GroupResource

_NEEDS_GATE: Final = {GroupResource("networking.karmada.io", "multiclusterservices"): "MultiClusterService"}
"""Kinds whose controllers run only where the gate of the same name is on."""


def warning_of(resource: GroupResource, settings: Settings) -> str:
    """Empty for a kind that something acts on."""
    needed = _NEEDS_GATE.get(resource)
    if needed is None or settings.enabled(needed):
        return ""
    return f"{needed}: stored; nothing acts on it without --feature-gates={needed}=true"
