from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from karmada.estimator.assumed import Placed
from karmada.estimator.terms import Assumption
from karmada.scheduler.estimators.general import GeneralEstimator
from karmada.scheduler.estimators.protocol import EstimateRequest
from karmada.scheduler.fleet import Fleet
from karmada.scheduler.request import Request
from tests.support.scheduling_cases import DYNAMIC, cluster, deployment, placement

NEEDS = [{"resourceRequest": {"cpu": cpu}} for cpu in ("500m", "1", "3")]
ASSUMPTIONS = [
    Assumption("default", [{"name": "web", "replicas": replicas, "replicaRequirements": needs}])
    for replicas in (0, 1, 4)
    for needs in NEEDS
]
MODELS = [{"grade": grade, "ranges": [{"name": "cpu", "min": str(2**grade)}]} for grade in range(4)]
histories = st.lists(st.tuples(st.integers(0, 1), st.lists(st.sampled_from(ASSUMPTIONS), max_size=6)), max_size=8)


def test_only_what_was_added_is_placed() -> None:
    placed: Placed[list[Assumption]] = Placed()
    log: list[Assumption] = []

    def place(state: list[Assumption], one: Assumption) -> None:
        log.append(one)
        state.append(one)

    first, second, third = ASSUMPTIONS[:3]
    for version, assumed, new in (
        (1, [first], [first]),
        (1, [first, second], [second]),
        (1, [first, second], []),
        (1, [first, third], [first, third]),
        (1, [first], [first]),
        (2, [first, third], [first, third]),
        (2, [], []),
    ):
        log.clear()
        assert placed.state(version, assumed, list, place) == assumed
        assert log == new


@given(histories)
def test_estimates_do_not_depend_on_the_estimates_before(history: list[tuple[int, list[Assumption]]]) -> None:
    summary = {"allocatable": {"cpu": "40", "pods": "30"}, "allocatableModelings": [{"grade": 3, "count": 2}]}
    fleets = [
        Fleet.of([cluster("m1", summary={**summary, "allocated": {"cpu": used}}, models=MODELS)]) for used in ("0", "9")
    ]
    lasting = GeneralEstimator()
    for at, (version, assumed) in enumerate(history):
        fleet = fleets[version]
        spec = deployment(5, placement(DYNAMIC), replicaRequirements=NEEDS[at % 3])
        request = EstimateRequest(Request(spec, assumed={"m1": assumed} if assumed else {}), fleet, fleet.by_name)
        assert lasting.estimate(request).tolist() == GeneralEstimator().estimate(request).tolist()
