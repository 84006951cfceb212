"""Replicas that were placed a moment ago and do not show in the clusters' figures yet.

They are counted against the room of their cluster until they run there (the binding says so), are moved away, or five
minutes have passed.
"""

from __future__ import annotations

from collections.abc import Sequence

from karmada.kube.objects.clock import Clock
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key, key_of
from karmada.scheduler.request import Assumption

SECONDS = 300.0


class Assumptions:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._held: dict[Key, tuple[float, dict[str, Assumption]]] = {}

    def note(self, binding: Obj, targets: Sequence[Obj]) -> None:
        """This is where a workload goes now."""
        found = {target["name"]: _assumption(binding, target) for target in targets}
        self._held[key_of(binding)] = (self._clock.monotonic() + SECONDS, found)

    def forget(self, key: Key) -> None:
        self._held.pop(key, None)

    def observe(self, binding: Obj) -> None:
        """What runs well in a cluster shows in its figures."""
        key = key_of(binding)
        held = self._held.get(key)
        if held is None:
            return
        for item in (binding.get("status") or {}).get("aggregatedStatus") or ():
            if item.get("health") == "Healthy":
                held[1].pop(item.get("clusterName") or "", None)
        if not held[1]:
            del self._held[key]

    def by_cluster(self) -> dict[str, list[Assumption]]:
        now = self._clock.monotonic()
        for key in [key for key, (until, _) in self._held.items() if until <= now]:
            del self._held[key]
        found: dict[str, list[Assumption]] = {}
        for _, assumed in self._held.values():
            for cluster, assumption in assumed.items():
                found.setdefault(cluster, []).append(assumption)
        return found


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
