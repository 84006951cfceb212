"""A whole simulated cluster that runs pods of the image `known/server` as processes."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from karmada.kube.client.http_transport import HttpTransport
from karmada.kube.client.transport import Call
from karmada.kube.objects.types import Obj
from karmada.kube.sim.processes.images import ImageRule, ImageTable
from karmada.kube.sim.processes.loopback import claim_any, in_block
from karmada.kube.sim.profile import INSTANT, NodePool, Profile
from tests.kube.sim.whole_cluster import Whole, whole_cluster
from tests.support.eventually import eventually
from tests.support.objects import kube_object

SERVER = Path(__file__).with_name("known_server.py")
TABLE = ImageTable(
    [
        ImageRule(
            image="known/server",
            command=(sys.executable, str(SERVER)),
            commands={"python": (sys.executable,)},
        ),
        ImageRule(image="known/nameless", command=(sys.executable, str(SERVER)), resolve_names=True),
    ]
)
SMALL = Profile("processes", latencies=INSTANT, pools=(NodePool(count=2),), system_pods=False)


@asynccontextmanager
async def process_cluster(folder: Path, profile: Profile | None = None, **settings: Any) -> AsyncIterator[Whole]:
    """Without a profile it has a block of loopback addresses of its own."""
    block = claim_any(str(folder)) if profile is None else None
    if block is not None:
        profile = in_block(SMALL, block.number)
    try:
        async with whole_cluster(folder, profile or SMALL, process_images=TABLE, **settings) as whole:
            yield whole
    finally:
        if block is not None:
            block.release()


def pod(name: str, **fields: Any) -> Obj:
    """A pod with one container of the known image; `container` changes it."""
    container = {"name": "main", "image": "known/server:1", **fields.pop("container", {})}
    spec = {"terminationGracePeriodSeconds": 5, "containers": [container], **fields}
    return kube_object("v1", "Pod", name, "default", labels={"app": name}, spec=spec)


def service(name: str, port: int = 80, target: int = 8080, **spec: Any) -> Obj:
    return kube_object("v1", "Service", name, "default") | {
        "spec": {"selector": {"app": name}, "ports": [{"port": port, "targetPort": target}], **spec}
    }


async def fetch(host: str, port: int, path: str = "/") -> str:
    """The body of a response over a connection of its own; OSError when nobody responds."""
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(f"GET {path} HTTP/1.0\r\n\r\n".encode())
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1."):
            raise ConnectionResetError(f"no response but {head!r}")
        return body.decode()
    finally:
        writer.close()


async def fetched(host: str, port: int, path: str = "/") -> str:
    """The same, once somebody responds."""

    async def attempt() -> str | None:
        try:
            return await fetch(host, port, path)
        except OSError:
            return None

    return str(await eventually(attempt))


async def log_of(cluster: Whole, name: str, **query: str) -> str:
    """The log of a pod; the error where there is none."""
    transport = cluster.admin.transport
    assert isinstance(transport, HttpTransport)
    answer = await transport.answer(Call("GET", f"/api/v1/namespaces/default/pods/{name}/log", query))
    return answer.body.decode()
