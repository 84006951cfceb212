"""Joins the clusters that Cluster API provisions, and unjoins them when they are deleted there.

The management cluster is watched over its own kubeconfig. A cluster that is provisioned joins with the kubeconfig that
Cluster API keeps for it in the Secret <name>-kubeconfig; the Cluster remembers in an annotation where it came from, so
that only such clusters are unjoined again. An unreachable management cluster blocks nothing else.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from karmada.api.cluster import Cluster
from karmada.controllers.context import Context
from karmada.joining.join import JoinError, Joining, join
from karmada.joining.unjoin import unjoin
from karmada.kube.client.client import Client
from karmada.kube.client.http_transport import HttpTransport
from karmada.kube.client.kubeconfig import Kubeconfig, KubeconfigError, load_config
from karmada.kube.objects import meta
from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import SECRETS
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Controller, Done, Reconciler, Result, Retry, Watch
from karmada.kube.runtime.informers import Informers
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.logging import get_logger
from karmada.kube.runtime.waiting import cancel_and_wait

MANAGED: Final = GVR("cluster.x-k8s.io", "v1beta1", "clusters")
ORIGIN: Final = "cluster.karmada.io/cluster-api"
"""The annotation that names a Cluster's origin: namespace/name in the management cluster."""
PROVISIONED: Final = "Provisioned"
log = get_logger("cluster-api")


class ClusterApi:
    """A component: watches the management cluster while it runs."""

    name = "cluster-api"

    def __init__(self, context: Context, kubeconfig: Path, context_name: str = "") -> None:
        self._context = context
        self._config = load_config(kubeconfig, context=context_name)
        self._clusters = context.informers.of(Cluster.gvr)
        self._connect()
        self._task: asyncio.Task[None] | None = None

    def _connect(self) -> None:
        self._transport = HttpTransport(self._config)
        client = Client(self._transport)
        self._informers = Informers(client, clock=self._context.clock)
        self._reconciler = ManagedClusters(self._context, client, self._informers)
        self._controller = Controller(self._reconciler, self._informers, clock=self._context.clock)

    async def start(self) -> None:
        self._informers.start()
        self._task = asyncio.create_task(self._run(), name=self.name)

    async def _run(self) -> None:
        await self._controller.start()
        async for cluster in self._clusters.scan():  # some may have been deleted while this process was down
            for key in origins((cluster,)):
                self._controller.add(key)

    async def stop(self) -> None:
        if self._task is not None:
            await cancel_and_wait(self._task)
        await self._controller.stop()
        await self._informers.stop()
        await self._transport.close()
        self._connect()  # it may be started again


class ManagedClusters(Reconciler):
    name = "cluster-api"
    watches = (Watch(MANAGED),)
    workers = 3

    def __init__(self, context: Context, management: Client, informers: Informers) -> None:
        self._client = context.client
        self._clock = context.clock
        self._clusters = context.informers.of(Cluster.gvr)
        self._management = management
        self._managed = informers.of(MANAGED)

    async def reconcile(self, key: Key) -> Result:
        managed = self._managed.get(key)
        joined = self._clusters.get(Key("", key.name))
        if managed is None or meta.is_deleting(managed):
            return await self._leave(key, joined)
        if joined is not None or (managed.get("status") or {}).get("phase") != PROVISIONED:
            return Done
        return await self._join(key)

    async def _join(self, key: Key) -> Result:
        try:
            config = Kubeconfig.parse(await self._kubeconfig(key)).resolve()
        except (NotFound, KubeconfigError) as error:
            log.info("A cluster's kubeconfig is not there yet", cluster=str(key), err=str(error))
            return Retry
        transport = HttpTransport(config)
        try:
            await join(self._client, Client(transport), Joining.to(config, key.name), clock=self._clock)
        except JoinError as error:
            log.error("A cluster cannot join", error, cluster=str(key))
            return Retry
        finally:
            await transport.close()
        patch = {"metadata": {"annotations": {ORIGIN: f"{key.namespace}/{key.name}"}}}
        await self._client.patch(Cluster.gvr, key.name, "", patch, type="merge")
        log.info("A cluster has joined", cluster=str(key))
        return Done

    async def _kubeconfig(self, key: Key) -> bytes:
        secret = await self._management.get(SECRETS, f"{key.name}-kubeconfig", key.namespace)
        return base64.b64decode((secret.get("data") or {}).get("value") or "")

    async def _leave(self, key: Key, joined: Obj | None) -> Result:
        if joined is None or meta.annotations(joined).get(ORIGIN) != f"{key.namespace}/{key.name}":
            return Done
        try:
            await unjoin(self._client, key.name, clock=self._clock)
        except JoinError as error:
            log.error("A cluster cannot leave", error, cluster=str(key))
            return Retry
        return Done


def origins(clusters: Iterable[Obj]) -> list[Key]:
    """Return the keys, in the management cluster, of the clusters that joined from Cluster API."""
    found = (meta.annotations(cluster).get(ORIGIN, "").partition("/") for cluster in clusters)
    return [Key(namespace, name) for namespace, slash, name in found if slash]
