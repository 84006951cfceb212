"""Which bindings a scheduler reconciles: those that are its own, and those that a changed cluster may concern.

A binding is reconciled when it becomes ours (created, resumed, given to this scheduler) and when its spec changed. A
cluster whose labels or spec changed, or that begins to go, concerns the bindings whose affinity selects it as it was or
as it is. Those are found by an index: bindings of one policy share a placement, so it is judged once for all of them
and none of them is read.
A cluster that serves a kind anew concerns the bindings of that kind whose affinity selects it: a custom resource is
often made before its definition has come everywhere. One that is known not to serve a kind any more concerns those that
it has.
A FederatedResourceQuota that leaves more than before concerns the bindings of its namespace that a quota refused.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import NamedTuple

import orjson

from karmada.api import well_known
from karmada.api.matching import cluster_matches
from karmada.kube.objects import meta
from karmada.kube.objects.quantity import Quantity
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.cache import ignores_status
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.time_slice import in_slices
from karmada.scheduler.placement import plan_of
from karmada.scheduler.service.writing import SCHEDULED

DEFAULT_NAME = "default-scheduler"
BY_PLACEMENT, BY_GROUP = "placement", "placement-group"
BY_KIND = "template-kind"
"""Bindings by the kind of their template: `apiVersion|kind`."""
_COMPLETE = "CompleteAPIEnablements"
_MARKS = (well_known.POLICY_ID, well_known.CLUSTER_POLICY_ID, well_known.BINDING_MANAGED_BY)


@ignores_status
def index_by_placement(binding: Obj) -> Iterable[str]:
    """Return the key by scheduler and placement, of bindings whose placement has no groups of clusters."""
    spec = binding.get("spec") or {}
    placement = spec.get("placement")
    if placement is None or placement.get("clusterAffinities") or is_suspended(binding):
        return ()
    return (_placement_key(spec, "", placement),)


def index_by_group(binding: Obj) -> Iterable[str]:
    """Return the key by scheduler, placement and the group that counts, of bindings whose placement has groups."""
    spec = binding.get("spec") or {}
    placement = spec.get("placement")
    if not placement or not placement.get("clusterAffinities") or is_suspended(binding):
        return ()
    return (_placement_key(spec, _group(binding, placement), placement),)


def _placement_key(spec: Obj, group: str | None, placement: Obj) -> str:
    return orjson.dumps([spec.get("schedulerName") or DEFAULT_NAME, group, placement]).decode()


def _group(binding: Obj, placement: Obj) -> str | None:
    """Return the name of the group of clusters that was taken last; None while any may be taken, "" without groups."""
    if not placement.get("clusterAffinities"):
        return ""
    status = binding.get("status") or {}
    if status.get("schedulerObservedGeneration") != meta.generation(binding):
        return None
    return status.get("schedulerObservingAffinityName") or ""


def is_pending(binding: Obj) -> bool:
    """Return whether nobody has decided on a binding as it is; not one that could not be scheduled the last time."""
    status = binding.get("status") or {}
    if status.get("schedulerObservedGeneration") == meta.generation(binding):
        return False
    return not meta.has_condition(status.get("conditions"), SCHEDULED, "False")


@ignores_status
def index_by_kind(binding: Obj) -> Iterable[str]:
    resource = (binding.get("spec") or {}).get("resource") or {}
    return (f"{resource.get('apiVersion')}|{resource.get('kind')}",)


class ServedKinds(NamedTuple):
    """How the kinds that a cluster serves have changed, as `index_by_kind` writes them."""

    gained: frozenset[str] = frozenset()
    served: frozenset[str] | None = None
    """All of them, where it has become certain that there are no others."""


def served_kinds(old: Obj | None, new: Obj | None) -> ServedKinds:
    if new is None:
        return ServedKinds()
    before, after, certain = _enablements(old), _enablements(new), _is_complete(new)
    if before == after and (not certain or _is_complete(old)):
        return ServedKinds()
    kinds = _kinds(after)
    return ServedKinds(kinds - _kinds(before), kinds if certain and old is not None else None)


def _is_complete(cluster: Obj | None) -> bool:
    return meta.has_condition(((cluster or {}).get("status") or {}).get("conditions"), _COMPLETE)


async def bindings_of_kinds(
    cluster: Obj, changed: ServedKinds, bindings: Informer, ours: SchedulerSelector
) -> AsyncIterator[Key]:
    """Yield the bindings that may come to a cluster for a kind it gained, or must leave it for one it lost."""
    name = cluster["metadata"]["name"]
    lost = set() if changed.served is None else set(bindings.index_values(BY_KIND)) - changed.served
    for kind in changed.gained | lost:
        async for key in in_slices(bindings.keys_by_index(BY_KIND, kind)):
            binding = bindings.get(key)
            if binding is None or not ours.served(binding):
                continue
            if name in targets_of(binding):
                if kind in lost:
                    yield key
            elif kind in changed.gained and _may_take(binding, cluster):
                yield key


def frees_quota(old: Obj | None, new: Obj | None) -> bool:
    """Return whether a quota refuses less than before: a higher limit or none, or less that is used of it."""
    if old is None:
        return False
    return new is None or any(
        name not in left or left[name] > amount for left in (_left(new),) for name, amount in _left(old).items()
    )


def _left(quota: Obj) -> dict[str, Quantity]:
    used = (quota.get("status") or {}).get("overallUsed") or {}
    overall = (quota.get("spec") or {}).get("overall") or {}
    return {name: Quantity.parse(limit) - Quantity.parse(used.get(name, 0)) for name, limit in overall.items()}


def targets_of(binding: Obj) -> set[str]:
    return {target["name"] for target in (binding.get("spec") or {}).get("clusters") or ()}


def _may_take(binding: Obj, cluster: Obj) -> bool:
    placement = (binding.get("spec") or {}).get("placement") or {}
    return _selects(placement, _group(binding, placement), cluster)


def _enablements(cluster: Obj | None) -> list[Obj]:
    return (((cluster or {}).get("status") or {}).get("apiEnablements")) or []


def _kinds(enablements: list[Obj]) -> frozenset[str]:
    return frozenset(
        f"{group.get('groupVersion')}|{resource.get('kind')}"
        for group in enablements
        for resource in group.get("resources") or ()
    )


def is_suspended(binding: Obj) -> bool:
    return bool(((binding.get("spec") or {}).get("suspension") or {}).get("scheduling"))


class SchedulerSelector:
    """The bindings of the scheduler of this name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def served(self, binding: Obj) -> bool:
        """Return whether a binding may be scheduled here now."""
        spec = binding.get("spec") or {}
        return (spec.get("schedulerName") or DEFAULT_NAME) == self.name and not is_suspended(binding)

    def __call__(self, binding: Obj) -> bool:
        """Return whether changes of a binding trigger scheduling."""
        labels = meta.labels(binding)
        for mark in _MARKS:  # a loop: this is called for each change of a binding, several times
            if labels.get(mark):
                return self.served(binding)
        return False

    def should_schedule(self, old: Obj | None, new: Obj | None) -> bool:
        """Return a predicate for changes of bindings."""
        if new is None or is_known(old, new) or not self(new):
            return False
        return old is None or _identity(old) != _identity(new) or not self(old)


def is_known(old: Obj | None, new: Obj) -> bool:
    """Return whether all that decides whose a binding is, and what it wants, is as it was."""
    if old is None:
        return False
    before, now = old["metadata"], new["metadata"]
    same = before.get("uid") == now.get("uid") and before.get("generation") == now.get("generation")
    return same and (before.get("labels") or {}) == (now.get("labels") or {})


def _identity(binding: Obj) -> tuple[str | None, int | None]:
    metadata = binding["metadata"]
    return metadata.get("uid"), metadata.get("generation")


def concerns_bindings(old: Obj | None, new: Obj | None) -> list[Obj]:
    """Return a changed cluster as bindings should be matched with it: as it was and as it is, or not at all."""
    if old is None or new is None:
        return []
    if meta.is_deleting(new) and not meta.is_deleting(old):
        return [new]
    if _selectable(old) != _selectable(new):
        return [old, new]
    return [new] if meta.generation(old) != meta.generation(new) else []


def _selectable(cluster: Obj) -> object:
    """Return all that an affinity can select a cluster by, besides its name."""
    spec = cluster.get("spec") or {}
    return meta.labels(cluster), [spec.get(field) for field in ("provider", "region", "zone", "zones")]


async def bindings_for(clusters: Sequence[Obj], bindings: Informer, ours: SchedulerSelector) -> AsyncIterator[Key]:
    """Yield the bindings that one of these states of a cluster may concern."""
    for index in (BY_PLACEMENT, BY_GROUP):
        async for value in in_slices(list(bindings.index_values(index)) if clusters else ()):
            scheduler, group, placement = orjson.loads(value)
            if scheduler == ours.name and any(_selects(placement, group, cluster) for cluster in clusters):
                async for key in in_slices(bindings.keys_by_index(index, value)):
                    yield key


def _selects(placement: Obj, group: str | None, cluster: Obj) -> bool:
    """Return whether a binding with this placement may take the cluster."""
    plan = plan_of(placement)
    if plan.terms and group is None:
        return True
    affinity = plan.terms[plan.first_term(group or "")] if plan.terms else plan.affinity
    return affinity is None or cluster_matches(affinity, cluster)
