"""Karmada's kinds in the embedded API server.

Those that Karmada has as CRDs are stored as CRDs, so that everybody finds them where they look for them; their
conversions run in-process. Clusters are served directly, with their rules and their proxy.
"""

from __future__ import annotations

from dataclasses import replace

from karmada.admission.context import Settings
from karmada.admission.plugin import admission_plugins
from karmada.api.crds import crd_manifests
from karmada.api.work_v1alpha1 import convert_all
from karmada.apiserver.cluster_proxy import ClusterProxy
from karmada.apiserver.cluster_resource import CLUSTERS, cluster_resource
from karmada.apiserver.fan_out import FanOut
from karmada.apiserver.members import Members
from karmada.kube.server.app import ApiServer
from karmada.kube.server.handlers import Place
from karmada.kube.server.outbound import Outbound
from karmada.kube.server.request import Query, Request, RequestInfo
from karmada.kube.server.results import Result


def mount(server: ApiServer) -> None:
    """Before the server starts."""
    server.more_defaults += crd_manifests()
    server.custom_resources.converters |= {
        f"{plural}.work.karmada.io": convert_all for plural in ("resourcebindings", "clusterresourcebindings")
    }
    mount_clusters(server)
    settings = Settings(client=server.client(user_agent="karmada-webhook"), clock=server.clock)
    for plugin in admission_plugins(settings):
        server.admission.add(plugin)


def mount_clusters(server: ApiServer) -> None:
    server.registry.add([cluster_resource(server.clock)])
    outbound = Outbound()
    members = Members(server.cache, outbound)
    server.closing.append(outbound.close)

    async def local(request: Request, path: str) -> Result:
        info = RequestInfo(False, request.method.lower(), path.partition("?")[0])
        return await server.pipeline.run(replace(request, info=info, query=Query({})))

    proxy = ClusterProxy(members, FanOut(members, local))
    server.handlers.endpoints[Place(CLUSTERS, "proxy")] = proxy.connect
