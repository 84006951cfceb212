"""Every suggestion, applied to the fleet and scheduled from nothing, fits; and one step less of it does not."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from karmada.estimator.terms import Assumption
from karmada.kube.objects.types import Obj
from karmada.scheduler.algorithm import schedule
from karmada.scheduler.estimators.estimator_result import EstimatorResult
from karmada.scheduler.estimators.general import GeneralEstimator
from karmada.scheduler.estimators.protocol import LocalEstimator
from karmada.scheduler.fitting.judge import Judge, exceeded
from karmada.scheduler.fitting.knobs import changes_of
from karmada.scheduler.fitting.options import options
from karmada.scheduler.fitting.situation import Situation
from karmada.scheduler.fitting.suggestions import applied, suggest
from karmada.scheduler.fleet import Fleet
from karmada.scheduler.plugins import builtin, profile_of
from karmada.scheduler.request import Request
from tests.scheduler.random_cases import random_clusters, random_placement, random_request, random_spec

ESTIMATORS: list[LocalEstimator] = [GeneralEstimator()]
PROFILE = profile_of(builtin(workload_affinity=True), ["*"], components=True)
GROUPS = {"affinityGroup": "app=web", "antiAffinityGroup": "app=web"}


def fits(situation: Situation) -> bool:
    """With a fleet made anew, so that nothing that was kept can be wrong."""
    fleet = Fleet.of(situation.clusters())
    decision = schedule(situation.request, fleet, [*ESTIMATORS, *situation.answers], PROFILE)
    targets = [target["name"] for target in decision.targets]
    there = not situation.into or situation.into in targets
    return decision.failure is None and there and not exceeded(situation, decision.targets)


class Peers:
    def __init__(self, bindings: list[Obj]) -> None:
        self._bindings = bindings

    def affinity(self, _group: str) -> list[Obj]:
        return self._bindings

    anti_affinity = affinity


def random_situation(random: Random) -> Situation:
    clusters = random_clusters(random, 8)
    names = [cluster["metadata"]["name"] for cluster in clusters]
    spec = random_spec(random, random_spreads(random, random_placement(random)))
    groups = random_groups(random)
    request = Request(
        {**spec, "workloadAffinityGroups": groups},
        affinity_name=random.choice(["", "g1"]),
        fresh=random.random() < 0.2,
        peers=Peers([random_peer(random, number, groups, names) for number in range(2)]),
        assumed={name: [random_assumption(random)] for name in names if random.random() < 0.1},
    )
    quotas = [random_quota(random)] if random.random() < 0.2 else []
    into = random.choice(names) if names and random.random() < 0.2 else ""
    return Situation(request, Fleet.of(clusters), random_answers(random, names), quotas, into)


def random_spreads(random: Random, where: Obj) -> Obj:
    """Some placements are also spread by zones, providers or a label."""
    if random.random() < 0.7:
        return where
    by = random.choice([{"spreadByField": "zone"}, {"spreadByField": "provider"}, {"spreadByLabel": "tier"}])
    least = random.randint(1, 3)
    constraint = {**by, "minGroups": least, "maxGroups": random.choice([least, least + 1, 0])}
    return {**where, "spreadConstraints": [*where.get("spreadConstraints", ()), constraint]}


def random_groups(random: Random) -> Obj:
    return {which: group for which, group in GROUPS.items() if random.random() < 0.15}


def random_peer(random: Random, number: int, groups: Obj, names: list[str]) -> Obj:
    targets = [{"name": name} for name in names if random.random() < 0.5]
    spec = {"workloadAffinityGroups": groups, "clusters": targets}
    return {"metadata": {"name": f"peer{number}", "namespace": "default"}, "spec": spec}


def random_assumption(random: Random) -> Assumption:
    requirements = {"resourceRequest": random_request(random)}
    return Assumption("default", [{"name": "a", "replicas": random.randint(0, 4), "replicaRequirements": requirements}])


def random_answers(random: Random, names: list[str]) -> list[EstimatorResult]:
    if random.random() < 0.7:
        return []
    known = {name: random.randint(0, 9) for name in names if random.random() < 0.8}
    failed = {name: "no connection" for name in names if name not in known and random.random() < 0.2}
    quotas = {name: [random_member_quota(random)] for name in known if random.random() < 0.3}
    return [EstimatorResult("in-process-estimator", known, failed, quotas)]


def random_member_quota(random: Random) -> Obj:
    hard = {"requests.cpu": random.choice(["1", "5"]), "memory": random.choice(["1Gi", "9Gi"])}
    used = {"requests.cpu": random.choice(["0", "2", "4500m"]), "memory": "500M"}
    return {"metadata": {"name": "team", "namespace": "default"}, "status": {"hard": hard, "used": used}}


def random_quota(random: Random) -> Obj:
    return {
        "metadata": {"name": "team", "namespace": "default"},
        "spec": {"overall": {"cpu": random.choice(["1", "5", "50"]), "memory": "9Gi"}},
        "status": {"overallUsed": {"cpu": random.choice(["0", "4", "60"])}},
    }


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_a_suggestion_makes_it_fit_and_one_step_less_does_not(seed: int) -> None:
    situation = random_situation(Random(seed))
    advice = suggest(situation, Judge(ESTIMATORS, PROFILE))
    assert (advice is None) == fits(situation)
    for suggestion in advice.suggestions if advice is not None else ():
        assert fits(suggestion.apply(situation)), suggestion.text
        for less in suggestion.smaller():
            assert not fits(applied(less, situation)), suggestion.text


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(0, 2**32))
def test_where_no_single_change_was_found_none_of_some_other_sizes_fits(seed: int) -> None:
    """Not a law: where more is not better, a size that was not tried may fit. So the cases are always the same."""
    situation = replace(random_situation(Random(seed)), into="")
    judge = Judge(ESTIMATORS, PROFILE, trials=10**6, seconds=float("inf"))
    advice = suggest(situation, judge)
    if advice is None or not advice.message:
        return
    for option in options(situation, judge.decide(situation), judge):
        for part in (1, 2, 5, 10):
            sizes = tuple(-(-knob.limit * part // 10) for knob in option.knobs)
            changes = changes_of(option.knobs, sizes)
            assert not fits(applied(changes, situation)), [change.text for change in changes]
