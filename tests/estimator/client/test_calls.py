from __future__ import annotations

import asyncio

import pytest

from karmada.estimator.client.dialing import Refused, Unanswered
from karmada.estimator.client.options import ClientOptions
from karmada.estimator.contract import MAX_AVAILABLE_COMPONENT_SETS, MAX_AVAILABLE_REPLICAS, Method, read_unschedulable
from karmada.estimator.terms import EstimateError
from tests.support.estimators import HANGS, FakeEstimators, fake_estimators

WEB = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "web", "uid": "u"}


async def call(fleet: FakeEstimators, *clusters: str, method: Method = MAX_AVAILABLE_REPLICAS) -> dict[str, int] | str:
    requests = {name: method.request(cluster=name).SerializeToString() for name in clusters}
    try:
        return await fleet.calls.all(method, requests, "kind=Deployment, name=default/web")
    except EstimateError as error:
        return str(error)


async def test_every_cluster_is_called_with_the_object_in_the_metadata() -> None:
    async with fake_estimators() as fleet:
        fleet.answers.update({"m1": 3, "m2": 0})
        await fleet.join("m1", "m2")
        assert await call(fleet, "m1", "m2") == {"m1": 3, "m2": 0}
        assert [about for one in fleet.made for _, _, about in one.calls] == ["kind=Deployment, name=default/web"] * 2


async def test_without_a_connection_it_fails_at_once_and_nobody_is_called() -> None:
    async with fake_estimators() as fleet:
        fleet.answers["m1"] = 3
        await fleet.join("m1")
        assert await call(fleet, "m1", "m2") == "cluster m2 does not exist in estimator cache"
        assert await call(fleet, "m2", "m3") == (
            "[cluster m2 does not exist in estimator cache, cluster m3 does not exist in estimator cache]"
        )
        assert fleet.sent() == []


@pytest.mark.parametrize("method", [MAX_AVAILABLE_REPLICAS, MAX_AVAILABLE_COMPONENT_SETS])
async def test_an_error_of_one_is_an_error_of_all(method: Method) -> None:
    async with fake_estimators() as fleet:
        fleet.answers.update({"m1": 3, "m2": Refused("rpc error: code = Unknown desc = boom")})
        await fleet.join("m1", "m2")
        assert await call(fleet, "m1", "m2", method=method) == (
            f"gRPC request cluster(m2) estimator error when calling {method.name}: "
            "rpc error: code = Unknown desc = boom"
        )
        assert fleet.connections.get("m2") is not None, "it answers"


async def test_one_that_hangs_costs_one_time_out_and_fails_at_once_from_then_on() -> None:
    async with fake_estimators() as fleet:
        fleet.answers.update({"m1": 3, "m2": HANGS})
        await fleet.join("m1", "m2")
        began = fleet.clock.now()
        first = asyncio.create_task(call(fleet, "m1", "m2"))
        await fleet.clock.advance(2.9)
        assert not first.done()
        await fleet.clock.advance(0.1)
        assert await first == (
            "gRPC request cluster(m2) estimator error when calling MaxAvailableReplicas: "
            "rpc error: code = DeadlineExceeded desc = context deadline exceeded"
        )
        assert await call(fleet, "m1", "m2") == "cluster m2 does not exist in estimator cache"
        assert fleet.clock.now() - began == pytest.approx(3.0)
        fleet.answers["m2"] = 5
        await fleet.clock.advance(60)
        assert await call(fleet, "m1", "m2") == {"m1": 3, "m2": 5}


async def test_one_that_is_gone_loses_its_connection() -> None:
    async with fake_estimators() as fleet:
        fleet.answers["m1"] = Unanswered("rpc error: code = Unavailable desc = connection refused")
        await fleet.join("m1")
        assert "code = Unavailable" in str(await call(fleet, "m1"))
        assert await call(fleet, "m1") == "cluster m1 does not exist in estimator cache"


async def test_unschedulable_replicas_are_requested_of_each_cluster() -> None:
    async with fake_estimators() as fleet:
        fleet.answers.update({"m1": 3, "m2": 0})
        await fleet.join("m1", "m2")
        assert await fleet.calls.unschedulable_replicas(["m1", "m2"], WEB, 300) == {"m1": 3, "m2": 0}
        method, message, about = fleet.made[0].calls[0]
        query = read_unschedulable(message)
        assert (method, about) == ("GetUnschedulableReplicas", "kind=Deployment, name=default/web")
        assert (query.resource, query.threshold) == ({name: WEB[name] for name in WEB if name != "uid"}, 300)
        fleet.answers["m2"] = Refused("no")
        with pytest.raises(EstimateError, match="when calling UnschedulableReplicas: no"):
            await fleet.calls.unschedulable_replicas(["m1", "m2"], WEB, 300)


async def test_calls_that_wait_for_their_turn_do_not_time_out() -> None:
    async with fake_estimators() as fleet:
        hanging, others = ([f"{sort}{number}" for number in range(150)] for sort in ("hangs", "answers"))
        fleet.answers.update({**dict.fromkeys(hanging, HANGS), **dict.fromkeys(others, 1)})
        await fleet.join(*hanging, *others)
        await fleet.clock.advance(1)
        first = asyncio.create_task(call(fleet, *hanging))
        await fleet.clock.advance(1)
        second = asyncio.create_task(call(fleet, *others))
        await fleet.clock.advance(1.9)
        assert len(fleet.sent()) == 150
        await fleet.clock.advance(0.1)
        assert "DeadlineExceeded" in str(await first)
        assert await second == dict.fromkeys(others, 1)


async def test_without_any_time_nobody_is_called() -> None:
    async with fake_estimators(ClientOptions(timeout=0)) as fleet:
        fleet.answers["m1"] = 3
        await fleet.join("m1")
        assert await call(fleet, "m1") == "rpc error: code = DeadlineExceeded desc = context deadline exceeded"
        assert fleet.sent() == []
        assert fleet.connections.get("m1") is not None
