"""Which caches there are while registries and clusters come, change and go."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from karmada.api.cluster import Cluster
from karmada.api.search import ResourceRegistry
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.errors import Forbidden
from karmada.kube.objects.gvrs import CONFIG_MAPS, NODES
from tests.search.fake_fleet import FakeFleet, config_map, running
from tests.support import fake_api

CONFIG, NODE = ("ConfigMap", ""), ("Node", "")


@pytest.fixture
async def fleet(clock: FakeClock) -> AsyncIterator[FakeFleet]:
    async with running(clock) as fleet:
        await fleet.join("m1")
        await fleet.join("m2")
        for name in ("m1", "m2"):
            await fleet.client_of(name).create(CONFIG_MAPS, config_map(f"of-{name}"))
        yield fleet


async def test_without_a_registry_nothing_of_clusters_is_read(fleet: FakeFleet) -> None:
    await fleet.until(lambda: fleet.caches.synced)
    assert {call.path for call in fleet.plane.calls if call.method == "GET"} == {
        "/apis/search.karmada.io/v1alpha1/resourceregistries"
    }
    assert all(not [call for call in member.calls if call.method == "GET"] for member in fleet.members.values())


async def test_a_registry_fills_the_caches_of_its_clusters_and_its_end_empties_them(fleet: FakeFleet) -> None:
    await fleet.register("r", CONFIG)
    await fleet.until(lambda: fleet.names("m1") == ["of-m1"] and fleet.names("m2") == ["of-m2"])
    assert fleet.caches.clusters(CONFIG_MAPS) == ["m1", "m2"]
    assert fleet.caches.clusters(NODES) == []
    assert {obj["metadata"]["name"] for obj in fleet.sink.objects.values()} == {"of-m1", "of-m2"}
    await fleet.client.delete(ResourceRegistry.gvr, "r")
    await fleet.until(lambda: fleet.caches.clusters(CONFIG_MAPS) == [])
    assert fleet.sink.objects == {}
    assert not fleet.caches.kinds


async def test_a_registry_that_is_edited_changes_what_is_cached(fleet: FakeFleet) -> None:
    await fleet.register("r", CONFIG, NODE)
    await fleet.until(lambda: fleet.names("m1", NODES) == [] and fleet.names("m1") == ["of-m1"])
    kept = fleet.caches.cache("m1", CONFIG_MAPS)
    await fleet.register("r", CONFIG, clusters=["m1"])
    await fleet.until(lambda: fleet.caches.clusters(CONFIG_MAPS) == ["m1"])
    assert fleet.names("m1", NODES) is None
    assert fleet.caches.cache("m1", CONFIG_MAPS) is kept
    await fleet.register("r", ("ConfigMap", "elsewhere"))
    await fleet.until(lambda: fleet.names("m1") == [] and fleet.names("m2") == [])


async def test_a_cluster_is_cached_while_it_is_ready(fleet: FakeFleet) -> None:
    await fleet.register("r", CONFIG)
    await fleet.until(lambda: fleet.names("m1") == ["of-m1"] and fleet.names("m2"))
    cache = fleet.caches.cache("m1", CONFIG_MAPS)
    assert cache is not None
    watch = await cache.subscribe()
    await fleet.set_ready("m1", False)
    await fleet.until(lambda: fleet.names("m1") is None)
    assert watch.ended
    assert fleet.names("m2") == ["of-m2"]
    assert fleet.condition("r")["message"] == "clusters cached: m2; left out: m1 (it is not Ready)"
    await fleet.set_ready("m1", True)
    await fleet.until(lambda: fleet.names("m1") == ["of-m1"])
    assert fleet.events() == []


async def test_a_cluster_that_joins_is_announced_once_its_objects_are_here(fleet: FakeFleet) -> None:
    await fleet.register("r", CONFIG)
    await fleet.until(lambda: fleet.names("m1") and fleet.names("m2"))
    added: list[list[str] | None] = []
    end = fleet.caches.on_cluster_added(lambda: added.append(fleet.names("m3")))
    await fleet.client_of("m3").create(CONFIG_MAPS, config_map("of-m3"))
    await fleet.join("m3")
    await fleet.until(lambda: added)
    assert added == [["of-m3"]]
    await fleet.register("r", CONFIG, NODE)
    await fleet.until(lambda: fleet.names("m3", NODES) == [])
    end()
    await fleet.join("m4")
    await fleet.until(lambda: fleet.names("m4") == [])
    assert len(added) == 1


async def test_a_resource_that_cannot_be_read_does_not_hold_up_the_announcement_of_a_cluster(fleet: FakeFleet) -> None:
    await fleet.register("r", CONFIG, NODE)
    await fleet.until(lambda: fleet.names("m1") and fleet.names("m2") and fleet.names("m2", NODES) == [])
    added: list[tuple[object, object]] = []
    fleet.caches.on_cluster_added(lambda: added.append((fleet.names("m3"), fleet.names("m3", NODES))))
    fleet.member("m3").fail = lambda call: Forbidden("no nodes") if call.path.endswith("/nodes") else None
    await fleet.join("m3")
    await fleet.until(lambda: added)
    assert added == [([], None)]
    fleet.member("m3").fail = lambda _: None
    await fleet.until(lambda: len(added) == 2)
    assert added[1] == ([], [])


async def test_a_cluster_that_cannot_be_reached_is_named_until_its_secret_comes(fleet: FakeFleet) -> None:
    await fleet.join("m3", secret=False)
    await fleet.register("r", CONFIG, clusters=["m1", "m3"])
    await fleet.until(lambda: fleet.condition("r").get("reason") == "ClustersLeftOut")
    why = 'm3 (secrets "m3" not found)'
    assert fleet.condition("r")["message"] == f"clusters cached: m1; left out: {why}"
    await fleet.until(fleet.events)
    assert fleet.events() == [("ClusterNotCached", 'cluster m3 is not cached: secrets "m3" not found')]
    await fleet.make_secret("m3")
    await fleet.until(lambda: fleet.names("m3") == [])
    await fleet.until(lambda: fleet.condition("r")["reason"] == "AllClustersCached")


async def test_a_pull_cluster_without_credentials_is_named_in_the_status(fleet: FakeFleet) -> None:
    await fleet.client.patch(Cluster.gvr, "m2", "", {"spec": {"secretRef": None, "syncMode": "Pull"}})
    await fleet.register("r", CONFIG)
    await fleet.until(lambda: fleet.condition("r").get("reason") == "ClustersLeftOut")
    assert "m2 (it has no spec.secretRef" in fleet.condition("r")["message"]


async def test_a_kind_that_nobody_serves_is_named_and_looked_for_again(fleet: FakeFleet) -> None:
    await fleet.register("r", CONFIG, ("Gadget", ""))
    await fleet.until(lambda: fleet.condition("r").get("reason") == "KindsUnknown")
    assert "v1, Kind=Gadget" in fleet.condition("r")["message"]
    fleet.plane.kinds[CONFIG_MAPS._replace(resource="gadgets")] = ("Gadget", True, ())
    await fleet.clock.advance(60)
    await fleet.until(lambda: fleet.condition("r")["reason"] == "AllClustersCached")


async def test_a_kind_that_only_a_member_serves_is_found_there(fleet: FakeFleet) -> None:
    gadgets = CONFIG_MAPS._replace(resource="gadgets")
    fleet.member("m1").kinds[gadgets] = ("Gadget", True, ())
    served = {"apiEnablements": [{"groupVersion": "v1", "resources": [{"kind": "Gadget"}]}]}
    await fleet.client.patch(Cluster.gvr, "m1", "", {"status": served})
    await fleet.client_of("m1").create(gadgets, {"metadata": {"name": "g", "namespace": "default"}})
    await fleet.register("r", ("Gadget", ""), clusters=["m1"])
    await fleet.until(lambda: fleet.names("m1", gadgets) == ["g"])


async def test_another_cluster_behind_the_same_name_is_listed_anew(fleet: FakeFleet) -> None:
    await fleet.client_of("other").create(CONFIG_MAPS, config_map("of-other"))
    await fleet.register("r", CONFIG)
    await fleet.until(lambda: fleet.names("m1") == ["of-m1"])
    await fleet.move("m1", "other")
    await fleet.until(lambda: fleet.names("m1") == ["of-other"])
    assert {obj["metadata"]["name"] for obj in fleet.sink.objects.values()} == {"of-other", "of-m2"}


async def test_a_member_that_is_down_holds_up_no_other_and_is_listed_when_it_is_back(fleet: FakeFleet) -> None:
    fleet.member("m1").fail = lambda _call: ConnectionFailed("it is down")
    await fleet.register("r", CONFIG)
    await fleet.until(lambda: fleet.names("m2") == ["of-m2"])
    assert fleet.names("m1") is None
    assert not fleet.caches.synced
    fleet.member("m1").fail = lambda _call: None
    await fleet.until(lambda: fleet.names("m1") == ["of-m1"])
    assert fleet.caches.synced


async def test_a_member_that_hangs_holds_up_no_other(fleet: FakeFleet) -> None:
    forever = asyncio.Event()
    fleet.member("m1").delay = lambda _call: forever.wait()
    await fleet.register("r", CONFIG)
    await fleet.until(lambda: fleet.names("m2") == ["of-m2"])
    await fleet.leave("m1")
    await fleet.until(lambda: fleet.caches.clusters(CONFIG_MAPS) == ["m2"])


async def test_a_process_that_starts_anew_has_the_same(fleet: FakeFleet) -> None:
    await fleet.register("r", CONFIG)
    await fleet.until(lambda: fleet.names("m1") and fleet.names("m2"))
    await fleet.restart()
    assert not fleet.caches.synced
    await fleet.until(lambda: fleet.caches.synced and fleet.names("m1") == ["of-m1"])


async def test_a_kind_that_cannot_be_watched_is_named(fleet: FakeFleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fake_api, "ALL_VERBS", ["get", "list"])
    await fleet.register("r", CONFIG)
    await fleet.until(lambda: fleet.condition("r").get("reason") == "KindsUnknown")
    assert fleet.caches.clusters(CONFIG_MAPS) == []
