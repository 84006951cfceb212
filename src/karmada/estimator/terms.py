"""What the scheduler and every estimator exchange."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from karmada.kube.objects.types import Obj

MAX_REPLICAS = 2**31 - 1
REPLICAS, SETS = "MaxAvailableReplicas", "MaxAvailableComponentSets"
"""What is estimated: how many replicas fit, or complete sets of components; as metrics name it."""


class EstimateError(Exception):
    """There is no estimate; the text says why."""


class Assumption(NamedTuple):
    """Replicas that were given to a cluster a moment ago and that its reported usage does not show yet.

    Components have the form of the binding's.
    """

    namespace: str
    components: Sequence[Obj]


class MemberEstimator(Protocol):
    """An estimator of one member by its own nodes and pods; EstimateError where the answer is unknown."""

    cluster: str

    def max_available_replicas(self, requirements: Obj | None, assumed: Sequence[Assumption] = ()) -> int:
        """Return how many more replicas fit; `requirements` is None when nothing is known but that they are Pods."""
        ...

    def max_available_component_sets(
        self, components: Sequence[Obj], namespace: str = "", assumed: Sequence[Assumption] = ()
    ) -> int:
        """Return how many complete sets of the components fit."""
        ...

    def unschedulable_replicas(self, resource: Obj | None, threshold_seconds: float) -> int:
        """Return how many Pods of the workload have been unschedulable for longer than the threshold."""
        ...
