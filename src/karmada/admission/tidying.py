"""Fields that say nothing leave the object, as they do when a typed program writes it back.

Which fields may leave is a set of names for each kind: a field that distinguishes "empty" from "absent" is not in it.
An object therefore looks the same whether somebody wrote `propagateDeps: false` or nothing, and a rule that looks for a
list does not trip over an empty one.
"""

from __future__ import annotations

from typing import Any

AFFINITY = frozenset({"clusterNames", "exclude", "matchLabels", "matchExpressions", "values"})
SELECTOR = frozenset({"namespace", "name"})


def drop_empty(value: Any, names: frozenset[str]) -> None:
    """Remove, at any depth and in place, the named fields that are empty, false or zero."""
    if isinstance(value, dict):
        empty = [key for key, found in value.items() if not found and key in names]
        for key in empty:
            del value[key]
        for found in value.values():
            drop_empty(found, names)
    elif isinstance(value, list):
        for item in value:
            drop_empty(item, names)
