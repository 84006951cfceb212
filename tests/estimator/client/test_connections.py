from __future__ import annotations

import asyncio
import itertools

from karmada.api.cluster import Cluster
from karmada.estimator.client.connections import FirstRound
from karmada.estimator.client.dialing import Refused, Unanswered
from karmada.estimator.client.options import ClientOptions
from karmada.kube.objects.gvrs import SERVICES
from tests.support.estimators import HANGS, FakeEstimators, fake_estimators

LONG, SHORT = (f"karmada-scheduler-estimator-m1.karmada-system.svc{end}:10352" for end in (".cluster.local", ""))


def connected(fleet: FakeEstimators, name: str = "m1") -> str:
    connection = fleet.connections.get(name)
    return "" if connection is None else connection.address


async def test_a_connection_is_kept_while_the_cluster_exists() -> None:
    async with fake_estimators() as fleet:
        await fleet.join("m1")
        assert connected(fleet) == LONG
        await fleet.client.patch(Cluster.gvr, "m1", "", {"metadata": {"labels": {"a": "b"}}})
        await fleet.clock.advance(0)
        assert [address for _, address in fleet.dialled] == [LONG]
        await fleet.client.delete(Cluster.gvr, "m1")
        await fleet.clock.advance(0)
        assert connected(fleet) == ""
        assert [one.closed for one in fleet.made] == [True]


async def test_the_addresses_are_tried_one_after_the_other() -> None:
    async with fake_estimators() as fleet:
        fleet.connects = {LONG: False}
        await fleet.join("m1")
        assert connected(fleet) == SHORT
        assert [one.closed for one in fleet.made] == [True, False]


async def test_each_address_has_five_seconds() -> None:
    async with fake_estimators() as fleet:
        began = fleet.clock.now()
        fleet.connects = {LONG: HANGS, SHORT: HANGS}
        await fleet.join("m1")
        await fleet.clock.advance(9.9)
        assert [(round(at - began, 1), address) for at, address in fleet.dialled] == [(0, LONG), (5.0, SHORT)]


async def test_what_fails_is_dialled_again_and_again_with_growing_pauses() -> None:
    async with fake_estimators() as fleet:
        fleet.connects = {LONG: False, SHORT: False}
        await fleet.join("m1")
        await fleet.clock.advance(300)
        times = [at for at, address in fleet.dialled if address == LONG]
        pauses = [round(later - at, 3) for at, later in itertools.pairwise(times)]
        assert pauses[:5] == [0.005, 0.01, 0.02, 0.04, 0.08]
        assert pauses[-1] == 60
        fleet.connects = {}
        await fleet.clock.advance(60)
        assert connected(fleet) == LONG


async def test_a_service_of_another_type_is_an_error_until_it_changes() -> None:
    async with fake_estimators() as fleet:
        await fleet.serve("m1", {"type": "ClusterIP", "ports": [{"port": 10352}]})
        await fleet.join("m1")
        assert fleet.dialled == []
        external = {"type": "ExternalName", "externalName": "host", "ports": [{"port": 10352, "targetPort": 5}]}
        name = "karmada-scheduler-estimator-m1"
        await fleet.client.patch(SERVICES, name, "karmada-system", {"spec": external})
        await fleet.clock.advance(60)
        assert connected(fleet) == "host:5"


async def test_clusters_in_mode_pull_may_be_skipped() -> None:
    async with fake_estimators(ClientOptions(skip_pull=True)) as fleet:
        await fleet.join("m1", mode="Pull")
        await fleet.join("m2")
        assert (connected(fleet), bool(connected(fleet, "m2"))) == ("", True)
    async with fake_estimators() as fleet:
        await fleet.join("m1", mode="Pull")
        assert connected(fleet)


async def test_a_lost_connection_is_replaced_once_a_new_one_answers() -> None:
    async with fake_estimators() as fleet:
        await fleet.join("m1")
        fleet.answers["m1"] = Unanswered("still away")
        lost = fleet.connections.get("m1")
        assert lost is not None
        fleet.connections.lost("m1", lost)
        assert connected(fleet) == ""
        await fleet.clock.advance(10)
        assert connected(fleet) == ""
        assert len(fleet.dialled) > 3
        fleet.answers["m1"] = Refused("any answer will do")
        await fleet.clock.advance(60)
        assert connected(fleet) == LONG
        assert [one.closed for one in fleet.made] == [True] * (len(fleet.made) - 1) + [False]
        fleet.connections.lost("m1", lost)
        assert connected(fleet) == LONG, "a later connection is not meant"


async def test_the_start_waits_for_the_first_try_of_each_cluster_but_not_for_long() -> None:
    async with fake_estimators() as fleet:
        fleet.connects = {LONG: HANGS, SHORT: HANGS}
        await fleet.join("m1", "m2")
        began = fleet.clock.now()
        first = FirstRound(fleet.connections, fleet.clock)
        starting = asyncio.create_task(first.start())
        await fleet.clock.advance(4.9)
        assert not starting.done()
        await fleet.clock.advance(0.2)
        assert starting.done()
        fleet.connects = {}
        await fleet.clock.advance(60)
        await FirstRound(fleet.connections, fleet.clock).start()
        assert connected(fleet)
        assert fleet.clock.now() - began < 66
