"""Which nodes a node claim selects: by labels, by node affinity, and by the taints it tolerates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import orjson

from karmada.api.taints import is_tolerated
from karmada.kube.objects.node_selection import NodeSelection
from karmada.kube.objects.types import Obj


def claim_of(requirements: Obj | None) -> Obj | None:
    return (requirements or {}).get("nodeClaim")


def claim_key(claim: Obj | None) -> bytes:
    """Equal for equal claims; a claim that says nothing is like none."""
    return orjson.dumps({name: value for name, value in (claim or {}).items() if value is not None}) if claim else b""


class Matcher:
    """The rule of one claim; None is the claim of a pod that says nothing about its node."""

    __slots__ = ("_selection", "_tolerations")

    def __init__(self, claim: Obj | None) -> None:
        claim = claim or {}
        selector, affinity = claim.get("nodeSelector"), claim.get("hardNodeAffinity")
        self._selection = NodeSelection(selector, affinity) if selector or affinity is not None else None
        self._tolerations: Sequence[Obj] = claim.get("tolerations") or ()

    @property
    def selects_all(self) -> bool:
        """Return whether labels and names do not matter."""
        return self._selection is None

    def selects(self, name: str, labels: Mapping[str, str]) -> bool:
        return self._selection is None or self._selection.matches(labels, name)

    def tolerates(self, taints: Iterable[Obj]) -> bool:
        return all(is_tolerated(taint, self._tolerations) for taint in taints)
