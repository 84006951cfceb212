"""A control plane whose members have agents: `karmada-agent` processes, each with its own certificate and rights."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from benchmarks import members as bare
from benchmarks.planes import (
    Member,
    Plane,
    bare_members,
    connected,
    plane_config,
    started_members,
    started_plane,
    until_ready,
)
from benchmarks.processes import CLIENT, CONTROL_PLANE, MEMBERS, started
from benchmarks.scenario import Place
from karmada.api import well_known
from karmada.joining import objects
from karmada.joining.join import ensure
from karmada.joining.pull.certificates import CertificateRequest, agent_subject, obtain_certificate
from karmada.joining.pull.objects import agent_kubeconfig, agent_rights
from karmada.kube.client.client import Client
from karmada.kube.client.config import RestConfig
from karmada.kube.objects.gvrs import NAMESPACES
from karmada.kube.server.auth.pki import new_ec_key

AGENT = "agent of {}"
_DAY = 86_400
_CERTIFICATE_SECONDS = 60.0


@asynccontextmanager
async def pull_plane(place: Place, members: int) -> AsyncIterator[Plane]:
    """With so many members in mode Pull, all of them Ready."""
    async with AsyncExitStack() as stack:
        others = stack.enter_context(started_members(place.folder, members))
        process = stack.enter_context(started_plane(place))
        pids = {CONTROL_PLANE: process.pid, MEMBERS: others.pid, CLIENT: os.getpid()}
        way = plane_config(place.folder)
        control = await stack.enter_async_context(connected(way))
        found = await stack.enter_async_context(bare_members(place.folder, members))
        for number, member in enumerate(found):
            kubeconfig = await _granted(control, way, member, place.folder)
            own = bare.kubeconfig(place.folder / "members", number)
            command = _command(place.runner, kubeconfig, own, member)
            log = place.folder / f"{member.name}.log"
            agent = stack.enter_context(started(*command, says="Agent of cluster", log=log))
            pids[AGENT.format(member.name)] = agent.pid
        await until_ready(control, [member.name for member in found])
        yield Plane(control, found, pids, ours=True)


def _command(runner: Sequence[str], control: Path, own: Path, member: Member) -> list[str]:
    return [
        *runner,
        "karmada.components.agent",
        f"--karmada-kubeconfig={control}",
        f"--kubeconfig={own}",
        f"--cluster-name={member.name}",
        f"--cluster-api-endpoint={member.config.server}",
        "--metrics-bind-address=127.0.0.1:0",
        "--health-probe-bind-address=127.0.0.1:0",
    ]


async def _granted(control: Client, way: RestConfig, member: Member, folder: Path) -> Path:
    """The agent's rights, and a kubeconfig with its certificate."""
    name, where = member.name, well_known.NAMESPACE_CLUSTER
    for namespace in (where, well_known.execution_namespace(name)):
        await ensure(control, NAMESPACES, objects.namespace(namespace))
    for placed in agent_rights(name, where):
        await ensure(control, placed.gvr, placed.obj)
    request = CertificateRequest(
        name=f"{name}-agent", subject=agent_subject(well_known.agent_user(name)), key=new_ec_key(), lifetime=_DAY
    )
    credentials = await obtain_certificate(control, request, timeout=_CERTIFICATE_SECONDS)
    kubeconfig = folder / f"{name}-agent.kubeconfig"
    kubeconfig.write_bytes(agent_kubeconfig(way, name, credentials))
    kubeconfig.chmod(0o600)
    return kubeconfig
