"""Karmada's kinds in the embedded API server.

Kinds that Karmada defines as CRDs are stored as CRDs, so that clients and tools find them; their conversions run
in-process. Clusters are served directly, with their rules and their proxy.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import cache

from karmada.admission.context import Settings
from karmada.admission.plugin import admission_plugins
from karmada.admission.search import validate as validate_registry
from karmada.api.crds import all_kinds, crd_manifests
from karmada.api.resources import resources_of
from karmada.api.search import ResourceRegistry
from karmada.api.work_v1alpha1 import convert_all
from karmada.apiserver.agent_isolation import AgentIsolation
from karmada.apiserver.cluster_credentials import ClusterCredentials
from karmada.apiserver.cluster_proxy import ClusterProxy
from karmada.apiserver.cluster_resource import CLUSTERS, cluster_resource
from karmada.apiserver.fan_out import FanOut, Local
from karmada.apiserver.members import SECRETS, FindSecret, Members
from karmada.apiserver.registration import cluster_info, registration_rights
from karmada.apiserver.tenant_roles import tenant_roles
from karmada.features import default_gates
from karmada.kube.objects import rbac
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.features import FeatureGates
from karmada.kube.runtime.logging import get_logger
from karmada.kube.runtime.waiting import with_timeout
from karmada.kube.server.app import ApiServer
from karmada.kube.server.auth.interface import Decides
from karmada.kube.server.auth.pki import ADMIN_USER
from karmada.kube.server.core import ServerCore
from karmada.kube.server.handlers.dispatch import Place
from karmada.kube.server.http.request import Query, Request, RequestInfo
from karmada.kube.server.http.results import Result
from karmada.kube.server.outbound.https import Outbound

SYSTEM_NAMESPACE, CLUSTER_NAMESPACE = "karmada-system", "karmada-cluster"
SERVED_SECONDS = 5.0
_OURS = {"karmada.io/system": "true"}
log = get_logger("apiserver")


def mount(
    server: ApiServer,
    gates: FeatureGates | None = None,
    *,
    allow_no_execute_taint_policy: bool = False,
    allow_insecure_members: bool = False,
) -> None:
    """Before the server starts."""
    gates = gates or default_gates()
    server.more_defaults += [
        *system_namespaces(),
        *_definitions(),
        *proxy_rights(),
        *tenant_roles(),
        *registration_rights(),
    ]
    server.published.append(lambda: cluster_info(server.config.public_url or server.url, server.credentials.root_pem))
    server.custom_resources.converters |= {
        f"{plural}.work.karmada.io": convert_all for plural in ("resourcebindings", "clusterresourcebindings")
    }
    models = gates.enabled("CustomizedClusterResourceModeling")
    mount_clusters(server, server.authorizer, models=models, allow_insecure=allow_insecure_members)
    mount_registries(server)
    settings = Settings(
        client=server.client(user_agent="karmada-webhook"),
        gates=gates,
        clock=server.clock,
        allow_no_execute_taint_policy=allow_no_execute_taint_policy,
    )
    for plugin in admission_plugins(settings):
        server.admission.add(plugin)
    isolation = AgentIsolation(server.cache)
    server.admission.add(isolation)
    server.pipeline.restrict = isolation.restrict


async def until_served(server: ApiServer) -> None:
    """After the server has started: wait until all kinds are there. On the first start they take a moment.

    A definition that is being deleted takes as long as its objects do; the log reports what is waited for.
    """
    wanted = [info.gvr for info in all_kinds() if not info.aggregated]
    served = asyncio.Event()

    def missing() -> list[str]:
        return [str(gvr.group_resource) for gvr in wanted if server.registry.get(gvr) is None]

    def look() -> None:
        if not missing():
            served.set()

    server.custom_resources.changed.append(look)
    try:
        look()
        while not served.is_set():
            try:
                await with_timeout(server.clock, served.wait(), SERVED_SECONDS)
            except TimeoutError:
                log.info("Waiting until all kinds are served", missing=", ".join(sorted(set(missing()))))
    finally:
        server.custom_resources.changed.remove(look)


@cache
def _definitions() -> tuple[Obj, ...]:
    """Shared by the servers of a process, which do not change them."""
    return tuple(crd_manifests())


def system_namespaces() -> list[Obj]:
    """Return the namespaces of the control plane itself and of the credentials of clusters."""
    names = (SYSTEM_NAMESPACE, CLUSTER_NAMESPACE)
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": _OURS}} for name in names]


def proxy_rights() -> list[Obj]:
    """Grants the administrator the proxy of every cluster; administrators grant it to others in the same way."""
    name = "cluster-proxy-admin"
    rule = {"apiGroups": [CLUSTERS.group], "resources": ["clusters/proxy"], "verbs": ["*"]}
    return [rbac.role(name, [rule], labels=_OURS), rbac.binding(name, rbac.user(ADMIN_USER), labels=_OURS)]


def mount_registries(server: ServerCore) -> None:
    """ResourceRegistries, on any server; what acts on them is `karmada.search`."""
    (resource,) = resources_of(ResourceRegistry)
    by_schema = resource.strategy.validate
    resource.strategy = replace(
        resource.strategy,
        validate=lambda obj: by_schema(obj) or validate_registry(obj),
        validate_ratcheting=None,
        unconditional_update=True,
    )
    server.registry.add([resource])


def mount_clusters(
    server: ServerCore,
    rights: Decides,
    *,
    models: bool = True,
    allow_insecure: bool = False,
    secret: FindSecret | None = None,
    local: Local | None = None,
) -> None:
    """Clusters and their proxy, on any server.

    `rights` decides who may name which Secrets. `secret` finds the Secrets of clusters, and `local` answers what is no
    resource of theirs; by default both are the server's own.
    """
    server.admission.add(ClusterCredentials(rights, allow_insecure=allow_insecure))
    server.registry.add([cluster_resource(server.clock, models=models)])
    outbound = Outbound()
    server.closing.append(outbound.close)

    async def own_secret(namespace: str, name: str) -> Obj | None:
        return server.cache.get(SECRETS, namespace, name)

    async def own_answer(request: Request, path: str) -> Result:
        info = RequestInfo(False, request.method.lower(), path)
        return await server.pipeline.run(replace(request, info=info, query=Query({})))

    members = Members(server.cache, secret or own_secret, outbound, allow_insecure=allow_insecure)
    proxy = ClusterProxy(members, FanOut(members, local or own_answer))
    server.handlers.endpoints[Place(CLUSTERS, "proxy")] = proxy.connect
