"""A whole control plane on a metered loop, and a client that costs that loop nothing: it is in threads of its own."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from karmada.api.cluster import Cluster
from karmada.api.policy import ClusterPropagationPolicy
from karmada.components.controlplane import ControlPlane
from karmada.kube.kinds.resource import Resource
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import CONFIG_MAPS, CRDS, DEPLOYMENTS
from karmada.kube.objects.types import Obj
from karmada.kube.server.config import ServerConfig
from tests.hostile.growing import NAME
from tests.hostile.sending import Answer, Sender
from tests.linearity.shapes import SCHEMA, crd
from tests.support.eventually import eventually
from tests.support.workloads import one_container, workload

MEMBERS = ("m1", "m2")
WIDGETS = GVR("example.com", "v1", "widgets")


class HostilePlane:
    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.sender = Sender(plane.server.port, plane.server.pki.directory)

    async def send(
        self, method: str, path: str, body: Any = None, *, accept: str = "application/json", media: str = ""
    ) -> Answer:
        """Send in a thread."""
        return await asyncio.to_thread(self.sender, method, path, body, accept=accept, media=media)

    async def rest(self) -> None:
        """Wait until the controllers have nothing to do."""
        manager = self.plane.manager
        assert manager is not None
        queues = [controller.queue for controller in manager.controllers.values()]
        for _ in range(2):
            await eventually(lambda: all(queue.idle for queue in queues))
            await asyncio.sleep(0.02)

    def resources(self) -> list[Resource]:
        """Return the kinds that can be created, each in the version in which it is stored; Deployments come first."""
        found = self.plane.server.registry.stored().values()
        return sorted(
            (resource for resource in found if {"create", "list", "delete"} <= set(resource.verbs)),
            key=lambda resource: (resource.gvk.kind != "Deployment", resource.gvk.group, resource.gvk.kind),
        )


@asynccontextmanager
async def hostile_plane(folder: Path) -> AsyncIterator[HostilePlane]:
    """Two clusters in Pull mode, of which nobody is the agent, and a policy for everything that is called NAME."""
    plane = ControlPlane(ServerConfig(data_dir=folder, storage="memory://", port=0))
    log = logging.getLogger("asyncio")
    log.addFilter(_is_news)
    await plane.start()
    try:
        client = plane.server.client(user_agent="tests")
        await client.create(CRDS, _widgets())
        await eventually(lambda: plane.server.registry.get(WIDGETS) is not None)
        for name in MEMBERS:
            cluster = {"metadata": {"name": name}, "spec": {"syncMode": "Pull"}}
            await client.create(Cluster.gvr, {**cluster, "apiVersion": Cluster.gvk.api_version, "kind": "Cluster"})
        found = HostilePlane(plane)
        await client.create(ClusterPropagationPolicy.gvr, _policy(found.resources()))
        await client.create(DEPLOYMENTS, workload("Deployment", "web", 2, one_container("nginx"), namespace="default"))
        settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "default"}}
        await client.create(CONFIG_MAPS, settings)
        await found.rest()
        yield found
    finally:
        await plane.stop()
        log.removeFilter(_is_news)


def _is_news(record: logging.LogRecord) -> bool:
    """Return whether a message says more than that the client has ended its watch."""
    return not record.getMessage().startswith("socket.send() raised")


def _widgets() -> Obj:
    definition = crd(SCHEMA)
    definition["metadata"]["name"] = "widgets.example.com"
    definition["spec"] |= {"group": "example.com", "names": {"plural": "widgets", "kind": "Widget"}}
    return definition


def _policy(resources: list[Resource]) -> Obj:
    selectors = [
        {"apiVersion": resource.gvk.api_version, "kind": resource.gvk.kind, "name": NAME}
        for resource in resources
        if not resource.gvk.group.endswith("karmada.io") and resource.gvk.kind not in ("Event", "Namespace", "Node")
    ]
    spec = {"resourceSelectors": selectors, "placement": {"clusterAffinity": {"clusterNames": list(MEMBERS)}}}
    kind = ClusterPropagationPolicy.gvk
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "all"}, "spec": spec}
