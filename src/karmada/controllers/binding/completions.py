"""How many completions of a Job each of its clusters gets: in proportion to its replicas there."""

from __future__ import annotations

from collections.abc import Mapping

from karmada.kube.objects.names import fnv32a
from karmada.scheduler.webster import dispense


def shares(completions: int, replicas: Mapping[str, int], uid: str = "") -> dict[str, int]:
    """Completions by cluster; empty when no cluster has replicas.

    Ties are broken by cluster name, ascending or descending depending on the Job's `uid`, so that the remainders of
    many Jobs are spread.
    """
    return dispense(completions, replicas, descending=bool(uid) and fnv32a(uid) % 2 == 1)
