"""Replicas that were placed a moment ago and do not show in the clusters' figures yet.

They are counted against the room of their cluster until they run well there (the binding says so), are moved away, or
five minutes have passed. All are kept equally long, so the oldest are always in front.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from karmada.estimator.terms import Assumption
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key, key_of

SECONDS = 300.0
_HEALTHY = "Healthy"


class Assumptions:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._held: dict[Key, tuple[float, set[str]]] = {}
        """Until when, and for which clusters; in the order of time."""
        self._by_cluster: dict[str, dict[Key, Assumption]] = {}
        self._lists: dict[str, Sequence[Assumption]] = {}
        self._changed: set[str] = set()

    def note(self, binding: Obj, targets: Sequence[Obj]) -> None:
        """Note where a workload goes now."""
        key = key_of(binding)
        self.forget(key)
        for target in targets:
            self._by_cluster.setdefault(target["name"], {})[key] = _assumption(binding, target)
            self._changed.add(target["name"])
        self._held[key] = (self._clock.monotonic() + SECONDS, {target["name"] for target in targets})

    def forget(self, key: Key) -> None:
        held = self._held.pop(key, None)
        for cluster in () if held is None else held[1]:
            self._release(key, cluster)

    def _release(self, key: Key, cluster: str) -> None:
        there = self._by_cluster[cluster]
        del there[key]
        if not there:
            del self._by_cluster[cluster]
        self._changed.add(cluster)

    def observe(self, old: Obj | None, new: Obj) -> None:
        """Drop the assumptions on what has come to run well in a cluster: it shows in the cluster's figures."""
        key = key_of(new)
        held = self._held.get(key)
        if held is None:
            return
        before = _healthy(old) if old is not None else frozenset()
        for cluster in (_healthy(new) - before) & held[1]:
            held[1].discard(cluster)
            self._release(key, cluster)
        if not held[1]:
            del self._held[key]

    def by_cluster(self) -> Mapping[str, Sequence[Assumption]]:
        self._expire()
        for cluster in self._changed:
            there = self._by_cluster.get(cluster)
            if there is None:
                self._lists.pop(cluster, None)
            else:
                self._lists[cluster] = list(there.values())
        self._changed.clear()
        return self._lists

    def _expire(self) -> None:
        now = self._clock.monotonic()
        while self._held:
            key, (until, _) = next(iter(self._held.items()))
            if until > now:
                return
            self.forget(key)


def _healthy(binding: Obj) -> frozenset[str]:
    items = (binding.get("status") or {}).get("aggregatedStatus") or ()
    return frozenset(item["clusterName"] for item in items if item.get("health") == _HEALTHY)


def _assumption(binding: Obj, target: Obj) -> Assumption:
    spec = binding["spec"]
    resource = spec.get("resource") or {}
    components = spec.get("components")
    if not components:
        one: Obj = {"name": resource.get("name") or "", "replicas": target.get("replicas") or 0}
        if spec.get("replicaRequirements") is not None:
            one["replicaRequirements"] = spec["replicaRequirements"]
        components = [one]
    return Assumption(resource.get("namespace") or "", components)
