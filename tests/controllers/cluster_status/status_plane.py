"""A control plane in memory on a clock of the test's, and members behind real HTTPS that can be made to fail."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from karmada.api.cluster import Cluster
from karmada.api.well_known import CLUSTER_FINALIZER
from karmada.controllers.cluster_status.controller import ClusterStatus
from karmada.controllers.context import Context
from karmada.kube.client.client import Client
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import SECRETS
from karmada.kube.objects.meta import get_condition
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informers import Informers
from karmada.kube.runtime.keys import Key
from karmada.kube.server.app import ApiServer
from karmada.kube.server.config import ServerConfig
from karmada.kube.server.http.request import Request
from karmada.kube.server.http.results import RawResult, Result
from tests.support.eventually import eventually
from tests.support.fleet import encoded
from tests.support.objects import kube_object

TOKEN = "a-long-secret"
NAMESPACE = "karmada-cluster"


class Gate:
    """Answers chosen pages with a code of the test's, or not at all; counts the requests."""

    def __init__(self) -> None:
        self.codes: dict[str, int] = {}
        self.hanging: set[str] = set()
        self.texts: dict[str, bytes] = {}
        """What these pages say instead of what they should."""
        self.legacy = False
        """As a server from before aggregated discovery."""
        self.released = asyncio.Event()
        self.requests: Counter[str] = Counter()
        self.answered: Counter[tuple[str, int]] = Counter()

    async def run(self, request: Request, answer: Callable[[Request], Awaitable[Result]]) -> Result:
        path = request.info.path
        self.requests[path] += 1
        if path in self.hanging:
            await self.released.wait()
        code = self.codes.get(path)
        if self.legacy and "APIGroupDiscoveryList" in request.headers.get("Accept", ""):
            code = 406
        result = RawResult(b"no", "text/plain", code) if code else await answer(request)
        if path in self.texts:
            result = RawResult(self.texts[path], "application/json", 200)
        if isinstance(result, RawResult):
            self.answered[path, result.status] += 1
        return result

    async def send(self, request: Request) -> None:
        """Watches go on."""

    def watching(self, request: Request, begins: bool) -> None:
        """No requests."""


@dataclass
class FakeMember:
    server: ApiServer
    gate: Gate = field(default_factory=Gate)
    running: bool = True

    async def stop(self) -> None:
        if self.running:
            self.running = False
            self.gate.released.set()
            await self.server.stop()

    @property
    def client(self) -> Client:
        return self.server.client(user_agent="tests")

    async def create(self, *objects: Obj) -> None:
        plurals = {"Node": "nodes", "Pod": "pods", "Namespace": "namespaces"}
        for obj in objects:
            gvr = GVR("", "v1", plurals[obj["kind"]])
            made = await self.client.create(gvr, obj)
            if obj.get("status"):
                await self.client.update_status(gvr, {**made, "status": {**made.get("status", {}), **obj["status"]}})


@dataclass
class Plane:
    client: Client
    clock: FakeClock
    informers: Informers
    context: Context
    status: ClusterStatus

    async def join(
        self,
        name: str,
        member: FakeMember | None = None,
        *,
        secret: Obj | None = None,
        finalizers: Sequence[str] = (CLUSTER_FINALIZER,),
        **spec: Any,
    ) -> Obj:
        """The Secret and the Cluster, as its own controller leaves it: with the finalizer."""
        if member is not None:
            spec = {"apiEndpoint": member.server.url, **spec}
            secret = credentials(member) if secret is None else secret
        if secret is not None:
            await self.client.create(SECRETS, secret_of(name, secret))
        cluster = kube_object(Cluster.gvk.api_version, "Cluster", name, finalizers=list(finalizers)) | {
            "spec": {"syncMode": "Push", "secretRef": {"namespace": NAMESPACE, "name": name}, **spec}
        }
        return await self.known(await self.client.create(Cluster.gvr, cluster))

    async def known(self, obj: Obj) -> Obj:
        """Wait until the controller's cache is as new as this."""
        clusters, name = self.informers.of(Cluster.gvr), obj["metadata"]["name"]
        version = int(obj["metadata"]["resourceVersion"])
        await eventually(lambda: int((clusters.get(Key("", name)) or NONE)["metadata"]["resourceVersion"]) >= version)
        return obj

    async def change(self, name: str, change: Obj, **how: Any) -> Obj:
        return await self.known(await self.client.patch(Cluster.gvr, name, "", change, **how))

    async def get(self, name: str) -> Obj:
        return await self.client.get(Cluster.gvr, name)

    async def look(self, name: str) -> Obj:
        """One pass; the status it leaves."""
        await self.status.reconcile(Key("", name))
        return (await self.known(await self.get(name))).get("status") or {}

    async def ready(self, name: str) -> tuple[str, str]:
        return brief(await self.look(name), "Ready")

    async def synced(self, name: str) -> None:
        member = self.context.members.get(name)
        await eventually(lambda: member.informers.all() and member.informers.synced)


NONE: Obj = {"metadata": {"resourceVersion": "0"}}


def brief(status: Obj, kind: str) -> tuple[str, str]:
    """(status, reason) of a condition."""
    found = get_condition(status.get("conditions"), kind)
    return (found["status"], found["reason"]) if found else ("", "")


def credentials(member: FakeMember) -> Obj:
    return {"token": encoded(TOKEN), "caBundle": encoded(member.server.pki.ca.cert_pem)}


def secret_of(name: str, data: Obj) -> Obj:
    return kube_object("v1", "Secret", name, NAMESPACE, data=data)


def make_server(folder: Path, name: str, clock: FakeClock | None = None) -> ApiServer:
    config = ServerConfig(
        data_dir=folder / name,
        storage="memory://",
        port=0,
        controllers=False,
        token_file=folder / "tokens",
        disabled_admission=frozenset({"ServiceAccount"}),
    )
    return ApiServer(config, clock)
