"""Faults of the API server and of the way to it, as clients over HTTPS see them."""

from __future__ import annotations

import asyncio
import socket
import time
from typing import Any

import msgspec
import pytest

from karmada.kube.client.client import Client
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.gvrs import CONFIG_MAPS, DEPLOYMENTS, NODES, PODS
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.keys import Key
from karmada.kube.sim.faults import kinds
from tests.kube.sim.faults.reaching import A_MOMENT, config_map, eventually_reaches, hangs, reaches
from tests.kube.sim.whole_cluster import Whole, deployment, fetch
from tests.support.eventually import eventually

# --- the way to the API server


async def test_a_cluster_that_is_down_refuses_connections_and_lives_on(whole: Whole) -> None:
    await whole.deploy(2)
    await whole.sim.faults.inject(kinds.Down())
    assert not await reaches(whole.admin)
    inside = whole.sim.server.client()
    await inside.patch(DEPLOYMENTS, "web", "default", {"spec": {"replicas": 3}})
    await eventually(lambda: whole.ready() == 3)
    await whole.sim.faults.heal()
    assert await reaches(whole.admin)


def _listen(on: socket.socket, port: int) -> None:
    on.bind(("127.0.0.1", port))
    on.listen()


async def test_a_cluster_that_is_down_keeps_its_port(whole: Whole) -> None:
    assert await reaches(whole.admin)
    await whole.sim.faults.inject(kinds.Down())
    with socket.socket() as another:
        another.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with pytest.raises(OSError, match="in use"):
            _listen(another, whole.sim.server.port)
    await whole.sim.faults.heal()
    assert await reaches(whole.admin)


async def test_a_flapping_cluster_comes_and_goes_until_it_is_healed(whole: Whole) -> None:
    await whole.sim.faults.inject(kinds.Flap(up=0.1, down=0.1))
    for wanted in (False, True, False, True):
        await eventually_reaches(whole.admin, wanted)
    await whole.sim.faults.heal()
    assert all([await reaches(whole.admin) for _ in range(5)])


async def test_a_black_hole_answers_neither_reads_nor_writes_until_it_is_healed(whole: Whole) -> None:
    await whole.sim.faults.inject(kinds.BlackHole())
    read = await hangs(whole.admin.get(NODES, "small-node-1"))
    write = await hangs(whole.admin.create(CONFIG_MAPS, config_map("late")))
    assert whole.sim.server.cache.collection(CONFIG_MAPS.group_resource).get("default", "late") is None
    await whole.sim.faults.heal()
    assert (await read)["metadata"]["name"] == "small-node-1"
    assert (await write)["metadata"]["name"] == "late"


async def test_a_fault_may_be_about_some_requests_only(whole: Whole) -> None:
    await whole.sim.faults.inject(kinds.BlackHole(resources=("deployments.apps",), verbs=("list",)))
    waiting = await hangs(whole.admin.list(DEPLOYMENTS))
    await whole.admin.list(PODS)
    await whole.admin.create(DEPLOYMENTS, deployment("web", 0))
    await whole.sim.faults.heal()
    await waiting


async def test_a_fault_may_be_about_one_program_only(whole: Whole) -> None:
    await whole.sim.faults.inject(kinds.Errors(code=503, agents="^karmada-scheduler"))
    other = whole.client(user_agent="karmada-scheduler/v1")
    assert (await fetch(other, "/api/v1/nodes")).status == 503
    assert (await fetch(whole.admin, "/api/v1/nodes")).status == 200


async def test_a_slow_cluster_answers_late_and_correctly(whole: Whole) -> None:
    await whole.sim.faults.inject(kinds.Slow(seconds=0.2))
    began = time.monotonic()
    assert (await whole.admin.get(NODES, "small-node-1"))["metadata"]["name"] == "small-node-1"
    assert time.monotonic() - began >= 0.2 - 0.001, "timers of the event loop are whole milliseconds"


async def test_a_partition_hangs_the_control_plane_and_nobody_else(whole: Whole) -> None:
    karmada = await whole.service_account("karmada-small", "karmada-cluster")
    await karmada.get(NODES, "small-node-1")
    await whole.sim.faults.inject(kinds.Partition())
    waiting = await hangs(karmada.get(NODES, "small-node-1"))
    assert await reaches(whole.admin)
    await whole.sim.faults.heal()
    assert (await waiting)["metadata"]["name"] == "small-node-1"


async def test_a_partition_may_refuse_the_control_plane_instead(whole: Whole) -> None:
    karmada = await whole.service_account("karmada-small", "karmada-cluster")
    async with Followed(karmada) as followed:
        await whole.sim.faults.inject(kinds.Partition(how="refuse"))
        assert not await reaches(karmada)
        assert await reaches(whole.admin)
        await whole.admin.create(CONFIG_MAPS, config_map("unseen"))
        await whole.sim.faults.heal()
        await followed.sees("unseen")


async def test_a_partition_may_silence_only_the_watches_of_the_control_plane(whole: Whole) -> None:
    karmada = await whole.service_account("karmada-small", "karmada-cluster")
    async with Followed(karmada) as followed:
        await whole.sim.faults.inject(kinds.Partition(how="watches"))
        assert await reaches(karmada)
        await whole.admin.create(CONFIG_MAPS, config_map("unseen"))
        await asyncio.sleep(A_MOMENT)
        assert not followed.has("unseen")
        await whole.sim.faults.heal()
        await followed.sees("unseen")


# --- what the API server answers


@pytest.mark.parametrize("code", [401, 403, 409, 413, 429, 500, 503, 504])
async def test_errors_of_every_code_are_answered_as_a_status(whole: Whole, code: int) -> None:
    await whole.sim.faults.inject(kinds.Errors(code=code, retry_after=7))  # type: ignore[arg-type]
    answer = await fetch(whole.admin, "/api/v1/nodes")
    assert answer.status == code
    status = msgspec.json.decode(answer.body)
    assert (status["kind"], status["code"]) == ("Status", code)
    assert answer.headers["Retry-After"] == "7"
    await whole.sim.faults.heal()
    assert (await fetch(whole.admin, "/api/v1/nodes")).status == 200


async def test_a_share_of_the_requests_fails(whole: Whole) -> None:
    await whole.sim.faults.inject(kinds.Errors(percent=50))
    codes = [(await fetch(whole.admin, "/api/v1/nodes")).status for _ in range(40)]
    assert set(codes) == {200, 500}


async def test_a_cluster_that_is_read_only_answers_reads(whole: Whole) -> None:
    await whole.sim.faults.inject(kinds.ReadOnly())
    path = "/api/v1/namespaces/default/configmaps"
    refused = await fetch(whole.admin, path, "POST")
    assert refused.status == 500
    assert refused.headers["Retry-After"] == "1"
    assert (await fetch(whole.admin, path)).status == 200
    await whole.sim.faults.heal()
    await whole.admin.create(CONFIG_MAPS, config_map("one"))


async def test_an_unhealthy_cluster_says_so_on_its_pages_and_works(whole: Whole) -> None:
    await whole.sim.faults.inject(kinds.Unhealthy())
    assert (await fetch(whole.admin, "/readyz")).status == 500
    assert (await fetch(whole.admin, "/livez")).status == 200
    assert await reaches(whole.admin)
    await whole.sim.faults.inject(kinds.Unhealthy(pages=("/livez", "/healthz"), code=503))
    assert [(await fetch(whole.admin, page)).status for page in ("/livez", "/healthz")] == [503, 503]
    await whole.sim.faults.heal()
    pages = ("/readyz", "/livez", "/healthz")
    assert [(await fetch(whole.admin, page)).status for page in pages] == [200, 200, 200]


async def listed(client: Client, group_version: str) -> set[str]:
    try:
        found = await client.raw("GET", f"/apis/{group_version}")
    except ApiError:
        return set()
    return {resource["name"] for resource in found["resources"]}


async def test_a_kind_that_is_unavailable_is_neither_listed_nor_served(whole: Whole) -> None:
    await whole.deploy(1)
    await whole.sim.faults.inject(kinds.Unavailable(what=("deployments.apps",)))
    names = await listed(whole.admin, "apps/v1")
    assert "deployments" not in names
    assert "deployments/scale" not in names
    assert "statefulsets" in names
    gone = await fetch(whole.admin, "/apis/apps/v1/namespaces/default/deployments/web")
    assert gone.status == 404
    assert msgspec.json.decode(gone.body)["message"] == "the server could not find the requested resource"
    inside = whole.sim.server.client()
    await inside.patch(DEPLOYMENTS, "web", "default", {"spec": {"replicas": 2}})
    await eventually(lambda: whole.ready() == 2)  # the cluster's own parts are not concerned
    await whole.sim.faults.heal()
    assert "deployments" in await listed(whole.admin, "apps/v1")
    assert (await whole.admin.get(DEPLOYMENTS, "web", "default"))["spec"]["replicas"] == 2


async def test_a_whole_group_version_may_be_unavailable(whole: Whole) -> None:
    await whole.sim.faults.inject(kinds.Unavailable(what=("batch/v1",)))
    groups = {group["name"] for group in (await whole.admin.raw("GET", "/apis"))["groups"]}
    assert "batch" not in groups
    assert not await listed(whole.admin, "batch/v1")
    assert (await fetch(whole.admin, "/apis/batch/v1/namespaces/default/jobs")).status == 404
    await whole.sim.faults.heal()
    assert "jobs" in await listed(whole.admin, "batch/v1")


# --- watches


class Followed:
    """ConfigMaps as an informer over HTTPS knows them."""

    def __init__(self, client: Client) -> None:
        self._informer = Informer(client, CONFIG_MAPS, "default")

    async def __aenter__(self) -> Followed:
        self._informer.start()
        await self._informer.wait_synced()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._informer.stop()

    def has(self, name: str) -> bool:
        return self._informer.get(Key("default", name)) is not None

    async def sees(self, name: str) -> None:
        await eventually(lambda: self.has(name), show=lambda: self._informer.list())


@pytest.mark.parametrize("how", ["cut", "stall", "expire"])
async def test_an_informer_converges_after_its_watches_were_broken(whole: Whole, how: Any) -> None:
    client = whole.client()
    async with Followed(client) as followed:
        await whole.admin.create(CONFIG_MAPS, config_map("before"))
        await followed.sees("before")
        await whole.sim.faults.inject(kinds.Watches(how=how))
        await whole.admin.create(CONFIG_MAPS, config_map("meanwhile"))
        await whole.admin.delete(CONFIG_MAPS, "before", "default")
        await whole.sim.faults.heal()
        await whole.admin.create(CONFIG_MAPS, config_map("after"))
        await followed.sees("after")
        assert followed.has("meanwhile")
        assert not followed.has("before")


async def test_a_stalled_watch_says_nothing_while_others_work(whole: Whole) -> None:
    async with Followed(whole.client(user_agent="deaf")) as deaf, Followed(whole.client()) as other:
        await whole.sim.faults.inject(kinds.Watches(how="stall", agents="^deaf/"))
        await whole.admin.create(CONFIG_MAPS, config_map("fresh"))
        await other.sees("fresh")
        assert not deaf.has("fresh")
        await whole.sim.faults.heal()
        await deaf.sees("fresh")


async def test_a_watch_that_expires_ends_with_gone(whole: Whole) -> None:
    await whole.sim.faults.inject(kinds.Watches(how="expire"))
    with pytest.raises(ApiError) as caught:
        async for _ in await whole.admin.watch(CONFIG_MAPS, "default", resource_version="1"):
            pass
    assert caught.value.http_code == 410
