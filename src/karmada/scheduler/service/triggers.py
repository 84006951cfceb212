"""Which bindings a scheduler looks at: those that are its own, and those that a changed cluster may concern.

A binding is looked at when it becomes ours (made, let go on, given to this scheduler) and when its spec changed. A
cluster whose labels or spec changed, or that begins to go, concerns the bindings whose affinity selects it as it was or
as it is. Those are found by their placement: bindings of one policy share it, so it is judged once for all of them.
A cluster that serves new kinds concerns the bindings of those kinds that no cluster fitted: a custom resource is often
made before its definition has come everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from karmada.api import well_known
from karmada.api.matching import cluster_matches
from karmada.kube.objects import meta
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.keys import Key
from karmada.scheduler.failures import Reason
from karmada.scheduler.placement import plan_of

DEFAULT_NAME = "default-scheduler"
BY_PLACEMENT = "placement"
UNPLACED = "unplaced"
"""Bindings that no cluster fitted, by the kind of their template: `apiVersion|kind`."""
_MARKS = (well_known.POLICY_ID, well_known.CLUSTER_POLICY_ID, well_known.BINDING_MANAGED_BY)


def index_by_placement(binding: Obj) -> Iterable[str]:
    placement = (binding.get("spec") or {}).get("placement")
    return (orjson.dumps(placement).decode(),) if placement is not None else ()


def index_unplaced(binding: Obj) -> Iterable[str]:
    scheduled = meta.get_condition((binding.get("status") or {}).get("conditions"), "Scheduled")
    if scheduled is None or scheduled.get("reason") != Reason.NO_CLUSTER_FIT:
        return ()
    resource = binding["spec"]["resource"]
    return (f"{resource.get('apiVersion')}|{resource.get('kind')}",)


def newly_served(old: Obj | None, new: Obj | None) -> set[str]:
    """The kinds that a cluster did not serve before, as `index_unplaced` writes them."""
    before, after = _enablements(old), _enablements(new)
    return set() if before == after else _kinds(after) - _kinds(before)


def _enablements(cluster: Obj | None) -> list[Obj]:
    return (((cluster or {}).get("status") or {}).get("apiEnablements")) or []


def _kinds(enablements: list[Obj]) -> set[str]:
    return {
        f"{group.get('groupVersion')}|{resource.get('kind')}"
        for group in enablements
        for resource in group.get("resources") or ()
    }


def is_suspended(binding: Obj) -> bool:
    return bool(((binding.get("spec") or {}).get("suspension") or {}).get("scheduling"))


class Ours:
    """The bindings of the scheduler of this name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def named(self, binding: Obj) -> bool:
        return ((binding.get("spec") or {}).get("schedulerName") or DEFAULT_NAME) == self._name

    def served(self, binding: Obj) -> bool:
        """Whether it may be scheduled here now."""
        return self.named(binding) and not is_suspended(binding)

    def __call__(self, binding: Obj) -> bool:
        """Whether its changes are heard."""
        labels = meta.labels(binding)
        return self.served(binding) and any(labels.get(mark) for mark in _MARKS)

    def worth_a_look(self, old: Obj | None, new: Obj | None) -> bool:
        """A predicate for changes of bindings."""
        if new is None or is_known(old, new) or not self(new):
            return False
        return old is None or _identity(old) != _identity(new) or not self(old)


def is_known(old: Obj | None, new: Obj) -> bool:
    """Whether all that can tell whose a binding is, and what it wants, is as it was."""
    return old is not None and _identity(old) == _identity(new) and meta.labels(old) == meta.labels(new)


def _identity(binding: Obj) -> tuple[str | None, int | None]:
    metadata = binding["metadata"]
    return metadata.get("uid"), metadata.get("generation")


def concerns_bindings(old: Obj | None, new: Obj | None) -> list[Obj]:
    """A changed cluster as bindings should be matched with it: as it was and as it is, or not at all."""
    if old is None or new is None:
        return []
    if meta.is_deleting(new) and not meta.is_deleting(old):
        return [new]
    if meta.labels(old) != meta.labels(new) or meta.generation(old) != meta.generation(new):
        return [old, new]
    return []


def bindings_for(cluster: Obj, bindings: Informer, ours: Ours) -> Iterable[Key]:
    """The bindings that may want to know of this cluster."""
    for placement in list(bindings.cache.index_values(BY_PLACEMENT)):
        parsed: Any = orjson.loads(placement)
        selects = _Selects(parsed, cluster)
        for key in bindings.keys_by_index(BY_PLACEMENT, placement):
            binding = bindings.get(key)
            if binding is not None and ours.served(binding) and selects(binding):
                yield key


class _Selects:
    """Whether a binding with this placement may take the cluster; each group of clusters is judged once."""

    def __init__(self, placement: Obj, cluster: Obj) -> None:
        self._plan = plan_of(placement)
        self._cluster = cluster
        self._known: dict[str, bool] = {}

    def __call__(self, binding: Obj) -> bool:
        terms = self._plan.terms
        if not terms:
            return self._judge("", self._plan.affinity)
        status = binding.get("status") or {}
        if status.get("schedulerObservedGeneration") != meta.generation(binding):
            return True
        term = terms[self._plan.first_term(status.get("schedulerObservingAffinityName") or "")]
        return self._judge(term.get("affinityName") or "", term)

    def _judge(self, name: str, affinity: Obj | None) -> bool:
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = affinity is None or cluster_matches(affinity, self._cluster)
        return known
