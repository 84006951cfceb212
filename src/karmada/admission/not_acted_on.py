"""Kinds that are stored and validated although no part acts on them yet: a write gets a warning that says so.

An entry goes when the part that acts on its kind comes; a test compares this table with what controllers use, and with
docs/kinds.md.
"""

from __future__ import annotations

from typing import Final

from karmada.admission.context import Settings
from karmada.kube.objects.gvk import GroupResource

NOT_ACTED_ON: Final[dict[GroupResource, str]] = {
    GroupResource("search.karmada.io", "resourceregistries"): "ResourceRegistry",
}
_NEEDS_GATE: Final = {GroupResource("networking.karmada.io", "multiclusterservices"): "MultiClusterService"}
"""Kinds whose controllers run only where the gate of the same name is on."""


def warning_of(resource: GroupResource, settings: Settings) -> str:
    """Empty for a kind that something acts on."""
    needed = _NEEDS_GATE.get(resource)
    if needed is not None:
        text = f"{needed}: stored; nothing acts on it without --feature-gates={needed}=true"
        return "" if settings.enabled(needed) else text
    kind = NOT_ACTED_ON.get(resource, "")
    return f"{kind}: stored; nothing acts on it yet" if kind else ""
