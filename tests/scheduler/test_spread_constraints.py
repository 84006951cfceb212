from __future__ import annotations

from itertools import combinations
from random import Random
from typing import Any

import pytest

from tests.support.cases import cases
from tests.support.scheduling_cases import (
    AGGREGATED,
    DUPLICATED,
    DYNAMIC,
    cluster,
    config_map,
    deployment,
    placement,
    run,
    shown,
    spread,
    static,
)

SELECT = "failed to select clusters: "


@cases(
    (80, {"m1", "m3"}),
    (70, {"m1", "m2"}),
    (120, SELECT + "no enough resource when selecting 2 clusters"),
)
def test_a_cluster_gives_way_to_one_with_more_room(need: Any, expected: Any) -> None:
    spec = deployment(need, placement(DYNAMIC, spread("cluster", 1, 2)), clusters=[{"name": "m1"}, {"name": "m2"}])
    decision = run(spec, [cluster("m1"), cluster("m2"), cluster("m3")], {"m1": 40, "m2": 30, "m3": 60})
    result = shown(decision)
    assert (set(result) if isinstance(result, dict) else result) == expected


def test_the_best_cluster_gives_way_too() -> None:
    spec = deployment(50, placement(DYNAMIC, spread("cluster", 1, 1)), clusters=[{"name": "m1"}])
    assert set(shown(run(spec, [cluster("m1"), cluster("m2")], {"m1": 40, "m2": 60}))) == {"m2"}


def test_too_few_clusters_are_an_error() -> None:
    spec = deployment(2, placement(DYNAMIC, spread("cluster", 2, 2)))
    assert shown(run(spec, [cluster("m1")])) == (
        SELECT + "the number of feasible clusters is less than spreadConstraint.MinGroups"
    )


def test_duplication_does_not_look_at_room() -> None:
    spec = deployment(5, placement(DUPLICATED, spread("cluster", 1, 2)))
    assert shown(run(spec, [cluster("m1"), cluster("m2"), cluster("m3")], {"m1": 0, "m2": 1, "m3": 0})) == {
        "m2": 5,
        "m1": 5,
    }


@cases(DUPLICATED, DYNAMIC)
def test_without_an_upper_bound_there_is_none(scheduling: Any) -> None:
    spec = deployment(6, placement(scheduling, spread("cluster", 1)))
    assert set(shown(run(spec, [cluster(f"m{n}") for n in range(3)], {f"m{n}": 6 for n in range(3)}))) == {
        "m0",
        "m1",
        "m2",
    }


REGIONS = [cluster("a", region="R1"), cluster("b", region="R1"), cluster("c", region="R2"), cluster("d", region="R3")]


def test_regions_are_chosen_first_then_clusters_in_them() -> None:
    spec = deployment(60, placement(DYNAMIC, spread("region", 2, 2), spread("cluster", 2, 3)))
    decision = run(spec, REGIONS, {"a": 40, "b": 10, "c": 30, "d": 60})
    assert shown(decision) == {"a": 30, "b": 8, "c": 22}


def test_too_few_regions_are_an_error() -> None:
    spec = deployment(4, placement(DYNAMIC, spread("region", 4, 5), spread("cluster", 4, 8)))
    assert shown(run(spec, REGIONS)) == (
        SELECT + "the number of feasible region is less than spreadConstraint.MinGroups"
    )


def test_regions_with_too_few_clusters_are_an_error() -> None:
    spec = deployment(4, placement(DYNAMIC, spread("region", 1, 1), spread("cluster", 3, 8)))
    assert shown(run(spec, REGIONS)) == (
        SELECT + "the number of clusters is less than the cluster spreadConstraint.MinGroups"
    )


def test_given_weights_ignore_constraints_but_not_what_they_need_to_know() -> None:
    where = placement(static(("a", 1), ("c", 1)), spread("region", 2, 2), spread("cluster", 2, 2))
    decision = run(deployment(4, where), [*REGIONS, cluster("nowhere")])
    assert shown(decision) == {"a": 2, "c": 2}
    reasons = {name: reason for name, _, reason in decision.attempts[0].candidates.reasons()}
    assert reasons == {"nowhere": "cluster(s) did not have region property"}


def test_without_a_cluster_constraint_a_region_gives_one_cluster() -> None:
    assert set(shown(run(config_map(placement(None, spread("region", 2, 2))), REGIONS))) == {"a", "c"}


def test_a_constraint_that_names_nothing_is_an_error() -> None:
    where = placement(None, {"minGroups": 1, "maxGroups": 2})
    assert shown(run(config_map(where), REGIONS)) == SELECT + "just support cluster and region spread constraint"


# zones, providers, labels


def test_zones_that_are_spread_enough_already_change_nothing() -> None:
    clusters = [cluster("a", zones=["z1"]), cluster("b", zones=["z2"]), cluster("c", zones=["z3"])]
    where = placement(DYNAMIC, spread("zone", 2, 2), spread("cluster", 2, 2))
    assert set(shown(run(deployment(4, where), clusters, {"a": 9, "b": 8, "c": 7}))) == {"a", "b"}


@cases("zone", "provider", "label/rack")
def test_a_group_that_is_wanting_is_brought_in(field: str) -> None:
    where = placement(DYNAMIC, spread(field, 2, 2), spread("cluster", 2, 2))
    clusters = [
        cluster(name, zones=[group], provider=group, labels={"rack": group})
        for name, group in (("a", "g1"), ("b", "g1"), ("c", "g2"))
    ]
    assert set(shown(run(deployment(4, where), clusters, {"a": 9, "b": 8, "c": 7}))) == {"a", "c"}


@cases("zone", "provider", "label/rack")
def test_too_many_groups_are_left_out(field: str) -> None:
    where = placement(AGGREGATED, spread(field, 1, 1), spread("cluster", 2, 3))
    clusters = [
        cluster(name, zones=[group], provider=group, labels={"rack": group})
        for name, group in (("a", "g1"), ("b", "g2"), ("c", "g2"), ("d", "g3"))
    ]
    decision = run(deployment(14, where), clusters, {"a": 9, "b": 8, "c": 7, "d": 9})
    assert shown(decision) == {"b": 7, "c": 7} or shown(decision) == {"b": 8, "c": 6}


def test_a_label_alone_spreads_over_all_clusters_of_its_groups() -> None:
    clusters = [cluster(f"m{n}", labels={"rack": f"r{n % 3}"}) for n in range(6)] + [cluster("plain")]
    targets = shown(run(config_map(placement(None, spread("label/rack", 2, 2))), clusters))
    assert isinstance(targets, dict)
    assert len(targets) == 4
    assert len({int(name[1]) % 3 for name in targets}) == 2


@cases(("zone", "zone"), ("provider", "provider"), ("label/rack", "rack"))
def test_too_few_groups_are_an_error(field: str, title: str) -> None:
    clusters = [cluster(name, zones=["g"], provider="g", labels={"rack": "g"}) for name in "ab"]
    where = placement(None, spread(field, 2, 2), spread("cluster", 1, 2))
    assert shown(run(config_map(where), clusters)) == (
        f"{SELECT}the number of feasible {title} is less than spreadConstraint.MinGroups"
    )


def test_a_cluster_in_two_zones_counts_for_both() -> None:
    where = placement(None, spread("zone", 2, 2), spread("cluster", 1, 1))
    clusters = [cluster("a", zones=["z1"]), cluster("b", zones=["z1", "z2"])]
    assert shown(run(config_map(where), clusters)) == {"b": 0}


def test_constraints_that_exclude_one_another_are_an_error() -> None:
    clusters = [cluster("a", region="r1", zones=["z1"]), cluster("b", region="r2", zones=["z2"])]
    where = placement(None, spread("region", 1, 1), spread("zone", 2, 2), spread("cluster", 1, 2))
    assert (
        shown(run(config_map(where), clusters)) == SELECT + "no set of feasible clusters meets all spread constraints"
    )


@pytest.mark.parametrize("seed", range(150))
def test_constraints_are_all_met_whenever_they_can_be(seed: int) -> None:
    random = Random(seed)
    clusters = [
        cluster(
            f"m{n}",
            region=random.choice(["r1", "r2", "r3"]),
            zones=random.sample(["z1", "z2", "z3"], random.choice([1, 1, 1, 2])),
            provider=random.choice(["p1", "p2"]),
            labels={"rack": random.choice("xyz")},
        )
        for n in range(random.randint(2, 8))
    ]
    fields = random.sample(["region", "zone", "provider", "label/rack"], random.randint(1, 3))
    bounds = {field: sorted((random.randint(1, 3), random.randint(1, 3))) for field in [*fields, "cluster"]}
    bounds["cluster"][1] += 2
    where = placement(None, *(spread(field, *pair) for field, pair in bounds.items()))
    result = shown(run(config_map(where), clusters))

    def groups(field: str, chosen: tuple[dict[str, Any], ...]) -> int:
        found = set()
        for one in chosen:
            spec = one["spec"]
            found |= {
                "cluster": {one["metadata"]["name"]},
                "region": {spec["region"]},
                "zone": set(spec["zones"]),
                "provider": {spec["provider"]},
                "label/rack": {one["metadata"]["labels"]["rack"]},
            }[field]
        return len(found)

    def meets(chosen: tuple[dict[str, Any], ...]) -> bool:
        return all(least <= groups(field, chosen) <= most for field, (least, most) in bounds.items())

    if isinstance(result, dict):
        chosen = tuple(one for one in clusters if one["metadata"]["name"] in result)
        only_region = fields == ["region"]  # one cluster of each region, even if that are too many
        assert meets(chosen) or only_region
    else:
        sets = (chosen for size in range(1, len(clusters) + 1) for chosen in combinations(clusters, size))
        assert not any(map(meets, sets)), result
