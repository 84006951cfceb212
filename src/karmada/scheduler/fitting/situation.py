"""Everything a decision depends on that a change can reach, as a value; what is not changed is shared.

A `Situation` never changes; the `with_…` methods make the next one. Clusters are kept as the fleet has them, plus the
few that are different on trial.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from karmada.kube.objects import meta
from karmada.kube.objects.types import Obj
from karmada.scheduler.estimators.estimator_result import EstimatorResult
from karmada.scheduler.fleet import Fleet
from karmada.scheduler.request import Peers, Request

Path = tuple[str | int, ...]
"""Where a value is in an object: names of fields and places in lists."""
New = Callable[[Any], Any]
"""A new value, given the old one; None stands for none."""


def edited(at: Any, path: Path, new: New) -> Any:
    """Return a copy of an object with another value at a path."""
    if not path:
        return new(at)
    first, rest = path[0], path[1:]
    if isinstance(first, int):
        return [*at[:first], edited(at[first], rest, new), *at[first + 1 :]]
    at = at or {}
    value = edited(at.get(first), rest, new)
    return {name: old for name, old in at.items() if name != first} if value is None else {**at, first: value}


def edited_named(objects: Iterable[Obj], name: str, path: Path, new: New) -> list[Obj]:
    """Return the objects, that of the name with another value at a path."""
    return [edited(one, path, new) if meta.name(one) == name else one for one in objects]


@dataclass(frozen=True, slots=True)
class Situation:
    request: Request
    fleet: Fleet
    answers: Sequence[EstimatorResult] = ()
    """Results of estimators that cannot be called again and again: what they returned for this workload."""
    quotas: Sequence[Obj] = ()
    """The FederatedResourceQuotas that the result must not exceed."""
    into: str = ""
    """The cluster that it is to go to; empty if any will do."""
    original: Request | None = None
    """The request before it was changed; None if it was not."""
    changed: Mapping[str, Obj] = field(default_factory=dict)
    """Clusters that are different from those of the fleet, by name."""

    def cluster(self, name: str) -> Obj:
        return self.changed.get(name) or self.fleet.cluster(self.fleet.slots[name])

    def clusters(self) -> list[Obj]:
        """Return all clusters, in the order of names."""
        return [self.cluster(self.fleet.names[slot]) for slot in self.fleet.by_name.tolist()]

    @property
    def placement(self) -> Obj:
        return self.request.spec.get("placement") or {}

    def with_cluster(self, name: str, path: Path, new: New) -> Situation:
        return replace(self, changed={**self.changed, name: edited(self.cluster(name), path, new)})

    def with_quota(self, name: str, path: Path, new: New) -> Situation:
        return replace(self, quotas=edited_named(self.quotas, name, path, new))

    def with_answer(self, estimator: str, new: Callable[[EstimatorResult], EstimatorResult]) -> Situation:
        """Return it with another answer of the estimator."""
        return replace(self, answers=[new(one) if one.name == estimator else one for one in self.answers])

    def with_request(self, path: Path, new: New) -> Situation:
        """Return it with another value in the binding's spec."""
        return self._requested(edited(self.request.spec, path, new))

    def from_scratch(self) -> Situation:
        return self._requested(self.request.spec, fresh=True)

    def with_peers(self, peers: Peers) -> Situation:
        return self._requested(self.request.spec, peers=peers)

    def _requested(self, spec: Obj, *, fresh: bool = False, peers: Peers | None = None) -> Situation:
        old = self.request
        new = Request(
            spec,
            affinity_name=old.affinity_name,
            fresh=fresh or old.fresh,
            peers=peers or old.peers,
            assumed=old.assumed,
        )
        return replace(self, request=new, original=self.original or old)


class MovedPeers:
    """The bindings of a group, with one more or one less target for some of them."""

    def __init__(self, peers: Peers, moved: Iterable[str], cluster: str, *, there: bool) -> None:
        """Return the situation; `moved`: names of bindings that are (`there`) or are not in the cluster."""
        self._peers = peers
        self._moved = frozenset(moved)
        self._cluster = cluster
        self._there = there

    def affinity(self, group: str) -> list[Obj]:
        return [self._seen(binding) for binding in self._peers.affinity(group)]

    def anti_affinity(self, group: str) -> list[Obj]:
        return [self._seen(binding) for binding in self._peers.anti_affinity(group)]

    def _seen(self, binding: Obj) -> Obj:
        if meta.name(binding) not in self._moved:
            return binding
        targets = [target for target in binding["spec"].get("clusters") or () if target["name"] != self._cluster]
        if self._there:
            targets.append({"name": self._cluster})
        return {**binding, "spec": {**binding["spec"], "clusters": targets}}
