"""The metrics adapter: the backend of the APIServices of metrics.

To clients it is an aggregated API behind the Service karmada-metrics-adapter, in the all-in-one control plane
(`install`) as well as in a process of its own.
"""

from __future__ import annotations

from typing import Final

from karmada.kube.client.client import Client
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.errors import ApiError, NotFound
from karmada.kube.objects.gvk import GroupVersion
from karmada.kube.objects.types import Obj
from karmada.kube.server.aggregation.backends import ServiceName
from karmada.kube.server.aggregation.metrics_objects import CUSTOM, EXTERNAL, METRICS, api_service, reader_role, service
from karmada.kube.server.app import ApiServer
from karmada.kube.server.core import ServerCore
from karmada.kube.server.http.request import Request
from karmada.kube.server.http.results import Result
from karmada.members.switching import Open, over_network
from karmada.metricsadapter.clusters import USER_AGENT, MeasuredClusters
from karmada.metricsadapter.custom_metrics import CustomMetrics
from karmada.metricsadapter.resource_metrics import ResourceMetrics

SERVICE: Final = ServiceName("karmada-system", "karmada-metrics-adapter")
_PRIORITIES: Final = {METRICS: (2000, 10), CUSTOM[0]: (100, 200), CUSTOM[1]: (100, 100)}
_LABELS: Final = {"app": SERVICE.name, "karmada.io/system": "true"}


class MetricsAdapter:
    def __init__(
        self, control_plane: Client, clock: Clock, *, allow_insecure: bool = False, open_way: Open = over_network
    ) -> None:
        self.clusters = MeasuredClusters(control_plane, clock, allow_insecure=allow_insecure, open_way=open_way)
        self._resource = ResourceMetrics(self.clusters, clock)
        self._custom = CustomMetrics(self.clusters, clock)

    @property
    def generation(self) -> int:
        return self._custom.generation

    def resources(self, version: GroupVersion) -> tuple[Obj, ...]:
        if version == EXTERNAL:
            return ()
        return self._resource.resources() if version == METRICS else self._custom.resources()

    async def handle(self, request: Request, version: GroupVersion) -> Result:
        await self.clusters.start()
        if version == METRICS:
            return await self._resource.handle(request, version)
        if version in CUSTOM:
            return await self._custom.handle(request, version)
        if version == EXTERNAL:
            raise ApiError("karmada-metrics-adapter still not implement it", code=500, reason="InternalError")
        raise NotFound.resource()

    def serve_discovery(self, server: ServerCore) -> None:
        """Who reads what a version of custom metrics has gets what clusters have now."""

        async def current(request: Request) -> Result:
            await self.clusters.start()
            await self._custom.discover()
            return await server.discovery.handle(request)

        for version in CUSTOM:
            server.pipeline.paths[f"/apis/{version}"] = current


def install(server: ApiServer, *, allow_insecure: bool = False, open_way: Open = over_network) -> None:
    """In the process of the API server; before it starts."""
    client = server.client(user_agent=USER_AGENT)
    adapter = MetricsAdapter(client, server.clock, allow_insecure=allow_insecure, open_way=open_way)
    server.aggregator.inside[SERVICE] = adapter
    adapter.serve_discovery(server)
    server.more_defaults += announcements()
    server.closing.append(adapter.clusters.stop)


def announcements() -> list[Obj]:
    """Return what clients find of it in the control plane."""
    versions = [api_service(version, SERVICE, _PRIORITIES[version], _LABELS) for version in _PRIORITIES]
    return [service(SERVICE, {"app": SERVICE.name}), *versions, reader_role(_LABELS)]
