"""Cluster controller: execution namespace, taints and finalizer of each Cluster.

A cluster gets an execution namespace (where its Works are), the taints that follow from its condition Ready, and a
finalizer. When it is deleted, its execution namespace is deleted first, and with it the Works and the objects they
applied; then the scheduler must move every binding away; only then is the finalizer removed. The end of the namespace
and the last binding trigger a reconcile; the fixed pause is a safety net.

The Works of a Pull cluster are cleaned up by its agent, whose rights to them are in the execution namespace: that is
deleted only when no binding can create Works any more and the last of them is gone. When the cluster is not ready, the
agent is assumed dead and its Works are released.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from karmada.api import well_known
from karmada.api.cluster import Cluster
from karmada.api.work import ClusterResourceBinding, ResourceBinding, Work
from karmada.controllers.cluster.taints import describe, taints_for
from karmada.controllers.cluster_state import cluster_of_execution_namespace, is_pull, is_ready, ready_condition
from karmada.controllers.concurrently import for_each
from karmada.controllers.context import Context
from karmada.controllers.indexes import BY_CLUSTER, target_clusters
from karmada.kube.objects import meta
from karmada.kube.objects.errors import AlreadyExists, ApiError, Conflict, NotFound
from karmada.kube.objects.gvrs import NAMESPACES
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Reconciler, Result, Watch, requeue
from karmada.kube.runtime.events import NORMAL, WARNING
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.writes import delete_if_exists, remove_finalizer

CONTROLLER: Final = "cluster-controller"
RECHECK: Final = 10.0
"""Seconds until a cluster that is being deleted is reconciled again, whatever happens meanwhile."""


class Clusters(Reconciler):
    name = CONTROLLER

    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._clock = context.clock
        self._events = context.recorder(CONTROLLER)
        self.workers = context.settings.concurrent_cluster_syncs
        self._clusters = context.informers.of(Cluster.gvr)
        self._namespaces = context.informers.of(NAMESPACES)
        self._works = context.informers.of(Work.gvr)
        self._bindings = [
            context.informers.of(kind.gvr, indexes={BY_CLUSTER: target_clusters})
            for kind in (ResourceBinding, ClusterResourceBinding)
        ]
        self.watches = (
            Watch(Cluster.gvr),
            Watch(NAMESPACES, on=("DELETED",), map_to=cluster_of_execution_namespace),
            Watch(Work.gvr, on=("DELETED",), map_to=self._losing_work),
            *(
                Watch(kind.gvr, on=("MODIFIED", "DELETED"), changed=("spec.clusters",), map_to=self._leaving)
                for kind in (ResourceBinding, ClusterResourceBinding)
            ),
        )

    def _leaving(self, binding: Obj) -> Iterable[Key]:
        """Yield the clusters of a binding that are being deleted and wait until no binding names them."""
        for name in target_clusters(binding):
            cluster = self._clusters.get(Key("", name))
            if cluster is not None and meta.is_deleting(cluster):
                yield Key("", name)

    def _losing_work(self, work: Obj) -> Iterable[Key]:
        """Return the cluster of a Work, if it is being deleted and waits until it has none."""
        name = well_known.cluster_of_namespace(meta.namespace(work))
        cluster = self._clusters.get(Key("", name)) if name is not None else None
        return (Key("", meta.name(cluster)),) if cluster is not None and meta.is_deleting(cluster) else ()

    async def reconcile(self, key: Key) -> Result:
        cluster = self._clusters.get(key)
        if cluster is None:
            return Done
        if meta.is_deleting(cluster):
            return await self._remove(cluster)
        await self._ensure_execution_space(cluster)
        await self._taint_and_finalize(cluster)
        return Done

    # a cluster in use

    async def _ensure_execution_space(self, cluster: Obj) -> None:
        name = cluster["metadata"]["name"]
        space = well_known.execution_namespace(name)
        if self._namespaces.get(Key("", space)) is not None:
            return
        namespace = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": space, "labels": {well_known.SYSTEM: well_known.TRUE}},
        }
        try:
            await self._client.create(NAMESPACES, namespace)
        except AlreadyExists:
            return
        except ApiError as error:
            self._events.event(cluster, WARNING, "CreateExecutionSpaceFailed", error.message)
            raise
        message = f"Created execution space({space}) for cluster({name})."
        self._events.event(cluster, NORMAL, "CreateExecutionSpaceSucceed", message)

    async def _taint_and_finalize(self, cluster: Obj) -> None:
        """Write taints and finalizer at once."""
        spec, metadata = cluster["spec"], cluster["metadata"]
        before = spec.get("taints") or []
        taints = taints_for(before, ready_condition(cluster), self._clock.now())
        finalizers = meta.finalizers(cluster)
        if well_known.CLUSTER_FINALIZER not in finalizers:
            finalizers = [*finalizers, well_known.CLUSTER_FINALIZER]
        elif taints == before:
            return
        changed = {**cluster, "metadata": {**metadata, "finalizers": finalizers}, "spec": {**spec, "taints": taints}}
        try:
            await self._client.update(Cluster.gvr, changed)
        except Conflict:
            raise  # a lost race: reconciled again from the new state
        except ApiError as error:
            if taints != before:
                self._events.event(cluster, WARNING, "TaintClusterFailed", error.message)
            raise
        if taints != before:
            message = f"Taint cluster succeed: {describe(taints)}."
            self._events.event(cluster, NORMAL, "TaintClusterSucceed", message)

    # a cluster that is being deleted

    async def _remove(self, cluster: Obj) -> Result:
        name = cluster["metadata"]["name"]
        if await self._execution_space_remains(cluster) or self._is_target(name):
            return requeue(RECHECK)
        await remove_finalizer(self._client, Cluster.gvr, cluster, well_known.CLUSTER_FINALIZER)
        return Done

    async def _execution_space_remains(self, cluster: Obj) -> bool:
        space = well_known.execution_namespace(cluster["metadata"]["name"])
        try:
            if is_pull(cluster):
                if not is_ready(cluster):
                    await self._release_works(space)
                elif await self._works_remain(space) or self._is_target(meta.name(cluster)):
                    return True
            return await self._delete_execution_space(cluster, space)
        except Conflict:
            raise
        except ApiError as error:
            self._events.event(cluster, WARNING, "RemoveExecutionSpaceFailed", error.message)
            raise

    async def _delete_execution_space(self, cluster: Obj, space: str) -> bool:
        namespace = self._namespaces.get(Key("", space))
        if namespace is not None and meta.is_deleting(namespace):
            return True
        try:
            await self._client.delete(NAMESPACES, space)
            remains = True
        except NotFound:
            remains = False
        message = f"Removed execution space for cluster({cluster['metadata']['name']})."
        self._events.event(cluster, NORMAL, "RemoveExecutionSpaceSucceed", message)
        return remains

    async def _works_remain(self, space: str) -> bool:
        """Delete them, and leave what follows to the agent."""
        works = [work async for work in self._works.scan(space)]

        async def delete(work: Obj) -> None:
            await delete_if_exists(self._client, Work.gvr, meta.name(work), space, uid=meta.uid(work))

        await for_each((work for work in works if not meta.is_deleting(work)), delete)
        return bool(works)

    async def _release_works(self, space: str) -> None:
        finalizer = well_known.EXECUTION_FINALIZER
        works = [work async for work in self._works.scan(space) if finalizer in meta.finalizers(work)]

        async def release(work: Obj) -> None:
            await remove_finalizer(self._client, Work.gvr, work, finalizer)

        await for_each(works, release)

    def _is_target(self, name: str) -> bool:
        return any(bindings.has(BY_CLUSTER, name) for bindings in self._bindings)
