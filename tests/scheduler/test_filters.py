from __future__ import annotations

from typing import Any

from tests.support.cases import cases
from tests.support.scheduling_cases import DUPLICATED, cluster, config_map, deployment, placement, run, shown, spread

NO_AFFINITY = "cluster(s) did not match the placement cluster affinity constraint"


def no_fit(count: int, reasons: str) -> str:
    return f"0/{count} clusters are available: {reasons}."


def test_no_clusters_at_all() -> None:
    assert shown(run(config_map({}), [])) == no_fit(0, "no cluster exists")


def test_clusters_that_are_being_deleted_are_no_candidates_but_counted() -> None:
    assert shown(run(config_map({}), [cluster("a", deleting=True), cluster("b", deleting=True)])) == no_fit(
        2, "no cluster exists"
    )


def test_reasons_are_counted_and_sorted_as_texts() -> None:
    where = {"clusterAffinity": {"clusterNames": ["tainted"]}}
    clusters = [cluster("tainted", taints=["foo=bar:NoSchedule"]), cluster("a"), cluster("b")]
    reasons = f"1 cluster(s) had untolerated taint {{foo=bar:NoSchedule}}, 2 {NO_AFFINITY}"
    assert shown(run(config_map(where), clusters)) == no_fit(3, reasons)


def test_ten_sorts_before_two() -> None:
    clusters = [cluster(f"a{n}", kinds=[]) for n in range(10)] + [cluster(f"b{n}") for n in range(2)]
    where = {"clusterAffinity": {"clusterNames": ["a1"]}}
    reasons = f"10 cluster(s) did not have the API resource, 2 {NO_AFFINITY}"
    assert shown(run(config_map(where), clusters)) == no_fit(12, reasons)


def test_a_kind_must_be_served_in_its_version() -> None:
    kinds = [{"groupVersion": "apps/v1beta1", "resources": [{"kind": "Deployment", "name": "deployments"}]}]
    assert shown(run(deployment(1, {}), [cluster("a", kinds=kinds)])) == no_fit(
        1, "1 cluster(s) did not have the API resource"
    )


@cases(
    ("k=v:NoSchedule", {"key": "k", "operator": "Equal", "value": "v"}, True),
    ("k=v:NoSchedule", {"key": "k", "value": "v"}, True),
    ("k=v:NoSchedule", {"key": "k", "value": "w"}, False),
    ("k=v:NoSchedule", {"key": "other", "operator": "Exists"}, False),
    ("k=v:NoSchedule", {"operator": "Exists"}, True),
    ("k=v:NoExecute", {"operator": "Exists", "effect": "NoSchedule"}, False),
    ("k:NoSchedule", {"key": "k"}, True),
    ("k=5:NoSchedule", {"key": "k", "operator": "Gt", "value": "1"}, False),
    ("k=v:PreferNoSchedule", {}, True),
)
def test_taints_are_tolerated_or_not(taint: Any, toleration: Any, passes: bool) -> None:
    result = shown(run(config_map({"clusterTolerations": [toleration]}), [cluster("a", taints=[taint])]))
    assert result == ({"a": 0} if passes else no_fit(1, f"1 cluster(s) had untolerated taint {{{taint}}}"))


def test_the_first_untolerated_taint_is_named() -> None:
    clusters = [cluster("a", taints=["fine:NoSchedule", "x:NoExecute", "y:NoSchedule"])]
    where = {"clusterTolerations": [{"key": "fine", "operator": "Exists"}]}
    assert shown(run(config_map(where), clusters)) == no_fit(1, "1 cluster(s) had untolerated taint {x:NoExecute}")


def test_where_a_resource_is_taints_and_kinds_are_not_checked() -> None:
    clusters = [cluster("a", taints=["x:NoSchedule"], kinds=[]), cluster("b", taints=["x:NoSchedule"])]
    spec = config_map({}, clusters=[{"name": "a"}])
    assert shown(run(spec, clusters)) == {"a": 0}


def test_where_a_resource_is_the_affinity_still_counts() -> None:
    spec = config_map({"clusterAffinity": {"exclude": ["a"]}}, clusters=[{"name": "a"}])
    assert shown(run(spec, [cluster("a")])) == no_fit(1, f"1 {NO_AFFINITY}")


@cases(("provider", "provider"), ("region", "region"), ("zone", "zones"))
def test_what_clusters_are_grouped_by_they_must_have(field: str, named: Any) -> None:
    where = placement(DUPLICATED, spread(field, 1, 1), spread("cluster", 1, 1))
    assert shown(run(deployment(1, where), [cluster("a")])) == no_fit(1, f"1 cluster(s) did not have {named} property")


def test_a_resource_does_not_go_back_to_where_it_is_evicted_from() -> None:
    spec = config_map({}, gracefulEvictionTasks=[{"fromCluster": "a"}, {"fromCluster": "gone"}])
    assert shown(run(spec, [cluster("a"), cluster("b")])) == {"b": 0}
    assert shown(run(spec, [cluster("a")])) == no_fit(1, "1 cluster(s) is in the process of eviction")


def test_overflow_affinities_are_for_workloads_only() -> None:
    term = {
        "affinityName": "g",
        "clusterNames": ["a"],
        "overflowAffinities": [{"affinityName": "o", "clusterNames": ["b"]}],
    }
    where = placement(DUPLICATED, clusterAffinities=[term])
    clusters = [cluster("a"), cluster("b")]
    assert shown(run(config_map(where), clusters)) == {"a": 0}
    candidates = run(deployment(1, where), clusters).attempts[0].candidates
    assert len(candidates.slots) == 2


def test_answers_are_kept_only_as_long_as_they_are_true() -> None:
    from karmada.scheduler.algorithm import schedule
    from karmada.scheduler.fleet import Fleet
    from karmada.scheduler.request import Request

    request = Request(config_map({"clusterAffinity": {"labelSelector": {"matchLabels": {"x": "1"}}}}))
    fleet = Fleet.of([cluster("a"), cluster("b", labels={"x": "1"})])
    assert [target["name"] for target in schedule(request, fleet, []).targets] == ["b"]
    later = fleet.updated({"a": cluster("a", labels={"x": "1"}), "b": None})
    assert [target["name"] for target in schedule(request, later, []).targets] == ["a"]
    assert [target["name"] for target in schedule(request, fleet, []).targets] == ["b"]
    tainted = later.updated({"a": cluster("a", labels={"x": "1"}, taints=["x:NoSchedule"])})
    assert schedule(request, tainted, []).targets == []
