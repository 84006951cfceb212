"""The preview of a policy before it is applied: which replicas of which resources would move where.

The same simulation as `karmadactl simulate -f policy.yaml`, with the viewer's own rights.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from karmada.dashboard.security import path_refused
from karmada.kube.client.manifests import load_manifests
from karmada.kube.objects.types import Obj
from karmada.prediction import rebalancing
from karmada.prediction.errors import PredictionError
from karmada.prediction.simulation import NothingSelected, simulate, sorted_out
from karmada.prediction.trials import Outcome, Trial
from karmada.prediction.world import World

if TYPE_CHECKING:
    from karmada.kube.client.client import Client


MOST_POLICIES: Final = 100
"""In one text: each is tried on everything that it selects."""


@dataclass(frozen=True, slots=True)
class Radius:
    outcomes: Sequence[Outcome]
    """One for each resource that the policies select; what changes most comes first."""
    clusters: Sequence[tuple[str, int, int]]
    """Name, replicas before and after, of those whose number changes."""
    notes: Sequence[str] = ()

    @property
    def changed(self) -> int:
        return sum(not one.same for one in self.outcomes)

    @property
    def moved(self) -> int:
        return sum(one.copies for one in self.outcomes)


def policies_in(text: str) -> list[Obj]:
    """Return the policies of a YAML text; PredictionError if there is anything else in it, or nothing."""
    try:
        objects = load_manifests(text.encode())
    except ValueError as error:
        raise PredictionError(str(error)) from error
    given = sorted_out(objects)
    if given.resources or given.rebalanced or not given.policies:
        raise PredictionError("give one or more PropagationPolicies or ClusterPropagationPolicies, and nothing else")
    if len(given.policies) > MOST_POLICIES:
        raise PredictionError(f"give at most {MOST_POLICIES} policies at once")
    for policy in given.policies:
        metadata = policy["metadata"]
        refused = path_refused([str(metadata["name"]), str(metadata.get("namespace") or "default")])
        if refused:
            raise PredictionError(f"metadata of {policy['kind']}: {refused}")
    return given.policies


async def radius_of(client: Client, text: str, namespace: str = "default") -> Radius:
    """Return what the policies would change; PredictionError says what is wrong with them."""
    given = sorted_out(await asyncio.to_thread(policies_in, text))
    try:
        found = await simulate(await World().over(client), given, Trial(), namespace)
    except NothingSelected:
        return Radius((), (), ["The policy selects nothing that exists."])
    outcomes = sorted(found.outcomes, key=_order)
    clusters = [one for one in rebalancing.totals(found.outcomes) if one[1] != one[2]]
    return Radius(outcomes, clusters, found.notes)


def _order(outcome: Outcome) -> tuple[bool, int, str, str]:
    metadata = outcome.resource["metadata"]
    return outcome.same, -outcome.copies, metadata.get("namespace") or "", metadata["name"]
