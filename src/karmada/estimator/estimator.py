"""The estimator of one member: estimates from its own nodes, pods and quotas.

The same for a process of its own, which answers over gRPC, and for a scheduler that has one in its process. Everything
is computed from informers' caches, in one thread: an answer never waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from karmada.estimator.kept import identity, slim_node, slim_pod
from karmada.estimator.metrics import GET_OBJECT, GET_PODS, UNSCHEDULABLE, EstimatorMetrics
from karmada.estimator.node_resources import NodeResourceEstimator
from karmada.estimator.quota import ResourceQuotaEstimator
from karmada.estimator.results import Result, merged
from karmada.estimator.snapshot import Snapshot
from karmada.estimator.terms import REPLICAS, SETS, Assumption, EstimateError
from karmada.estimator.workloads import Workloads
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.gvrs import NODES, PODS, QUOTAS
from karmada.kube.objects.shapes import Shape
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.features import FeatureGates
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.informers import Informers

_ESTIMATED = {REPLICAS: "replicas", SETS: "component sets"}
NOT_OVER = "status.phase!=Succeeded,status.phase!=Failed"
"""A field selector for pods; without it, pods that are over are read and then ignored."""


def slim_quota(quota: Obj) -> Obj:
    return {"metadata": identity(quota), "spec": quota.get("spec"), "status": quota.get("status")}


class ClusterEstimator:
    """`cluster` is the member's name; its informers may be shared with others."""

    def __init__(
        self,
        cluster: str,
        informers: Informers,
        gates: FeatureGates,
        clock: Clock,
        *,
        pods: str = "",
        metrics: EstimatorMetrics | None = None,
    ) -> None:
        """`pods` is the field selector for pods; without one the informer of the cluster's summary is shared."""
        self.cluster = cluster
        self._informers = informers
        self._clock = clock
        self._metrics = metrics or EstimatorMetrics(clock)
        self._snapshot = Snapshot()
        self._nodes = informers.of(NODES, shape=Shape.summary(slim_node))
        self._pods = informers.of(PODS, field_selector=pods, shape=Shape.summary(slim_pod))
        self._quotas = (
            informers.of(QUOTAS, shape=Shape.summary(slim_quota)) if gates.enabled("ResourceQuotaEstimate") else None
        )
        self._workloads: Workloads | None = None
        self._assumes = gates.enabled("SchedulingOvercommitProtection")
        self._by_nodes = NodeResourceEstimator(self._snapshot)
        self._by_quotas = ResourceQuotaEstimator(self._quotas.list if self._quotas is not None else None)
        self._quota_changes = 0
        self._unsubscribe: list[Callable[[], None]] = []

    # life

    def start(self, *, workloads: bool = False) -> None:
        """Follow the member. Workloads are read from the first request for unschedulable replicas on, or at once."""
        self._unsubscribe = [
            self._nodes.add_handler(self._snapshot.node_changed),
            self._pods.add_handler(self._snapshot.pod_changed),
        ]
        if self._quotas is not None:
            self._unsubscribe.append(self._quotas.add_handler(self._quota_changed))
        if workloads:
            self._workloads = Workloads(self._informers)

    def stop(self) -> None:
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        self._unsubscribe.clear()

    def _quota_changed(self, _old: Obj | None, _new: Obj | None) -> None:
        self._quota_changes += 1

    @property
    def version(self) -> int:
        """Grows with every change that estimates may depend on, except for unschedulable replicas."""
        return self._snapshot.version + self._quota_changes

    @property
    def synced(self) -> bool:
        return all(informer.synced for informer in self._estimated_from())

    def _estimated_from(self) -> list[Informer]:
        return [self._nodes, self._pods, *([self._quotas] if self._quotas is not None else ())]

    def _check_synced(self, informers: Iterable[Informer]) -> None:
        missing = [str(informer.gvr) for informer in informers if not informer.synced]
        if missing:
            raise EstimateError(f"cluster {self.cluster}: not synced yet: {', '.join(missing)}")

    # estimates

    def max_available_replicas(self, requirements: Obj | None, assumed: Sequence[Assumption] = ()) -> int:
        """Return how many more replicas fit; `requirements` is None when nothing is known but that they are Pods."""
        with self._metrics.request(REPLICAS):
            return self._estimate(
                REPLICAS,
                {
                    plugin.name: partial(plugin.replicas, requirements, self._counted(assumed))
                    for plugin in (self._by_nodes, self._by_quotas)
                },
            )

    def replicas_on_nodes(self, requirements: Obj | None, assumed: Sequence[Assumption] = ()) -> int:
        """Return how many more replicas the nodes have capacity for, whatever quotas allow."""
        by_nodes = self._by_nodes
        return self._estimate(
            REPLICAS, {by_nodes.name: partial(by_nodes.replicas, requirements, self._counted(assumed))}
        )

    def quotas(self, namespace: str) -> list[Obj]:
        """Return the ResourceQuotas of a namespace; none if they are not estimated by."""
        return [] if self._quotas is None else list(self._quotas.list(namespace))

    def max_available_component_sets(
        self, components: Sequence[Obj], namespace: str = "", assumed: Sequence[Assumption] = ()
    ) -> int:
        """Return how many complete sets of the components fit."""
        with self._metrics.request(SETS):
            return self._estimate(
                SETS,
                {
                    plugin.name: partial(plugin.sets, components, namespace, self._counted(assumed))
                    for plugin in (self._by_nodes, self._by_quotas)
                },
            )

    def _counted(self, assumed: Sequence[Assumption]) -> Sequence[Assumption]:
        return assumed if self._assumes else ()

    def _estimate(self, what: str, plugins: Mapping[str, Callable[[], Result]]) -> int:
        self._check_synced(self._estimated_from())
        if not self._snapshot.nodes:
            return 0
        metrics, results = self._metrics, list[Result]()
        began = before = metrics.now()
        for name, estimate in plugins.items():
            results.append(estimate())
            now = metrics.now()
            metrics.plugin(what, now - before, name)
            before = now
        metrics.plugin(what, before - began)
        try:
            return merged(results, "replica" if what == REPLICAS else "components")
        except EstimateError as error:
            raise EstimateError(f"failed to estimate {_ESTIMATED[what]}: {error}") from None

    def unschedulable_replicas(self, resource: Obj | None, threshold_seconds: float) -> int:
        """Return how many Pods of the workload have been unschedulable for longer than the threshold."""
        with self._metrics.request(UNSCHEDULABLE):
            if resource is None:
                raise EstimateError("resource is nil")
            workloads = self._workloads = self._workloads or Workloads(self._informers)
            self._check_synced([self._pods, *workloads.informers])
            began = self._metrics.now()
            deployment = workloads.deployment(resource)
            found = self._metrics.now()
            self._metrics.step(UNSCHEDULABLE, GET_OBJECT, found - began)
            since = self._clock.now() - max(threshold_seconds, 0.0)
            count = workloads.unschedulable(deployment, self._snapshot, since)
            self._metrics.step(UNSCHEDULABLE, GET_PODS, self._metrics.now() - found)
            return count
