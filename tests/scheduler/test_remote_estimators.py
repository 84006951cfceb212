from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import numpy as np
import pytest

from karmada.estimator.terms import EstimateError
from karmada.kube.objects.clock import FakeClock
from karmada.scheduler.algorithm import schedule, schedule_remotely
from karmada.scheduler.decision import Decision
from karmada.scheduler.estimators.protocol import EstimateRequest
from karmada.scheduler.estimators.remote import FanOut
from karmada.scheduler.explain import explain
from karmada.scheduler.fleet import Fleet
from karmada.scheduler.request import Request
from tests.support.scheduling_cases import AGGREGATED, DYNAMIC, Fixed, cluster, deployment, placement, shown

CLUSTERS = [cluster("a"), cluster("b"), cluster("c")]
SPEC = deployment(12, placement(DYNAMIC), replicaRequirements={"resourceRequest": {"cpu": "1"}})


class Broken:
    name = "broken"

    def estimate(self, request: EstimateRequest) -> np.ndarray:  # noqa: ARG002
        raise EstimateError("out of order")


def go(*estimators: Any) -> object:
    return shown(schedule(Request(SPEC), Fleet.of(CLUSTERS), estimators))


def test_the_smallest_estimate_counts() -> None:
    assert go(Fixed({"a": 6, "b": 20, "c": 3}), Fixed({"a": 10, "b": 3, "c": 3})) == {"a": 6, "b": 3, "c": 3}


def test_who_does_not_know_does_not_count() -> None:
    assert go(Fixed({"a": 6, "b": 6}), Fixed({"a": -1, "b": 4, "c": 2})) == {"a": 6, "b": 4, "c": 2}


def test_where_nobody_knows_there_is_room_for_all() -> None:
    assert go(Fixed({"a": 0, "b": 0})) == {"c": 12}
    assert go() == {"a": 4, "b": 4, "c": 4}


def test_an_estimator_that_fails_is_left_out_as_a_whole() -> None:
    decision = schedule(Request(SPEC), Fleet.of(CLUSTERS), [Broken(), Fixed({"a": 12, "b": 0, "c": 0})])
    assert shown(decision) == {"a": 12}
    assert decision.attempts[0].estimate is not None
    assert decision.attempts[0].estimate.failures == [("broken", "out of order")]
    assert "without broken: out of order" in str(explain(decision)[0])


def test_without_replicas_no_estimator_is_called() -> None:
    spec = {**SPEC, "replicas": 0}
    decision = schedule(Request(spec), Fleet.of(CLUSTERS), [Broken()])
    assert decision.attempts[0].estimate is not None
    assert decision.attempts[0].estimate.failures == []
    assert decision.targets == []


def estimates_of(answers: Mapping[str, int | Exception]) -> Callable[[str, EstimateRequest], Awaitable[int]]:
    async def one(name: str, _request: EstimateRequest) -> int:
        await asyncio.sleep(0)
        answer = answers[name]
        if isinstance(answer, Exception):
            raise answer
        return answer

    return one


async def remotely(one: Any, clock: FakeClock | None = None, **settings: Any) -> Decision:
    fan_out = FanOut(one, clock or FakeClock(), **settings)
    local = [Fixed({"a": 8, "b": 8, "c": 8})]
    return await schedule_remotely(Request(SPEC), Fleet.of(CLUSTERS), local, [fan_out])


async def test_remote_estimators_are_called() -> None:
    assert shown(await remotely(estimates_of({"a": 2, "b": 3, "c": 100}))) == {"a": 2, "b": 3, "c": 7}


async def test_one_cluster_that_fails_fails_all() -> None:
    wrong = EstimateError("cluster b does not exist in estimator cache")
    decision = await remotely(estimates_of({"a": 0, "b": wrong, "c": 0}))
    assert shown(decision) == {"a": 4, "b": 4, "c": 4}
    assert decision.attempts[0].estimate.failures == [("scheduler-estimator", str(wrong))]


async def test_several_failures_are_reported_together() -> None:
    decision = await remotely(estimates_of({"a": EstimateError("x"), "b": EstimateError("y"), "c": EstimateError("x")}))
    assert decision.attempts[0].estimate.failures == [("scheduler-estimator", "[x, y]")]


async def test_an_invalid_request_does_not_count_as_a_failure_of_the_cluster() -> None:
    with pytest.raises(ExceptionGroup):
        await remotely(estimates_of({"a": TypeError("oops"), "b": 1, "c": 1}))


async def test_all_are_called_at_once_under_one_deadline() -> None:
    clock, requested, all_requested = FakeClock(), set[str](), asyncio.Event()

    async def never(name: str, _request: EstimateRequest) -> int:
        requested.add(name)
        if requested == {"a", "b", "c"}:
            all_requested.set()
        await asyncio.Event().wait()
        return 0

    task = asyncio.create_task(remotely(never, clock, timeout=3.0))
    await all_requested.wait()
    await clock.advance(3.1)
    decision = await task
    assert shown(decision) == {"a": 4, "b": 4, "c": 4}
    assert "no answer within 3s" in decision.attempts[0].estimate.failures[0][1]


async def test_a_decision_that_waits_ends_on_the_fleet_it_began_with() -> None:
    fleet = Fleet.of(CLUSTERS)
    waiting, go_on = asyncio.Event(), asyncio.Event()

    async def slowly(_name: str, _request: EstimateRequest) -> int:
        waiting.set()
        await go_on.wait()
        return 10

    request = Request(deployment(30, placement(AGGREGATED)))
    task = asyncio.create_task(schedule_remotely(request, fleet, [], [FanOut(slowly, FakeClock(), timeout=0)]))
    await waiting.wait()
    later = fleet.updated({"a": None, "b": None, "new": cluster("new")})
    assert shown(schedule(request, later, [])) == {"c": 30}
    go_on.set()
    assert shown(await task) == {"a": 10, "b": 10, "c": 10}
