from __future__ import annotations

from typing import Any

from karmada.scheduler.algorithm import schedule
from karmada.scheduler.explain import Fate, explain
from karmada.scheduler.fleet import Fleet
from karmada.scheduler.request import Request
from tests.support.cases import cases
from tests.support.scheduling_cases import (
    AGGREGATED,
    DUPLICATED,
    DYNAMIC,
    Fixed,
    cluster,
    config_map,
    deployment,
    placement,
    run,
    spread,
    static,
)

CLUSTERS = [
    cluster("a"),
    cluster("b"),
    cluster("c"),
    cluster("tainted", taints=["x:NoSchedule"]),
    cluster("going", deleting=True),
]


def reported(decision: Any, attempt: int = 0) -> dict[str, Any]:
    return {reason.cluster: reason for reason in explain(decision)[attempt].clusters}


def test_every_cluster_has_a_reason() -> None:
    where = placement(DYNAMIC, spread("cluster", 1, 2))
    decision = run(deployment(9, where, previous={"b": 3}), CLUSTERS, {"a": 6, "b": 4, "c": 2})
    reasons = reported(decision)
    assert {name: reason.fate for name, reason in reasons.items()} == {
        "a": Fate.SELECTED,
        "b": Fate.SELECTED,
        "c": Fate.LEFT_OUT,
        "tainted": Fate.REFUSED,
        "going": Fate.DELETING,
    }
    assert reasons["tainted"].filter == "TaintToleration"
    assert reasons["tainted"].why == "TaintToleration: cluster(s) had untolerated taint {x:NoSchedule}"
    assert (reasons["a"].score, reasons["a"].room, reasons["a"].replicas) == (0, 6, 4)
    assert (reasons["b"].score, reasons["b"].room, reasons["b"].replicas) == (100, 4, 5)
    assert reasons["b"].why == (
        "number 1 of 3 with score 100 and room for 4 more replica(s) by fixed; "
        "5 replica(s), scale up: weight 4 of 10 in 6 replica(s), had 3"
    )
    assert "2 cluster(s) were selected by the spread constraints" in reasons["c"].why


def test_why_a_cluster_has_no_share_is_reported() -> None:
    reasons = reported(run(deployment(2, placement(AGGREGATED)), CLUSTERS, {"a": 6, "b": 4, "c": 2}))
    assert "gets 0 replicas, as others have room for all" in reasons["b"].why
    assert reasons["a"].replicas == 2


def test_weights_that_were_given_are_reported() -> None:
    reasons = reported(run(deployment(3, placement(static(("a", 2), ("b", 1)))), CLUSTERS))
    assert "2 replica(s), by given weights: weight 2 of 3 in 3 replica(s)" in reasons["a"].why


def test_duplication_and_plain_resources_are_reported() -> None:
    assert (
        "4 replica(s), all replicas in every cluster"
        in reported(run(deployment(4, placement(DUPLICATED)), CLUSTERS))["a"].why
    )
    reasons = reported(run(config_map({}), CLUSTERS))
    assert "room for any number of replicas; gets the resource as it is" in reasons["a"].why


def test_tiers_are_reported() -> None:
    term = {
        "affinityName": "g",
        "clusterNames": ["a"],
        "overflowAffinities": [{"affinityName": "o", "clusterNames": ["b"]}],
    }
    decision = run(deployment(5, placement(DYNAMIC, clusterAffinities=[term])), CLUSTERS, {"a": 2, "b": 9})
    assert "in tier 1: 3 replica(s), first placement" in reported(decision)["b"].why
    assert explain(decision)[0].affinity_name == "g"


def test_every_attempt_is_explained() -> None:
    terms = [{"affinityName": "g1", "clusterNames": ["gone"]}, {"affinityName": "g2", "clusterNames": ["a"]}]
    decision = run(deployment(5, placement(DYNAMIC, clusterAffinities=terms)), CLUSTERS, {"a": 2})
    first, second = explain(decision)
    assert str(first).splitlines()[0].startswith("g1: 0/5 clusters are available: ")
    assert second.outcome.endswith("Clusters available replicas 2 are not enough to schedule.")
    assert "no replicas were assigned" in reported(decision, 1)["a"].why


def test_nothing_selected_is_reported() -> None:
    decision = run(deployment(5, placement(DYNAMIC, spread("cluster", 4, 5))), CLUSTERS, {"a": 9})
    assert "nothing was selected" in reported(decision)["a"].why


@cases(
    (
        {"general-estimator": 12, "scheduler-estimator": 3},
        "room for 3 more replica(s) by estimator (12 by summary)",
    ),
    ({"general-estimator": 2, "scheduler-estimator": 3}, "room for 2 more replica(s) by summary (3 by estimator)"),
    ({"general-estimator": 3, "scheduler-estimator": 3}, "room for 3 more replica(s) by estimator (3 by summary)"),
    ({"general-estimator": 4}, "room for 4 more replica(s) by summary"),
    ({"general-estimator": 4, "own": -1}, "room for 4 more replica(s) by summary"),
    ({"own": -1}, "room for 1 more replica(s) as wanted, since no estimator knows"),
)
def test_the_estimator_that_decided_is_named(answers: dict[str, int], text: str) -> None:
    estimators = []
    for name, count in answers.items():
        estimators.append(Fixed({"a": count}))
        estimators[-1].name = name
    decision = schedule(Request(deployment(1, placement(DYNAMIC))), Fleet.of([cluster("a")]), estimators)
    [reason] = explain(decision)[0].clusters
    assert f" and {text}; " in reason.why
    assert reason.estimates == {name: count for name, count in answers.items() if count >= 0}
