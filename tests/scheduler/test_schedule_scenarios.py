from __future__ import annotations

from typing import Any

from karmada.scheduler.decision import Reason
from karmada.scheduler.plugins import builtin, profile_of
from karmada.scheduler.request import Request, is_fresh
from tests.support.cases import cases
from tests.support.scheduling_cases import (
    AGGREGATED,
    DUPLICATED,
    DYNAMIC,
    WEIGHTED,
    cluster,
    config_map,
    deployment,
    placement,
    run,
    shown,
    spread,
)

M = {name: cluster(name) for name in ("m1", "m2", "m3")}
ALL = list(M.values())
SHORT = "failed to assign replicas: failed to scale up: Clusters available replicas {} are not enough to schedule."


def group(name: str, *clusters: str, overflow: list[Any] | None = None) -> dict[str, Any]:
    term: dict[str, Any] = {"affinityName": name, "clusterNames": list(clusters)}
    return term if overflow is None else {**term, "overflowAffinities": overflow}


def test_a_config_map_goes_to_all_that_its_affinity_selects_without_replicas() -> None:
    decision = run(config_map({"clusterAffinity": {"clusterNames": ["m1", "m2"]}}), ALL)
    assert decision.targets == [{"name": "m1"}, {"name": "m2"}]


def test_a_duplicated_deployment_gets_all_replicas_everywhere_and_is_scaled_everywhere() -> None:
    assert shown(run(deployment(3, placement(DUPLICATED)), ALL)) == {"m1": 3, "m2": 3, "m3": 3}
    previous = {"m1": 3, "m2": 3, "m3": 3}
    assert shown(run(deployment(5, placement(DUPLICATED), previous=previous), ALL)) == {"m1": 5, "m2": 5, "m3": 5}


def test_without_a_strategy_replicas_are_duplicated() -> None:
    assert shown(run(deployment(3, {}), ALL[:2])) == {"m1": 3, "m2": 3}


def test_a_new_cluster_is_added_to_a_duplicated_deployment() -> None:
    spec = deployment(3, placement(DUPLICATED), previous={"m1": 3, "m2": 3})
    assert shown(run(spec, [*ALL, cluster("m4")])) == {"m1": 3, "m2": 3, "m3": 3, "m4": 3}


def test_an_affinity_that_leaves_a_cluster_moves_its_replicas_only() -> None:
    where = placement(DYNAMIC, clusterAffinity={"clusterNames": ["m2", "m3"]})
    spec = deployment(4, where, previous={"m1": 2, "m2": 2})
    assert shown(run(spec, ALL, {"m1": 9, "m2": 10, "m3": 10})) == {"m2": 3, "m3": 1}


def test_replicas_of_an_evicted_cluster_go_elsewhere() -> None:
    spec = deployment(4, placement(DYNAMIC), previous={"m1": 2}, gracefulEvictionTasks=[{"fromCluster": "m2"}])
    assert shown(run(spec, ALL, {"m1": 0, "m2": 50, "m3": 50})) == {"m1": 2, "m3": 2}


def test_a_tainted_cluster_that_is_a_target_may_get_more() -> None:
    clusters = [cluster("m1", taints=["x:NoSchedule"]), M["m2"], cluster("m3", taints=["x:NoSchedule"])]
    spec = deployment(6, placement(DYNAMIC), previous={"m1": 2, "m2": 2})
    assert shown(run(spec, clusters, {"m1": 5, "m2": 0, "m3": 5})) == {"m1": 4, "m2": 2}


def test_when_nothing_matches_nothing_is_targeted() -> None:
    spec = deployment(2, placement(DYNAMIC, clusterAffinity={"clusterNames": ["gone"]}), previous={"m1": 2})
    decision = run(spec, ALL)
    assert decision.targets == []
    assert decision.failure is not None
    assert decision.failure.reason is Reason.NO_CLUSTER_FIT


def test_too_little_room_is_unschedulable() -> None:
    decision = run(deployment(5, placement(DYNAMIC)), ALL[:1], {"m1": 3})
    assert decision.targets == []
    assert decision.failure == (Reason.UNSCHEDULABLE, SHORT.format(3))


def test_too_few_clusters_to_spread_over_is_an_error() -> None:
    decision = run(deployment(5, placement(DYNAMIC, spread("cluster", 2, 2))), ALL[:1])
    assert decision.failure is not None
    assert decision.failure.reason is Reason.SCHEDULER_ERROR


# groups of clusters


GROUPS = placement(DYNAMIC, clusterAffinities=[group("g1", "m1"), group("g2", "m2")])


def test_the_next_group_is_taken_when_one_fails() -> None:
    decision = run(deployment(2, GROUPS), ALL, {"m1": 0, "m2": 9})
    assert shown(decision) == {"m2": 2}
    assert decision.affinity_name == "g2"
    assert [(one.index, one.affinity_name, str(one.failure)) for one in decision.failed_attempts] == [
        (0, "g1", SHORT.format(0))
    ]


def test_a_group_is_never_gone_back_from() -> None:
    decision = run(deployment(2, GROUPS), ALL, {"m1": 9, "m2": 9}, affinity_name="g2")
    assert shown(decision) == {"m2": 2}
    assert len(decision.attempts) == 1
    assert run(deployment(2, GROUPS), ALL, {"m1": 9}, affinity_name="gone").affinity_name == "g1"


def test_if_all_groups_fail_the_first_failure_counts() -> None:
    decision = run(deployment(2, GROUPS), ALL, {"m1": 1, "m2": 0})
    assert decision.failure == (Reason.UNSCHEDULABLE, SHORT.format(1))
    assert decision.affinity_name == ""
    assert decision.targets == []
    missing = placement(DYNAMIC, clusterAffinities=[group("g1", "gone"), group("g2", "m2")])
    decision = run(deployment(2, missing), ALL, {"m2": 0})
    assert decision.failure is not None
    assert decision.failure.reason is Reason.NO_CLUSTER_FIT
    assert decision.failure.text.startswith("0/3 clusters are available: 3 ")


# overflow


OVERFLOW = placement(
    DYNAMIC, clusterAffinities=[group("g", "m1", overflow=[{"affinityName": "more", "clusterNames": ["m2"]}])]
)
NOT_ENOUGH = "failed to assign replicas: Clusters available replicas are not enough to schedule."


@cases(
    (5, {"m1": 10, "m2": 10}, {}, {"m1": 5}),
    (5, {"m1": 2, "m2": 10}, {}, {"m1": 2, "m2": 3}),
    (10, {"m1": 2, "m2": 2}, {}, NOT_ENOUGH),
    (8, {"m1": 2, "m2": 10}, {"m1": 3}, {"m1": 5, "m2": 3}),
    (3, {"m1": 0, "m2": 0}, {"m1": 3, "m2": 4}, {"m1": 3}),
    (0, {"m1": 0, "m2": 0}, {"m1": 3, "m2": 4}, {}),
)
def test_tiers_are_filled_one_after_the_other(replicas: int, room: Any, previous: Any, expected: Any) -> None:
    spec = deployment(replicas, OVERFLOW, previous=previous, replicaRequirements={})
    decision = run(spec, ALL, room)
    assert shown(decision) == expected
    if expected == NOT_ENOUGH:
        assert decision.failure is not None
        assert decision.failure.reason is Reason.UNSCHEDULABLE


# without replicas


@cases(DUPLICATED, DYNAMIC, AGGREGATED, WEIGHTED)
def test_a_workload_without_replicas_loses_its_targets_unless_empty_ones_are_propagated(strategy: Any) -> None:
    spec = deployment(0, placement(strategy), previous={"m1": 2, "m2": 2}, replicaRequirements={"resourceRequest": {}})
    assert run(spec, ALL).targets == []
    profile = profile_of(builtin(), propagate_empty=True)
    kept = run(spec, ALL, profile=profile).targets
    assert kept == [{"name": "m1"}, {"name": "m2"}, {"name": "m3"}]


def test_propagating_empty_workloads_adds_those_without_a_share() -> None:
    profile = profile_of(builtin(), propagate_empty=True)
    spec = deployment(2, placement(AGGREGATED))
    assert run(spec, ALL, {"m1": 1, "m2": 5, "m3": 3}, profile=profile).targets == [
        {"name": "m2", "replicas": 2},
        {"name": "m3"},
        {"name": "m1"},
    ]


def test_a_workload_without_replicas_and_requirements_goes_everywhere() -> None:
    assert run(deployment(0, placement(DYNAMIC)), ALL).targets == [{"name": "m1"}, {"name": "m2"}, {"name": "m3"}]


def test_components_get_no_replica_counts() -> None:
    components = [{"name": "a", "replicas": 1}, {"name": "b", "replicas": 2}]
    assert run(deployment(0, placement(DYNAMIC), components=components), ALL).targets == [
        {"name": "m1"},
        {"name": "m2"},
        {"name": "m3"},
    ]


# starting afresh


def test_a_rebalancer_makes_all_clusters_count_again() -> None:
    binding = {
        "spec": deployment(4, placement(DYNAMIC), previous={"m1": 2, "m2": 2})
        | {"rescheduleTriggeredAt": "2024-01-01T00:00:01Z"},
        "status": {"lastScheduledTime": "2024-01-01T00:00:00Z", "schedulerObservingAffinityName": "g"},
    }
    request = Request.of(binding)
    assert request.fresh
    assert request.affinity_name == "g"
    assert shown(run(binding["spec"], ALL, {"m1": 0, "m2": 0, "m3": 4}, fresh=True)) == {"m1": 1, "m2": 1, "m3": 2}


@cases(
    ("2024-01-01T00:00:01Z", "2024-01-01T00:00:00Z", True),
    ("2024-01-01T00:00:01Z", "2024-01-01T00:00:01Z", False),
    ("2024-01-01T00:00:00Z", "2024-01-01T00:00:01Z", False),
    (None, "2024-01-01T00:00:01Z", False),
    ("2024-01-01T00:00:01Z", None, False),
)
def test_only_a_later_trigger_starts_afresh(triggered: Any, last: Any, fresh: bool) -> None:
    assert is_fresh({"rescheduleTriggeredAt": triggered}, {"lastScheduledTime": last}) is fresh


def test_replicas_of_a_cluster_that_is_being_deleted_move() -> None:
    clusters = [cluster("m1", deleting=True), M["m2"], M["m3"]]
    spec = deployment(4, placement(DYNAMIC), previous={"m1": 2, "m2": 2})
    assert shown(run(spec, clusters, {"m1": 9, "m2": 0, "m3": 9})) == {"m2": 2, "m3": 2}


def test_staying_is_better_than_room() -> None:
    spec = deployment(1, placement(DYNAMIC, spread("cluster", 1, 1)), clusters=[{"name": "m2"}])
    assert shown(run(spec, ALL, {"m1": 9, "m2": 1, "m3": 9})) == {"m2": 1}
