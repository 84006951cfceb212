"""A whole simulated cluster in the test's process, used over HTTPS as others use it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from karmada.kube.client.client import Client
from karmada.kube.client.config import RestConfig
from karmada.kube.client.http_transport import HttpTransport
from karmada.kube.client.kubeconfig import load_config
from karmada.kube.client.transport import Call, RawResponse
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import CLUSTER_ROLE_BINDINGS, DEPLOYMENTS, NODES, PODS
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key
from karmada.kube.sim.cluster import SimCluster
from karmada.kube.sim.profile import INSTANT, NodePool, Profile
from tests.support.eventually import LIMIT, eventually
from tests.support.rights import account, binding
from tests.support.workloads import workload

SMALL = Profile("small", latencies=INSTANT, pools=(NodePool(count=2),), system_pods=False)


@dataclass
class Whole:
    sim: SimCluster
    admin: Client
    """Over HTTPS, with the certificate of the kubeconfig."""
    config: RestConfig
    _clients: list[Client] = field(default_factory=list)

    def client(self, **changes: Any) -> Client:
        """Another client; `changes` to the configuration, such as a token."""
        client = Client(HttpTransport(replace(self.config, **changes)))
        self._clients.append(client)
        return client

    async def service_account(self, name: str, namespace: str) -> Client:
        """A client with the token of a ServiceAccount that may do everything."""
        inside = self.sim.server.client()
        await inside.create(GVR("", "v1", "namespaces"), {"metadata": {"name": namespace}})
        accounts = GVR("", "v1", "serviceaccounts")
        await inside.create(accounts, {"metadata": {"name": name, "namespace": namespace}})
        bound = binding(f"{namespace}-{name}", account(name, namespace), to="cluster-admin")
        await inside.create(CLUSTER_ROLE_BINDINGS, bound)
        requested: Obj = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": []}}
        emitted = await inside.create_subresource(accounts, name, namespace, "token", requested)
        none = RestConfig(self.config.server).certificate
        return self.client(token=emitted["status"]["token"], certificate=none, key=none)

    # what is there, as the cluster's own informers have it

    def pods(self, namespace: str = "default") -> list[Obj]:
        return [p for p in self.sim.context.informers.of(PODS).list() if p["metadata"]["namespace"] == namespace]

    def node(self, name: str) -> Obj:
        node = self.sim.context.informers.of(NODES).get(Key("", name))
        assert node is not None
        return node

    def ready(self, deployment: str = "web") -> int:
        found = self.sim.context.informers.of(DEPLOYMENTS).get(Key("default", deployment))
        return int(((found or {}).get("status") or {}).get("readyReplicas") or 0)

    async def deploy(self, replicas: int, *, name: str = "web", client: Client | None = None, **pod: Any) -> None:
        """Make a Deployment and wait until all its pods are ready."""
        await (client or self.admin).create(DEPLOYMENTS, deployment(name, replicas, **pod))
        await eventually(lambda: self.ready(name) == replicas, show=self.states)

    def states(self) -> list[str]:
        """What every pod is doing, in a word."""
        return sorted(pod_state(pod) for pod in self.pods())


def deployment(name: str, replicas: int, **pod: Any) -> Obj:
    container = {"name": "main", "image": "nginx:1.27", "resources": {"requests": {"cpu": "10m"}}}
    return workload("Deployment", name, replicas, {"containers": [container], **pod}, namespace="default")


def pod_state(pod: Obj) -> str:
    status = pod.get("status") or {}
    for container in status.get("containerStatuses") or ():
        for state in (container.get("state") or {}).values():
            if state.get("reason"):
                return str(state["reason"])
    return "Terminating" if pod["metadata"].get("deletionTimestamp") else str(status.get("phase"))


def condition(obj: Obj, kind: str) -> str:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return next((str(c["status"]) for c in conditions if c["type"] == kind), "")


async def fetch(client: Client, path: str, method: str = "GET") -> RawResponse:
    """One request without a body, its answer as it comes."""
    transport = client.transport
    assert isinstance(transport, HttpTransport)
    return await transport.answer(Call(method, path))


@asynccontextmanager
async def whole_cluster(folder: Path, profile: Profile = SMALL, **settings: Any) -> AsyncIterator[Whole]:
    settings = {"in_memory": True, **settings}
    sim = SimCluster(profile, folder, **settings)
    await sim.start()
    whole: Whole | None = None
    try:
        config = replace(load_config(sim.kubeconfig), timeout=LIMIT)
        whole = Whole(sim, Client(HttpTransport(config)), config)
        await eventually(lambda: all_ready(sim, profile))
        yield whole
    finally:
        if whole is not None:
            for client in (whole.admin, *whole._clients):
                await client.close()
        await sim.stop()


def all_ready(sim: SimCluster, profile: Profile) -> bool:
    nodes = sim.context.informers.of(NODES).list()
    return len(nodes) == sum(pool.count for pool in profile.pools) and all(
        condition(n, "Ready") == "True" for n in nodes
    )
