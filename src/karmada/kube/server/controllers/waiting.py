"""How long to wait before looking again at an object whose deletion is held up by somebody else."""

from __future__ import annotations

from karmada.kube.objects.times import parse_time
from karmada.kube.objects.types import Obj

_SHORTEST, _LONGEST = 0.2, 5.0


def look_again_after(deleting: Obj, now: float) -> float:
    """Half as long as it has lasted already: what ends soon is seen soon, and what hangs costs next to nothing."""
    return min(_LONGEST, max(_SHORTEST, (now - parse_time(deleting["metadata"]["deletionTimestamp"])) / 2))
