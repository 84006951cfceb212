"""Which pods are deleted first on a scale-down.

In order: unscheduled pods, pending ones, not ready ones, those with a low pod-deletion-cost, those on nodes with many
pods of the workload, those that became ready recently, those with many restarts, young ones. Times are compared by
order of magnitude, so pods of about the same age are in no particular order.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from karmada.kube.objects import meta
from karmada.kube.objects.podstate import node_name, phase, ready_since, restarts
from karmada.kube.objects.times import parse_time
from karmada.kube.objects.types import Obj

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASES = {"Pending": 0, "Unknown": 1}
_RUNNING = 2


def victims(pods: Sequence[Obj], count: int, related: Iterable[Obj], now: float) -> list[Obj]:
    """Return the `count` pods to delete; `related` are all active pods of the same workload, counted per node."""
    if count >= len(pods):
        return list(pods)
    crowd = Counter(node_name(pod) for pod in related)

    def loss(pod: Obj) -> tuple[Any, ...]:
        node, since = node_name(pod), ready_since(pod)
        return (
            bool(node),
            _PHASES.get(phase(pod), _RUNNING),
            since is not None,
            _cost(pod),
            -crowd[node] if node else 0,
            _magnitude(since or 0.0, now) if since is not None else 0,
            -restarts(pod),
            _magnitude(parse_time(meta.creation_time(pod)), now),
            meta.uid(pod),
        )

    return sorted(pods, key=loss)[:count]


def _cost(pod: Obj) -> int:
    """Return the pod-deletion-cost; 0 if it is invalid."""
    text = meta.annotations(pod).get(DELETION_COST, "0")
    try:
        return int(text)
    except ValueError:
        return 0


def _magnitude(since: float, now: float) -> int:
    age = (now - since) * 1e9
    return int(math.log2(age)) if age >= 1 else -1
