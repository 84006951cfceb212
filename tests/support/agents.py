"""Agents of members in mode Pull: over HTTPS to both sides, with the certificate and the rights they get in a fleet."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from karmada.api import well_known
from karmada.api.cluster import Cluster
from karmada.components.agent import AgentProcess
from karmada.components.agent_parts import agent_rows
from karmada.components.parts import parts_named
from karmada.components.rows import Shared
from karmada.controllers.context import Context, Settings
from karmada.features import default_gates
from karmada.joining import objects
from karmada.joining.join import Joining, ensure
from karmada.joining.pull.objects import agent_rights
from karmada.joining.pull.own_cluster import EVERYTHING
from karmada.kube.client.client import Client
from karmada.kube.client.config import Material, RestConfig
from karmada.kube.objects.gvrs import NAMESPACES
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.waiting import cancel_and_wait
from karmada.kube.server.app import ApiServer
from tests.support.fleet import TOKEN, Fleet, TestMember, condition, fleet, new_server, until

QUICK = Settings(
    cluster_status_update_frequency=0.5,
    cluster_success_threshold=0.1,
    cluster_failure_threshold=0.1,
    cluster_monitor_grace_period=3600,
    cluster_startup_grace_period=3600,
)
"""Quick to report, and never given up for being silent: where that is the subject the clock is a fake."""


def pulling_parts(context: Context) -> list[Any]:
    """What the control plane runs for members in mode Pull."""
    return parts_named(Shared(context), "cluster", "binding", "execution", "clusterStatus", "bindingStatus")


async def grant(client: Client, cluster: str) -> None:
    """The rights of an agent, and their namespaces."""
    for namespace in (well_known.NAMESPACE_CLUSTER, well_known.execution_namespace(cluster)):
        await ensure(client, NAMESPACES, objects.namespace(namespace))
    for kind, obj in agent_rights(cluster, well_known.NAMESPACE_CLUSTER):
        await ensure(client, kind, obj)


def agent_config(server: ApiServer, cluster: str, *, days: float = 1.0) -> RestConfig:
    """The way to the control plane with the certificate of a cluster's agent."""
    pair = server.pki.ca.issue(well_known.agent_user(cluster), organizations=(well_known.AGENT_GROUP,), days=days)
    return RestConfig(
        server=server.url,
        ca=Material(data=server.pki.ca.cert_pem),
        certificate=Material(data=pair.cert_pem),
        key=Material(data=pair.key_pem),
    )


def member_config(server: ApiServer) -> RestConfig:
    """As the agent's service account, which may do everything there."""
    return RestConfig(server=server.url, ca=Material(data=server.pki.ca.cert_pem), token=TOKEN)


@dataclass
class Agent:
    """An agent that can be killed and started again."""

    plane: RestConfig
    member: RestConfig
    joining: Joining
    settings: Settings = QUICK
    options: dict[str, Any] = field(default_factory=dict)
    gates: str = ""
    process: AgentProcess | None = None
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)
    _task: asyncio.Task[None] | None = None

    def start(self) -> None:
        options: dict[str, Any] = {"rows": agent_rows(), "report": EVERYTHING} | self.options
        self._stopping = asyncio.Event()
        gates = default_gates()
        if self.gates:
            gates.set(self.gates)
        self.process = AgentProcess(self.plane, self.member, self.joining, gates, settings=self.settings, **options)
        self._task = asyncio.create_task(self.process.run(self._stopping))

    async def stop(self) -> None:
        """As by SIGTERM; raises what ended it before."""
        self._stopping.set()
        if self._task is not None:
            task, self._task = self._task, None
            await task

    async def kill(self) -> None:
        """Without any farewell, as far as a task can."""
        if self._task is not None:
            task, self._task = self._task, None
            await cancel_and_wait(task)

    async def ended(self) -> None:
        """Until it ends by itself; raises why."""
        assert self._task is not None
        task, self._task = self._task, None
        await task


@dataclass
class PullFleet:
    """A control plane with members that have agents."""

    fleet: Fleet
    agents: dict[str, Agent]

    @property
    def client(self) -> Client:
        return self.fleet.client

    @property
    def members(self) -> dict[str, TestMember]:
        return self.fleet.members

    async def cluster(self, name: str) -> Obj | None:
        return await self.fleet.plane.get(Cluster.gvr, name)

    async def until_ready(self, name: str, status: str = "True") -> Obj:
        return await until(lambda: self.cluster(name), lambda cluster: condition(cluster, "Ready") == status)


@asynccontextmanager
async def member_of_its_own(folder: Path, name: str) -> AsyncIterator[TestMember]:
    """A member's API server, behind a gate, that no control plane knows."""
    member = TestMember(name, new_server(folder, name))
    member.server.http.gate = member.gate
    await member.server.start()
    try:
        yield member
    finally:
        member.gate.open.set()
        await member.server.stop()


@asynccontextmanager
async def pull_fleet(
    folder: Path,
    *names: str,
    settings: Settings = QUICK,
    start: bool = True,
    options: dict[str, Any] | None = None,
    gates: str = "",
    parts: Callable[[Context], list[Any]] = pulling_parts,
) -> AsyncIterator[PullFleet]:
    """`start`: with agents that run, and clusters that are ready; `gates`: of the agents, as in --feature-gates."""
    async with AsyncExitStack() as stack:
        plane = await stack.enter_async_context(fleet(folder, parts=parts, settings=settings))
        found = PullFleet(plane, {})
        for name in names:
            member = await stack.enter_async_context(member_of_its_own(folder, name))
            plane.members[name] = member
            await grant(plane.client, name)
            agent = found.agents[name] = Agent(
                agent_config(plane.plane.server, name),
                member_config(member.server),
                Joining(name=name, api_endpoint=member.server.url),
                settings,
                options or {},
                gates,
            )
            stack.push_async_callback(agent.kill)
        if start:
            await started(found, names)
        yield found


async def started(found: PullFleet, names: Sequence[str]) -> None:
    for name in names:
        found.agents[name].start()
    for name in names:
        await found.until_ready(name)
