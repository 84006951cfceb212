"""Every suggestion, applied to the fleet and scheduled from nothing, fits; and one step less of it does not."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from karmada.scheduler.algorithm import schedule
from karmada.scheduler.estimators.answered import Answered
from karmada.scheduler.estimators.general import GeneralEstimator
from karmada.scheduler.estimators.protocol import LocalEstimator
from karmada.scheduler.fitting.judge import Judge
from karmada.scheduler.fitting.situation import Situation
from karmada.scheduler.fitting.suggestions import applied, suggest
from karmada.scheduler.fleet import Fleet
from karmada.scheduler.request import Request
from tests.scheduler.random_cases import random_clusters, random_placement, random_spec

ESTIMATORS: list[LocalEstimator] = [GeneralEstimator()]


def fits(situation: Situation) -> bool:
    """With a fleet made anew, so that nothing that was kept can be wrong."""
    fleet = Fleet.of(situation.clusters())
    return schedule(situation.request, fleet, [*ESTIMATORS, *situation.answers]).failure is None


def random_situation(random: Random) -> Situation:
    clusters = random_clusters(random, 8)
    spec = random_spec(random, random_placement(random))
    answers = []
    if random.random() < 0.3:
        names = [cluster["metadata"]["name"] for cluster in clusters]
        known = {name: random.randint(0, 9) for name in names if random.random() < 0.8}
        failed = {name: "no connection" for name in names if name not in known and random.random() < 0.2}
        answers.append(Answered("scheduler-estimator", known, failed))
    request = Request(spec, affinity_name=random.choice(["", "g1"]), fresh=random.random() < 0.2)
    return Situation(request, Fleet.of(clusters), answers)


def check(situation: Situation) -> int:
    advice = suggest(situation, Judge(ESTIMATORS))
    if fits(situation):
        assert advice is None
        return 0
    assert advice is not None
    for suggestion in advice.suggestions:
        assert fits(suggestion.apply(situation)), suggestion.text
        for less in suggestion.smaller():
            assert not fits(applied(less, situation)), suggestion.text
    return len(advice.suggestions)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_a_suggestion_makes_it_fit_and_one_step_less_does_not(seed: int) -> None:
    check(random_situation(Random(seed)))
