"""A cluster that is to be a member is one, whatever was there before: two real servers, one over HTTPS."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from karmada.api.cluster import Cluster
from karmada.joining.join import JoinError, cluster_id_of
from karmada.kube.objects.clock import RealClock
from karmada.kube.objects.gvrs import ACCOUNTS, SECRETS
from karmada.kube.objects.types import Obj
from karmada.local.joined import ensure_joined
from karmada.local.reaching import connected
from karmada.members.access import access_of
from tests.support.control_plane import ControlPlane, running
from tests.support.member_server import MemberServer, member_server


@pytest.fixture
async def plane(folder: Path) -> AsyncIterator[ControlPlane]:
    async with running(folder / "control-plane", clock=RealClock()) as plane:
        yield plane


@pytest.fixture
async def member(folder: Path) -> AsyncIterator[MemberServer]:
    async with member_server(folder / "member") as member:
        yield member


async def ensure(plane: ControlPlane, member: MemberServer, *, renew: bool = True) -> str:
    return await ensure_joined(plane.client, member.client, member.config, "m1", renew=renew)


async def cluster_of(plane: ControlPlane) -> Obj:
    return await plane.client.get(Cluster.gvr, "m1")


async def reached(plane: ControlPlane) -> str:
    """The id of the cluster that the control plane reaches with what it holds."""
    cluster = await cluster_of(plane)
    where = cluster["spec"]["secretRef"]
    secret = await plane.client.get(SECRETS, where["name"], where["namespace"])
    async with connected(access_of(cluster, secret)) as client:
        return await cluster_id_of(client)


async def test_a_new_cluster_joins_and_the_second_time_nothing_is_written(
    plane: ControlPlane, member: MemberServer
) -> None:
    assert await ensure(plane, member) == "joined"
    before = await cluster_of(plane)
    assert await ensure(plane, member) == "was joined"
    assert await cluster_of(plane) == before
    assert await reached(plane) == await cluster_id_of(member.client)


async def test_a_cluster_that_moved_is_reached_at_its_new_address(plane: ControlPlane, member: MemberServer) -> None:
    await ensure(plane, member)
    await plane.client.patch(Cluster.gvr, "m1", "", {"spec": {"apiEndpoint": "https://127.0.0.1:1"}})
    assert await ensure(plane, member, renew=False) == "joined again"
    assert (await cluster_of(plane))["spec"]["apiEndpoint"] == member.config.server
    assert await reached(plane) == await cluster_id_of(member.client)


async def test_a_cluster_made_anew_takes_the_place_of_the_old_one(
    plane: ControlPlane, member: MemberServer, tmp_path: Path
) -> None:
    await ensure(plane, member)
    before = await cluster_of(plane)
    async with member_server(tmp_path / "anew") as anew:
        assert await ensure(plane, anew) == "joined again"
        after = await cluster_of(plane)
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        assert after["spec"]["id"] == await cluster_id_of(anew.client) != before["spec"]["id"]
        assert await reached(plane) == after["spec"]["id"]


async def test_another_cluster_of_that_name_is_refused_where_it_may_be_somebodys(
    plane: ControlPlane, member: MemberServer, tmp_path: Path
) -> None:
    await ensure(plane, member)
    before = await cluster_of(plane)
    async with member_server(tmp_path / "other") as other:
        with pytest.raises(JoinError, match="cluster m1 is another cluster"):
            await ensure(plane, other, renew=False)
    assert await cluster_of(plane) == before


@pytest.mark.parametrize("lost", ["accounts in the member", "secrets here", "tokens here"])
async def test_lost_credentials_are_made_anew(plane: ControlPlane, member: MemberServer, lost: str) -> None:
    await ensure(plane, member)
    if lost == "accounts in the member":
        await member.client.delete(ACCOUNTS, "karmada-m1", "karmada-cluster")
    elif lost == "secrets here":
        for name in ("m1", "m1-impersonator"):
            await plane.client.delete(SECRETS, name, "karmada-cluster")
    else:
        await plane.client.patch(SECRETS, "m1", "karmada-cluster", {"stringData": {"token": "old"}})
    assert await ensure(plane, member) == "joined again"
    assert await reached(plane) == await cluster_id_of(member.client)
    secret = await plane.client.get(SECRETS, "m1", "karmada-cluster")
    assert secret["metadata"]["ownerReferences"][0]["uid"] == (await cluster_of(plane))["metadata"]["uid"]


async def test_two_at_once_both_find_it_joined(plane: ControlPlane, member: MemberServer) -> None:
    done = await asyncio.gather(ensure(plane, member), ensure(plane, member))
    assert "joined" in done
    assert await reached(plane) == await cluster_id_of(member.client)


async def test_the_same_cluster_under_a_second_name_is_refused(plane: ControlPlane, member: MemberServer) -> None:
    await ensure(plane, member)
    with pytest.raises(JoinError, match="has been registered"):
        await ensure_joined(plane.client, member.client, member.config, "m2", renew=True)
