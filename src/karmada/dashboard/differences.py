"""How an object in a member differs from its template: by overrides, replicas, defaults, and what the cluster adds."""

from __future__ import annotations

import difflib
from typing import Final, NamedTuple

from karmada.api import well_known
from karmada.dashboard.formatting import as_yaml
from karmada.kube.objects.types import Obj

CONTEXT: Final = 3
MOST_LINES: Final = 2000
"""Comparing costs up to the square of the lines: longer objects are compared as far as that."""
_OWN: Final = frozenset(
    {
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "managedFields",
        "selfLink",
        "ownerReferences",
        "finalizers",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    }
)
"""Fields of metadata that every server sets for itself."""
_OURS: Final = "karmada.io/"
_NOISE: Final = frozenset({"kubectl.kubernetes.io/last-applied-configuration", "deployment.kubernetes.io/revision"})


class Line(NamedTuple):
    sort: str
    """added, removed, same or gap."""
    text: str


def comparable(obj: Obj) -> Obj:
    """Return an object without status, and without what each server or the control plane adds to every object."""
    metadata = {key: value for key, value in obj["metadata"].items() if key not in _OWN}
    for part in ("labels", "annotations"):
        kept = {key: value for key, value in (metadata.get(part) or {}).items() if not _is_ours(key)}
        metadata.pop(part, None)
        if kept:
            metadata[part] = kept
    rest = {key: value for key, value in obj.items() if key not in ("metadata", "status")}
    return {"apiVersion": rest.pop("apiVersion", ""), "kind": rest.pop("kind", ""), "metadata": metadata, **rest}


def _is_ours(key: str) -> bool:
    return _OURS in key or key in _NOISE or key == well_known.MANAGED


def difference(template: Obj, member: Obj) -> list[Line]:
    """Return the changed lines with some around them; nothing if there are none."""
    before, after = (as_yaml(comparable(one)).splitlines() for one in (template, member))
    longest = max(len(before), len(after))
    lines = _compared(before[:MOST_LINES], after[:MOST_LINES])
    cut = [Line("gap", f"only the first {MOST_LINES:,} of {longest:,} lines were compared")]
    return lines + cut if longest > MOST_LINES else lines


def _compared(before: list[str], after: list[str]) -> list[Line]:
    lines: list[Line] = []
    for group in difflib.SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(CONTEXT):
        if lines:
            lines.append(Line("gap", "⋯"))
        for tag, first, last, start, end in group:
            if tag == "equal":
                lines += [Line("same", text) for text in before[first:last]]
                continue
            lines += [Line("removed", text) for text in before[first:last]]
            lines += [Line("added", text) for text in after[start:end]]
    return lines
