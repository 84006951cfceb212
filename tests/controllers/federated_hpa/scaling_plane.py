"""A control plane that runs FederatedHPAs, members in the same process, and metrics that a test sets."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from karmada.api import well_known
from karmada.api.autoscaling import FederatedHPA
from karmada.api.cluster import Cluster
from karmada.api.work import ResourceBinding
from karmada.controllers.cluster_state import is_ready
from karmada.controllers.context import Context, Settings
from karmada.controllers.federated_hpa.controller import FederatedHpas
from karmada.kube.autoscaling.metrics import MetricsError
from karmada.kube.client.client import Client
from karmada.kube.client.config import RestConfig
from karmada.kube.client.transport import Transport
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import ACCOUNTS, DEPLOYMENTS, EVENTS, PODS, SECRETS
from karmada.kube.objects.meta import get_condition
from karmada.kube.objects.quantity import Quantity
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key
from karmada.kube.server.app import ApiServer
from karmada.kube.server.config import ServerConfig
from karmada.kube.server.core import LOOPBACK
from karmada.kube.server.http.inprocess import InProcess
from karmada.rehearsal.network import InMemoryTransport, Network
from tests.support.control_plane import ControlPlane, running
from tests.support.eventually import eventually
from tests.support.objects import kube_object
from tests.support.propagation import deployment

HPAS = FederatedHPA.gvr
BINDINGS = ResourceBinding.gvr
POLICY = {well_known.POLICY_ID: "the-policy"}
_SUFFIX = ".test"
CPU: Obj = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
}
RPS: Obj = {
    "type": "Pods",
    "pods": {"metric": {"name": "rps"}, "target": {"type": "AverageValue", "averageValue": "10"}},
}


@dataclass
class Metrics:
    """The metrics APIs of a control plane: what each pod uses, by cluster."""

    clock: FakeClock
    pods: dict[tuple[str, str, str], str] = field(default_factory=dict)
    """(cluster, namespace, name) of the pods there are, and their app."""
    cpu: dict[str, int] = field(default_factory=dict)
    """Thousandths of a core per pod, by cluster; clusters without an entry have no metrics."""
    rps: int = 0
    """Thousandths per pod."""
    hits: int = 0
    """Thousandths of the object's value."""
    broken: set[str] = field(default_factory=set)
    slow: dict[str, float] = field(default_factory=dict)
    """Seconds that an answer takes, by API and namespace."""
    requests: Counter[str] = field(default_factory=Counter)

    async def _answer(self, kind: str, namespace: str) -> None:
        which = f"{kind} {namespace}"
        self.requests[which] += 1
        if which in self.slow:
            await self.clock.sleep(self.slow[which])
        if kind in self.broken:
            raise MetricsError(f"unable to fetch metrics from {kind} metrics API: down")

    def _selected(self, namespace: str, selector: str) -> Iterable[tuple[str, str]]:
        for (cluster, where, name), app in self.pods.items():
            if where == namespace and selector in ("", f"app={app}"):
                yield cluster, name

    async def pod_metrics(self, namespace: str, selector: str) -> list[Obj]:
        await self._answer("resource", namespace)
        now = rfc3339(self.clock.now())
        return [
            {
                "metadata": {
                    "name": name,
                    "namespace": namespace,
                    "annotations": {well_known.QUERY_FROM_CLUSTER: cluster},
                },
                "timestamp": now,
                "window": "30s",
                "containers": [{"name": "web", "usage": {"cpu": f"{self.cpu[cluster]}m"}}],
            }
            for cluster, name in self._selected(namespace, selector)
            if cluster in self.cpu
        ]

    async def pod_values(self, namespace: str, selector: str, *_series: str) -> list[Obj]:
        await self._answer("custom", namespace)
        values = Counter(name for _, name in self._selected(namespace, selector))
        return [
            {
                "describedObject": {"name": name, "namespace": namespace},
                "timestamp": rfc3339(self.clock.now()),
                "value": str(Quantity.of_milli(number * self.rps)),
            }
            for name, number in values.items()
        ]

    async def object_value(self, namespace: str, *_which: Any) -> int:
        await self._answer("custom", namespace)
        return self.hits


@dataclass
class Member:
    name: str
    server: ApiServer
    network: Network

    @property
    def client(self) -> Client:
        return self.server.client(user_agent="tests")


@dataclass
class ScalingPlane:
    plane: ControlPlane
    clock: FakeClock
    members: dict[str, Member]
    metrics: Metrics
    controller: FederatedHpas

    @property
    def client(self) -> Client:
        return self.plane.client

    # what is scaled

    async def join(self, name: str) -> None:
        secret = kube_object("v1", "Secret", name, "karmada-cluster")
        await self.client.create(SECRETS, {**secret, "stringData": {"token": "t"}})
        await self.plane.add_cluster(
            name,
            apiEndpoint=f"https://{name}{_SUFFIX}",
            insecureSkipTLSVerification=True,
            secretRef={"namespace": "karmada-cluster", "name": name},
        )
        await self.plane.set_ready(name, "True")

    async def set_ready(self, name: str, status: str) -> None:
        """Until the controller sees it."""
        await self.plane.set_ready(name, status)
        informer = self.plane.context.informers.of(Cluster.gvr)
        await eventually(lambda: is_ready(informer.get(Key("", name)) or {}) is (status == "True"))

    async def workload(
        self, name: str = "web", *, namespace: str = "default", labels: dict[str, str] | None = None, **replicas: int
    ) -> None:
        """A template, its binding, and in each cluster so many replicas with their pods."""
        labels = POLICY if labels is None else labels
        template = deployment(name, replicas=sum(replicas.values()), labels=labels, namespace=namespace)
        await self.client.create(DEPLOYMENTS, template)
        if labels and replicas:
            await self.bind(name, list(replicas), namespace=namespace, labels=labels)
        for cluster, count in replicas.items():
            client = self.members[cluster].client
            await client.create(DEPLOYMENTS, deployment(name, replicas=count, namespace=namespace))
            await self.pods(cluster, count, name, namespace)

    async def bind(
        self, name: str, clusters: list[str], *, namespace: str = "default", labels: dict[str, str] | None = None
    ) -> None:
        resource = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": namespace, "name": name}
        binding = kube_object(
            ResourceBinding.gvk.api_version, "ResourceBinding", f"{name}-deployment", namespace, labels=labels or POLICY
        ) | {"spec": {"resource": resource, "clusters": [{"name": cluster} for cluster in clusters]}}
        await self.client.create(BINDINGS, binding)
        informer = self.plane.context.informers.of(BINDINGS)
        await eventually(lambda: informer.get(Key(namespace, f"{name}-deployment")))

    async def pods(self, cluster: str, number: int, name: str = "web", namespace: str = "default") -> None:
        """Have so many ready pods in a cluster, and a status that says so."""
        client, started = self.members[cluster].client, rfc3339(self.clock.now() - 3600)
        have = [pod for c, where, pod in self.metrics.pods if (c, where) == (cluster, namespace)]
        have = [pod for pod in have if self.metrics.pods[cluster, namespace, pod] == name]
        for index in range(len(have), number):
            await self._pod(client, f"{name}-{cluster}-{index}", name, namespace, started)
            self.metrics.pods[cluster, namespace, f"{name}-{cluster}-{index}"] = name
        for pod in have[number:]:
            await client.delete(PODS, pod, namespace, grace_period=0)
            del self.metrics.pods[cluster, namespace, pod]
        patch = {"status": {"replicas": number}}
        await client.patch(DEPLOYMENTS, name, namespace, patch, subresource="status")
        await self._until_listed(cluster)

    async def _until_listed(self, cluster: str) -> None:
        """Informers of pods, if there are any, have what the member has."""
        known = self.plane.context.members.known(cluster)
        wanted = sum(1 for where, _, _ in self.metrics.pods if where == cluster)
        for informer in known.informers.all() if known is not None else ():
            await eventually(lambda informer=informer: len(informer) == wanted)

    async def _pod(self, client: Client, name: str, app: str, namespace: str, started: str) -> None:
        container = {"name": "web", "image": "nginx", "resources": {"requests": {"cpu": "100m"}}}
        await client.create(
            PODS,
            kube_object("v1", "Pod", name, namespace, labels={"app": app}, spec={"containers": [container]}),
        )
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": started}
        status = {"phase": "Running", "startTime": started, "conditions": [ready]}
        await client.patch(PODS, name, namespace, {"status": status}, subresource="status")

    async def rename_pod(self, cluster: str, old: str, new: str) -> None:
        """As a StatefulSet names its pods: the same in every cluster."""
        client = self.members[cluster].client
        await client.delete(PODS, old, "default", grace_period=0)
        app = self.metrics.pods.pop((cluster, "default", old))
        await self._pod(client, new, app, "default", rfc3339(self.clock.now() - 3600))
        self.metrics.pods[cluster, "default", new] = app
        await self._until_listed(cluster)

    async def follow(self, name: str = "web", **replicas: int) -> None:
        """What scheduler, propagation and the members would do."""
        for cluster, count in replicas.items():
            patch = {"spec": {"replicas": count}}
            await self.members[cluster].client.patch(DEPLOYMENTS, name, "default", patch)
            await self.pods(cluster, count, name)
        await self.clock.advance(0.1)

    # the autoscaler

    async def autoscaler(self, name: str = "web", *, namespace: str = "default", **spec: Any) -> None:
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
        made = kube_object(FederatedHPA.gvk.api_version, "FederatedHPA", name, namespace) | {
            "spec": {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 20, "metrics": [CPU], **spec}
        }
        await self.client.create(HPAS, made)

    def status(self, name: str = "web", namespace: str = "default") -> Obj:
        found = self.plane.context.informers.of(HPAS).get(Key(namespace, name)) or {}
        return found.get("status") or {}

    def condition(self, kind: str, name: str = "web", namespace: str = "default") -> tuple[str, str, str]:
        found = get_condition(self.status(name, namespace).get("conditions"), kind) or {}
        return found.get("status", ""), found.get("reason", ""), found.get("message", "")

    def reason(self, kind: str, name: str = "web", namespace: str = "default") -> str:
        return self.condition(kind, name, namespace)[1]

    async def replicas(self, name: str = "web") -> int:
        found = await self.client.get(DEPLOYMENTS, name, "default")
        return int(found["spec"]["replicas"])

    async def until(self, condition: Callable[[], Any]) -> None:
        """With the clock as it is."""
        await eventually(condition, show=lambda: self.plane.context.informers.of(HPAS).list())

    async def until_reason(self, kind: str, reason: str, name: str = "web") -> None:
        await self.until(lambda: self.reason(kind, name) == reason)

    async def events(self, name: str = "web") -> dict[str, tuple[str, str]]:
        """Type and message of the last event of each reason."""
        return {reason: (kind, message) for kind, reason, message in await self.plane.events(name)}

    async def round(self, number: int = 1) -> None:
        """Sync periods pass."""
        for _ in range(number):
            await self.clock.advance(15)

    # between tests

    async def clear(self) -> None:
        for member in self.members.values():
            member.network.change(type(member.network.state).UP)
        for kind in (HPAS, BINDINGS, DEPLOYMENTS):
            await _empty(self.client, kind)
        for name, member in self.members.items():
            for kind in (DEPLOYMENTS, PODS):
                await _empty(member.client, kind)
            await self.set_ready(name, "True")
        await eventually(lambda: not self.plane.context.informers.of(HPAS).list())
        await self.round()
        for recorder in self.plane.context.recorders.values():
            await recorder.flush()
        await self.client.delete_collection(EVENTS, "default")
        fresh = Metrics(self.clock)
        for name in fresh.__dataclass_fields__:
            setattr(self.metrics, name, getattr(fresh, name))


async def _empty(client: Client, kind: GVR) -> None:
    for obj in (await client.list_all(kind)).items:
        try:
            await client.delete(kind, obj["metadata"]["name"], obj["metadata"]["namespace"], grace_period=0)
        except NotFound:
            continue


@asynccontextmanager
async def scaling_plane(folder: Path, *names: str, settings: Settings | None = None) -> AsyncIterator[ScalingPlane]:
    clock = FakeClock()
    metrics = Metrics(clock)
    members: dict[str, Member] = {}
    made: list[FederatedHpas] = []

    def parts(context: Context) -> list[FederatedHpas]:
        made.append(FederatedHpas(context, metrics))
        return made

    def open_member(config: RestConfig, _before: Transport | None) -> Transport:
        member = members[config.server.removeprefix("https://").removesuffix(_SUFFIX)]
        inner = InProcess(member.server.pipeline, LOOPBACK, user_agent=config.user_agent)
        return InMemoryTransport(inner, member.network)

    async with AsyncExitStack() as stack:
        for name in names:
            server = ApiServer(
                ServerConfig(data_dir=folder / name, storage="memory://", port=0, controllers=False), clock
            )
            await server.start()
            stack.push_async_callback(server.stop)
            members[name] = Member(name, server, Network(clock))
            account = kube_object("v1", "ServiceAccount", "default")
            await members[name].client.create(ACCOUNTS, account, "default")
        plane = await stack.enter_async_context(
            running(folder / "plane", parts, clock=clock, settings=settings, open_member=open_member)
        )
        found = ScalingPlane(plane, clock, members, metrics, made[0])
        for name in names:
            await found.join(name)
        informer = plane.context.informers.of(Cluster.gvr)
        await eventually(lambda: len(informer.list()) == len(names))
        yield found
