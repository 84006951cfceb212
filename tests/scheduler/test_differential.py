"""The algorithm against the reference, on thousands of random fleets and bindings."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from karmada.kube.objects.types import Obj
from karmada.scheduler.algorithm import schedule
from karmada.scheduler.estimators.general import GeneralEstimator
from karmada.scheduler.fleet import Fleet
from karmada.scheduler.request import Request
from tests.scheduler import reference
from tests.scheduler.random_cases import random_clusters, random_placement, random_spec

ESTIMATORS = [GeneralEstimator()]


def check(fleet: Fleet, clusters: list[Any], spec: dict[str, Any], observed: str, fresh: bool) -> None:
    targets, chosen, error, name = reference.schedule(spec, clusters, observed, fresh)
    decision = schedule(Request(spec, affinity_name=observed, fresh=fresh), fleet, ESTIMATORS)
    assert (decision.failure.text if decision.failure else "") == error
    assert decision.targets == targets
    assert decision.affinity_name == name
    last = decision.attempts[-1]
    if not error:
        assert last.ranking is not None
        assert last.selected is not None
        assert last.ranking.names(last.selected) == chosen


@pytest.mark.parametrize("seed", range(40))
def test_many_bindings_on_one_fleet_are_scheduled_as_the_rules_say(seed: int) -> None:
    random = Random(seed)
    clusters = random_clusters(random)
    fleet = Fleet.of(clusters)
    placements = [random_placement(random) for _ in range(12)]
    for _ in range(60):
        where = random.choice(placements)
        observed = random.choice(["", "g0", "g1", "g2", "other"])
        check(fleet, clusters, random_spec(random, where), observed, random.random() < 0.3)


@pytest.mark.parametrize("seed", range(20))
def test_a_fleet_that_changes_answers_as_a_new_one_would(seed: int) -> None:
    random = Random(1000 + seed)
    clusters = {cluster["metadata"]["name"]: cluster for cluster in random_clusters(random)}
    fleet = Fleet.of(clusters.values())
    placements = [random_placement(random) for _ in range(5)]
    for _ in range(25):
        changes: dict[str, Obj | None] = {
            cluster["metadata"]["name"]: cluster for cluster in random_clusters(random, 3)
        }
        for name in random.sample(sorted(clusters), min(len(clusters), random.randint(0, 2))):
            changes[name] = None
        for name, cluster in changes.items():
            if cluster is None:
                clusters.pop(name, None)
            else:
                clusters[name] = cluster
        older, fleet = fleet, fleet.updated(changes)
        for _ in range(3):
            spec = random_spec(random, random.choice(placements))
            check(fleet, list(clusters.values()), spec, "", False)
            before = [cluster for cluster in older.clusters if cluster is not None]
            check(older, before, spec, "", False)


def test_a_fleet_of_hundreds_is_scheduled_as_the_rules_say() -> None:
    random = Random(7)
    clusters = []
    for number in range(30):
        for cluster in random_clusters(random):
            cluster["metadata"]["name"] = f"{cluster['metadata']['name']}-{number}"
            clusters.append(cluster)
    fleet = Fleet.of(clusters)
    for _ in range(40):
        where = random_placement(random)
        where.pop("clusterAffinities", None)
        if any(c.get("spreadByField") == "region" for c in where.get("spreadConstraints", ())):
            where.pop("spreadConstraints")  # trying all ways takes forever
        spec = random_spec(random, where)
        spec["replicas"] = random.choice([0, 10, 200, 700])
        check(fleet, clusters, spec, "", random.random() < 0.3)
