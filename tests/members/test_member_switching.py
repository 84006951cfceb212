"""A member whose credentials or address change: its informers go on with what is true now."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

from karmada.kube.client.config import RestConfig
from karmada.kube.objects.clock import RealClock
from karmada.kube.objects.gvrs import ACCOUNTS, CLUSTER_ROLE_BINDINGS, CONFIG_MAPS
from karmada.kube.runtime.informer import Informer
from karmada.members.members import Member
from karmada.members.switching import SwitchingTransport
from tests.support import rights
from tests.support.cases import cases
from tests.support.eventually import LIMIT, eventually
from tests.support.member_server import MemberServer, member_server


@asynccontextmanager
async def following(config: RestConfig) -> AsyncIterator[tuple[Member, Informer]]:
    member = Member("m1", SwitchingTransport(config), RealClock())
    informer = member.informers.of(CONFIG_MAPS, "default")
    try:
        await asyncio.wait_for(informer.wait_synced(), LIMIT)
        yield member, informer
    finally:
        await member.close()


def names(informer: Informer) -> set[str]:
    return {obj["metadata"]["name"] for obj in informer.list()} - {"kube-root-ca.crt"}


async def switched(member: Member, config: RestConfig) -> None:
    left = member.switch(config)
    assert left is not None
    await left


async def put(server: MemberServer, name: str) -> None:
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}
    await server.client.create(CONFIG_MAPS, made)


async def account(server: MemberServer) -> RestConfig:
    """The way to a server as an account that may do everything, until that is deleted."""
    metadata = {"name": "worker", "namespace": "default"}
    await server.client.create(ACCOUNTS, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
    worker = rights.binding("worker", rights.account("worker", "default"), to="cluster-admin")
    await server.client.create(CLUSTER_ROLE_BINDINGS, worker)
    requested = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    answer = await server.client.create_subresource(ACCOUNTS, "worker", "default", "token", requested)
    return RestConfig(server=server.config.server, ca=server.config.ca, token=answer["status"]["token"])


async def test_an_open_watch_goes_over_to_the_new_credentials(tmp_path: Path) -> None:
    async with member_server(tmp_path / "a") as server:
        old = await account(server)
        async with following(old) as (member, informer):
            await switched(member, server.config)
            await server.client.delete(ACCOUNTS, "worker", "default")
            await put(server, "late")
            await eventually(lambda: names(informer) == {"late"})


@cases(0, 20)
async def test_behind_another_address_everything_is_listed_anew(more: int, tmp_path: Path) -> None:
    """Whether the other server has counted fewer changes than this one, or more."""
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(member_server(tmp_path / "a"))
        second = await stack.enter_async_context(member_server(tmp_path / "b"))
        for number in range(3):
            await put(first, f"old-{number}")
        await put(second, "new")
        for number in range(more):
            await put(second, f"new-{number}")
        member, informer = await stack.enter_async_context(following(first.config))
        assert len(names(informer)) == 3
        await switched(member, replace(second.config, user_agent="tests"))
        await eventually(lambda: names(informer) == {"new", *(f"new-{number}" for number in range(more))})
