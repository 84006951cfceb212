"""The placement that the scheduler applied last, and when the taints of a cluster evict by it.

The annotation counts, not spec.placement: a placement that is not scheduled yet must not decide about what runs.
"""

from __future__ import annotations

import orjson

from karmada.api.taints import FOREVER, no_execute_taints, tolerated_until
from karmada.api.well_known import APPLIED_PLACEMENT
from karmada.kube.objects import meta
from karmada.kube.objects.types import Obj


def applied_placement(binding: Obj) -> str:
    return meta.annotations(binding).get(APPLIED_PLACEMENT, "")


def evicted_at(binding: Obj, cluster: Obj | None) -> float:
    """When a binding has to leave a cluster; FOREVER when its taints do not say so."""
    taints = [] if cluster is None else no_execute_taints(cluster)
    return tolerated_until(taints, _tolerations(applied_placement(binding))) if taints else FOREVER


def _tolerations(applied: str) -> list[Obj]:
    """Return the tolerations of a placement; none of one that cannot be read."""
    try:
        placement = orjson.loads(applied)
    except ValueError:
        return []
    return (placement.get("clusterTolerations") or []) if isinstance(placement, dict) else []
