"""What becomes of a ResourceRegistry, in its status and as Events: which clusters are cached, and why others are not.

The condition follows from API objects alone, not from how far the caches of this process have come, so that several
processes write the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from karmada.api.search import ResourceRegistry
from karmada.kube.client.client import Client
from karmada.kube.objects import meta
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.events import WARNING, EventRecorder
from karmada.search.registries import NOT_READY, Coverage

CONDITION: Final = "Cached"
_NAMED: Final = 20
"""Clusters that a message names."""


def condition_of(coverage: Coverage) -> Obj:
    """`message` is for people; `status` is True when nothing that is selected is left out."""
    left_out = [f"{name} ({why})" for name, why in sorted(coverage.left_out.items())]
    unknown = [str(gvk) for gvk in coverage.unknown]
    reason = "KindsUnknown" if unknown else "ClustersLeftOut" if left_out else "AllClustersCached"
    parts = [f"clusters cached: {_some(coverage.cached)}"]
    if left_out:
        parts.append(f"left out: {_some(left_out)}")
    if unknown:
        parts.append(f"not served, or not to be watched, here and in the selected clusters: {_some(unknown)}")
    status = "True" if reason == "AllClustersCached" else "False"
    return {"type": CONDITION, "status": status, "reason": reason, "message": "; ".join(parts)}


def _some(names: Iterable[str]) -> str:
    shown = list(names)
    more = len(shown) - _NAMED
    return (", ".join(shown[:_NAMED]) + (f" and {more} more" if more > 0 else "")) or "none"


class RegistryStatus:
    def __init__(self, registries: Client, recorder: EventRecorder, clock: Clock) -> None:
        self._client = registries
        self._recorder = recorder
        self._clock = clock
        self._reported: dict[str, Mapping[str, str]] = {}
        """Clusters left out, by registry, as they were last reported."""

    async def report(self, registries: Iterable[Obj], coverage: Mapping[str, Coverage]) -> None:
        registries = list(registries)
        self._reported = {name: self._reported.get(name, {}) for name in coverage}
        for registry in registries:
            name = meta.name(registry)
            self._emit(registry, coverage[name])
            before = (registry.get("status") or {}).get("conditions")
            conditions = meta.set_condition(before, condition_of(coverage[name]), self._clock.now())
            if conditions != before:
                patch = {"status": {"conditions": conditions}}
                try:
                    await self._client.patch(ResourceRegistry.gvr, name, "", patch, subresource="status")
                except NotFound:
                    continue  # it was deleted meanwhile

    def _emit(self, registry: Obj, coverage: Coverage) -> None:
        """Report why a cluster is left out; one that is not ready is reported in its own status."""
        name = meta.name(registry)
        before, self._reported[name] = self._reported[name], coverage.left_out
        for cluster, why in coverage.left_out.items():
            if why != NOT_READY and before.get(cluster) != why:
                self._recorder.event(registry, WARNING, "ClusterNotCached", f"cluster {cluster} is not cached: {why}")
