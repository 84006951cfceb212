"""What the algorithm reports of the time it takes. The clock goes on by one with every reading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from karmada.estimator.terms import REPLICAS, SETS, EstimateError
from karmada.kube.objects.types import Obj
from karmada.scheduler.algorithm import Profile, schedule, schedule_remotely
from karmada.scheduler.estimators.protocol import EstimateRequest
from karmada.scheduler.fleet import Fleet
from karmada.scheduler.meter import (
    ASSIGN,
    ERROR,
    FILTER,
    SCORE,
    SELECT,
    SUCCESS,
    UNSCHEDULABLE,
    Meter,
)
from karmada.scheduler.plugins import SCORES, builtin, profile_of
from karmada.scheduler.ranking import ScoreError
from karmada.scheduler.request import Request
from tests.support.cases import cases
from tests.support.scheduling_cases import DYNAMIC, Fixed, cluster, config_map, deployment, placement, pods, spread

WEB = deployment(4, placement(DYNAMIC))
NOWHERE = deployment(4, placement(DYNAMIC, clusterAffinity={"clusterNames": ["none"]}))


class Recorder:
    def __init__(self) -> None:
        self.looks = 0
        self.reported: list[tuple[object, ...]] = []
        """Of plug-ins: their name and the rest."""

    def now(self) -> float:
        self.looks += 1
        return float(self.looks)

    def took(self, step: str, seconds: float, outcome: str = SUCCESS, plugin: str = "") -> None:
        assert seconds >= 1, "it began before it ended"
        self.reported.append((plugin, step, outcome) if plugin else (step, outcome))

    def steps(self) -> list[object]:
        return [step for step, *_ in self.reported if step in (FILTER, SCORE, SELECT, ASSIGN)]


def measured(meter: Meter, **how: Any) -> Profile:
    return profile_of(builtin(), meter=meter, **how)


def go(spec: Obj, clusters: Sequence[Obj], estimators: Sequence[Any] = (), profile: Profile | None = None) -> Recorder:
    meter = Recorder()
    schedule(Request(spec), Fleet.of(clusters), estimators, profile or measured(meter))
    return meter


def test_every_step_and_every_plug_in_is_reported_in_its_turn() -> None:
    meter = go(WEB, [cluster("m1", taints=["a:NoSchedule"]), cluster("m2", summary=pods(9))], [Fixed({"m2": 9})])
    assert meter.reported == [
        ("APIEnablement", "Filter", "Success"),
        ("TaintToleration", "Filter", "Unschedulable"),
        ("ClusterAffinity", "Filter", "Success"),
        ("SpreadConstraint", "Filter", "Success"),
        ("ClusterEviction", "Filter", "Success"),
        (FILTER, SUCCESS),
        ("ClusterAffinity", "Score", "Success"),
        ("ClusterLocality", "Score", "Success"),
        (SCORE, SUCCESS),
        ("fixed", REPLICAS, SUCCESS),
        (REPLICAS, SUCCESS),
        (SELECT, SUCCESS),
        (ASSIGN, SUCCESS),
    ]


@cases(
    (NOWHERE, [FILTER]),
    (deployment(4, placement(DYNAMIC, spread("cluster", 3))), [FILTER, SCORE, SELECT]),
    (deployment(99, placement(DYNAMIC)), [FILTER, SCORE, SELECT, ASSIGN]),
    (config_map({}), [FILTER, SCORE, SELECT, ASSIGN]),
    ids=["no cluster fits", "spread not possible", "too little room", "nothing to divide"],
)
def test_steps_are_reported_up_to_the_one_that_fails(spec: Obj, steps: Sequence[str]) -> None:
    meter = go(spec, [cluster("m1"), cluster("m2")], [Fixed({"m1": 9, "m2": 9})])
    assert meter.steps() == steps
    assert ((FILTER, UNSCHEDULABLE) in meter.reported) is (spec is NOWHERE)


def test_what_refuses_clusters_for_one_binding_is_reported_each_time() -> None:
    evicted = {**WEB, "gracefulEvictionTasks": [{"fromCluster": "m1"}]}
    assert ("ClusterEviction", "Filter", "Unschedulable") in go(evicted, [cluster("m1"), cluster("m2")]).reported


def test_what_is_known_of_clusters_takes_no_time() -> None:
    meter = Recorder()
    profile, fleet = measured(meter), Fleet.of([cluster("m1"), cluster("m2")])
    for _ in range(2):
        schedule(Request(WEB), fleet, (), profile)
    names = [name for name, *rest in meter.reported if rest[:1] == ["Filter"]]
    assert names.count("TaintToleration") == names.count("APIEnablement") == 1
    assert names.count("ClusterEviction") == 2
    changed = fleet.updated({"m2": cluster("m2", taints=["a:NoSchedule"])})
    schedule(Request(WEB), changed, (), profile)
    assert ("TaintToleration", "Filter", "Unschedulable") in meter.reported


def test_the_clock_is_checked_as_often_for_many_clusters_as_for_few() -> None:
    few, many = (go(WEB, [cluster(f"m{n}", summary=pods(9)) for n in range(size)]) for size in (1, 200))
    assert few.looks == many.looks


class Unlucky:
    name = "Unlucky"

    def points(self, *_: object) -> None:
        raise ScoreError("no luck")


def test_a_score_that_fails_is_reported_as_an_error() -> None:
    registry, meter = builtin(), Recorder()
    registry.add(SCORES, Unlucky())
    go(WEB, [cluster("m1")], profile=profile_of(registry, meter=meter))
    assert meter.reported[-2:] == [("Unlucky", "Score", "Error"), (SCORE, ERROR)]


class Far:
    name = "far"

    def __init__(self, answer: Mapping[str, int] | EstimateError) -> None:
        self._answer = answer

    async def estimate(self, request: EstimateRequest) -> Mapping[str, int]:  # noqa: ARG002
        if isinstance(self._answer, EstimateError):
            raise self._answer
        return self._answer


@cases(({"m1": 9}, SUCCESS), (EstimateError("nobody there"), ERROR), ids=["answers", "fails"])
async def test_estimators_from_afar_are_reported_as_well(answer: Any, outcome: str) -> None:
    meter = Recorder()
    fleet = Fleet.of([cluster("m1")])
    await schedule_remotely(Request(WEB), fleet, [Fixed({"m1": 9})], [Far(answer)], measured(meter))
    assert [reported for reported in meter.reported if REPLICAS in reported] == [
        ("fixed", REPLICAS, SUCCESS),
        ("far", REPLICAS, SUCCESS),
        (REPLICAS, outcome),
    ]


def test_sets_of_components_are_distinguished_from_replicas() -> None:
    components = [{"name": "a", "replicas": 1}, {"name": "b", "replicas": 2}]
    spec = {**config_map(placement(DYNAMIC, spread("cluster", 1, 1))), "components": components}
    meter = Recorder()
    go(spec, [cluster("m1")], [Fixed({"m1": 9})], measured(meter, components=True))
    assert ("fixed", SETS, SUCCESS) in meter.reported
    assert (SETS, SUCCESS) in meter.reported
