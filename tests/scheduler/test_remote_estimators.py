from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from karmada.estimator.terms import EstimateError
from karmada.scheduler.algorithm import schedule, schedule_remotely
from karmada.scheduler.decision import Decision
from karmada.scheduler.estimators.protocol import EstimateRequest
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


class Answering:
    """A remote estimator with these numbers, or this error, once it may answer."""

    name = "remote"

    def __init__(self, answers: Mapping[str, int] | Exception) -> None:
        self.answers = answers
        self.waiting, self.may_answer = asyncio.Event(), asyncio.Event()
        self.may_answer.set()

    async def estimate(self, request: EstimateRequest) -> Mapping[str, int]:  # noqa: ARG002
        self.waiting.set()
        await self.may_answer.wait()
        if isinstance(self.answers, Exception):
            raise self.answers
        return self.answers


async def remotely(*remote: Answering) -> Decision:
    return await schedule_remotely(Request(SPEC), Fleet.of(CLUSTERS), [Fixed({"a": 8, "b": 8, "c": 8})], remote)


async def test_remote_estimators_are_called() -> None:
    assert shown(await remotely(Answering({"a": 2, "b": 3, "c": 100}))) == {"a": 2, "b": 3, "c": 7}
    assert shown(await remotely(Answering({"a": 2}), Answering({"b": 3}))) == {"a": 2, "b": 3, "c": 7}


async def test_one_that_fails_does_not_count() -> None:
    decision = await remotely(Answering(EstimateError("away")), Answering({"a": 0}))
    assert shown(decision) == {"b": 6, "c": 6}
    assert decision.attempts[0].estimate.failures == [("remote", "away")]


async def test_an_error_of_the_program_is_not_taken_for_a_failure_of_the_estimator() -> None:
    with pytest.raises(TypeError):
        await remotely(Answering(TypeError("oops")))


async def test_a_decision_that_waits_ends_on_the_fleet_it_began_with() -> None:
    fleet, slow = Fleet.of(CLUSTERS), Answering(dict.fromkeys("abc", 10))
    slow.may_answer.clear()
    request = Request(deployment(30, placement(AGGREGATED)))
    task = asyncio.create_task(schedule_remotely(request, fleet, [], [slow]))
    await slow.waiting.wait()
    later = fleet.updated({"a": None, "b": None, "new": cluster("new")})
    assert shown(schedule(request, later, [])) == {"c": 30}
    slow.may_answer.set()
    assert shown(await task) == {"a": 10, "b": 10, "c": 10}
