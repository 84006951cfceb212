"""What the descheduler takes away, by what a cluster was given, has ready and could not schedule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from karmada.descheduler.rules import concerns, descheduled, divides_by_room, kept, targets_of
from karmada.kube.objects.types import Obj
from tests.support.cases import cases
from tests.support.scheduling_cases import AGGREGATED, DUPLICATED, DYNAMIC, WEIGHTED, placement, static

APPLIED = "policy.karmada.io/applied-placement"


def binding(
    given: Mapping[str, int], ready: Mapping[str, Any], *, scheduling: Obj | None = None, kind: str = "Deployment"
) -> Obj:
    """`ready`: numbers, or whole reports, by cluster."""
    reports = [
        {"clusterName": name, **({"status": {"readyReplicas": found}} if isinstance(found, int) else found)}
        for name, found in ready.items()
    ]
    return {
        "metadata": {
            "name": "web-deployment",
            "namespace": "default",
            "annotations": {APPLIED: orjson.dumps(placement(scheduling or DYNAMIC)).decode()},
        },
        "spec": {
            "resource": {"apiVersion": "apps/v1", "kind": kind, "namespace": "default", "name": "web"},
            "replicas": sum(given.values()),
            "clusters": [{"name": name, "replicas": count} for name, count in given.items()],
        },
        "status": {"aggregatedStatus": reports},
    }


@cases((6, 3, 4, 3), (6, 2, 2, 4), (3, 0, 4, 3), (5, -1, 5, 0), (4, 4, 1, 4), (4, 2, 0, 4), (4, 9, 2, 2), (1, -1, 1, 0))
def test_what_is_ready_stays_and_what_was_never_scheduled_goes(
    replicas: int, ready: int, unschedulable: int, left: int
) -> None:
    assert kept(replicas, ready, unschedulable) == left


COUNTS = st.integers(min_value=0, max_value=50)


@given(replicas=COUNTS, ready=st.integers(min_value=-1, max_value=50), unschedulable=st.integers(-1, 60))
def test_nothing_ready_is_taken_and_never_more_than_is_unschedulable(
    replicas: int, ready: int, unschedulable: int
) -> None:
    left = kept(replicas, ready, unschedulable)
    assert 0 <= left <= replicas
    assert replicas - left <= max(unschedulable, 0)
    if ready <= replicas:
        assert left >= ready


def test_the_message_lists_the_clusters_in_the_order_of_the_targets() -> None:
    found = descheduled(binding({"m2": 3, "m1": 4, "m3": 2}, {"m1": 2, "m2": 0, "m3": 2}), {"m1": 2, "m2": 1, "m3": 1})
    assert found is not None
    assert found.message == (
        "Binding has been descheduled, 1 replica(s) in cluster(m2), 2 replica(s) in cluster(m1), "
        "3 total descheduled replica(s)"
    )
    assert found.binding["spec"]["clusters"] == [
        {"name": "m2", "replicas": 2},
        {"name": "m1", "replicas": 2},
        {"name": "m3", "replicas": 2},
    ]
    assert found.binding["spec"]["replicas"] == 9


def test_a_cluster_that_keeps_none_stays_a_target_without_a_count() -> None:
    found = descheduled(binding({"m1": 5}, {}), {"m1": 5})
    assert found is not None
    assert found.binding["spec"]["clusters"] == [{"name": "m1"}]


@cases({}, {"m1": 0}, {"m1": -1}, {"m1": 7}, {"m2": 1})
def test_without_unschedulable_replicas_a_binding_stays_as_it_is(unschedulable: dict[str, int]) -> None:
    assert descheduled(binding({"m1": 6, "m2": 1}, {"m1": 3, "m2": 1}), unschedulable) is None


@cases(({}, -1), ({"status": {}}, -1), ({"status": {"readyReplicas": 0}}, 0), ({"status": None}, -1))
def test_a_number_that_is_not_reported_counts_as_less_than_none(report: Obj, ready: int) -> None:
    [target] = targets_of(binding({"m1": 1}, {"m1": report}))
    assert (target.cluster, target.replicas, target.ready) == ("m1", 1, ready)


@cases(
    (binding({"m1": 2}, {"m1": 1}), True),
    (binding({"m1": 2}, {}), True),
    (binding({"m1": 2}, {"m1": 1}, scheduling=AGGREGATED), True),
    (binding({"m1": 2}, {"m1": 2}), False),
    (binding({"m1": 0}, {}), False),
    (binding({"m1": 2}, {"m1": 1}, kind="StatefulSet"), False),
    (binding({"m1": 2}, {"m1": 1}, scheduling=DUPLICATED), False),
    (binding({"m1": 2}, {"m1": 1}, scheduling=WEIGHTED), False),
    (binding({"m1": 2}, {"m1": 1}, scheduling=static(("m1", 1))), False),
    ({"metadata": {"name": "bare"}, "spec": {}}, False),
    ids=[
        "short", "silent", "aggregated", "ready", "no replicas", "another kind", "duplicated", "weighted", "static",
        "bare",
    ],
)  # fmt: skip
def test_only_deployments_divided_by_room_that_are_short_are_handled(obj: Obj, expected: bool) -> None:
    assert concerns(obj) is expected


@cases("", "{", "[]", "null", "{}")
def test_a_placement_that_cannot_be_read_divides_nothing(applied: str) -> None:
    assert not divides_by_room(applied)
