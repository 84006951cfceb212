"""Many clusters in one process, and what is left of them when it ends or something does not start."""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path

import pytest

from karmada.kube.client.client import Client
from karmada.kube.client.http_transport import HttpTransport
from karmada.kube.client.kubeconfig import Kubeconfig, load_config
from karmada.kube.objects.gvrs import NODES
from karmada.kube.sim.admin import AdminServer
from karmada.kube.sim.admin_client import AdminClient, AdminError
from karmada.kube.sim.fleet import Fleet, FleetError, Stored
from karmada.kube.sim.profile import INSTANT, NodePool, Profile
from tests.support.eventually import eventually


def wanted(name: str, nodes: int = 1) -> Stored:
    return Stored(profile=Profile(name, latencies=INSTANT, pools=(NodePool(count=nodes),), system_pods=False))


async def names_of_nodes(kubeconfig: Path, context: str) -> list[str]:
    client = Client(HttpTransport(load_config(kubeconfig, context=context)))
    try:
        return sorted(node["metadata"]["name"] for node in (await client.list(NODES))["items"])
    finally:
        await client.close()


async def test_clusters_of_a_fleet_are_contexts_of_one_kubeconfig(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path)
    await fleet.start()
    try:
        await asyncio.gather(*(fleet.create(wanted(name, 2)) for name in ("one", "two", "three")))
        await eventually(lambda: all(len(c.context.informers.of(NODES)) == 2 for c in fleet.clusters.values()))
        for name in ("one", "two", "three"):
            assert await names_of_nodes(fleet.kubeconfig, name) == [f"{name}-node-1", f"{name}-node-2"]
        assert fleet.kubeconfig.stat().st_mode & 0o777 == 0o600
    finally:
        await fleet.stop()


async def test_clusters_that_come_and_go_keep_the_current_context(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path)
    await fleet.start()

    def current() -> str:
        return Kubeconfig.load(fleet.kubeconfig).current_context

    try:
        await fleet.create(wanted("two"))
        assert current() == "two"
        await fleet.create(wanted("one"))
        assert current() == "two"
        await fleet.create(wanted("three"))
        await fleet.delete("one")
        assert current() == "two"
        await fleet.delete("two")
        assert current() == "three"
    finally:
        await fleet.stop()


async def test_a_fleet_that_is_started_again_is_the_same(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path)
    await fleet.start()
    for name in ("one", "two"):
        await fleet.create(wanted(name))
    await fleet.set_pools("two", (NodePool(count=4),))
    await eventually(lambda: len(fleet.clusters["two"].context.informers.of(NODES)) == 4)
    before = {name: cluster.url for name, cluster in fleet.clusters.items()}
    kubeconfig = fleet.kubeconfig.read_bytes()
    await fleet.stop()
    again = Fleet(tmp_path)
    seen: list[tuple[int, int]] = []
    await again.start(lambda done, count: seen.append((done, count)))
    try:
        assert {name: cluster.url for name, cluster in again.clusters.items()} == before
        assert again.kubeconfig.read_bytes() == kubeconfig
        assert len(await names_of_nodes(again.kubeconfig, "two")) == 4
        assert seen == [(1, 2), (2, 2)]
    finally:
        await again.stop()


async def test_a_port_that_was_taken_meanwhile_is_replaced(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path)
    await fleet.start()
    cluster = await fleet.create(wanted("one"))
    port = int(cluster.url.rsplit(":", 1)[1])
    await fleet.stop()
    with socket.socket() as squatter:
        squatter.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        squatter.bind(("127.0.0.1", port))
        squatter.listen()
        again = Fleet(tmp_path)
        await again.start()
        try:
            assert again.clusters["one"].url != cluster.url
            assert await names_of_nodes(again.kubeconfig, "one") == ["one-node-1"]
        finally:
            await again.stop()


async def test_a_cluster_that_does_not_start_is_reported_and_leaves_the_others_alone(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path)
    await fleet.start()
    for name in ("bad", "good"):
        await fleet.create(wanted(name))
    await fleet.stop()
    description = tmp_path / "clusters/bad/cluster.json"
    described = json.loads(description.read_text())
    described["profile"]["version"] = "1.3"
    description.write_text(json.dumps(described))
    again = Fleet(tmp_path)
    await again.start()
    try:
        assert list(again.clusters) == ["good"]
        with pytest.raises(FleetError, match=r'cluster "bad" did not start: version "1\.3" is not from'):
            again.get("bad")
        with pytest.raises(FleetError, match='cluster "bad" already exists'):
            await again.create(wanted("bad"))
        assert (tmp_path / "clusters/bad/state.db").exists()
        await again.delete("bad")
        assert not (tmp_path / "clusters/bad").exists()
        await again.create(wanted("bad"))
    finally:
        await again.stop()


async def test_deleting_a_cluster_forgets_everything_about_it(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path)
    await fleet.start()
    try:
        await fleet.create(wanted("one"))
        await fleet.delete("one")
        assert not (tmp_path / "clusters/one").exists()
        assert "one" not in fleet.kubeconfig.read_text()
        with pytest.raises(FleetError, match=r'no simulated cluster "one" \(known: none\)'):
            fleet.get("one")
        await fleet.create(wanted("one"))
    finally:
        await fleet.stop()


@pytest.mark.parametrize("name", ["Member", "-x", "a/b", "..", "", "x" * 64])
async def test_a_name_that_is_none_is_refused_before_anything_is_made(tmp_path: Path, name: str) -> None:
    fleet = Fleet(tmp_path)
    await fleet.start()
    with pytest.raises(FleetError, match="cluster name"):
        await fleet.create(wanted(name))
    assert not (tmp_path / "clusters").exists()
    await fleet.stop()


async def test_orders_need_the_token(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path)
    await fleet.start()
    admin = AdminServer(fleet, lambda: None)
    await admin.start()
    try:
        file = tmp_path / "admin.json"
        assert file.stat().st_mode & 0o777 == 0o600
        assert await asyncio.to_thread(AdminClient(tmp_path).request, "GET", "/clusters") == []
        file.write_text(json.dumps({**json.loads(file.read_text()), "token": "guess"}))
        with pytest.raises(AdminError, match=r"the token in admin.json is needed"):
            await asyncio.to_thread(AdminClient(tmp_path).request, "GET", "/clusters")
    finally:
        await admin.stop()
        await fleet.stop()


@pytest.mark.parametrize("written", ["{", "[]", '{"profile": {"name": "odd", "colour": "red"}}'])
async def test_a_description_that_cannot_be_read_can_still_be_deleted(tmp_path: Path, written: str) -> None:
    folder = tmp_path / "clusters/odd"
    folder.mkdir(parents=True)
    (folder / "cluster.json").write_text(written)
    fleet = Fleet(tmp_path)
    await fleet.start()
    assert list(fleet.failed) == ["odd"]
    assert await fleet.delete("odd")
    assert not folder.exists()
    await fleet.stop()


async def test_nodes_of_a_real_cluster_that_is_gone_are_left_behind_and_that_is_reported(tmp_path: Path) -> None:
    folder = tmp_path / "clusters/extra"
    folder.mkdir(parents=True)
    described = {"profile": {"name": "extra"}, "attach": str(tmp_path / "no.kubeconfig")}
    (folder / "cluster.json").write_text(json.dumps(described))
    fleet = Fleet(tmp_path)
    await fleet.start()
    assert "no.kubeconfig: No such file" in fleet.failed["extra"]
    assert not await fleet.delete("extra")
    await fleet.stop()


async def test_a_cluster_is_deleted_once(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path)
    await fleet.start()
    await fleet.create(wanted("one"))
    first, second = await asyncio.gather(fleet.delete("one"), fleet.delete("one"), return_exceptions=True)
    assert first is True
    assert isinstance(second, FleetError)
    await fleet.stop()


async def test_a_cluster_is_not_made_while_one_of_its_name_is_being_deleted(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path, in_memory=True)
    await fleet.start()
    await fleet.create(Stored(profile=Profile("member1")))
    deleting = asyncio.create_task(fleet.delete("member1"))
    await asyncio.sleep(0)
    with pytest.raises(FleetError, match=r"already exists|being created or deleted"):
        await fleet.create(Stored(profile=Profile("member1")))
    await deleting
    again = await fleet.create(Stored(profile=Profile("member1")))
    assert (tmp_path / "clusters" / "member1" / "cluster.json").exists()
    assert again is fleet.get("member1")
    await fleet.stop()
