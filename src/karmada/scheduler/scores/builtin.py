"""The scores: staying where one is, is better; being selected by an affinity makes no difference."""

from __future__ import annotations

import numpy as np

from karmada.estimator.amounts import Ints
from karmada.scheduler.fleet import Fleet
from karmada.scheduler.request import Request
from karmada.scheduler.scores.protocol import MOST


class ClusterLocality:
    """Full points for the clusters that the resource is in."""

    name = "ClusterLocality"

    def points(self, request: Request, fleet: Fleet, slots: Ints) -> Ints | None:
        here = [fleet.slots[name] for name in request.previous if name in fleet.slots]
        if not here:
            return None
        points = np.zeros(fleet.size, np.int64)
        points[here] = MOST
        return points[slots]


class ClusterAffinity:
    """No points: an affinity selects or does not."""

    name = "ClusterAffinity"

    def points(self, request: Request, fleet: Fleet, slots: Ints) -> Ints | None:  # noqa: ARG002
        return None
