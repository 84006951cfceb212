"""What users see of scheduling, end to end: bindings and clusters in a real API server, and a scheduler on it."""

from __future__ import annotations

from pathlib import Path

import orjson

from karmada.api import well_known
from karmada.kube.objects import meta
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.scheduler.service.core import Options
from tests.support.scheduling_cases import DUPLICATED, DYNAMIC, config_map, deployment, placement, spread, static
from tests.support.scheduling_plane import Scheduling, scheduling

SUCCESS = ("True", "Success", "Binding has been scheduled successfully.")
SUCCEEDED, FAILED = ("Normal", "ScheduleBindingSucceed"), ("Warning", "ScheduleBindingFailed")
ENOUGH, SCARCE = "Clusters available replicas", "are not enough to schedule."


def among(*names: str) -> Obj:
    return {"clusterNames": list(names)}


def groups(**names: str) -> list[Obj]:
    return [{"affinityName": group, "clusterNames": [name]} for group, name in names.items()]


def dynamic(*names: str, **more: object) -> Obj:
    return placement(DYNAMIC, clusterAffinity=among(*names), **more) if names else placement(DYNAMIC, **more)


async def test_what_has_no_replicas_goes_to_every_cluster_of_the_affinity(plane: Scheduling) -> None:
    await plane.clusters("m1", "m2", "m3")
    made = await plane.bind("settings-configmap", config_map(placement(clusterAffinity=among("m1", "m2"))))
    assert made["spec"]["clusters"] == [{"name": "m1"}, {"name": "m2"}]
    reported = [(*SUCCEEDED, "Binding has been scheduled successfully. Result: {m1:0, m2:0}")]
    assert await plane.events("settings-configmap") == reported
    assert await plane.events("settings") == reported
    assert made["status"]["schedulerObservedGeneration"] == meta.generation(made)


async def test_what_has_no_replicas_is_requeued_whenever_a_cluster_changes(plane: Scheduling) -> None:
    await plane.clusters("m1")
    await plane.bind("settings-configmap", config_map({}))
    await plane.cluster("m2", taints=[{"key": "new", "effect": "NoSchedule"}])
    assert await plane.targets("settings-configmap") == {"m1": 0}
    await plane.change_cluster("m2", {"spec": {"taints": None}})
    assert await plane.targets("settings-configmap") == {"m1": 0, "m2": 0}


async def test_duplicated_replicas_follow_the_scale(plane: Scheduling) -> None:
    await plane.clusters("m1", "m2", "m3")
    await plane.bind("web-deployment", deployment(3, placement(DUPLICATED)))
    assert await plane.targets("web-deployment") == {"m1": 3, "m2": 3, "m3": 3}
    await plane.change("web-deployment", {"replicas": 5})
    assert await plane.targets("web-deployment") == {"m1": 5, "m2": 5, "m3": 5}
    name = "karmada_scheduler_schedule_attempts_total"
    assert plane.sample(name, result="scheduled", schedule_type="ScaleSchedule") == 1


async def test_a_cluster_that_comes_to_match_joins_duplicated_ones(plane: Scheduling) -> None:
    await plane.cluster("m1", labels={"env": "prod"})
    await plane.cluster("m4")
    where = placement(DUPLICATED, clusterAffinity={"labelSelector": {"matchLabels": {"env": "prod"}}})
    await plane.bind("web-deployment", deployment(3, where))
    assert await plane.targets("web-deployment") == {"m1": 3}
    await plane.label("m4", env="prod")
    assert await plane.targets("web-deployment") == {"m1": 3, "m4": 3}


async def test_a_cluster_that_comes_to_match_changes_nothing_for_divided_ones(plane: Scheduling) -> None:
    for name in ("m1", "m2"):
        await plane.cluster(name, pods=10, labels={"env": "prod"})
    await plane.cluster("m3", pods=10)
    where = placement(DYNAMIC, clusterAffinity={"labelSelector": {"matchLabels": {"env": "prod"}}})
    before = await plane.bind("web-deployment", deployment(4, where))
    assert await plane.targets("web-deployment") == {"m1": 2, "m2": 2}
    await plane.label("m3", env="prod")
    assert await plane.get("web-deployment") == before


async def test_another_affinity_moves_only_what_it_must(plane: Scheduling) -> None:
    await plane.clusters("m1", "m2", "m3", pods=10)
    await plane.bind("web-deployment", deployment(4, dynamic("m1", "m2")))
    changed = await plane.change("web-deployment", {"placement": {"clusterAffinity": among("m2", "m3")}})
    assert await plane.targets("web-deployment") == {"m2": 3, "m3": 1}
    applied = orjson.loads(meta.annotations(changed)[well_known.APPLIED_PLACEMENT])
    assert applied == changed["spec"]["placement"]


async def test_what_is_evicted_is_placed_elsewhere(plane: Scheduling) -> None:
    await plane.clusters("m1", "m2", "m3", pods=10)
    await plane.bind("web-deployment", deployment(4, dynamic("m1", "m2")))
    await plane.change("web-deployment", {"placement": {"clusterAffinity": None}})
    await plane.change(
        "web-deployment",
        {
            "clusters": [{"name": "m1", "replicas": 2}],
            "gracefulEvictionTasks": [{"fromCluster": "m2", "reason": "TaintUntolerated", "producer": "test"}],
        },
    )
    found = await plane.targets("web-deployment")
    assert "m2" not in found
    assert found["m1"] >= 2
    assert sum(found.values()) == 4


async def test_a_taint_that_keeps_new_things_away_does_not_concern_what_is_there(plane: Scheduling) -> None:
    await plane.clusters("m1", "m2", pods=10)
    await plane.bind("web-deployment", deployment(4, dynamic("m1", "m2")))
    await plane.change_cluster("m1", {"spec": {"taints": [{"key": "full", "effect": "NoSchedule"}]}})
    await plane.change("web-deployment", {"replicas": 6})
    assert await plane.targets("web-deployment") == {"m1": 3, "m2": 3}


async def test_without_a_cluster_that_fits_everything_is_withdrawn_until_something_changes(plane: Scheduling) -> None:
    await plane.clusters("m1")
    await plane.bind("web-deployment", deployment(2, placement(DUPLICATED, clusterAffinity=among("m1"))))
    await plane.change("web-deployment", {"placement": {"clusterAffinity": among("m9")}})
    found = await plane.get("web-deployment")
    text = "0/1 clusters are available: 1 cluster(s) did not match the placement cluster affinity constraint."
    assert await plane.condition("web-deployment") == ("False", "NoClusterFit", text)
    assert "clusters" not in found["spec"]
    applied = orjson.loads(meta.annotations(found)[well_known.APPLIED_PLACEMENT])
    assert applied["clusterAffinity"] == among("m9")
    assert found["status"]["schedulerObservedGeneration"] < meta.generation(found)
    assert plane.delays("web-deployment") is None
    assert (await plane.events("web-deployment"))[-1] == (*FAILED, text)
    await plane.wait(2000)
    assert await plane.version("web-deployment") == meta.resource_version(found)


async def test_too_little_room_is_tried_again_until_there_is_enough(plane: Scheduling) -> None:
    await plane.clusters("m1", pods=3)
    made = await plane.bind("web-deployment", deployment(5, dynamic()))
    text = f"failed to assign replicas: failed to scale up: {ENOUGH} 3 {SCARCE}"
    assert await plane.condition("web-deployment") == ("False", "Unschedulable", text)
    assert well_known.APPLIED_PLACEMENT not in meta.annotations(made)
    assert "schedulerObservedGeneration" not in made["status"]
    assert "lastScheduledTime" not in made["status"]
    await plane.wait(1)
    assert plane.delays("web-deployment")
    await plane.report("m1", 7)
    assert await plane.targets("web-deployment") == {}
    await plane.wait(2000)
    assert await plane.targets("web-deployment") == {"m1": 5}
    assert await plane.condition("web-deployment") == SUCCESS
    assert plane.delays("web-deployment") is None


async def test_spread_over_more_clusters_than_fit_is_an_error_that_is_tried_again(plane: Scheduling) -> None:
    await plane.clusters("m1", pods=10)
    await plane.bind("web-deployment", deployment(2, placement(DYNAMIC, spread("cluster", 2, 2))))
    status, reason, text = await plane.condition("web-deployment") or ("", "", "")
    assert (status, reason) == ("False", "SchedulerError")
    least = "the number of feasible clusters is less than spreadConstraint.MinGroups"
    assert text == f"failed to select clusters: {least}"
    assert plane.delays("web-deployment")


async def test_the_next_group_of_clusters_is_taken_and_kept(plane: Scheduling) -> None:
    await plane.clusters("m1", pods=0)
    await plane.clusters("m2", pods=10)
    made = await plane.bind(
        "web-deployment", deployment(2, placement(DYNAMIC, clusterAffinities=groups(g1="m1", g2="m2")))
    )
    assert await plane.targets("web-deployment") == {"m2": 2}
    assert made["status"]["schedulerObservingAffinityName"] == "g2"
    wrong = f"failed to assign replicas: failed to scale up: {ENOUGH} 0 {SCARCE}"
    head = "failed to schedule ResourceBinding(default/web-deployment) with clusterAffiliates index(0)"
    assert await plane.events("web-deployment") == [
        (*FAILED, f"{head}: {wrong}"),
        (*SUCCEEDED, "Binding has been scheduled successfully. Result: {m2:2}"),
    ]
    await plane.report("m1", 10)
    await plane.change("web-deployment", {"replicas": 4})
    assert await plane.targets("web-deployment") == {"m2": 4}
    await plane.change("web-deployment", {"placement": {"clusterAffinities": groups(g1="m1")}})
    found = await plane.get("web-deployment")
    assert await plane.targets("web-deployment") == {"m1": 4}
    assert found["status"]["schedulerObservingAffinityName"] == "g1"


async def test_when_all_groups_lack_room_the_first_one_is_reported_and_nothing_is_withdrawn(plane: Scheduling) -> None:
    await plane.clusters("m1", "m2", pods=0)
    where = placement(DYNAMIC, clusterAffinities=groups(g1="m1", g2="m2"))
    made = await plane.bind("web-deployment", deployment(2, where))
    wrong = f"failed to assign replicas: failed to scale up: {ENOUGH} 0 {SCARCE}"
    assert await plane.condition("web-deployment") == ("False", "Unschedulable", wrong)
    assert well_known.APPLIED_PLACEMENT not in meta.annotations(made)
    assert "schedulerObservingAffinityName" not in made["status"]
    assert plane.delays("web-deployment")
    head = "failed to schedule ResourceBinding(default/web-deployment) with clusterAffiliates"
    assert await plane.events("web-deployment") == [(*FAILED, f"{head} index({n}): {wrong}") for n in (0, 1)]


async def test_when_the_first_group_fits_nowhere_that_is_what_counts(plane: Scheduling) -> None:
    await plane.clusters("m2", pods=0)
    where = placement(DYNAMIC, clusterAffinities=groups(g1="m1", g2="m2"))
    made = await plane.bind("web-deployment", deployment(2, where))
    text = "0/1 clusters are available: 1 cluster(s) did not match the placement cluster affinity constraint."
    assert await plane.condition("web-deployment") == ("False", "NoClusterFit", text)
    assert well_known.APPLIED_PLACEMENT in meta.annotations(made)
    assert plane.delays("web-deployment") is None
    assert (await plane.events("web-deployment"))[-1] == (*FAILED, text)


async def test_scaled_to_nothing_a_workload_is_nowhere(plane: Scheduling) -> None:
    await plane.clusters("m1", "m2", pods=10)
    for name, how in (("a-deployment", DYNAMIC), ("b-deployment", DUPLICATED)):
        spec = deployment(2, placement(how), replicaRequirements={"resourceRequest": {"cpu": "1"}})
        await plane.bind(name, {**spec, "replicaRequirements": {}})
        assert await plane.targets(name)
        await plane.change(name, {"replicas": 0})
        assert await plane.targets(name) == {}
        assert await plane.condition(name) == SUCCESS


async def test_scaled_to_nothing_a_workload_stays_where_empty_ones_are_wanted(folder: Path) -> None:
    async with scheduling(folder, options=Options(propagate_empty=True)) as plane:
        await plane.clusters("m1", "m2", pods=10)
        await plane.bind("web-deployment", deployment(2, placement(DYNAMIC), replicaRequirements={}))
        changed = await plane.change("web-deployment", {"replicas": 0})
        assert changed["spec"]["clusters"] == [{"name": "m1"}, {"name": "m2"}]


async def test_what_is_suspended_waits_until_it_is_resumed(plane: Scheduling) -> None:
    await plane.clusters("m1")
    made = await plane.bind("web-deployment", deployment(2, placement(DUPLICATED), suspension={"scheduling": True}))
    assert "status" not in made
    await plane.change("web-deployment", {"suspension": None})
    assert await plane.targets("web-deployment") == {"m1": 2}


async def test_every_scheduler_takes_its_own(plane: Scheduling) -> None:
    await plane.clusters("m1")
    await plane.bind("web-deployment", deployment(2, placement(DUPLICATED), schedulerName="foo"))
    assert await plane.targets("web-deployment") == {}
    async with plane.another(Options(name="foo")):
        assert await plane.targets("web-deployment") == {"m1": 2}


async def test_a_fresh_start_takes_all_clusters_into_account(plane: Scheduling) -> None:
    await plane.clusters("m1", "m2", pods=10)
    made = await plane.bind("web-deployment", deployment(6, dynamic()))
    assert await plane.targets("web-deployment") == {"m1": 3, "m2": 3}
    await plane.clusters("m3", pods=20)
    same_second = made["status"]["lastScheduledTime"]
    await plane.change("web-deployment", {"rescheduleTriggeredAt": same_second})
    assert await plane.targets("web-deployment") == {"m1": 3, "m2": 3}
    await plane.wait(5)
    await plane.change("web-deployment", {"rescheduleTriggeredAt": rfc3339(plane.clock.now())})
    assert await plane.targets("web-deployment") == {"m1": 2, "m2": 2, "m3": 2}
    assert plane.delays("web-deployment") is None
    found = await plane.get("web-deployment")
    assert found["status"]["schedulerObservedGeneration"] == meta.generation(found)


async def test_a_fresh_start_is_made_once_even_if_it_changes_nothing(plane: Scheduling) -> None:
    await plane.clusters("m1", pods=10)
    await plane.bind("web-deployment", deployment(6, dynamic()))
    await plane.wait(5)
    changed = await plane.change("web-deployment", {"rescheduleTriggeredAt": rfc3339(plane.clock.now())})
    assert changed["status"]["lastScheduledTime"] == changed["spec"]["rescheduleTriggeredAt"]
    await plane.label("m1", some="thing")
    assert await plane.version("web-deployment") == meta.resource_version(changed)


async def test_a_cluster_that_goes_loses_its_replicas_to_others(plane: Scheduling) -> None:
    await plane.clusters("m1", "m2", pods=10)
    await plane.bind("web-deployment", deployment(4, dynamic()))
    await plane.delete_cluster("m1")
    assert await plane.targets("web-deployment") == {"m2": 4}


async def test_static_weights_ignore_constraints_but_not_what_these_need(plane: Scheduling) -> None:
    await plane.cluster("m1", region="r1")
    await plane.cluster("m2", region="r2")
    await plane.cluster("m3")
    where = placement(static(("m1", 1), ("m2", 1), ("m3", 8)), spread("region", 1, 1), spread("cluster", 1, 1))
    await plane.bind("web-deployment", deployment(4, where))
    assert await plane.targets("web-deployment") == {"m1": 2, "m2": 2}
