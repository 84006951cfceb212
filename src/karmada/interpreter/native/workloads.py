"""The counters in the status of the kinds that run Pods: those reported by clusters are those that are added up.

All these kinds also report which generation their controller has observed, StatefulSets included. Karmada itself leaves
it out for them, and the observedGeneration of their templates stands still, on which `helm --wait` and
`kubectl rollout status` wait for ever.
"""

from __future__ import annotations

from typing import NamedTuple

from karmada.interpreter.native.kinds import DAEMON_SET, DEPLOYMENT, REPLICA_SET, STATEFUL_SET
from karmada.kube.objects.gvk import GVK


class Counter(NamedTuple):
    field: str
    always: bool = False
    """True if a zero is written down, too."""


_REPLICAS = Counter("replicas", always=True)

COUNTERS: dict[GVK, tuple[Counter, ...]] = {
    DEPLOYMENT: (
        Counter("replicas"), Counter("updatedReplicas"), Counter("readyReplicas"), Counter("availableReplicas"),
        Counter("unavailableReplicas"),
    ),
    REPLICA_SET: (_REPLICAS, Counter("readyReplicas"), Counter("availableReplicas")),
    STATEFUL_SET: (
        _REPLICAS, Counter("readyReplicas"), Counter("currentReplicas"), Counter("updatedReplicas"),
        Counter("availableReplicas", always=True),
    ),
    DAEMON_SET: (
        Counter("currentNumberScheduled", always=True), Counter("numberMisscheduled", always=True),
        Counter("desiredNumberScheduled", always=True), Counter("numberReady", always=True),
        Counter("updatedNumberScheduled"), Counter("numberAvailable"), Counter("numberUnavailable"),
    ),
}  # fmt: skip
