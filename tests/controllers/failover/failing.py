"""The scheduler and the failover controllers over clusters that are only objects, whose health the test reports."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from karmada.api.cluster import Cluster
from karmada.api.policy import ClusterTaintPolicy
from karmada.components.parts import CONTROLLERS
from karmada.components.rows import Shared
from karmada.controllers.context import Context, Settings
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Reconciler
from tests.support.scheduling_plane import Scheduling, scheduling, targets

EVICTING = Settings(enable_no_execute_taint_eviction=True)
PARTS = ("cluster", "clustertaintpolicy", "gracefulEviction", "applicationFailover", "remedy")
KEY = "cluster.karmada.io/not-ready"
RESOURCE = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "web", "uid": "u-1"}


class Failing:
    def __init__(self, plane: Scheduling) -> None:
        self.plane = plane
        self.client = plane.client

    async def clusters(self, *names: str) -> None:
        for name in names:
            await self.plane.cluster(name)
            await self.ready(name)
        await self.plane.wait(1)

    async def ready(self, name: str, status: str = "True") -> None:
        await self.conditions(name, Ready=status)

    async def conditions(self, name: str, **statuses: str) -> None:
        moment = "2023-11-14T22:13:20Z"
        found = [
            {"type": kind, "status": status, "reason": "Test", "message": "", "lastTransitionTime": moment}
            for kind, status in statuses.items()
        ]
        await self.client.patch(Cluster.gvr, name, "", {"status": {"conditions": found}}, subresource="status")
        await self.plane.wait(1)

    async def taints(self, name: str) -> list[tuple[str, str]]:
        cluster = await self.client.get(Cluster.gvr, name, "")
        return [(taint["key"], taint["effect"]) for taint in cluster["spec"].get("taints") or ()]

    async def taint(self, name: str, key: str = "down", effect: str = "NoExecute") -> None:
        """As by `karmadactl taint`; an empty effect removes the taint."""
        cluster = await self.client.get(Cluster.gvr, name, "")
        kept = [taint for taint in cluster["spec"].get("taints") or () if taint["key"] != key]
        added = [{"key": key, "effect": effect, "timeAdded": rfc3339(self.plane.clock.now())}] if effect else []
        await self.plane.change_cluster(name, {"spec": {"taints": [*kept, *added] or None}})
        await self.plane.wait(0.1)

    async def bind(self, name: str = "web", *clusters: str, replicas: int = 2, **spec: Any) -> Obj:
        """A Deployment that may be in any of the clusters, in one at a time unless its placement says otherwise."""
        placement = {
            "clusterAffinity": {"clusterNames": list(clusters)},
            "spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}],
            **spec.pop("placement", {}),
        }
        resource = {**RESOURCE, "name": name}
        return await self.plane.bind(name, {"resource": resource, "replicas": replicas, "placement": placement, **spec})

    async def health(self, name: str = "web", **by_cluster: str) -> None:
        items = [
            {"clusterName": cluster, "applied": True, "health": health, "status": {"readyReplicas": 2}}
            for cluster, health in sorted(by_cluster.items())
        ]
        await self.plane.set_status(name, {"aggregatedStatus": items})
        await self.plane.wait(0.1)

    async def targets(self, name: str = "web") -> dict[str, int]:
        return targets(await self.plane.get(name))

    async def tasks(self, name: str = "web") -> list[Obj]:
        binding = await self.plane.get(name)
        return binding["spec"].get("gracefulEvictionTasks") or []

    async def leaving(self, name: str = "web") -> list[str]:
        return [task["fromCluster"] for task in await self.tasks(name)]

    async def taint_policy(self, name: str = "dead", **spec: Any) -> None:
        default = {
            "addOnConditions": [{"conditionType": "Ready", "operator": "In", "statusValues": ["False", "Unknown"]}],
            "removeOnConditions": [{"conditionType": "Ready", "operator": "In", "statusValues": ["True"]}],
            "taints": [{"key": KEY, "effect": "NoExecute"}],
        }
        head = {"apiVersion": ClusterTaintPolicy.gvk.api_version, "kind": "ClusterTaintPolicy"}
        await self.client.create(
            ClusterTaintPolicy.gvr, {**head, "metadata": {"name": name}, "spec": {**default, **spec}}
        )
        await self.plane.wait(0.1)

    async def reasons(self, name: str = "web") -> list[str]:
        """Of the events on the binding and its template, without those of the scheduler."""
        return [reason for _, reason, _ in await self.plane.events(name) if not reason.startswith("Schedule")]


@asynccontextmanager
async def failing(
    folder: Path, *clusters: str, gates: str = "Failover=true", **settings: Any
) -> AsyncIterator[Failing]:
    def parts(context: Context) -> list[Reconciler]:
        shared = Shared(context)
        made = [part for row in CONTROLLERS if row.name in PARTS and row.when(context) for part in row.make(shared)]
        return [part for part in made if isinstance(part, Reconciler)]

    chosen = replace(EVICTING, **settings)
    async with scheduling(folder, gates=gates, settings=chosen, no_execute_policies=True, more=parts) as plane:
        found = Failing(plane)
        await found.clusters(*clusters)
        yield found
