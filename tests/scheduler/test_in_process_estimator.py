from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from karmada.estimator.terms import Assumption, EstimateError
from karmada.scheduler.estimators.in_process import InProcessEstimator
from karmada.scheduler.estimators.protocol import UNKNOWN, EstimateRequest
from karmada.scheduler.fleet import Fleet
from karmada.scheduler.request import Request
from tests.support.scheduling_cases import DYNAMIC, cluster, deployment, placement

FLEET = Fleet.of([cluster("m1"), cluster("m2")])
SMALL, LARGE = ({"resourceRequest": {"cpu": cpu}} for cpu in ("1", "4"))
COMPONENTS = [{"name": "jm", "replicas": 1}, {"name": "tm", "replicas": 3}]


class Counting:
    """An estimator of one member with a fixed number, which records how it is called."""

    def __init__(self, name: str, number: int, *quotas: Any) -> None:
        self.cluster, self.number, self.version = name, number, 1
        self.calls: list[Any] = []
        self._quotas = list(quotas)

    def _answer(self, *call: Any) -> int:
        self.calls.append(call)
        if self.number == UNKNOWN:
            raise EstimateError("not synced yet")
        return self.number

    def max_available_replicas(self, requirements: Any, assumed: Sequence[Assumption] = ()) -> int:
        return self._answer(requirements, list(assumed))

    def max_available_component_sets(
        self, components: Any, namespace: str = "", assumed: Sequence[Assumption] = ()
    ) -> int:
        return self._answer(components, namespace, list(assumed))

    def replicas_on_nodes(self, _requirements: Any) -> int:
        return 100

    def quotas(self, namespace: str) -> list[Any]:
        return [quota for quota in self._quotas if quota["metadata"]["namespace"] == namespace]

    def unschedulable_replicas(self, resource: Any, threshold_seconds: float) -> int:
        raise NotImplementedError


def request(requirements: Any = SMALL, *, sets: bool = False, **assumed: Sequence[Assumption]) -> EstimateRequest:
    spec = deployment(5, placement(DYNAMIC), replicaRequirements=requirements)
    if sets:
        spec = deployment(0, placement(DYNAMIC), components=COMPONENTS)
    return EstimateRequest(Request(spec, assumed=assumed), FLEET, FLEET.by_name, sets)


def numbers(estimator: InProcessEstimator, wanted: EstimateRequest) -> list[int]:
    found = estimator.estimate(wanted)
    assert found.dtype == np.int64
    return list(found.tolist())


def test_every_cluster_with_an_estimator_is_estimated_and_others_are_unknown() -> None:
    m1 = Counting("m1", 7)
    estimator = InProcessEstimator({"m1": m1})
    assert numbers(estimator, request()) == [7, UNKNOWN]
    assert m1.calls == [(SMALL, [])]
    assert numbers(estimator, request(sets=True)) == [7, UNKNOWN]
    assert m1.calls[-1] == (COMPONENTS, "default", [])


def test_a_number_is_computed_once_until_the_member_changes() -> None:
    m1, m2 = Counting("m1", 7), Counting("m2", 2)
    estimator = InProcessEstimator({"m1": m1, "m2": m2})
    for _ in range(100):
        assert numbers(estimator, request()) == [7, 2]
    assert (len(m1.calls), len(m2.calls)) == (1, 1)
    m1.version, m1.number = 2, 6
    assert numbers(estimator, request()) == [6, 2]
    assert (len(m1.calls), len(m2.calls)) == (2, 1)
    numbers(estimator, request(LARGE))
    assert (len(m1.calls), len(m2.calls)) == (3, 2)


def test_another_cluster_of_the_same_name_is_another_one() -> None:
    estimators = {"m1": Counting("m1", 7)}
    estimator = InProcessEstimator(estimators)
    assert numbers(estimator, request()) == [7, UNKNOWN]
    estimators["m1"] = Counting("m1", 3)
    assert numbers(estimator, request()) == [3, UNKNOWN]


def test_what_is_not_synced_is_unknown_and_not_remembered() -> None:
    m1 = Counting("m1", UNKNOWN)
    estimator = InProcessEstimator({"m1": m1})
    assert numbers(estimator, request()) == [UNKNOWN, UNKNOWN]
    m1.number = 4
    assert numbers(estimator, request()) == [4, UNKNOWN]


def test_with_assumed_workloads_it_is_computed_each_time() -> None:
    m1, m2 = Counting("m1", 7), Counting("m2", 2)
    estimator, held = InProcessEstimator({"m1": m1, "m2": m2}), [Assumption("default", [])]
    for _ in range(2):
        numbers(estimator, request(m1=held))
    assert (m1.calls, len(m2.calls)) == ([(SMALL, held)] * 2, 1)


def test_where_quotas_hold_they_are_reported_beside_what_fits_on_the_nodes() -> None:
    quota = {"metadata": {"name": "team", "namespace": "default"}}
    estimator = InProcessEstimator({"m1": Counting("m1", 7, quota), "m2": Counting("m2", 7)})
    assert estimator.under_quotas(request({**SMALL, "namespace": "default"})) == {"m1": (100, [quota])}
    assert estimator.under_quotas(request({**SMALL, "namespace": "other"})) == {}
    assert estimator.under_quotas(request(SMALL)) == {}
    assumed = request({**SMALL, "namespace": "default"}, m1=[Assumption("default", [])])
    assert estimator.under_quotas(assumed) == {}
    unknown = InProcessEstimator({"m1": Counting("m1", UNKNOWN, quota)})
    assert unknown.under_quotas(request({**SMALL, "namespace": "default"})) == {}
