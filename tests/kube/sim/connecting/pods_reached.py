"""An API server with the way into pods that are running, and clients over HTTPS."""

from __future__ import annotations

import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from karmada.kube.client.client import Client
from karmada.kube.client.http_transport import HttpTransport
from karmada.kube.client.kubeconfig import load_config
from karmada.kube.client.pod_streams import STDERR, STDOUT, RemoteCommand, execute
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import NODES, PODS
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informers import Informers
from karmada.kube.server.app import ApiServer
from karmada.kube.server.config import ServerConfig
from karmada.kube.sim.context import Context
from karmada.kube.sim.kubelet.answers import Answers
from karmada.kube.sim.kubelet.connector import PodConnector
from karmada.kube.sim.metrics.load import LoadModel
from karmada.kube.sim.profile import Profile
from tests.support.eventually import eventually
from tests.support.objects import kube_object

BASE = "/api/v1/namespaces/default"
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


@dataclass
class Cluster:
    server: ApiServer
    clock: FakeClock
    client: Client
    https: HttpTransport
    context: Context
    load: LoadModel
    connector: PodConnector

    @property
    def answers(self) -> Answers:
        return self.connector.answers

    async def put(
        self, name: str, *, running: bool = True, node: str = "n1", ended: Obj | None = None, **spec: Any
    ) -> Obj:
        """A pod that has been running for a minute."""
        containers = spec.pop("containers", [{"name": "c", "image": "nginx"}])
        body = kube_object("v1", "Pod", name, labels={"app": name})
        assigned = {"nodeName": node} if node else {}
        made = await self.client.create(
            PODS, {**body, "spec": {**assigned, "containers": containers, **spec}}, "default"
        )
        if running:
            state = {"running": {"startedAt": rfc3339(self.clock.now() - 60)}}
            made = await self.set_state(made, state, ended)
        await self.seen(made)
        return made

    async def set_state(self, pod: Obj, state: Obj, before: Obj | None = None, phase: str = "Running") -> Obj:
        statuses = [
            {"name": container["name"], "image": "nginx", "imageID": "", "ready": True, "restartCount": 0,
             "state": state, "lastState": {"terminated": before} if before else {}}
            for container in pod["spec"]["containers"]
        ]  # fmt: skip
        patch = {"status": {"phase": phase, "podIP": "10.244.0.9", "containerStatuses": statuses}}
        name = pod["metadata"]["name"]
        changed = await self.client.patch(PODS, name, "default", patch, type="merge", subresource="status")
        await self.seen(changed)
        return changed

    def asleep(self) -> int:
        """How many wait for the clock."""
        return sum(not future.done() for _, _, future in self.clock._sleepers)

    async def seen(self, *pods: Obj) -> None:
        await self.context.until_seen(self.load.pods, pods)

    async def run(self, pod: str, *command: str, **options: Any) -> tuple[int, bytes, bytes]:
        return await finished(await execute(self.https, "default", pod, command, **options))

    async def log(self, name: str, **query: str) -> str:
        text = await self.client.raw("GET", f"{BASE}/pods/{name}/log", query=query)
        return str(text)

    async def raw(self, path: str) -> Any:
        return await self.client.raw("GET", path)


async def finished(command: RemoteCommand) -> tuple[int, bytes, bytes]:
    said = {STDOUT: b"", STDERR: b""}
    async for channel, data in command.output():
        said[channel] += data
    return await command.exit_code(), said[STDOUT], said[STDERR]


@asynccontextmanager
async def cluster(folder: Path) -> AsyncIterator[Cluster]:
    clock = FakeClock(time.time() // 1)  # certificates must be good now
    server = ApiServer(ServerConfig(data_dir=folder, storage="memory://", port=0), clock)
    client = server.client(user_agent="kubectl")
    informers = Informers(client, clock=clock)
    context = Context(lambda name: server.client(user_agent=name), informers, clock, Profile("test"))
    load = LoadModel(context)
    connector = PodConnector(context, load)
    server.endpoints.connector = connector
    await server.start()
    https = HttpTransport(load_config(server.kubeconfig))
    informers.start()
    await informers.wait_synced()
    accounts = server.cache
    try:
        named = GVR("", "v1", "serviceaccounts").group_resource
        await eventually(lambda: accounts.get(named, "default", "default"))
        status = {"addresses": [{"type": "InternalIP", "address": "172.18.0.2"}]}
        node = kube_object("v1", "Node", "n1", labels={"type": "sim"}, status=status)
        made = await client.create(NODES, node)
        await context.until_seen(load.nodes, [made])
        yield Cluster(server, clock, client, https, context, load, connector)
    finally:
        await https.close()
        await informers.stop()
        await server.stop()


def tls_of(server: ApiServer) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=server.pki.ca.cert_pem.decode())
    certificate, key = server.config.data_dir / "t.crt", server.config.data_dir / "t.key"
    certificate.write_bytes(server.pki.admin.cert_pem)
    key.write_bytes(server.pki.admin.key_pem)
    context.load_cert_chain(certificate, key)
    return context
