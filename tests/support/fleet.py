"""A control plane with the second half of propagation, and members that are real API servers behind HTTPS."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from karmada.api import well_known
from karmada.api.policy import ClusterOverridePolicy, OverridePolicy
from karmada.api.work import ClusterResourceBinding, ResourceBinding, Work
from karmada.components.parts import PROPAGATION, parts_named
from karmada.components.rows import Shared
from karmada.controllers.context import Context, Settings
from karmada.kube.client.client import Client
from karmada.kube.objects import meta
from karmada.kube.objects.clock import Clock, RealClock
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    EVENTS,
    JOBS,
    NAMESPACES,
    SECRETS,
    SERVICES,
)
from karmada.kube.objects.types import Obj
from karmada.kube.server.app import ApiServer
from karmada.kube.server.config import ServerConfig
from karmada.kube.server.http.request import Request
from karmada.kube.server.http.results import Result
from karmada.overrides.hook import Override
from tests.support.control_plane import ControlPlane, running
from tests.support.eventually import eventually
from tests.support.objects import kube_object
from tests.support.workloads import one_container, workload

TEMPLATES = (DEPLOYMENTS, CONFIG_MAPS, JOBS, SERVICES)
_BY_SERVER = frozenset({"kube-root-ca.crt", "kubernetes"})
TOKEN = "a-long-secret"
SCHEDULED = "2023-11-14T22:13:20Z"


class Gate:
    """Counts the requests to a member, and blocks responses while `open` is not set."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.open.set()
        self.requests: Counter[str] = Counter()
        self.paths: list[tuple[str, str]] = []

    async def run(self, request: Request, answer: Callable[[Request], Awaitable[Result]]) -> Result:
        self.requests[request.method] += 1
        self.paths.append((request.method, request.info.path))
        await self.open.wait()
        return await answer(request)

    async def send(self, request: Request) -> None:  # noqa: ARG002 - the shape of a gate
        await self.open.wait()

    def watching(self, request: Request, begins: bool) -> None:
        """Not used."""


@dataclass
class TestMember:
    __test__ = False
    name: str
    server: ApiServer
    gate: Gate = field(default_factory=Gate)

    @property
    def client(self) -> Client:
        return self.server.client(user_agent="tests")

    async def get(self, kind: GVR, name: str, namespace: str = "default") -> Obj | None:
        try:
            return await self.client.get(kind, name, namespace)
        except NotFound:
            return None

    async def until(self, kind: GVR, name: str, condition: Callable[[Obj], Any] = bool, **where: str) -> Obj:
        """The object once it is there and fulfils the condition."""
        return await until(lambda: self.get(kind, name, **where), condition)

    async def until_gone(self, kind: GVR, name: str, **where: str) -> None:
        await until_none(lambda: self.get(kind, name, **where))

    def writes(self) -> int:
        return sum(count for method, count in self.gate.requests.items() if method != "GET")


async def until(read: Callable[[], Awaitable[Obj | None]], condition: Callable[[Obj], Any] = bool) -> Obj:
    last: Obj | None = None

    async def met() -> Obj | None:
        nonlocal last
        last = await read()
        return last if last is not None and condition(last) else None

    found: Obj = await eventually(met, show=lambda: last)
    return found


async def until_none(read: Callable[[], Awaitable[Obj | None]]) -> None:
    async def gone() -> Obj | None:
        return None if await read() is not None else {"gone": True}

    await until(gone)


@dataclass
class Fleet:
    plane: ControlPlane
    members: dict[str, TestMember]

    @property
    def client(self) -> Client:
        return self.plane.client

    # writes of the detector and scheduler

    async def bind(self, template: Obj, clusters: dict[str, int] | list[str], **spec: Any) -> Obj:
        """The binding of a template that was created, scheduled to clusters."""
        namespace = meta.namespace(template)
        cls = ResourceBinding if namespace else ClusterResourceBinding
        finalizer = well_known.BINDING_FINALIZER if namespace else well_known.CLUSTER_BINDING_FINALIZER
        targets = clusters if isinstance(clusters, dict) else dict.fromkeys(clusters, 0)
        metadata: Obj = {
            "name": well_known.binding_name(template["kind"], meta.name(template)),
            "finalizers": [finalizer],
            "ownerReferences": [meta.make_owner(template)],
        }
        resource = {
            "apiVersion": template["apiVersion"],
            "kind": template["kind"],
            "name": meta.name(template),
            "uid": meta.uid(template),
            "resourceVersion": meta.resource_version(template),
        }
        if namespace:
            metadata["namespace"] = resource["namespace"] = namespace
        binding = {
            "apiVersion": cls.gvk.api_version,
            "kind": cls.gvk.kind,
            "metadata": metadata,
            "spec": {
                "resource": resource,
                "clusters": [{"name": name, **({"replicas": n} if n else {})} for name, n in targets.items()],
                "schedulerName": "default-scheduler",
                **spec,
            },
        }
        made = await self.client.create(cls.gvr, binding)
        patch = {"status": {"lastScheduledTime": SCHEDULED}}
        return await self.client.patch(cls.gvr, meta.name(made), namespace, patch, subresource="status")

    async def propagate(self, gvr: GVR, template: Obj, clusters: dict[str, int] | list[str], **spec: Any) -> Obj:
        """Create a template and its binding; the template."""
        made = await self.client.create(gvr, template)
        if made["kind"] == "Deployment":
            spec = {"replicas": made["spec"]["replicas"], "replicaRequirements": {}, **spec}
        await self.bind(made, clusters, **spec)
        return made

    async def set_binding(self, name: str, spec: Obj, namespace: str = "default") -> Obj:
        return await self.client.patch(ResourceBinding.gvr, name, namespace, {"spec": spec})

    async def touch(self, gvr: GVR, template: Obj) -> Obj:
        """Change a template, and its binding as the detector would."""
        name, namespace = meta.name(template), meta.namespace(template)
        changed = await self.client.update(gvr, template)
        resource = {"resource": {"resourceVersion": meta.resource_version(changed)}}
        await self.set_binding(well_known.binding_name(template["kind"], name), resource, namespace)
        return changed

    # reads

    async def binding(self, name: str, namespace: str = "default") -> Obj | None:
        gvr = ResourceBinding.gvr if namespace else ClusterResourceBinding.gvr
        return await self.plane.get(gvr, name, namespace)

    async def until_binding(self, name: str, condition: Callable[[Obj], Any], namespace: str = "default") -> Obj:
        return await until(lambda: self.binding(name, namespace), condition)

    async def until_applied(self, name: str, namespace: str = "default") -> Obj:
        return await self.until_binding(name, lambda b: condition(b, "FullyApplied") == "True", namespace)

    async def work(self, cluster: str, template: Obj) -> Obj | None:
        name = well_known.work_name(template["kind"], meta.name(template), meta.namespace(template))
        return await self.plane.get(Work.gvr, name, well_known.execution_namespace(cluster))

    async def until_work(self, cluster: str, template: Obj, condition: Callable[[Obj], Any] = bool) -> Obj:
        return await until(lambda: self.work(cluster, template), condition)

    async def until_work_gone(self, cluster: str, template: Obj) -> None:
        await until_none(lambda: self.work(cluster, template))

    async def events(self, name: str, namespace: str = "default") -> set[tuple[str, str, str]]:
        return set(await self.plane.events(name, namespace))

    async def until_event(self, name: str, event: tuple[str, str, str], namespace: str = "default") -> None:
        async def emitted() -> bool:
            return event in await self.events(name, namespace)

        await eventually(emitted)

    async def rest(self) -> None:
        """Wait until all controllers are idle."""
        queues = [controller.queue for controller in self.plane.manager.controllers.values()]
        for _ in range(2):
            await eventually(lambda: all(q.idle and not q.delayed for q in queues))
            await asyncio.sleep(0.02)

    async def clear(self) -> None:
        """Delete everything that a test created, and make the clusters ready again."""
        for name, member in self.members.items():
            member.gate.open.set()
            await self.plane.set_ready(name, "True")
        for gvr in (OverridePolicy.gvr, ClusterOverridePolicy.gvr, *TEMPLATES):
            await _empty(self.client, gvr)
        for gvr in (ResourceBinding.gvr, ClusterResourceBinding.gvr, Work.gvr):
            await _empty(self.client, gvr)
        works = self.plane.context.informers.of(Work.gvr)
        await eventually(lambda: not works.list(), show=works.list)
        for member in self.members.values():
            for gvr in TEMPLATES:
                await _empty(member.client, gvr)
        await self.rest()
        for recorder in self.plane.context.recorders.values():
            await recorder.flush()
        await self.client.delete_collection(EVENTS, "default")

    # clusters

    async def join(self, member: TestMember, *, ready: bool = True) -> None:
        self.members[member.name] = member
        data = {"token": encoded(TOKEN), "caBundle": encoded(member.server.pki.ca.cert_pem)}
        secret = kube_object("v1", "Secret", member.name, "karmada-cluster")
        await self.client.create(SECRETS, {**secret, "data": data})
        ref = {"namespace": "karmada-cluster", "name": member.name}
        await self.plane.add_cluster(member.name, apiEndpoint=member.server.url, secretRef=ref)
        space = {"name": well_known.execution_namespace(member.name)}
        await self.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": space})
        if ready:
            await self.plane.set_ready(member.name, "True")


async def _empty(client: Client, gvr: GVR) -> None:
    for obj in (await client.list_all(gvr)).items:
        namespace, name = meta.key(obj)
        if not namespace.startswith("kube-") and name not in _BY_SERVER and not name.startswith("system:"):
            with contextlib.suppress(NotFound):
                await client.delete(gvr, name, namespace)


def condition(obj: Obj, kind: str) -> str:
    found = meta.get_condition((obj.get("status") or {}).get("conditions"), kind)
    return found["status"] if found else ""


def brief(obj: Obj, kind: str) -> tuple[str, str, str]:
    """(status, reason, message) of a condition."""
    found = meta.get_condition((obj.get("status") or {}).get("conditions"), kind) or {}
    return found.get("status", ""), found.get("reason", ""), found.get("message", "")


def manifest(work: Obj) -> Obj:
    [found] = work["spec"]["workload"]["manifests"]
    return copy_json(found)


def encoded(value: str | bytes) -> str:
    return base64.b64encode(value if isinstance(value, bytes) else value.encode()).decode()


def deployment(name: str = "web", replicas: int = 2, **metadata: Any) -> Obj:
    metadata = {"namespace": "default", "labels": {"app": name}, **metadata}
    return workload("Deployment", name, replicas, one_container("nginx:1.25"), **metadata)


def config_map(name: str = "settings", data: dict[str, str] | None = None, **metadata: Any) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"namespace": "default", "name": name, **metadata},
        "data": data or {"a": "1"},
    }


def new_server(folder: Path, name: str, clock: Clock | None = None) -> ApiServer:
    config = ServerConfig(
        data_dir=folder / name,
        storage="memory://",
        port=0,
        controllers=True,
        token_file=folder / "tokens",
    )
    return ApiServer(config, clock)


@asynccontextmanager
async def fleet(
    folder: Path,
    *names: str,
    override: Override | None = None,
    settings: Settings | None = None,
    parts: Callable[[Context], list[Any]] | None = None,
) -> AsyncIterator[Fleet]:
    """A control plane with real time, and members that have joined and are ready."""
    (folder / "tokens").write_text(f'{TOKEN},admin,1,"system:masters"\n')
    made = parts or (lambda context: parts_named(Shared(context, override=override), *PROPAGATION))
    async with AsyncExitStack() as stack:
        members = [TestMember(name, new_server(folder, name)) for name in names]
        for member in members:
            member.server.http.gate = member.gate
            await member.server.start()
            stack.push_async_callback(member.server.stop)
            stack.callback(member.gate.open.set)
        plane = await stack.enter_async_context(running(folder / "plane", made, clock=RealClock(), settings=settings))
        found = Fleet(plane, {})
        for member in members:
            await found.join(member)
        yield found


def is_applied(work: Obj) -> bool:
    return condition(work, "Applied") == "True"
