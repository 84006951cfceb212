from __future__ import annotations

from typing import Any

from karmada.estimator.terms import MAX_REPLICAS, Assumption
from karmada.scheduler.estimators.general import GeneralEstimator
from karmada.scheduler.estimators.protocol import EstimateRequest
from karmada.scheduler.fleet import Fleet
from karmada.scheduler.request import Request
from tests.support.cases import cases
from tests.support.scheduling_cases import DYNAMIC, cluster, deployment, placement, pods, spread

SUMMARY = {
    "allocatable": {"cpu": "10", "memory": "20Gi", "pods": "110"},
    "allocated": {"cpu": "3500m", "memory": "8Gi", "pods": "10"},
    "allocating": {"cpu": "500m", "memory": "2Gi", "pods": "1"},
}


def model(grade: int, **least: str) -> dict[str, Any]:
    return {"grade": grade, "ranges": [{"name": name, "min": value, "max": "1000"} for name, value in least.items()]}


def counts(*numbers: int) -> list[dict[str, Any]]:
    return [{"grade": grade, "count": count} for grade, count in enumerate(numbers)]


DEFAULT_MODELS = [
    model(grade, cpu=str(cpu), memory=f"{memory}Gi")
    for grade, (cpu, memory) in enumerate([(0, 0), (1, 4), (2, 16), (4, 32), (8, 64), (16, 128)])
]


def room(one: dict[str, Any], *, models: bool = True, sets: bool = False, assumed: Any = None, **spec: Any) -> int:
    request = Request({"replicas": 5, **spec}, assumed={"m": assumed} if assumed else {})
    fleet = Fleet.of([one])
    return int(GeneralEstimator(models=models).estimate(EstimateRequest(request, fleet, fleet.by_name, sets))[0])


def requesting(**request: str) -> dict[str, Any]:
    return {
        "replicaRequirements": {
            "resourceRequest": {name.replace("gpu", "nvidia.com/gpu"): v for name, v in request.items()}
        }
    }


@cases(
    (SUMMARY, requesting(cpu="250m", memory="512Mi"), 20),
    (SUMMARY, requesting(cpu="250m"), 24),
    (SUMMARY, requesting(cpu="10m"), 99),
    ({"allocatable": {"cpu": "1", "pods": "10"}, "allocated": {"cpu": "500m"}}, requesting(cpu="100m"), 5),
    (
        {"allocatable": {"nvidia.com/gpu": "4", "pods": "10"}, "allocated": {"nvidia.com/gpu": "1"}},
        requesting(gpu="1"),
        3,
    ),
    ({"allocatable": {"pods": "10"}}, requesting(gpu="1"), 0),
    ({"allocatable": {"pods": "10"}}, requesting(gpu="0"), 10),
    ({"allocatable": {"pods": "10"}}, {"replicaRequirements": {}}, 10),
    ({"allocatable": {"pods": "10"}}, {}, 10),
    ({"allocatable": {"pods": "10"}, "allocated": {"pods": "10"}}, {}, 0),
    ({"allocatable": {"cpu": "1", "pods": "10"}, "allocated": {"cpu": "3"}}, requesting(cpu="1m"), 0),
    ({"allocatable": {"pods": "9000000000"}}, {}, MAX_REPLICAS),
    (None, {}, 0),
)
def test_replicas_fit_into_what_is_left(summary: Any, request_: Any, expected: Any) -> None:
    assert room(cluster("m", summary=summary), **request_) == expected


def modelled(models: list[dict[str, Any]], modelings: list[dict[str, Any]]) -> dict[str, Any]:
    summary = {"allocatable": {"cpu": "100", "memory": "1000Gi", "pods": "500"}, "allocatableModelings": modelings}
    return cluster("m", summary=summary, models=models)


CPU_MODELS = [model(0, cpu="0"), model(1, cpu="1"), model(2, cpu="2")]
BOTH_MODELS = [model(0, cpu="0", memory="0"), model(1, cpu="1", memory="1Gi"), model(2, cpu="2", memory="2Gi")]


@cases(
    (DEFAULT_MODELS, counts(0, 0, 1, 2), requesting(cpu="1500m", memory="2Gi"), 5),
    (CPU_MODELS, counts(1, 1, 1), requesting(cpu="1500m"), 1),
    (CPU_MODELS, counts(1, 1, 1), requesting(cpu="3"), 0),
    (BOTH_MODELS, counts(1, 1, 1), requesting(cpu="1", memory="1536Mi"), 1),
    (BOTH_MODELS, counts(1, 1, 1), requesting(cpu="1", memory="2560Mi"), 0),
    (CPU_MODELS, counts(0, 1), requesting(cpu="1", memory="1"), 0),
    (CPU_MODELS, counts(0, 2), {"replicaRequirements": {}}, 220),
    (CPU_MODELS, counts(0, 9), {"replicaRequirements": {}}, 500),
    (CPU_MODELS, counts(0, 0, 0), requesting(cpu="1"), 0),
    (CPU_MODELS, counts(-1, 3), requesting(cpu="1"), 100),
    ([], counts(1, 3), requesting(cpu="1"), 100),
    (
        CPU_MODELS,
        [{"grade": 1, "count": 1}, {"grade": 1, "count": 2}, {"grade": 7, "count": 9}],
        requesting(cpu="1"),
        3,
    ),
    (CPU_MODELS, counts(0, 2), requesting(cpu="1", pods="3"), 2),
)
def test_nodes_that_are_modelled_are_taken_at_their_least(
    models: Any, modelings: Any, request_: Any, expected: Any
) -> None:
    assert room(modelled(models, modelings), **request_) == expected


def test_models_are_not_checked_when_switched_off() -> None:
    assert room(modelled(CPU_MODELS, counts(0, 1)), models=False, **requesting(cpu="1")) == 100


def test_clusters_with_more_grades_than_others_stand_beside_them() -> None:
    one, other = modelled(CPU_MODELS, counts(0, 1)), modelled(DEFAULT_MODELS, counts(0, 1, 1, 1, 1, 1))
    other["metadata"]["name"] = "n"
    request = Request({"replicas": 1, **requesting(cpu="1")})
    fleet = Fleet.of([one])
    estimator = GeneralEstimator()
    assert estimator.estimate(EstimateRequest(request, fleet, fleet.by_name)).tolist() == [1]
    fleet = fleet.updated({"n": other})
    assert estimator.estimate(EstimateRequest(request, fleet, fleet.by_name)).tolist() == [1, 31]
    fleet = fleet.updated({"m": cluster("m", summary=pods(3))})
    assert estimator.estimate(EstimateRequest(request, fleet, fleet.by_name)).tolist() == [0, 31]


# what does not show yet


def assumption(replicas: int, **request: str) -> Assumption:
    return Assumption(
        "default", [{"name": "x", "replicas": replicas, "replicaRequirements": {"resourceRequest": request}}]
    )


def test_what_was_just_placed_is_taken_off() -> None:
    one = cluster("m", summary=SUMMARY)
    requested = requesting(cpu="250m", memory="512Mi")
    assert room(one, assumed=[assumption(4, cpu="1", memory="1Gi")], **requested) == 8
    assert room(one, assumed=[assumption(4, cpu="1"), assumption(95)], **requested) == 0
    assert room(one, assumed=[assumption(0, cpu="99"), assumption(-1, cpu="9")], **requested) == 20
    assert room(one, assumed=[assumption(9)]) == 90


def test_what_was_just_placed_takes_modelled_nodes() -> None:
    one = modelled(CPU_MODELS, counts(0, 0, 2))
    assert room(one, assumed=[assumption(1, cpu="1500m")], **requesting(cpu="1")) == 2
    assert room(one, assumed=[assumption(3, cpu="1500m")], **requesting(cpu="500m")) == 2


# sets of components


def component(replicas: int, **request: str) -> dict[str, Any]:
    return {"name": f"c{replicas}", "replicas": replicas, "replicaRequirements": {"resourceRequest": request}}


SETS = [component(1, cpu="1", memory="2Gi"), component(3, cpu="3", memory="10Gi")]
BIG = {"allocatable": {"cpu": "28", "memory": "96Gi", "pods": "100"}}


@cases(
    (BIG, SETS, 2),
    (BIG, [component(0, cpu="1")], 100),
    (BIG, [component(7)], 14),
    (BIG, [{"name": "plain", "replicas": 3}], 33),
    (BIG, [component(1, gpu="1")], 0),
    ({"allocatable": {"cpu": "28", "memory": "96Gi"}}, SETS, 0),
    (None, SETS, 0),
    (BIG, [component(1, memory="1G")], 100),
)
def test_complete_sets_of_components_fit_into_what_is_left(summary: Any, components: Any, expected: Any) -> None:
    assert room(cluster("m", summary=summary), sets=True, components=components) == expected


def test_sets_are_placed_on_modelled_nodes() -> None:
    models = [model(0, cpu="1", memory="2Gi"), model(1, cpu="3", memory="10Gi"), model(2, cpu="4", memory="12Gi")]
    summary = {
        "allocatable": {"cpu": "100", "memory": "1000Gi", "pods": "500"},
        "allocatableModelings": counts(2, 6, 3),
    }
    one = cluster("m", summary=summary, models=models)
    assert room(one, sets=True, components=SETS) == 3
    assert room(one, sets=True, components=SETS, models=False) == 10
    assert room(one, sets=True, components=SETS, assumed=[assumption(3, cpu="3", memory="10Gi")]) == 2
    assert room(one, sets=True, components=SETS, assumed=[assumption(96, cpu="1")]) == 0


def test_sets_count_only_for_one_cluster_and_with_the_feature() -> None:
    from karmada.scheduler.algorithm import schedule
    from karmada.scheduler.plugins import builtin, profile_of

    clusters = [cluster("a", summary=BIG), cluster("b", summary=pods(500))]
    estimators = [GeneralEstimator()]
    spec = {**deployment(0, placement(DYNAMIC, spread("cluster", 1, 1))), "components": SETS}
    profile = profile_of(builtin(), components=True)
    decision = schedule(Request(spec), Fleet.of(clusters), estimators, profile)
    assert decision.targets == [{"name": "a"}]
    decision = schedule(Request(spec), Fleet.of(clusters), estimators)
    assert decision.targets == [{"name": "b"}]
    small = {**spec, "components": [component(50, cpu="1")]}
    decision = schedule(Request(small), Fleet.of(clusters), estimators, profile)
    assert decision.failure is not None
    assert decision.failure.text == "failed to select clusters: no enough resource when selecting 1 clusters"
    anywhere = {**deployment(0, placement(None)), "components": SETS}
    decision = schedule(Request(anywhere), Fleet.of(clusters), estimators, profile)
    assert decision.targets == [{"name": "b"}, {"name": "a"}]
