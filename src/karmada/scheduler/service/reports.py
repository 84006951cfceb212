"""Which clusters a binding reports something new of: there, estimates from before are out of date."""

from __future__ import annotations

from collections.abc import Sequence

from karmada.kube.objects.types import Obj


def reported_changes(old: Obj | None, new: Obj) -> list[str]:
    """Return the clusters for which a binding has another status than before."""
    before, after = _statuses(old), _statuses(new)
    if before == after:
        return []
    first, second = ({item["clusterName"]: item for item in items} for items in (before, after))
    return [name for name in first | second if first.get(name) != second.get(name)]


def _statuses(binding: Obj | None) -> Sequence[Obj]:
    return ((binding or {}).get("status") or {}).get("aggregatedStatus") or ()
