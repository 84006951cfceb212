"""Which pods go first when there are too many: those whose loss is felt least.

In order: pods without a node, pods that do not run, pods that are not ready, pods that say they are cheap to lose, pods
whose node has many of their kind, pods that became ready lately, pods that restarted often, young pods. Times are
compared by their magnitude only, so that pods which are about equally old go in no particular order.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from karmada.kube.objects import meta
from karmada.kube.objects.times import parse_time
from karmada.kube.objects.types import Obj
from karmada.kube.sim.controllers.podstate import node_name, phase, ready_since, restarts

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASES = {"Pending": 0, "Unknown": 1}
_RUNNING = 2


def victims(pods: Sequence[Obj], count: int, related: Iterable[Obj], now: float) -> list[Obj]:
    """The `count` pods to delete; `related` are all active pods of the same workload, by which nodes are judged."""
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
    """What cannot be read counts as nothing."""
    text = meta.annotations(pod).get(DELETION_COST, "0")
    try:
        return int(text)
    except ValueError:
        return 0


def _magnitude(since: float, now: float) -> int:
    age = (now - since) * 1e9
    return int(math.log2(age)) if age >= 1 else -1
