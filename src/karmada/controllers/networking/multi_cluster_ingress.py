"""MultiClusterIngresses: the Ingress goes to the clusters that have its backends, and their addresses come back.

Where a backend is, the binding of its Service says, be it propagated by a policy or by a MultiClusterService. The
Ingress is in the clusters that have all backends; if none has, in those that have one at least. A cluster in which a
Remedy controls the traffic gets no Ingress as long as another cluster has one. Karmada leaves all this to programs of
others: who runs one disables this controller.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from karmada.api import well_known
from karmada.api.cluster import Cluster
from karmada.api.networking import MultiClusterIngress
from karmada.api.older_forms import present_ingress
from karmada.api.work import ResourceBinding, Work
from karmada.controllers.context import Context
from karmada.controllers.indexes import (
    WORKS_OF,
    of_ingress,
    owners_of_work,
    target_clusters,
    traits_of_binding,
    traits_of_work,
)
from karmada.controllers.networking.serving import cluster_of
from karmada.controllers.works import Works
from karmada.interpreter.native.aggregation_balancers import ingress_status
from karmada.interpreter.operations import Report
from karmada.kube.objects import meta
from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Enqueue, Reconciler, Result, Watch
from karmada.kube.runtime.keys import Key, key_of
from karmada.kube.runtime.time_slice import in_slices
from karmada.kube.runtime.writes import (
    add_finalizer,
    remove_finalizer,
    retry_on_conflict,
    set_status,
)

MULTI_CLUSTER_INGRESS: Final = "multiclusteringress-controller"
FINALIZER: Final = "karmada.io/multiclusteringress-controller"
_BY_BACKEND: Final = "backend"
_TRAFFIC_CONTROL: Final = "TrafficControl"
READY: Final = "BackendsReady"


class Located(NamedTuple):
    """Where the backends of an Ingress are, and so the Ingress."""

    backends: dict[str, list[str]]
    """Clusters by the name of the Service; none for one that is nowhere."""
    blocked: list[str]
    """Clusters that have backends and get no traffic."""
    clusters: list[str]

    def condition(self) -> Obj:
        missing = [name for name, clusters in self.backends.items() if not clusters]
        apart = not missing and not set.intersection(*map(set, self.backends.values())) if self.backends else False
        if missing:
            text = f"no cluster has the Service {', '.join(missing)}: create it, and propagate it with a policy"
            return _condition("False", "BackendNotFound", text)
        if apart:
            text = "no cluster has all backends: requests for those that a cluster does not have fail there"
            return _condition("False", "BackendsApart", text)
        return _condition("True", "BackendsFound", f"the Ingress is in {', '.join(self.clusters) or 'no cluster'}")


def _condition(status: str, reason: str, message: str) -> Obj:
    return {"type": READY, "status": status, "reason": reason, "message": message}


def backends_of(ingress: Obj) -> list[str]:
    """Return the Services that requests go to, in the order in which they are named."""
    spec = present_ingress(ingress.get("spec") or {})
    paths = (path for rule in spec.get("rules") or () for path in (rule.get("http") or {}).get("paths") or ())
    backends = [spec.get("defaultBackend") or {}, *(path.get("backend") or {} for path in paths)]
    names = [(backend.get("service") or {}).get("name") for backend in backends]
    return list(dict.fromkeys(name for name in names if name))


def _backend_index(ingress: Obj) -> Iterable[str]:
    return [str(Key(meta.namespace(ingress), name)) for name in backends_of(ingress)]


def _ingress_keys(work: Obj) -> Iterable[Key]:
    labels = meta.labels(work)
    name = labels.get(well_known.INGRESS_NAME)
    return (Key(labels.get(well_known.INGRESS_NAMESPACE, ""), name),) if name else ()


class MultiClusterIngresses(Reconciler):
    name = MULTI_CLUSTER_INGRESS

    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._clock = context.clock
        self._ingresses = context.informers.of(MultiClusterIngress.gvr, indexes={_BY_BACKEND: _backend_index})
        self._bindings = context.informers.of(ResourceBinding.gvr)
        self._clusters = context.informers.of(Cluster.gvr)
        self._works = context.informers.of(Work.gvr, indexes={WORKS_OF: owners_of_work})
        self._writer = Works(context)
        self.watches = (
            Watch(MultiClusterIngress.gvr, changed=("spec", "metadata.deletionTimestamp")),
            Watch(
                ResourceBinding.gvr,
                having=(traits_of_binding, "Service"),
                changed=("spec.clusters",),
                when=_moved,
                map_to=self._of_binding,
            ),
            Watch(
                Work.gvr,
                having=(traits_of_work, well_known.INGRESS_NAME),
                changed=("status.manifestStatuses", "spec"),
                map_to=_ingress_keys,
            ),
            Watch(Cluster.gvr, changed=("status.remedyActions",), walk=self._requeue_all),
        )

    def _of_binding(self, binding: Obj) -> Iterable[Key]:
        resource = (binding.get("spec") or {}).get("resource") or {}
        if resource.get("kind") != "Service":
            return ()
        return self._ingresses.keys_by_index(_BY_BACKEND, str(Key(meta.namespace(binding), resource.get("name", ""))))

    async def _requeue_all(self, _old: Obj | None, _new: Obj | None, add: Enqueue) -> None:
        """Enqueue everything: remedies are rare, and any cluster may have backends."""
        async for key in in_slices(self._ingresses.keys()):
            add(key)

    async def reconcile(self, key: Key) -> Result:
        ingress = self._ingresses.get(key)
        if ingress is None:
            return Done
        if meta.is_deleting(ingress):
            if FINALIZER in meta.finalizers(ingress):
                await self._withdraw(key, keep=())
                await remove_finalizer(self._client, MultiClusterIngress.gvr, ingress, FINALIZER)
            return Done
        await add_finalizer(self._client, MultiClusterIngress.gvr, ingress, FINALIZER)
        located = self._locate(ingress)
        for cluster in located.clusters:
            await self._send(ingress, cluster)
        await self._withdraw(key, keep=located.clusters)
        await self._report(ingress, located)
        return Done

    # where

    def _locate(self, ingress: Obj) -> Located:
        backends = {name: self._clusters_of(Key(meta.namespace(ingress), name)) for name in backends_of(ingress)}
        found = [set(clusters) for clusters in backends.values() if clusters]
        having = (set.intersection(*found) or set.union(*found)) if found else set()
        blocked = {name for name in having if self._is_blocked(name)}
        return Located(backends, sorted(blocked), sorted((having - blocked) or having))

    def _clusters_of(self, service: Key) -> list[str]:
        binding = self._bindings.get(Key(service.namespace, well_known.binding_name("Service", service.name)))
        return sorted(target_clusters(binding)) if binding is not None and not meta.is_deleting(binding) else []

    def _is_blocked(self, name: str) -> bool:
        cluster = self._clusters.get(Key("", name))
        return cluster is not None and _TRAFFIC_CONTROL in ((cluster.get("status") or {}).get("remedyActions") or ())

    # Works

    async def _send(self, ingress: Obj, cluster: str) -> None:
        namespace, name = meta.namespace(ingress), meta.name(ingress)
        await self._writer.ensure(
            cluster,
            ingress_for_members(ingress),
            name=well_known.work_name(MultiClusterIngress.gvk.kind, name, namespace),
            labels={well_known.INGRESS_NAMESPACE: namespace, well_known.INGRESS_NAME: name},
        )

    async def _withdraw(self, key: Key, keep: Iterable[str]) -> None:
        for work in self._works.by_index(WORKS_OF, of_ingress(key)):
            if cluster_of(work) not in keep:
                await self._writer.delete(work)

    # status

    async def _report(self, ingress: Obj, located: Located) -> None:
        balancers = ingress_status(ingress, self._reports(key_of(ingress)))["loadBalancer"]

        async def once() -> None:
            try:
                current = await self._client.get(MultiClusterIngress.gvr, meta.name(ingress), meta.namespace(ingress))
            except NotFound:
                return
            status = current.get("status") or {}
            conditions = meta.set_condition(status.get("conditions"), located.condition(), self._clock.now())
            wanted = {
                **status,
                "loadBalancer": balancers,
                "trafficBlockClusters": located.blocked,
                "serviceLocations": [{"name": name, "clusters": found} for name, found in located.backends.items()],
                "conditions": conditions,
            }
            await set_status(self._client, MultiClusterIngress.gvr, current, _without_empty(wanted))

        await retry_on_conflict(once, clock=self._clock)

    def _reports(self, key: Key) -> list[Report]:
        """Return what clusters report of their Ingresses."""
        works = self._works.by_index(WORKS_OF, of_ingress(key))
        return [
            Report(cluster_of(work), report.get("status"))
            for work in works
            for report in (work.get("status") or {}).get("manifestStatuses") or ()
        ]


def ingress_for_members(ingress: Obj) -> Obj:
    """With the labels and annotations of the MultiClusterIngress, which ingress controllers read."""
    metadata = ingress["metadata"]
    kept = {field: metadata[field] for field in ("labels", "annotations") if metadata.get(field)}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"name": meta.name(ingress), "namespace": meta.namespace(ingress), **kept},
        "spec": present_ingress(ingress.get("spec") or {}),
    }


def _without_empty(status: Obj) -> Obj:
    return {field: value for field, value in status.items() if value or field == "loadBalancer"}


def _moved(old: Obj | None, new: Obj | None) -> bool:
    """Return whether clusters of a binding changed."""
    before = set(target_clusters(old)) if old is not None else None
    after = set(target_clusters(new)) if new is not None else None
    return before != after
