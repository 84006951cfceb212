from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.gvrs import LEASES, NODES
from karmada.kube.objects.times import micro_time, parse_time
from karmada.kube.objects.types import Obj
from karmada.kube.sim.context import Context
from karmada.kube.sim.kubelet.heartbeats import NAMESPACE, LeaseLiveness
from karmada.kube.sim.profile import NodePool
from tests.kube.sim.harness import running
from tests.kube.sim.node_parts import NODE, Parts, condition, node_parts
from tests.support.eventually import eventually


async def leases(parts: Parts) -> dict[str, Obj]:
    items = (await parts.cluster.client.list_all(LEASES, NAMESPACE)).items
    return {lease["metadata"]["name"]: lease for lease in items}


async def test_no_heartbeat_is_written_while_no_client_reads_it(tmp_path: Path) -> None:
    async with node_parts(tmp_path, pools=[NodePool(count=3)]) as parts:
        await parts.pass_time(300, 10)
        assert await leases(parts) == {}
        assert all(parts.cluster.clock.now() - parts.heartbeats.renewed(name) < 10 for name in parts.nodes())


async def test_beats_come_every_ten_seconds_each_node_in_its_own_phase(tmp_path: Path) -> None:
    async with node_parts(tmp_path, pools=[NodePool(count=20)]) as parts:
        await parts.pass_time(30, 10)
        beats: dict[str, set[float]] = {name: set() for name in parts.nodes()}
        for _ in range(40):
            await parts.cluster.clock.advance(1)
            for name in beats:
                beats[name].add(parts.heartbeats.renewed(name))
        for seen in beats.values():
            ordered = sorted(seen)
            assert {round(b - a, 3) for a, b in pairwise(ordered)} == {10.0}
        assert len({min(seen) % 10 for seen in beats.values()}) > 3


async def test_who_is_about_to_read_finds_leases_as_they_would_be(tmp_path: Path) -> None:
    async with node_parts(tmp_path, pools=[NodePool(count=3)]) as parts:
        await parts.pass_time(100, 10)
        await parts.heartbeats.materialise()
        found = await leases(parts)
        assert sorted(found) == parts.nodes()
        for name, lease in found.items():
            assert lease["spec"]["renewTime"] == micro_time(parts.heartbeats.renewed(name))
            assert lease["spec"]["holderIdentity"] == name
            assert lease["spec"]["leaseDurationSeconds"] == 40
            node = parts.node(name)
            assert node is not None
            [owner] = lease["metadata"]["ownerReferences"]
            assert (owner["kind"], owner["name"], owner["uid"]) == ("Node", name, node["metadata"]["uid"])
        versions = {name: lease["metadata"]["resourceVersion"] for name, lease in found.items()}
        await parts.heartbeats.materialise()
        assert {n: le["metadata"]["resourceVersion"] for n, le in (await leases(parts)).items()} == versions
        await parts.pass_time(10, 1)
        await parts.heartbeats.materialise([NODE])
        after = {n: le["metadata"]["resourceVersion"] for n, le in (await leases(parts)).items()}
        assert {name for name in after if after[name] != versions[name]} == {NODE}


async def test_a_reader_also_finds_the_nodes_own_heartbeat_fresh(tmp_path: Path) -> None:
    async with node_parts(tmp_path) as parts:
        await parts.pass_time(1000, 50)
        await parts.heartbeats.materialise()
        await parts.cluster.context.until_seen(
            parts.cluster.context.informers.of(NODES), [await parts.cluster.client.get(NODES, NODE)]
        )
        node = parts.node()
        assert node is not None
        for posted in node["status"]["conditions"]:
            assert parts.cluster.clock.now() - parse_time(posted["lastHeartbeatTime"]) <= 300
            assert parse_time(posted["lastTransitionTime"]) < parts.cluster.clock.now() - 900


async def test_while_someone_watches_every_beat_is_written(tmp_path: Path) -> None:
    async with node_parts(tmp_path, pools=[NodePool(count=4)]) as parts:
        parts.heartbeats.watched(1)
        await parts.pass_time(2, 0.5)
        assert sorted(await leases(parts)) == parts.nodes()
        await parts.pass_time(60, 0.5)
        for lease in (await leases(parts)).values():
            assert parts.cluster.clock.now() - parse_time(lease["spec"]["renewTime"]) <= 11
        parts.heartbeats.watched(0)
        await parts.pass_time(2, 0.5)
        before = await leases(parts)
        await parts.pass_time(60, 5)
        assert await leases(parts) == before


async def test_real_heartbeats_are_written_without_anyone_looking(tmp_path: Path) -> None:
    async with node_parts(tmp_path, real_heartbeats=True) as parts:
        await parts.pass_time(61, 0.5)
        [lease] = (await leases(parts)).values()
        assert parts.cluster.clock.now() - parse_time(lease["spec"]["renewTime"]) <= 11


async def test_a_failed_node_is_silent_from_then_on_and_back_when_it_is_healed(tmp_path: Path) -> None:
    async with node_parts(tmp_path) as parts:
        received: list[str] = []
        parts.heartbeats.on_change(received.append)
        await parts.pass_time(60, 10)
        last = parts.heartbeats.renewed(NODE)
        parts.heartbeats.fail([NODE])
        parts.heartbeats.fail([NODE])
        assert parts.heartbeats.failed(NODE)
        assert not parts.heartbeats.beats(NODE)
        await parts.pass_time(60, 1)
        assert parts.heartbeats.renewed(NODE) == last
        assert (await leases(parts))[NODE]["spec"]["renewTime"] == micro_time(last)
        await eventually(lambda: condition(parts.node(), "Ready") == "Unknown")
        parts.heartbeats.heal([NODE])
        assert parts.heartbeats.renewed(NODE) == parts.cluster.clock.now()
        await eventually(lambda: condition(parts.node(), "Ready") == "True")
        assert received == [NODE, NODE]


async def test_a_node_that_is_gone_leaves_nothing_behind(tmp_path: Path) -> None:
    async with node_parts(tmp_path) as parts:
        parts.heartbeats.fail([NODE])
        parts.registration.set_pools([])
        await eventually(lambda: parts.node() is None)
        assert not parts.heartbeats.failed(NODE)
        assert parts.heartbeats.renewed(NODE) == 0.0


async def test_a_write_that_fails_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with node_parts(tmp_path) as parts:
        client = parts.cluster.context.client("kubelet")
        real, failures = client.create, [ApiError("no")]

        async def create(*args: Any, **options: Any) -> Obj:
            if failures:
                raise failures.pop()
            return await real(*args, **options)

        monkeypatch.setattr(client, "create", create)
        parts.heartbeats.watched(1)
        await parts.pass_time(3, 0.5)
        assert not failures
        assert NODE in await leases(parts)


async def test_leases_written_elsewhere_count_from_when_they_were_seen(tmp_path: Path) -> None:
    found: list[LeaseLiveness] = []

    def parts(context: Context) -> list[Any]:
        found.append(LeaseLiveness(context))
        return []

    async with running(tmp_path, parts) as cluster:
        [liveness] = found
        lease: Obj = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "n1"}}
        lease["spec"] = {"holderIdentity": "n1", "renewTime": micro_time(cluster.clock.now() - 5000)}
        assert liveness.renewed("n1") == 0.0
        await cluster.client.create(LEASES, lease, NAMESPACE)
        await eventually(lambda: liveness.renewed("n1") == cluster.clock.now())
        first = cluster.clock.now()
        await cluster.clock.advance(15)
        await cluster.client.patch(LEASES, "n1", NAMESPACE, {"metadata": {"labels": {"a": "b"}}})
        await cluster.clock.advance(15)
        assert liveness.renewed("n1") == first
        renewal = {"spec": {"renewTime": micro_time(cluster.clock.now())}}
        await cluster.client.patch(LEASES, "n1", NAMESPACE, renewal)
        await eventually(lambda: liveness.renewed("n1") == cluster.clock.now())
        assert not liveness.beats("n1")
        await cluster.client.delete(LEASES, "n1", NAMESPACE)
        await eventually(lambda: liveness.renewed("n1") == 0.0)
