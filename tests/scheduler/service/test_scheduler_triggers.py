"""What makes a scheduler look at a binding."""

from __future__ import annotations

from typing import Any

from karmada.api import well_known
from karmada.api.cluster import Cluster
from karmada.kube.objects.types import Obj
from karmada.scheduler.service.triggers import (
    SchedulerSelector,
    ServedKinds,
    concerns_bindings,
    frees_quota,
    is_pending,
    served_kinds,
)
from tests.support.cases import cases
from tests.support.scheduling_cases import DUPLICATED, DYNAMIC, cluster, deployment, placement
from tests.support.scheduling_plane import MARKED, Scheduling, incoming

OURS = SchedulerSelector("default-scheduler")


def binding(generation: int = 1, labels: Obj | None = None, **spec: Any) -> Obj:
    marks = MARKED if labels is None else labels
    return {"metadata": {"name": "b", "generation": generation, "labels": marks}, "spec": spec}


@cases(well_known.POLICY_ID, well_known.CLUSTER_POLICY_ID, well_known.BINDING_MANAGED_BY)
def test_any_mark_of_a_maker_makes_a_binding_ours(label: str) -> None:
    assert OURS(binding(labels={label: "x"}))
    assert not OURS(binding(labels={label: ""}))


def quota(limit: str | None, used: str = "0") -> Obj:
    overall = {"memory": "1Gi", **({"cpu": limit} if limit else {})}
    return {"spec": {"overall": overall}, "status": {"overallUsed": {"cpu": used}}}


@cases(
    (None, quota("4"), False),
    (quota("4", "3"), None, True),
    (quota("4", "3"), quota("4", "2500m"), True),
    (quota("4", "3"), quota("5", "3"), True),
    (quota("4", "3"), quota(None, "3"), True),
    (quota("4", "3"), quota("4", "3000m"), False),
    (quota("4", "3"), quota("4", "4"), False),
    (quota(None), quota("4"), False),
    (quota("4", "3"), quota("5", "4"), False),
)
def test_a_quota_with_more_left_lets_what_it_refused_be_tried(old: Obj | None, new: Obj | None, frees: bool) -> None:
    assert frees_quota(old, new) is frees


def test_without_a_mark_a_binding_is_nobodys() -> None:
    assert not OURS(binding(labels={"app": "web"}))


@cases((None, True, False), ("", True, False), ("default-scheduler", True, False), ("other", False, True))
def test_a_binding_belongs_to_the_scheduler_it_names(name: str | None, default: bool, other: bool) -> None:
    found = binding() if name is None else binding(schedulerName=name)
    assert OURS(found) is default
    assert SchedulerSelector("other")(found) is other


@cases(
    (None, True),
    ({}, True),
    ({"scheduling": False}, True),
    ({"dispatching": True}, True),
    ({"scheduling": True}, False),
)
def test_only_suspended_scheduling_keeps_it_away(suspension: Obj | None, ours: bool) -> None:
    assert OURS(binding(suspension=suspension)) is ours


SUSPENDED: dict[str, Any] = {"suspension": {"scheduling": True}}


@cases(
    (None, binding(), True),
    (None, binding(**SUSPENDED), False),
    (binding(), None, False),
    (binding(1), binding(1), False),
    (binding(1), binding(2), True),
    (binding(1), binding(2, **SUSPENDED), False),
    (binding(1, **SUSPENDED), binding(2), True),
    (binding(1, **SUSPENDED), binding(2, **SUSPENDED), False),
    (binding(1, schedulerName="other"), binding(2), True),
    (binding(1), binding(2, schedulerName="other"), False),
    (binding(1, labels={}), binding(1), True),
    (binding(1), binding(1, labels={}), False),
)
def test_it_is_checked_when_it_becomes_ours_and_when_its_spec_changes(
    old: Obj | None, new: Obj | None, looked_at: bool
) -> None:
    assert OURS.should_schedule(old, new) is looked_at


def scheduled(status: str) -> list[Obj]:
    return [{"type": "Scheduled", "status": status}]


@cases(
    (None, True),
    ({"conditions": []}, True),
    ({"conditions": scheduled("False")}, False),
    ({"conditions": scheduled("True"), "schedulerObservedGeneration": 2}, False),
    ({"conditions": scheduled("True"), "schedulerObservedGeneration": 1}, True),
    ({"conditions": scheduled("False"), "schedulerObservedGeneration": 1}, False),
)
def test_a_binding_is_pending_until_its_spec_was_decided_on_or_failed(status: Obj | None, pending: bool) -> None:
    found = binding(generation=2)
    assert is_pending(found if status is None else {**found, "status": status}) is pending


def version(generation: int = 1, **how: Any) -> Obj:
    made = cluster("m1", **how)
    return {**made, "metadata": {**made["metadata"], "generation": generation}}


def test_clusters_that_come_or_go_or_report_concern_nobody() -> None:
    assert concerns_bindings(None, version()) == []
    assert concerns_bindings(version(), None) == []
    assert concerns_bindings(version(), version(summary={"allocatable": {"pods": "1"}})) == []


def test_a_changed_cluster_concerns_those_it_was_for_and_those_it_is_for() -> None:
    before, after = version(), version(labels={"a": "b"})
    assert concerns_bindings(before, after) == [before, after]
    after = {**version(2), "spec": {"region": "eu"}}
    assert concerns_bindings(before, after) == [before, after]


def test_a_change_that_no_affinity_can_see_concerns_those_it_is_for() -> None:
    tainted = {**version(2), "spec": {"taints": [{"key": "down", "effect": "NoExecute"}]}}
    assert concerns_bindings(version(1), tainted) == [tainted]


def test_a_cluster_that_begins_to_go_concerns_those_it_is_for() -> None:
    before, after = version(1), version(2, deleting=True)
    assert concerns_bindings(before, after) == [after]
    assert concerns_bindings(after, version(2, deleting=True)) == []


BOOKS = {"groupVersion": "example.com/v1", "resources": [{"name": "books", "kind": "Book"}]}
BOOK = "example.com/v1|Book"
COMPLETE = {"type": "CompleteAPIEnablements", "status": "True"}


def test_kinds_that_a_cluster_did_not_serve_before_are_gained() -> None:
    few, more = version(kinds=[]), version(kinds=[BOOKS])
    assert served_kinds(None, more) == served_kinds(few, more) == ServedKinds(frozenset({BOOK}))
    assert served_kinds(more, more) == served_kinds(more, None) == ServedKinds()


def test_kinds_are_lost_when_the_list_is_complete() -> None:
    few, more = version(kinds=[]), version(kinds=[BOOKS])
    assert served_kinds(more, few) == ServedKinds()
    certain = {**few, "status": {**few["status"], "conditions": [COMPLETE]}}
    assert served_kinds(more, certain) == served_kinds(few, certain) == ServedKinds(frozenset(), frozenset())
    assert served_kinds(certain, certain) == ServedKinds()


# through the server


async def test_only_bindings_whose_affinity_selects_a_changed_cluster_are_requeued(plane: Scheduling) -> None:
    await plane.clusters("m1", "m2")
    for name in ("m1", "m2"):
        where = placement(DUPLICATED, clusterAffinity={"clusterNames": [name]})
        await plane.bind(f"{name}-deployment", deployment(1, where))
    await plane.bind("any-deployment", deployment(1, placement(DUPLICATED)))
    await plane.bind("other-deployment", deployment(1, placement(DUPLICATED), schedulerName="other"))
    await plane.bind("held-deployment", deployment(1, placement(DUPLICATED), suspension={"scheduling": True}))
    await plane.bind("unmarked-deployment", deployment(1, placement(DUPLICATED)), labels={})
    assert incoming(plane, "ClusterChanged") == 0
    assert await plane.targets("unmarked-deployment") == {}
    await plane.label("m1", a="b")
    assert incoming(plane, "ClusterChanged") == 3
    assert await plane.targets("unmarked-deployment") == {"m1": 1, "m2": 1}
    assert await plane.targets("held-deployment") == {}
    assert await plane.targets("other-deployment") == {}


async def test_what_no_cluster_fitted_is_requeued_when_one_serves_its_kind(plane: Scheduling) -> None:
    await plane.clusters("m1", "m2")
    book = {"apiVersion": "example.com/v1", "kind": "Book", "name": "b", "namespace": "default"}
    spec = {**deployment(1, placement(DUPLICATED)), "resource": book}
    await plane.bind("b-book", spec)
    await plane.bind("web-deployment", deployment(1, placement(DUPLICATED)))
    assert (await plane.condition("b-book") or ("", ""))[1] == "NoClusterFit"
    kinds = (await plane.client.get(Cluster.gvr, "m2"))["status"]["apiEnablements"]
    books = {"groupVersion": "example.com/v1", "resources": [{"name": "books", "kind": "Book"}]}
    patch = {"status": {"apiEnablements": [*kinds, books]}}
    await plane.client.patch(Cluster.gvr, "m2", "", patch, subresource="status")
    await plane.rest()
    assert await plane.targets("b-book") == {"m2": 1}
    assert incoming(plane, "ClusterChanged") == 1


async def test_bindings_that_a_changed_cluster_was_for_are_requeued(plane: Scheduling) -> None:
    for name in ("m1", "m2"):
        await plane.cluster(name, labels={"env": "prod"})
    where = placement(DUPLICATED, clusterAffinity={"labelSelector": {"matchLabels": {"env": "prod"}}})
    await plane.bind("web-deployment", deployment(1, where))
    await plane.label("m1", env="test")
    assert await plane.targets("web-deployment") == {"m2": 1}


async def test_with_groups_only_the_first_part_of_the_taken_one_counts(plane: Scheduling) -> None:
    await plane.clusters("m1", "m2", "m3", pods=5)
    overflow = [{"affinityName": "more", "clusterNames": ["m3"]}]
    terms = [
        {"affinityName": "g1", "clusterNames": ["m9"]},
        {"affinityName": "g2", "clusterNames": ["m2"], "overflowAffinities": overflow},
    ]
    await plane.bind("web-deployment", deployment(1, placement(DYNAMIC, clusterAffinities=terms)))
    assert (await plane.get("web-deployment"))["status"]["schedulerObservingAffinityName"] == "g2"
    for name, events in (("m1", 0), ("m3", 0), ("m2", 1)):
        await plane.label(name, touched="yes")
        assert incoming(plane, "ClusterChanged") == events, name
    await plane.set_status("web-deployment", {"schedulerObservedGeneration": 0})
    await plane.label("m1", touched="again")
    assert incoming(plane, "ClusterChanged") == 2


async def test_additions_and_changes_are_counted(plane: Scheduling) -> None:
    await plane.clusters("m1")
    await plane.bind("web-deployment", deployment(1, placement(DUPLICATED)))
    added, changed = incoming(plane, "BindingAdd"), incoming(plane, "BindingUpdate")
    assert added == 1
    await plane.change("web-deployment", {"suspension": {"scheduling": True}})
    assert incoming(plane, "BindingUpdate") == changed
    await plane.change("web-deployment", {"suspension": None})
    assert incoming(plane, "BindingAdd") == 2
    await plane.change("web-deployment", {"replicas": 2})
    assert incoming(plane, "BindingUpdate") > changed
