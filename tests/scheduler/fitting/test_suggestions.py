"""What is suggested in typical situations, word for word."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from karmada.kube.objects.types import Obj
from karmada.scheduler.algorithm import Profile, schedule
from karmada.scheduler.estimators.estimator_result import EstimatorResult
from karmada.scheduler.estimators.general import GeneralEstimator
from karmada.scheduler.fitting.judge import Judge, fits
from karmada.scheduler.fitting.situation import Situation
from karmada.scheduler.fitting.suggestions import SHOWN, Advice, suggest
from karmada.scheduler.fleet import Fleet
from karmada.scheduler.plugins import builtin, profile_of
from karmada.scheduler.request import Request
from tests.scheduler.random_cases import MODELS
from tests.support.cases import cases
from tests.support.scheduling_cases import (
    DUPLICATED,
    DYNAMIC,
    cluster,
    config_map,
    deployment,
    placement,
    pods,
    spread,
)

CPU_1 = {"resourceRequest": {"cpu": "1"}}


def advice_on(spec: Obj, clusters: Sequence[Obj], *, profile: Profile | None = None, **how: Any) -> Advice:
    request = Request(spec, peers=how.pop("peers", None))
    situation = Situation(request, Fleet.of(clusters), **how)
    judge = Judge([GeneralEstimator()], profile, seconds=float("inf"))
    advice = suggest(situation, judge)
    assert advice is not None
    for suggestion in advice.suggestions:
        then = suggestion.apply(situation)
        decision = schedule(then.request, Fleet.of(then.clusters()), [GeneralEstimator(), *then.answers], profile)
        assert fits(then, decision)
    return advice


def texts(spec: Obj, clusters: Sequence[Obj], **how: Any) -> list[str]:
    return [suggestion.text for suggestion in advice_on(spec, clusters, **how).suggestions]


def has(**left: str) -> Obj:
    """A resource summary with so much left."""
    return {"allocatable": {"pods": "100", **left}}


def test_what_fits_needs_no_advice() -> None:
    situation = Situation(Request(config_map({})), Fleet.of([cluster("m1")]))
    assert suggest(situation, Judge([])) is None


# filters


def test_a_taint_that_could_be_tolerated() -> None:
    clusters = [
        cluster("m1", taints=["maintenance=yes:NoSchedule"]),
        cluster("m2", taints=["maintenance=yes:NoSchedule"]),
    ]
    advice = advice_on(config_map({}), clusters)
    assert [one.text for one in advice.suggestions] == ["the taint maintenance=yes:NoSchedule were tolerated"]
    toleration = {"key": "maintenance", "operator": "Equal", "value": "yes", "effect": "NoSchedule"}
    assert advice.data["suggestions"] == [
        {
            "text": "fits if the taint maintenance=yes:NoSchedule were tolerated",
            "changes": [
                {
                    "sort": "toleration",
                    "object": {"kind": "policy"},
                    "field": "placement.clusterTolerations",
                    "add": toleration,
                }
            ],
        }
    ]


def test_all_taints_of_a_cluster_are_one_suggestion_and_those_that_keep_nothing_away_are_not_in_it() -> None:
    clusters = [cluster("m1", taints=["a:NoSchedule", "b:NoExecute", "c:PreferNoSchedule"])]
    assert texts(config_map({}), clusters) == [
        "the taint a:NoSchedule were tolerated and the taint b:NoExecute were tolerated"
    ]


def labels(key: str, operator: str, *values: str) -> Obj:
    return {"labelSelector": {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}}


def fields(key: str, operator: str, *values: str) -> Obj:
    return {"fieldSelector": {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}}


@cases(
    ({"clusterNames": ["other"]}, "clusterNames does not list it"),
    ({"exclude": ["m1"]}, "exclude lists it"),
    ({"labelSelector": {"matchLabels": {"tier": "gold"}}}, "label tier=gold is missing"),
    (labels("env", "NotIn", "dev"), "its label env=dev is refused"),
    (labels("env", "DoesNotExist"), "its label env=dev is refused"),
    (labels("x", "Exists"), "label x=true is missing"),
    (fields("region", "In", "us"), "its region eu is not listed by the fieldSelector"),
    (fields("region", "NotIn", "eu", "us"), "its region eu is refused by the fieldSelector"),
    (fields("zone", "In", "z1"), "it has no zone, such as z1"),
    (
        {"exclude": ["m1"], "labelSelector": {"matchLabels": {"tier": "gold"}}},
        "exclude lists it, label tier=gold is missing",
    ),
)
def test_an_affinity_that_could_admit_a_cluster(affinity: Obj, cause: str) -> None:
    one = cluster("m1", labels={"env": "dev"}, region="eu")
    assert texts(config_map({"clusterAffinity": affinity}), [one]) == [f"the affinity admitted m1 ({cause})"]


def test_the_affinity_of_a_group_is_named() -> None:
    terms = [{"affinityName": f"g{n}", "clusterNames": ["other"]} for n in (1, 2)]
    found = texts(config_map({"clusterAffinities": terms}), [cluster("m1")])
    assert found == ["the affinity g1 admitted m1 (clusterNames does not list it)"]


def test_an_api_that_could_be_enabled() -> None:
    assert texts(config_map({}), [cluster("m1", kinds=[])]) == ["the API v1 ConfigMap were enabled in m1"]


def test_a_property_that_is_missing_for_the_spread() -> None:
    where = placement(DUPLICATED, spread("region", 1, 2), spread("cluster", 1, 2))
    assert texts(config_map(where), [cluster("m1")]) == ["m1 had a region, such as another-region"]


def test_an_eviction_that_has_not_ended() -> None:
    spec = config_map({}, gracefulEvictionTasks=[{"fromCluster": "m1"}])
    assert texts(spec, [cluster("m1")]) == ["its eviction from m1 had ended"]


class Group:
    def __init__(self, *bindings: Obj) -> None:
        self._bindings = bindings

    def affinity(self, _group: str) -> Iterable[Obj]:
        return self._bindings

    anti_affinity = affinity


@cases(
    ("antiAffinityGroup", "other of its anti-affinity group left m1"),
    ("affinityGroup", "far of its affinity group were also in m1"),
)
def test_workloads_that_keep_it_away(which: str, text: str) -> None:
    groups = {which: "a=b"}
    others = Group(
        *(
            {
                "metadata": {"name": name, "namespace": "default"},
                "spec": {"workloadAffinityGroups": groups, "clusters": [{"name": where}]},
            }
            for name, where in (("other", "m1"), ("far", "m2"))
        )
    )
    profile = profile_of(builtin(workload_affinity=True), ["*"])
    spec = config_map({}, workloadAffinityGroups=groups)
    assert texts(spec, [cluster("m1")], profile=profile, peers=others) == [text]


# spread


def test_more_groups_or_fewer_replicas_when_the_selected_have_too_little() -> None:
    clusters = [cluster(f"m{n}", summary=pods(4)) for n in range(5)]
    found = texts(deployment(10, placement(DYNAMIC, spread("cluster", 1, 2))), clusters)
    assert found == [
        "maxGroups of the spread constraint by cluster were 3",
        "m0 had 2 more pods",
        "m1 had 2 more pods",
        "replicas were 8",
    ]


def test_fewer_groups_when_there_are_too_few() -> None:
    clusters = [cluster("m1", region="r1"), cluster("m2", region="r2"), cluster("m3", region="r2")]
    where = placement(DUPLICATED, spread("region", 4, 4), spread("cluster", 1, 9))
    assert texts(config_map(where), clusters) == ["minGroups of the spread constraint by region were 2"]


# amounts


@cases(
    ({"cpu": "3500m", "memory": "9Gi"}, "m1 had 1500m more cpu"),
    ({"cpu": "9", "memory": "4Gi"}, "m1 had 1Gi more memory"),
    ({"cpu": "3", "memory": "4Gi"}, "m1 had 2 more cpu and 1Gi more memory"),
    ({"cpu": "9", "memory": "9Gi", "pods": "2"}, "m1 had 3 more pods"),
    ({"cpu": "9"}, "m1 had 5Gi more memory"),
)
def test_the_resources_that_are_short(left: dict[str, str], text: str) -> None:
    requirements = {"resourceRequest": {"cpu": "1", "memory": "1Gi"}}
    spec = deployment(5, placement(DYNAMIC), replicaRequirements=requirements)
    assert texts(spec, [cluster("m1", summary=has(**left))])[0] == text


def test_resources_that_are_overdrawn_have_to_be_made_good_first() -> None:
    summary = {"allocatable": {"pods": "9", "cpu": "2"}, "allocated": {"cpu": "5"}}
    spec = deployment(1, placement(DYNAMIC), replicaRequirements=CPU_1)
    assert texts(spec, [cluster("m1", summary=summary)]) == ["m1 had 4 more cpu"]


def test_an_extended_resource_and_a_cluster_that_reports_nothing() -> None:
    spec = deployment(2, placement(DYNAMIC), replicaRequirements={"resourceRequest": {"example.com/gpu": "1"}})
    assert texts(spec, [cluster("m1", summary=has())])[0] == "m1 had 2 more example.com/gpu"
    assert texts(spec, [cluster("m1")])[0] == "m1 had 2 more example.com/gpu and 2 more pods"


def test_nodes_where_nodes_are_modelled() -> None:
    summary = {**has(cpu="100", memory="100Gi"), "allocatableModelings": [{"grade": 1, "count": 1}]}
    spec = deployment(6, placement(DYNAMIC), replicaRequirements={"resourceRequest": {"cpu": "1500m"}})
    found = texts(spec, [cluster("m1", summary=summary, models=MODELS)])
    assert found[0] == "m1 had 6 more free node(s) with at least cpu 2, memory 4Gi"
    assert found[-1] == "a replica requested 166m cpu"


def test_what_an_estimator_reported_is_taken_as_given() -> None:
    clusters = [cluster("m1", summary=has(cpu="50")), cluster("m2", summary=has(cpu="50"))]
    spec = deployment(10, placement(DYNAMIC), replicaRequirements=CPU_1)
    found = texts(spec, clusters, answers=[EstimatorResult("scheduler-estimator", {"m1": 3, "m2": 4})])
    assert found == [
        "m2 had capacity for 7 more replicas on its nodes (scheduler-estimator reports 4)",
        "m1 had capacity for 6 more replicas on its nodes (scheduler-estimator reports 3)",
        "replicas were 7",
    ]


def test_a_quota_in_a_member_that_an_estimator_counts_with() -> None:
    status = {"hard": {"requests.cpu": "5", "pods": "9"}, "used": {"requests.cpu": "2", "pods": "1"}}
    quota = {"metadata": {"name": "team", "namespace": "default"}, "status": status}
    requirements = {**CPU_1, "namespace": "default"}
    spec = deployment(5, placement(DYNAMIC), replicaRequirements=requirements)
    answers = [EstimatorResult("in-process-estimator", {"m1": 8}, quotas={"m1": [quota]})]
    advice = advice_on(spec, [cluster("m1", summary=has(cpu="50"))], answers=answers)
    assert [one.text for one in advice.suggestions] == [
        "the ResourceQuota team in m1 had 2 more requests.cpu",
        "replicas were 3",
    ]
    assert EstimatorResult.of(answers[0].data) == answers[0]


def test_a_quota_that_refuses_the_result() -> None:
    quota = {
        "metadata": {"name": "team", "namespace": "default"},
        "spec": {"overall": {"cpu": "10"}},
        "status": {"overallUsed": {"cpu": "7"}},
    }
    spec = deployment(5, placement(DYNAMIC), replicaRequirements=CPU_1)
    advice = advice_on(spec, [cluster("m1", summary=has(cpu="50"))], quotas=[quota])
    assert "FederatedResourceQuota(default/team) exceeded for resource cpu" in advice.quota
    assert [one.text for one in advice.suggestions] == [
        "the FederatedResourceQuota team had 2 more cpu",
        "replicas were 3",
        "a replica requested 600m cpu",
    ]


# into one cluster


@cases(
    (placement(DYNAMIC, spread("cluster", 1, 1)), "9", "maxGroups of the spread constraint by cluster were 2"),
    (placement(DYNAMIC, spread("cluster", 1, 1)), "9", "m2 had 2 more pods"),
    (placement(DYNAMIC, clusterAffinity={"exclude": ["m2"]}), "9", "the affinity admitted m2 (exclude lists it)"),
    (placement(DYNAMIC), "0", "m2 had 2 more pods"),
)
def test_what_would_make_it_go_to_a_cluster_that_it_does_not_go_to(where: Obj, left: str, text: str) -> None:
    clusters = [cluster("m1", summary=has(pods="10")), cluster("m2", summary=has(pods=left))]
    advice = advice_on(deployment(3, where), clusters, into="m2")
    assert text in [one.text for one in advice.suggestions]
    assert {"m1"}.isdisjoint(word for one in advice.suggestions for word in one.text.split())
    assert advice.data["suggestions"][0]["text"].startswith("goes to m2 if ")


def test_replicas_that_are_placed_stay_until_they_are_placed_anew() -> None:
    clusters = [cluster("m1", summary=pods(10)), cluster("m2", summary=pods(10))]
    spec = deployment(4, placement(DYNAMIC), previous={"m1": 4})
    assert texts(spec, clusters, into="m2") == ["all its replicas were placed anew (a WorkloadRebalancer does that)"]


def test_what_a_binding_is_charged_for_already_counts_as_it_was_charged() -> None:
    quota = {
        "metadata": {"name": "team", "namespace": "default"},
        "spec": {"overall": {"cpu": "10"}},
        "status": {"overallUsed": {"cpu": "10"}},
    }
    spec = deployment(10, placement(DYNAMIC), replicaRequirements=CPU_1, previous={"m1": 4})
    found = texts(spec, [cluster("m1", summary=has(cpu="50"))], quotas=[quota])
    assert found == [
        "the FederatedResourceQuota team had 6 more cpu",
        "replicas were 4",
        "a replica requested 400m cpu",
    ]


# several at once, none, and limits


def test_as_many_clusters_as_are_needed_are_admitted_at_once() -> None:
    where = placement(DUPLICATED, spread("cluster", 3, 9), clusterAffinity={"clusterNames": ["other"]})
    clusters = [cluster(f"m{n}", summary=pods(n)) for n in range(5)]
    causes = " (clusterNames does not list it)"
    assert texts(config_map(where), clusters)[0] == f"the affinity admitted m4{causes}, m3{causes} and m2{causes}"
    clusters = [cluster(f"m{n}", summary=pods(n), kinds=[]) for n in range(5)]
    where = placement(DYNAMIC)
    assert texts(deployment(6, where), clusters)[0] == "the API apps/v1 Deployment were enabled in m4 and m3"


def test_two_changes_where_one_is_not_enough() -> None:
    clusters = [cluster("m1", kinds=[], taints=["x:NoSchedule"])]
    advice = advice_on(config_map({}), clusters)
    assert advice.message == "no single change was found that would make it fit"
    assert [one.text for one in advice.suggestions] == [
        "the taint x:NoSchedule were tolerated and the API v1 ConfigMap were enabled in m1"
    ]


def test_that_nothing_helps_is_said() -> None:
    where = {"clusterAffinity": {"clusterNames": ["other"]}}
    clusters = [cluster("m1", kinds=[], taints=["x:NoSchedule"])]
    advice = advice_on(config_map(where), clusters)
    assert not advice.suggestions
    assert advice.message == "no change was found that would make it fit, nor two together"


def test_without_clusters_that_is_the_cause() -> None:
    assert advice_on(config_map({}), []).message == "no cluster is joined that it could go to"
    assert (
        advice_on(config_map({}), [cluster("m1", deleting=True)]).message == "no cluster is joined that it could go to"
    )


def test_a_search_that_ends_early_says_so_and_what_it_found_is_true() -> None:
    clusters = [cluster(f"m{n}", summary=pods(4)) for n in range(5)]
    spec = deployment(10, placement(DYNAMIC, spread("cluster", 1, 2)))
    situation = Situation(Request(spec), Fleet.of(clusters))
    advice = suggest(situation, Judge([GeneralEstimator()], trials=1, seconds=float("inf")))
    assert advice is not None
    assert not advice.complete
    assert [one.text for one in advice.suggestions] == ["maxGroups of the spread constraint by cluster were 3"]
    late = suggest(situation, Judge([GeneralEstimator()], seconds=-1.0))
    assert late is not None
    assert (late.complete, late.suggestions) == (False, [])
    assert late.message.startswith("in the time for it, no change was found")


def test_only_a_few_are_shown_and_of_every_sort_the_best() -> None:
    clusters = [
        *(cluster(f"t{n}", taints=[f"t{n}:NoSchedule"], summary=pods(9)) for n in range(3)),
        *(cluster(f"a{n}", kinds=[], summary=pods(9)) for n in range(3)),
        *(cluster(f"m{n}", summary=pods(4)) for n in range(3)),
    ]
    advice = advice_on(deployment(13, placement(DYNAMIC)), clusters)
    assert len(advice.suggestions) == 7
    assert len(advice.shown) == SHOWN
    assert [one.sorts[0].name for one in advice.shown] == [
        "TOLERATION", "TOLERATION", "API", "API", "RESOURCES", "REPLICAS",
    ]  # fmt: skip
