"""The control plane that is measured, with members that it pushes to: one that is started here, or anybody's.

One of our own is the `karmada` program and a process of bare members, started for the measurement. A foreign one is
reached by kubeconfigs alone: the API is everything that is used of it, so whatever implements it can be measured by the
same code. Its members are identified by the uid of their kube-system namespace, which Cluster objects carry as spec.id.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import members as bare
from benchmarks import objects
from benchmarks.processes import CLIENT, CONTROL_PLANE, MEMBERS, started
from benchmarks.scenario import Foreign, Place, Skipped
from karmada.api.cluster import Cluster
from karmada.components.controlplane import ControlPlane
from karmada.joining.join import Joining, cluster_id_of, join
from karmada.kube.client.client import Client
from karmada.kube.client.config import RestConfig
from karmada.kube.client.http_transport import HttpTransport
from karmada.kube.client.kubeconfig import load_config
from karmada.kube.objects.meta import get_condition, name
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informer import Informer
from karmada.kube.server.app import ApiServer
from karmada.kube.server.config import ServerConfig

PROGRAM = "karmada.components.karmada"
_JOINS_AT_ONCE = 4
_READY_SECONDS = 120.0


class NotJoined(RuntimeError):
    """A member that the control plane does not know."""


@dataclass(frozen=True)
class Member:
    name: str
    client: Client
    config: RestConfig


@dataclass(frozen=True)
class Plane:
    """`pids` are the processes whose use is measured: this one, and those that may be looked at."""

    control: Client
    members: Sequence[Member]
    pids: dict[str, int]
    ours: bool

    @property
    def names(self) -> list[str]:
        return [member.name for member in self.members]


@asynccontextmanager
async def plane(place: Place, members: int, *flags: str) -> AsyncIterator[Plane]:
    """With so many members, all of them Ready; `flags` are for one of our own."""
    if place.foreign is not None:
        async with _foreign(place.foreign, members) as found:
            yield found
        return
    with started_members(place.folder, members) as others, started_plane(place, *flags) as process:
        pids = {CONTROL_PLANE: process.pid, MEMBERS: others.pid, CLIENT: os.getpid()}
        async with connected(plane_config(place.folder)) as control, bare_members(place.folder, members) as joined:
            await join_all(control, joined)
            await until_ready(control, [member.name for member in joined])
            yield Plane(control, joined, pids, ours=True)


@asynccontextmanager
async def connected(config: RestConfig) -> AsyncIterator[Client]:
    client = Client(HttpTransport(config), field_manager="benchmarks")
    try:
        yield client
    finally:
        await client.close()


# ours


@contextmanager
def started_plane(place: Place, *flags: str) -> Iterator[subprocess.Popen[str]]:
    """`karmada`, on the store that is in the folder if there is one."""
    command = (*place.runner, PROGRAM, "--data-dir", str(place.folder / "plane"), "--port", "0", *flags)
    with started(*command, says="Control plane at", log=place.folder / "plane.log") as process:
        yield process


def plane_config(folder: Path) -> RestConfig:
    return load_config(folder / "plane" / "admin.kubeconfig")


@contextmanager
def started_members(folder: Path, count: int) -> Iterator[subprocess.Popen[str]]:
    command = ("benchmarks.members", str(folder / "members"), str(count))
    with started(*command, says="ready", log=folder / "members.log") as process:
        yield process


@asynccontextmanager
async def bare_members(folder: Path, count: int) -> AsyncIterator[list[Member]]:
    async with AsyncExitStack() as stack:
        found = []
        for number in range(count):
            config = load_config(bare.kubeconfig(folder / "members", number))
            client = await stack.enter_async_context(connected(config))
            found.append(Member(bare.member_name(number), client, config))
        yield found


async def join_all(control: Client, members: Iterable[Member]) -> None:
    limit = asyncio.Semaphore(_JOINS_AT_ONCE)

    async def one(member: Member) -> None:
        async with limit:
            await join(control, member.client, Joining.to(member.config, member.name))

    await asyncio.gather(*map(one, members))


async def until_ready(control: Client, names: Sequence[str]) -> None:
    """Until these clusters can be scheduled to."""
    informer, wanted = Informer(control, Cluster.gvr), set(names)
    informer.start()
    try:
        async with asyncio.timeout(_READY_SECONDS):
            await informer.until(lambda: wanted <= {name(cluster) for cluster in informer.list() if is_ready(cluster)})
    except TimeoutError:
        missing = wanted - {name(cluster) for cluster in informer.list() if is_ready(cluster)}
        raise TimeoutError(f"not Ready after {_READY_SECONDS:g} s: {', '.join(sorted(missing))}") from None
    finally:
        await informer.stop()


def is_ready(cluster: Obj, status: str = "True") -> bool:
    """That its Ready condition says so and, where it is True, that nothing keeps objects away from it."""
    condition = get_condition((cluster.get("status") or {}).get("conditions"), "Ready") or {}
    return condition.get("status") == status and not (status == "True" and cluster["spec"].get("taints"))


# anybody's


@asynccontextmanager
async def _foreign(foreign: Foreign, count: int) -> AsyncIterator[Plane]:
    if len(foreign.members) < count:
        raise Skipped(f"needs {count} members, {len(foreign.members)} are given")
    async with AsyncExitStack() as stack:
        control = await stack.enter_async_context(connected(load_config(foreign.control)))
        clients = []
        for given in foreign.members[:count]:
            config = member_config(given)
            clients.append((await stack.enter_async_context(connected(config)), config))
        members = [await _member(control, client, config, foreign.join) for client, config in clients]
        await until_ready(control, [member.name for member in members])
        yield Plane(control, members, {**foreign.pids, CLIENT: os.getpid()}, ours=False)


def member_config(given: str) -> RestConfig:
    """Of KUBECONFIG or KUBECONFIG:context."""
    path, colon, context = given.rpartition(":")
    return load_config(path, context=context) if colon and not Path(given).exists() else load_config(given)


async def _member(control: Client, member: Client, config: RestConfig, may_join: bool) -> Member:
    identity = await cluster_id_of(member)
    clusters = (await control.list(Cluster.gvr))["items"]
    for cluster in clusters:
        if cluster["spec"].get("id") == identity:
            return Member(name(cluster), member, config)
    if not may_join:
        raise NotJoined(
            f"no Cluster of the control plane is {config.server} (known: "
            f"{', '.join(name(cluster) for cluster in clusters) or 'none'}): join it, or give --join"
        )
    wanted = f"member-{identity[:8]}"
    await join(control, member, Joining.to(config, wanted))
    return Member(wanted, member, config)


@asynccontextmanager
async def one_process(folder: Path, namespace: str) -> AsyncIterator[Client]:
    """Yield a client of a control plane with two bare members, all on this event loop, and a policy for Deployments."""
    async with AsyncExitStack() as stack:
        own = ControlPlane(ServerConfig(data_dir=folder / "plane", port=0))
        await own.start()
        stack.push_async_callback(own.stop)
        control = own.server.client(user_agent="benchmarks")
        names = ["member0", "member1"]
        for name in names:
            server = await _member_here(stack, folder, name)
            to = Joining.to(load_config(server.kubeconfig), name)
            await join(control, server.client(user_agent="benchmarks"), to)
        await control.create(objects.NAMESPACES, objects.namespace(namespace))
        await control.create(objects.POLICIES, objects.policy(namespace, objects.DEPLOYMENTS, names))
        yield control


async def _member_here(stack: AsyncExitStack, folder: Path, name: str) -> ApiServer:
    config = ServerConfig(
        data_dir=folder / name,
        storage="memory://",
        port=0,
        context=name,
        disabled_admission=frozenset({"ServiceAccount"}),
    )
    server = ApiServer(config)
    await server.start()
    stack.push_async_callback(server.stop)
    return server


def is_applied(binding: Obj) -> bool:
    """Return whether the binding reports that both members of `one_process` have its resource."""
    status = binding.get("status") or {}
    applied = get_condition(status.get("conditions"), "FullyApplied")
    return applied is not None and applied["status"] == "True" and len(status.get("aggregatedStatus") or ()) == 2
