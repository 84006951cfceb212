from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import pytest

from karmada.estimator.client.dialing import Refused
from karmada.estimator.contract import read_replicas, read_sets
from karmada.estimator.terms import Assumption, EstimateError
from karmada.scheduler.algorithm import schedule_remotely
from karmada.scheduler.estimators.accurate import AccurateEstimator
from karmada.scheduler.estimators.protocol import EstimateRequest
from karmada.scheduler.fleet import Fleet
from karmada.scheduler.request import Request
from tests.support.cases import cases
from tests.support.estimators import HANGS, FakeEstimators, fake_estimators
from tests.support.scheduling_cases import DYNAMIC, Fixed, cluster, deployment, placement, shown

CLUSTERS = Fleet.of([cluster("m1"), cluster("m2")])
SMALL, LARGE = ({"resourceRequest": {"cpu": cpu, "memory": "1Gi"}} for cpu in ("1", "4"))
NAMES = {"m1": 0, "m2": 1}
COMPONENTS = [{"name": "jm", "replicas": 1, "replicaRequirements": SMALL}, {"name": "tm", "replicas": 3}]


@pytest.fixture
async def fleet() -> AsyncIterator[FakeEstimators]:
    async with fake_estimators() as found:
        found.answers.update({"m1": 10, "m2": 4})
        await found.join("m1", "m2")
        yield found


@pytest.fixture
def accurate(fleet: FakeEstimators) -> AccurateEstimator:
    return AccurateEstimator(fleet.calls, fleet.clock)


def request(
    requirements: Any = SMALL,
    *,
    sets: bool = False,
    assumed: Mapping[str, Sequence[Assumption]] | None = None,
    only: Sequence[str] = ("m1", "m2"),
) -> EstimateRequest:
    spec = deployment(5, placement(DYNAMIC), replicaRequirements=requirements)
    if sets:
        spec = deployment(0, placement(DYNAMIC), components=COMPONENTS)
    slots = CLUSTERS.by_name[[NAMES[name] for name in only]]
    return EstimateRequest(Request(spec, assumed=assumed or {}), CLUSTERS, slots, sets)


def calls(fleet: FakeEstimators) -> dict[str, int]:
    sent = [cluster for _, cluster in fleet.sent()]
    return {name: sent.count(name) for name in NAMES}


def assumption(replicas: int, requirements: Any = SMALL) -> Assumption:
    component = {"name": "web", "replicas": replicas, "replicaRequirements": requirements}
    return Assumption("default", [component])


# what is requested


async def test_requirements_and_assumptions_reach_the_estimator(
    fleet: FakeEstimators, accurate: AccurateEstimator
) -> None:
    held = [assumption(2, LARGE)]
    assert await accurate.estimate(request(SMALL, assumed={"m2": held})) == {"m1": 10, "m2": 4}
    by_cluster = {message.cluster: message for one in fleet.made for _, message, _ in one.calls}
    first, second = (read_replicas(by_cluster[name]) for name in NAMES)
    assert (first.requirements, first.assumed) == (SMALL, [])
    assert (second.requirements, second.assumed) == (SMALL, held)
    assert {about for one in fleet.made for _, _, about in one.calls} == {"kind=Deployment, name=default/web"}


async def test_components_are_requested_as_sets_in_their_namespace(
    fleet: FakeEstimators, accurate: AccurateEstimator
) -> None:
    assert await accurate.estimate(request(sets=True)) == {"m1": 10, "m2": 4}
    method, message, _ = fleet.made[0].calls[0]
    query = read_sets(message)
    assert (method, query.cluster, query.namespace) == ("MaxAvailableComponentSets", "m1", "default")
    assert list(query.components) == COMPONENTS


async def test_without_requirements_none_are_sent(fleet: FakeEstimators, accurate: AccurateEstimator) -> None:
    await accurate.estimate(request(None))
    assert not fleet.made[0].calls[0][1].HasField("replicaRequirements")


async def test_a_quantity_that_cannot_be_read_is_no_estimate(accurate: AccurateEstimator) -> None:
    with pytest.raises(EstimateError, match="quantities must match"):
        await accurate.estimate(request({"resourceRequest": {"cpu": "much"}}))


# one that fails


async def test_one_cluster_that_fails_discards_all_answers(fleet: FakeEstimators, accurate: AccurateEstimator) -> None:
    fleet.answers.update({"m1": 0, "m2": Refused("boom")})
    spec = deployment(8, placement(DYNAMIC), replicaRequirements=SMALL)
    local = [Fixed({"m1": 8, "m2": 8})]
    decision = await schedule_remotely(Request(spec), CLUSTERS, local, [accurate])
    assert shown(decision) == {"m1": 4, "m2": 4}
    text = "gRPC request cluster(m2) estimator error when calling MaxAvailableReplicas: boom"
    assert decision.attempts[0].estimate.failures == [("scheduler-estimator", text)]
    fleet.answers["m2"] = 8
    assert shown(await schedule_remotely(Request(spec), CLUSTERS, local, [accurate])) == {"m2": 8}, "requested again"


async def test_a_burst_waits_once_for_an_estimator_that_hangs(
    fleet: FakeEstimators, accurate: AccurateEstimator
) -> None:
    fleet.answers["m2"] = HANGS
    burst = [asyncio.create_task(accurate.estimate(request())) for _ in range(20)]
    await fleet.clock.advance(3.0)
    assert [type(task.exception()) for task in burst] == [EstimateError] * 20
    with pytest.raises(EstimateError, match="m2 does not exist in estimator cache"):
        await accurate.estimate(request())
    assert await accurate.estimate(request(only=["m1"])) == {"m1": 10}


# answers are shared


async def test_equal_requests_at_the_same_time_are_one(fleet: FakeEstimators, accurate: AccurateEstimator) -> None:
    found = await asyncio.gather(*(accurate.estimate(request()) for _ in range(50)))
    assert found == [{"m1": 10, "m2": 4}] * 50
    assert calls(fleet) == {"m1": 1, "m2": 1}


async def test_an_answer_counts_for_a_second(fleet: FakeEstimators, accurate: AccurateEstimator) -> None:
    await accurate.estimate(request())
    fleet.answers["m1"] = 7
    await fleet.clock.advance(0.9)
    assert (await accurate.estimate(request()))["m1"] == 10
    await fleet.clock.advance(0.1)
    assert (await accurate.estimate(request()))["m1"] == 7
    assert calls(fleet) == {"m1": 2, "m2": 2}


async def test_other_requirements_and_other_clusters_are_other_requests(
    fleet: FakeEstimators, accurate: AccurateEstimator
) -> None:
    await accurate.estimate(request(SMALL, only=["m1"]))
    await accurate.estimate(request(SMALL))
    assert calls(fleet) == {"m1": 1, "m2": 1}
    await accurate.estimate(request(LARGE))
    await accurate.estimate(request({**SMALL, "nodeClaim": {"nodeSelector": {"a": "b"}}}))
    assert calls(fleet) == {"m1": 3, "m2": 3}


async def test_it_ends_when_a_workload_there_reports_a_change(
    fleet: FakeEstimators, accurate: AccurateEstimator
) -> None:
    await accurate.estimate(request())
    await fleet.clock.advance(0.1)
    accurate.changed("m2")
    await accurate.estimate(request())
    assert calls(fleet) == {"m1": 1, "m2": 2}


async def test_what_was_assumed_since_is_subtracted(fleet: FakeEstimators, accurate: AccurateEstimator) -> None:
    first, second = assumption(3), assumption(2)
    await accurate.estimate(request())
    assert await accurate.estimate(request(assumed={"m1": [first]})) == {"m1": 7, "m2": 4}
    assert await accurate.estimate(request(assumed={"m1": [first, second], "m2": [assumption(9)]})) == {
        "m1": 5,
        "m2": 0,
    }
    assert calls(fleet) == {"m1": 1, "m2": 1}


@cases(
    ([], [assumption(3, LARGE)]),
    ([assumption(3)], []),
    ([assumption(3)], [assumption(3)]),
    ids=["other requirements", "released", "replaced"],
)
async def test_any_other_change_of_what_is_assumed_is_requested_anew(
    before: Any, after: Any, fleet: FakeEstimators, accurate: AccurateEstimator
) -> None:
    await accurate.estimate(request(assumed={"m1": before}))
    await accurate.estimate(request(assumed={"m1": after}))
    assert calls(fleet) == {"m1": 2, "m2": 1}


async def test_what_a_cluster_does_not_know_stays_unknown(fleet: FakeEstimators, accurate: AccurateEstimator) -> None:
    fleet.answers["m1"] = -1
    await accurate.estimate(request())
    assert await accurate.estimate(request(assumed={"m1": [assumption(3)], "m2": [assumption(3)]})) == {
        "m1": -1,
        "m2": 1,
    }


async def test_answers_that_count_no_more_are_forgotten(fleet: FakeEstimators, accurate: AccurateEstimator) -> None:
    for number in range(100):
        await accurate.estimate(request({"resourceRequest": {"cpu": f"{number + 1}m"}}, only=["m1"]))
    assert len(accurate._known) == 100
    await fleet.clock.advance(0.5)
    await accurate.estimate(request({"resourceRequest": {"cpu": "1m"}}, only=["m1"]))
    await fleet.clock.advance(0.6)
    await accurate.estimate(request())
    assert len(accurate._known) == 2
