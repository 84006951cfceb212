"""Metrics of the pods of one target, in all its clusters."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping

from karmada.controllers.federated_hpa.pods import PodKey
from karmada.controllers.federated_hpa.samples import Samples, attributed
from karmada.controllers.federated_hpa.shared_metrics import SharedMetrics
from karmada.kube.autoscaling.metrics import (
    NO_CUSTOM_METRICS,
    NO_RESOURCE_METRICS,
    MetricsError,
    PodMetric,
    usage_of,
    value_of,
)
from karmada.kube.objects.podstate import phase
from karmada.kube.objects.types import Obj


class TargetMetrics:
    """`whole_namespace`: what other autoscalers of the namespace read is read once for all of them.

    `now` is when the reconcile began, by the clock of the shared answers: one from before that has no sample of any pod
    (which may be new) is requested again.
    """

    def __init__(
        self, shared: SharedMetrics, pods: Mapping[PodKey, Obj], now: float, *, whole_namespace: bool = False
    ) -> None:
        self._shared = shared
        self._pods = pods
        self._now = now
        self._whole = whole_namespace
        self.silent: set[str] = set()
        """Clusters with running pods of which some metric had no sample."""

    async def resource(self, namespace: str, selector: str, resource: str, container: str) -> dict[PodKey, PodMetric]:
        def request(newer_than: float) -> Awaitable[Samples]:
            return self._shared.pod_metrics(namespace, self._which(selector), newer_than=newer_than)

        found = await self._attributed(request, lambda item: usage_of(item, resource, container))
        return self._usable(found, NO_RESOURCE_METRICS)

    async def pods(self, namespace: str, selector: str, metric: str, metric_selector: str) -> dict[PodKey, PodMetric]:
        def request(newer_than: float) -> Awaitable[Samples]:
            which = self._which(selector)
            return self._shared.pod_values(namespace, which, metric, metric_selector, newer_than=newer_than)

        return self._usable(await self._attributed(request, value_of), NO_CUSTOM_METRICS)

    async def _attributed(
        self, request: Callable[[float], Awaitable[Samples]], read: Callable[[Obj], PodMetric | None]
    ) -> dict[PodKey, PodMetric | None]:
        found = attributed(self._pods, await request(-math.inf), read)
        return found or attributed(self._pods, await request(self._now), read)

    async def object(self, namespace: str, described: Obj, metric: str, metric_selector: str) -> int:
        return await self._shared.object_value(namespace, described, metric, metric_selector)

    async def external(self, namespace: str, metric: str, metric_selector: str) -> list[int]:  # noqa: ARG002
        """Admission refuses them."""
        raise MetricsError(f"external metrics such as {metric} are not supported over clusters")

    def _which(self, selector: str) -> str:
        return "" if self._whole else selector

    def _usable(self, found: Mapping[PodKey, PodMetric | None], nothing: str) -> dict[PodKey, PodMetric]:
        if not found:
            raise MetricsError(nothing)
        measured = {key.cluster for key in found}
        running = {key.cluster for key, pod in self._pods.items() if phase(pod) == "Running"}
        self.silent |= running - measured
        return {key: metric for key, metric in found.items() if metric is not None}
