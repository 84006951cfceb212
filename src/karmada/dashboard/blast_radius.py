"""The preview of a policy before it is applied: which replicas of which resources would move where.

The same simulation as `karmadactl simulate -f policy.yaml`, with the viewer's own rights.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from karmada.dashboard.security import path_refused
from karmada.kube.client.manifests import load_manifests
from karmada.kube.objects.types import Obj
from karmada.prediction import rebalancing
from karmada.prediction.errors import PredictionError
from karmada.prediction.scheduling import counts
from karmada.prediction.simulation import NothingSelected, simulate, sorted_out
from karmada.prediction.trials import Outcome, Trial
from karmada.prediction.world import World

if TYPE_CHECKING:
    from karmada.kube.client.client import Client


MOST_POLICIES: Final = 100
"""In one text: each is tried on everything that it selects."""


@dataclass(frozen=True, slots=True)
class Change:
    """The change of one resource; replicas by cluster, None in place of a number where replicas are not divided."""

    kind: str
    namespace: str
    name: str
    before: dict[str, int | None]
    after: dict[str, int | None]
    moved: int
    """Replicas (or, where they are not divided, copies) that go to a cluster they are not in."""
    failure: str
    notes: Sequence[str]

    @property
    def same(self) -> bool:
        return self.before == self.after and not self.failure


@dataclass(frozen=True, slots=True)
class Radius:
    changes: Sequence[Change]
    """One for each resource that the policies select; what changes most comes first."""
    clusters: Sequence[tuple[str, int, int]]
    """Name, replicas before and after, of those whose number changes."""
    notes: Sequence[str] = ()

    @property
    def changed(self) -> list[Change]:
        return [one for one in self.changes if not one.same]

    @property
    def moved(self) -> int:
        return sum(one.moved for one in self.changes)


def policies_in(text: str) -> list[Obj]:
    """The policies of a YAML text; PredictionError if there is anything else in it, or nothing."""
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
    """PredictionError says what is wrong with the policies."""
    given = sorted_out(await asyncio.to_thread(policies_in, text))
    try:
        found = await simulate(await World().over(client), given, Trial(), namespace)
    except NothingSelected:
        return Radius((), (), ["The policy selects nothing that exists."])
    changes = sorted(map(change_of, found.outcomes), key=lambda one: (one.same, -one.moved, one.namespace, one.name))
    clusters = [one for one in rebalancing.totals(found.outcomes) if one[1] != one[2]]
    return Radius(changes, clusters, found.notes)


def change_of(outcome: Outcome) -> Change:
    divided = outcome.decision.attempts[0].request.divides_replicas
    before, after = (_places(targets, divided=divided) for targets in (outcome.before, outcome.after))
    failure = outcome.decision.failure
    metadata = outcome.resource["metadata"]
    return Change(
        str(outcome.resource["kind"]),
        str(metadata.get("namespace") or ""),
        str(metadata["name"]),
        before,
        after,
        rebalancing.moves(outcome) if divided else len(after.keys() - before.keys()),
        "" if failure is None else f"{failure.reason}: {failure.text}",
        outcome.notes,
    )


def _places(targets: Iterable[Obj], *, divided: bool) -> dict[str, int | None]:
    return {name: count if divided else None for name, count in sorted(counts(targets).items())}
