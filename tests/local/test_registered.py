"""Members in mode Pull of a local environment that are registered already."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from karmada.api.cluster import Cluster
from karmada.controllers.cluster_status.heartbeat import Heartbeat
from karmada.joining import objects
from karmada.joining.join import JoinError, cluster_id_of
from karmada.joining.pull.certificates import Credentials
from karmada.joining.pull.objects import KUBECONFIG_KEY, KUBECONFIG_SECRET, Agent, agent_kubeconfig, agent_objects
from karmada.kube.client.config import RestConfig
from karmada.kube.client.kubeconfig import Kubeconfig, load_config
from karmada.kube.objects.clock import RealClock
from karmada.kube.objects.gvrs import DEPLOYMENTS, NAMESPACES, SECRETS
from karmada.kube.objects.types import Obj
from karmada.local.registered import IMAGE, ensure_registered
from tests.support.cases import cases
from tests.support.control_plane import ControlPlane, running
from tests.support.member_server import MemberServer, member_server

SYSTEM = "karmada-system"


@dataclass
class Registered:
    plane: ControlPlane
    member: MemberServer
    control: RestConfig

    async def again(self, control: RestConfig | None = None, member: RestConfig | None = None) -> str:
        """As the next start does it, with these addresses."""
        way, own = control or self.control, member or self.member.config
        return await ensure_registered(self.plane.client, self.member.client, way, own, "m1")

    async def agent(self) -> tuple[str, list[str]]:
        """The server in its kubeconfig, and its command."""
        secret = await self.member.client.get(SECRETS, KUBECONFIG_SECRET, SYSTEM)
        config = Kubeconfig.parse(base64.b64decode(secret["data"][KUBECONFIG_KEY])).resolve()
        deployment = await self.member.client.get(DEPLOYMENTS, "karmada-agent", SYSTEM)
        command: list[str] = deployment["spec"]["template"]["spec"]["containers"][0]["command"]
        return config.server, command


@asynccontextmanager
async def registered(folder: Path, mode: str = "Pull", cluster_id: str = "") -> AsyncIterator[Registered]:
    """A member with what registering leaves there, whose Lease is renewed."""
    async with (
        running(folder / "plane", clock=RealClock()) as plane,
        member_server(folder / "member") as member,
    ):
        found = cluster_id or await cluster_id_of(member.client)
        await plane.add_cluster("m1", mode, id=found, apiEndpoint=member.config.server)
        control = load_config(plane.server.kubeconfig)
        kubeconfig = agent_kubeconfig(control, "m1", Credentials(b"certificate", b"key"))
        await member.client.create(NAMESPACES, objects.namespace(SYSTEM))
        for placed in agent_objects(Agent(cluster="m1", api_endpoint=member.config.server, image=IMAGE), kubeconfig):
            await member.client.create(placed.gvr, placed.obj)
        informer = plane.context.informers.of(Cluster.gvr)
        await informer.wait_synced()
        heartbeat = Heartbeat(plane.context, lease_duration=2, renew_fraction=0.1)
        heartbeat.begin("m1")
        yield Registered(plane, member, control)
        await heartbeat.stop()


async def test_what_has_its_addresses_is_left_alone(tmp_path: Path) -> None:
    async with registered(tmp_path) as found:
        before = await found.member.client.get(DEPLOYMENTS, "karmada-agent", SYSTEM)
        assert await found.again() == "was registered"
        after = await found.member.client.get(DEPLOYMENTS, "karmada-agent", SYSTEM)
        assert after["metadata"]["generation"] == before["metadata"]["generation"]


async def test_an_agent_gets_the_new_address_of_the_control_plane_and_is_restarted(tmp_path: Path) -> None:
    async with registered(tmp_path) as found:
        assert (await found.agent())[0] == found.control.server
        assert await found.again(control=replace(found.control, server="https://127.0.0.1:1")) == "registered again"
        server, _ = await found.agent()
        assert server == "https://127.0.0.1:1"
        deployment = await found.member.client.get(DEPLOYMENTS, "karmada-agent", SYSTEM)
        assert "kubectl.kubernetes.io/restartedAt" in _annotations(deployment)


def _annotations(deployment: Obj) -> Obj:
    return deployment["spec"]["template"]["metadata"].get("annotations") or {}


async def test_a_member_that_moved_is_registered_at_its_new_address(tmp_path: Path) -> None:
    async with registered(tmp_path) as found:
        moved = replace(found.member.config, server="https://127.0.0.1:2")
        assert await found.again(member=moved) == "registered again"
        cluster = await found.plane.client.get(Cluster.gvr, "m1")
        assert cluster["spec"]["apiEndpoint"] == "https://127.0.0.1:2"
        assert "--cluster-api-endpoint=https://127.0.0.1:2" in (await found.agent())[1]


@cases(
    ("Push", "", "is in mode Push; karmadactl unjoin m1, then start again"),
    ("Pull", "other", "is another cluster than the registered one; kubectl delete cluster m1"),
)
async def test_a_name_that_is_taken_is_reported_with_the_remedy(
    mode: str, cluster_id: str, problem: str, tmp_path: Path
) -> None:
    async with registered(tmp_path, mode, cluster_id) as found:
        with pytest.raises(JoinError, match=problem):
            await found.again()


async def test_a_member_without_its_agent_is_reported_with_the_remedy(tmp_path: Path) -> None:
    async with registered(tmp_path) as found:
        await found.member.client.delete(DEPLOYMENTS, "karmada-agent", SYSTEM)
        with pytest.raises(JoinError, match="has no agent any more; kubectl delete cluster m1"):
            await found.again()
