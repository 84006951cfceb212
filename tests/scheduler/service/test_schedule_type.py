"""Whether a binding needs to be scheduled: the reasons, in their order."""

from __future__ import annotations

from typing import Any

import orjson

from karmada.api import well_known
from karmada.kube.objects.types import Obj
from karmada.scheduler.request import Request
from karmada.scheduler.service.schedule_type import ScheduleType, placement_changed, replicas_changed, schedule_type_of
from tests.support.cases import cases
from tests.support.scheduling_cases import AGGREGATED, DUPLICATED, DYNAMIC, config_map, deployment, placement

EARLY, LATE = "2024-01-01T00:00:00Z", "2024-01-01T00:00:01Z"
G1: Obj = {"affinityName": "g1", "clusterNames": ["m1"]}
OTHER_G1: Obj = {"affinityName": "g1", "clusterNames": ["m2"]}
G0, G2 = {"affinityName": "g0"}, {"affinityName": "g2"}


def terms(*found: Obj) -> Obj:
    return {"clusterAffinities": list(found)}


@cases(
    ({}, "", "", True),
    ({}, "{}", "", False),
    ({}, "no JSON", "", False),
    ({}, "[]", "", False),
    ({"clusterAffinity": {"clusterNames": ["m1"]}}, "no JSON", "", False),
    ({"clusterAffinity": {"clusterNames": ["m1"]}}, "{}", "", True),
    ({"clusterAffinity": {"clusterNames": ["m1"]}}, "{}", "g1", True),
    ({"clusterAffinity": {}}, '{"clusterAffinity":{}}', "", False),
    ({"clusterTolerations": [], "spreadConstraints": None}, "{}", "", False),
    ({"clusterTolerations": [{"operator": "Exists"}]}, "{}", "", True),
    ({"spreadConstraints": [{"spreadByField": "cluster"}]}, "{}", "", True),
    ({"replicaScheduling": DUPLICATED}, "{}", "", True),
    (terms(G1), orjson.dumps(terms(G1)).decode(), "g1", False),
    (terms(G1, G2), orjson.dumps(terms(G1)).decode(), "g1", False),
    (terms(G0, G1), orjson.dumps(terms(G1)).decode(), "g1", False),
    (terms(G1, G2), orjson.dumps(terms(G1)).decode(), "", True),
    (terms(G2), orjson.dumps(terms(G1)).decode(), "g1", True),
    (terms(G1), orjson.dumps(terms(G2)).decode(), "g1", True),
    (terms(OTHER_G1), orjson.dumps(terms(G1)).decode(), "g1", True),
    (
        terms({**G1, "overflowAffinities": [{"affinityName": "more"}]}),
        orjson.dumps(terms(G1)).decode(),
        "g1",
        True,
    ),
    ({"workloadAffinity": {"affinity": {"groupByLabelKey": "a"}}}, "{}", "", True),
    (
        {**terms(G1), "workloadAffinity": {"affinity": {"groupByLabelKey": "a"}}},
        orjson.dumps(terms(G1)).decode(),
        "g1",
        False,
    ),
)
def test_a_placement_has_changed_if_what_matters_differs_from_what_was_applied(
    now: Obj, applied: str, observed: str, changed: bool
) -> None:
    assert placement_changed(now, applied, observed) is changed


@cases(
    (None, 5, {"m1": 3}, False),
    (DUPLICATED, 3, {"m1": 3, "m2": 3}, False),
    (DUPLICATED, 3, {"m1": 3, "m2": 2}, True),
    (DUPLICATED, 3, {}, False),
    (DYNAMIC, 3, {"m1": 1, "m2": 2}, False),
    (DYNAMIC, 3, {"m1": 3, "m2": 3}, True),
    (DYNAMIC, 3, {}, True),
    (AGGREGATED, 0, {}, False),
    ({}, 3, {"m1": 1}, True),
)
def test_replicas_have_changed_if_the_clusters_do_not_have_what_is_wanted(
    how: Obj | None, replicas: int, previous: dict[str, int], changed: bool
) -> None:
    spec = deployment(replicas, placement(how), previous=previous)
    assert replicas_changed(spec, Request(spec), components=False) is changed


@cases((True, {}, True), (True, {"m1": 0}, False), (False, {}, False))
def test_a_workload_of_components_that_is_nowhere_has_changed(
    gate: bool, previous: dict[str, int], changed: bool
) -> None:
    spec = deployment(0, placement(DYNAMIC), previous=previous, components=[{"name": "a", "replicas": 1}])
    assert replicas_changed(spec, Request(spec), components=gate) is changed


def settled(spec: Obj, **status: Any) -> Obj:
    """A binding whose placement was applied."""
    text = orjson.dumps(spec["placement"]).decode()
    return {"metadata": {"annotations": {well_known.APPLIED_PLACEMENT: text}}, "spec": spec, "status": status}


DIVIDED = deployment(4, placement(DYNAMIC), previous={"m1": 2, "m2": 2})


@cases(
    ({"metadata": {}, "spec": DIVIDED}, [], ScheduleType.RECONCILE),
    ({"metadata": {}, "spec": {**DIVIDED, "replicas": 5}}, [], ScheduleType.RECONCILE),
    (settled(DIVIDED), [], ScheduleType.NONE),
    (settled({**DIVIDED, "replicas": 5}), [], ScheduleType.SCALE),
    (settled({**DIVIDED, "rescheduleTriggeredAt": LATE}, lastScheduledTime=EARLY), [], ScheduleType.RECONCILE),
    (settled({**DIVIDED, "rescheduleTriggeredAt": EARLY}, lastScheduledTime=EARLY), [], ScheduleType.NONE),
    (settled({**DIVIDED, "rescheduleTriggeredAt": EARLY}, lastScheduledTime=LATE), [], ScheduleType.NONE),
    (settled({**DIVIDED, "rescheduleTriggeredAt": LATE}), [], ScheduleType.NONE),
    (
        settled({**DIVIDED, "replicas": 5, "rescheduleTriggeredAt": LATE}, lastScheduledTime=EARLY),
        [],
        ScheduleType.SCALE,
    ),
    (settled(deployment(4, placement(DUPLICATED), previous={"m1": 4})), [], ScheduleType.RECONCILE),
    (settled(deployment(4, placement(DUPLICATED), previous={"m1": 3})), [], ScheduleType.SCALE),
    (settled(deployment(4, placement(), previous={"m1": 3})), [], ScheduleType.RECONCILE),
    (settled(config_map(placement())), [], ScheduleType.RECONCILE),
    (settled(config_map(placement(DYNAMIC))), [], ScheduleType.RECONCILE),
    (settled(deployment(0, placement(DYNAMIC), replicaRequirements={})), [], ScheduleType.NONE),
    (settled(DIVIDED), ["m2"], ScheduleType.RECONCILE),
    (settled(DIVIDED), ["m3"], ScheduleType.NONE),
)
def test_the_first_reason_that_holds_counts(binding: Obj, deleting: list[str], need: ScheduleType) -> None:
    assert schedule_type_of(binding, Request.of(binding), deleting) is need


def test_clusters_of_a_group_that_was_not_noted_are_decided_again() -> None:
    spec = deployment(4, placement(DYNAMIC, clusterAffinities=[G1]), previous={"m1": 4})
    noted = settled(spec, schedulerObservingAffinityName="g1")
    assert schedule_type_of(noted, Request.of(noted), []) is ScheduleType.NONE
    not_noted = settled(spec)
    assert schedule_type_of(not_noted, Request.of(not_noted), []) is ScheduleType.RECONCILE
