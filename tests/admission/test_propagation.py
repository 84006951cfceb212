from __future__ import annotations

from typing import Any

import pytest

from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.types import Obj
from tests.support.cases import cases
from tests.support.objects import kube_object

MUTATE, VALIDATE = "mutate-propagationpolicy", "validate-propagationpolicy"
LABEL = "propagationpolicy.karmada.io/permanent-id"
CLUSTER_LABEL = "clusterpropagationpolicy.karmada.io/permanent-id"
NGINX = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "nginx", "namespace": "default"}
QUALIFIED = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
DYNAMIC = {
    "replicaSchedulingType": "Divided",
    "replicaDivisionPreference": "Weighted",
    "weightPreference": {"dynamicWeight": "AvailableReplicas"},
}


def policy(**spec: Any) -> Obj:
    return kube_object("policy.karmada.io/v1alpha1", "PropagationPolicy", "web", "default", labels={LABEL: "id-0"}) | {
        "spec": {"resourceSelectors": [NGINX], "placement": {}, "schedulerName": "default-scheduler", **spec}
    }


def placed(**placement: Any) -> Obj:
    return policy(placement=placement)


def cluster_policy(**spec: Any) -> Obj:
    made = policy(**spec)
    made["kind"] = "ClusterPropagationPolicy"
    made["metadata"] = {"name": "web", "labels": {CLUSTER_LABEL: "id-0"}}
    return made


def application(**failover: Any) -> Obj:
    whole = {"decisionConditions": {"tolerationSeconds": 300}, "purgeMode": "Gracefully", "gracePeriodSeconds": 600}
    return policy(propagateDeps=True, failover={"application": {**whole, **failover}})


def selecting(key: str, operator: str) -> Obj:
    return {"fieldSelector": {"matchExpressions": [{"key": key, "operator": operator, "values": ["x"]}]}}


def shown_selector(key: str, operator: str) -> str:
    return f'{{"matchExpressions":[{{"key":"{key}","operator":"{operator}","values":["x"]}}]}}'


AT = "spec.placement"
RULES: list[tuple[str, Obj, str]] = [
    ("nothing", policy(), ""),
    (
        "both affinities",
        placed(clusterAffinity={}, clusterAffinities=[{"affinityName": "a"}]),
        f'{AT}: Invalid value: {{"clusterAffinity":{{}},"clusterAffinities":[{{"affinityName":"a"}}]}}: '
        "clusterAffinities cannot co-exist with clusterAffinity",
    ),
    (
        "field selector key",
        placed(clusterAffinity=selecting("cloud", "In")),
        f"{AT}.clusterAffinity.fieldSelector: Invalid value: {shown_selector('cloud', 'In')}: "
        'unsupported key "cloud", must be provider, region, or zone',
    ),
    (
        "field selector operator",
        placed(clusterAffinity=selecting("region", "Exists")),
        f"{AT}.clusterAffinity.fieldSelector: Invalid value: {shown_selector('region', 'Exists')}: "
        'unsupported operator "Exists", must be In or NotIn',
    ),
    (
        "affinity name",
        placed(clusterAffinities=[{"affinityName": "-a"}]),
        f'{AT}.clusterAffinities[0]: Invalid value: "-a": {QUALIFIED}',
    ),
    (
        "affinity name twice",
        placed(clusterAffinities=[{"affinityName": "a"}, {"affinityName": "a"}]),
        f'{AT}.clusterAffinities: Invalid value: [{{"affinityName":"a"}},{{"affinityName":"a"}}]: '
        "each affinity term in a policy must have a unique name",
    ),
    (
        "field selector of a term",
        placed(clusterAffinities=[{"affinityName": "a", **selecting("cloud", "In")}]),
        f"{AT}.clusterAffinities[0].fieldSelector: Invalid value: {shown_selector('cloud', 'In')}: "
        'unsupported key "cloud", must be provider, region, or zone',
    ),
    (
        "overflow without division",
        placed(
            clusterAffinities=[
                {"affinityName": "a", "clusterNames": ["m1"], "overflowAffinities": [{"affinityName": "b"}]}
            ]
        ),
        f'{AT}.clusterAffinities[0].overflowAffinities: Invalid value: [{{"affinityName":"b"}}]: '
        "overflowAffinities can only be used together with dynamic weight or aggregated scheduling",
    ),
    (
        "overflow alone",
        placed(
            clusterAffinities=[{"affinityName": "a", "overflowAffinities": [{"affinityName": "b"}]}],
            replicaScheduling=DYNAMIC,
        ),
        f'{AT}.clusterAffinities[0].overflowAffinities: Invalid value: [{{"affinityName":"b"}}]: '
        "overflowAffinities can only be used together with the inline ClusterAffinity",
    ),
    (
        "overflow name",
        placed(
            clusterAffinities=[
                {"affinityName": "a", "clusterNames": ["m1"], "overflowAffinities": [{"affinityName": "a"}]}
            ],
            replicaScheduling=DYNAMIC,
        ),
        f'{AT}.clusterAffinities[0].overflowAffinities[0].affinityName: Invalid value: "a": '
        "overflow affinity name must be unique and must not duplicate the primary group's affinityName",
    ),
    (
        "overflow field selector",
        placed(
            clusterAffinities=[
                {
                    "affinityName": "a",
                    "labelSelector": {},
                    "overflowAffinities": [{"affinityName": "b", **selecting("cloud", "In")}],
                }
            ],
            replicaScheduling={"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"},
        ),
        f"{AT}.clusterAffinities[0].overflowAffinities[0].fieldSelector: Invalid value: "
        f'{shown_selector("cloud", "In")}: unsupported key "cloud", must be provider, region, or zone',
    ),
    (
        "spread by two",
        placed(spreadConstraints=[{"spreadByField": "cluster", "spreadByLabel": "zone"}]),
        f'{AT}.spreadConstraints[0]: Invalid value: {{"spreadByField":"cluster","spreadByLabel":"zone"}}: '
        "spreadByLabel should not co-exist with spreadByField",
    ),
    (
        "negative groups",
        placed(spreadConstraints=[{"spreadByField": "cluster", "minGroups": -2, "maxGroups": -1}]),
        f'[{AT}.spreadConstraints[0]: Invalid value: {{"spreadByField":"cluster","minGroups":-2,"maxGroups":-1}}: '
        f"minGroups lower than 0 is not allowed, {AT}.spreadConstraints[0]: Invalid value: "
        '{"spreadByField":"cluster","minGroups":-2,"maxGroups":-1}: maxGroups lower than 0 is not allowed]',
    ),
    (
        "max below min",
        placed(spreadConstraints=[{"spreadByField": "cluster", "minGroups": 2, "maxGroups": 1}]),
        f'{AT}.spreadConstraints[0]: Invalid value: {{"spreadByField":"cluster","minGroups":2,"maxGroups":1}}: '
        "maxGroups lower than minGroups is not allowed",
    ),
    (
        "same field three times",
        placed(spreadConstraints=[{"spreadByField": "cluster"}] * 3),
        f'{AT}.spreadConstraints: Invalid value: [{{"spreadByField":"cluster"}},{{"spreadByField":"cluster"}},'
        '{"spreadByField":"cluster"}]: multiple cluster spread constraints are not allowed',
    ),
    ("no cluster spread, as older documents have it", placed(spreadConstraints=[{"spreadByField": "region"}]), ""),
    ("spread by a label alone", placed(spreadConstraints=[{"spreadByLabel": "rack"}]), ""),
    (
        "workload affinity key",
        placed(workloadAffinity={"affinity": {"groupByLabelKey": "-a"}}),
        f'{AT}.workloadAffinity.affinity.groupByLabelKey: Invalid value: "-a": {QUALIFIED}',
    ),
    (
        "workload anti-affinity key",
        placed(workloadAffinity={"antiAffinity": {"groupByLabelKey": "-a"}}),
        f'{AT}.workloadAffinity.antiAffinity.groupByLabelKey: Invalid value: "-a": {QUALIFIED}',
    ),
    (
        "with and away from the same",
        placed(workloadAffinity={"affinity": {"groupByLabelKey": "a"}, "antiAffinity": {"groupByLabelKey": "a"}}),
        f'{AT}.workloadAffinity: Invalid value: {{"affinity":{{"groupByLabelKey":"a"}},"antiAffinity":'
        '{"groupByLabelKey":"a"}}: affinity and antiAffinity must not use the same groupByLabelKey',
    ),
    (
        "toleration operator",
        placed(clusterTolerations=[{"key": "a", "operator": "Exists"}, {"key": "a", "operator": "Gt", "value": "1"}]),
        f'{AT}.clusterTolerations[1].operator: Unsupported value: "Gt": supported values: "", "Exists", "Equal"',
    ),
    (
        "failover without dependencies",
        policy(failover=application()["spec"]["failover"]),
        "spec.propagateDeps: Invalid value: false: application failover is set, propagateDeps must be true",
    ),
    (
        "negative toleration",
        application(decisionConditions={"tolerationSeconds": -1}),
        "spec.failover.application.decisionConditions.tolerationSeconds: Invalid value: -1: "
        "must be greater than or equal to 0",
    ),
    (
        "grace without gracefully",
        application(purgeMode="Directly"),
        "spec.failover.application.gracePeriodSeconds: Invalid value: 600: "
        "only takes effect when purgeMode is gracefully",
    ),
    (
        "gracefully without grace",
        application(gracePeriodSeconds=None),
        "spec.failover.application.gracePeriodSeconds: Invalid value: null: "
        "should not be empty when purgeMode is gracefully",
    ),
    (
        "no grace at all",
        application(gracePeriodSeconds=0),
        "spec.failover.application.gracePeriodSeconds: Invalid value: 0: must be greater than 0",
    ),
    ("older name of gracefully", application(purgeMode="Graciously"), ""),
    (
        "state of an application",
        application(statePreservation={"rules": [{"aliasLabelName": "-a", "jsonPath": "{.x}"}]}),
        f'spec.failover.application.statePreservation.rules[0].aliasLabelName: Invalid value: "-a": {QUALIFIED}',
    ),
    (
        "state of a cluster",
        policy(failover={"cluster": {"statePreservation": {"rules": [{"aliasLabelName": "-a", "jsonPath": ""}]}}}),
        f'spec.failover.cluster.statePreservation.rules[0].aliasLabelName: Invalid value: "-a": {QUALIFIED}',
    ),
    (
        "another namespace",
        policy(resourceSelectors=[NGINX, {**NGINX, "namespace": "other"}]),
        'spec.resourceSelectors[1].namespace: Invalid value: "other": '
        "namespace of resource selector must be the same as the namespace of the policy",
    ),
    (
        "preemption without a name",
        policy(preemption="Always", resourceSelectors=[{**NGINX, "name": ""}]),
        'spec.resourceSelectors[0].name: Invalid value: "": name cannot be empty if preemption is Always, '
        "the empty name may cause unexpected resources preemption",
    ),
    (
        "suspended twice",
        policy(suspension={"dispatching": True, "dispatchingOnClusters": {"clusterNames": ["m1"]}}),
        'spec.suspension.suspension: Invalid value: {"dispatching":true,"dispatchingOnClusters":{"clusterNames":'
        '["m1"]}}: suspension dispatching cannot co-exist with dispatchingOnClusters.clusterNames',
    ),
]


@pytest.mark.parametrize(("obj", "text"), [rule[1:] for rule in RULES], ids=[rule[0] for rule in RULES])
async def test_a_policy_is_refused_for(obj: Obj, text: str, refused: Any) -> None:
    assert await refused(VALIDATE, obj) == text


async def test_a_placement_is_small_enough_to_be_written_into_bindings_or_as_small_as_it_was(refused: Any) -> None:
    def naming(clusters: int) -> Obj:
        return placed(clusterAffinity={"clusterNames": [f"cluster-{number:05}" for number in range(clusters)]})

    large = "spec.placement: Too long: may not be more than 65536 bytes"
    assert await refused(VALIDATE, naming(4_000)) == ""
    assert await refused(VALIDATE, naming(5_000)) == large
    assert await refused(VALIDATE, naming(5_001), naming(5_000)) == large
    assert await refused(VALIDATE, naming(4_999), naming(5_000)) == ""


async def test_a_cluster_wide_policy_selects_in_any_namespace(refused: Any) -> None:
    elsewhere = cluster_policy(resourceSelectors=[{**NGINX, "namespace": "other"}])
    assert await refused("validate-clusterpropagationpolicy", elsewhere) == ""


async def test_what_cannot_change_is_refused_before_anything_else(refused: Any) -> None:
    old, wrong = policy(), placed(clusterAffinity=selecting("cloud", "In"))
    other = copy_json(wrong)
    other["spec"]["schedulerName"] = "mine"
    other["metadata"]["labels"] = {LABEL: "id-1"}
    assert await refused(VALIDATE, other, old) == "the schedulerName should not be updated"
    other["spec"]["schedulerName"] = "default-scheduler"
    assert (
        await refused(VALIDATE, other, old)
        == f"label {LABEL} is immutable, it can only be set by the system during creation"
    )
    del other["metadata"]["labels"]
    assert "is immutable" in await refused(VALIDATE, other, old)
    assert (
        await refused(VALIDATE, other)
        == f"label {LABEL} is required, it should be set by the mutating admission webhook during creation"
    )


async def test_a_cluster_wide_policy_has_a_label_of_its_own(refused: Any) -> None:
    obj = cluster_policy()
    obj["metadata"]["labels"] = {LABEL: "id-0"}
    assert await refused("validate-clusterpropagationpolicy", obj) == (
        f"label {CLUSTER_LABEL} is required, it should be set by the mutating admission webhook during creation"
    )


# defaults


@cases(
    ({}, {"placement": {}}),
    ({"placement": {"spreadConstraints": [{}]}}, {"placement": {"spreadConstraints": [
        {"spreadByField": "cluster", "minGroups": 1}]}}),
    ({"placement": {"spreadConstraints": [{"spreadByLabel": "a", "maxGroups": 0}]}},
     {"placement": {"spreadConstraints": [{"spreadByLabel": "a", "minGroups": 1}]}}),
    ({"placement": {"replicaScheduling": {"replicaSchedulingType": "Divided"}}},
     {"placement": {"replicaScheduling": {"replicaSchedulingType": "Divided",
                                          "replicaDivisionPreference": "Weighted"}}}),
    ({"placement": {"replicaScheduling": {"replicaSchedulingType": "Duplicated"}}},
     {"placement": {"replicaScheduling": {"replicaSchedulingType": "Duplicated"}}}),
    ({"failover": {"application": {"purgeMode": "Gracefully"}}},
     {"failover": {"application": {"purgeMode": "Gracefully", "gracePeriodSeconds": 600}}, "placement": {}}),
    ({"failover": {"application": {"purgeMode": "Never"}}},
     {"failover": {"application": {"purgeMode": "Never"}}, "placement": {}}),
    ({"association": False, "propagateDeps": False, "dependentOverrides": [], "activationPreference": "",
      "preserveResourcesOnDeletion": False, "priority": 0},
     {"preserveResourcesOnDeletion": False, "priority": 0, "placement": {}}),
    ({"placement": {"clusterAffinity": {"clusterNames": [], "labelSelector": {"matchLabels": {}}},
                    "clusterAffinities": []}},
     {"placement": {"clusterAffinity": {"labelSelector": {}}}}),
)  # fmt: skip
def test_a_policy_is_filled_in(given: Obj, stored: Obj, completed: Any) -> None:
    obj = policy()
    obj["spec"] = {"resourceSelectors": [NGINX], **given}
    assert completed(MUTATE, obj)["spec"] == {"resourceSelectors": [NGINX], **stored}


def test_selectors_get_the_namespace_of_the_request(completed: Any) -> None:
    obj = policy(resourceSelectors=[{"apiVersion": "v1", "kind": "ConfigMap"}, {**NGINX, "namespace": "other"}])
    namespaces = [selector["namespace"] for selector in completed(MUTATE, obj)["spec"]["resourceSelectors"]]
    assert namespaces == ["default", "other"]


def test_selectors_of_a_cluster_wide_policy_stay_without_one(completed: Any) -> None:
    obj = cluster_policy(resourceSelectors=[{"apiVersion": "v1", "kind": "Namespace"}])
    selectors = completed("mutate-clusterpropagationpolicy", obj)["spec"]["resourceSelectors"]
    assert selectors == [{"apiVersion": "v1", "kind": "Namespace"}]


def test_imported_services_take_their_dependencies_along(completed: Any) -> None:
    imported = {"apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ServiceImport", "namespace": "default"}
    assert completed(MUTATE, policy(resourceSelectors=[imported]))["spec"]["propagateDeps"] is True
    other = {**imported, "apiVersion": "multicluster.x-k8s.io/v1beta1"}
    assert "propagateDeps" not in completed(MUTATE, policy(resourceSelectors=[other]))["spec"]


def test_a_new_policy_gets_a_permanent_id_whatever_it_brought_along(completed: Any) -> None:
    meta = completed(MUTATE, policy())["metadata"]
    assert meta["labels"] == {LABEL: "id-1"}
    assert meta["finalizers"] == ["karmada.io/propagation-policy-controller"]
    meta = completed("mutate-clusterpropagationpolicy", cluster_policy())["metadata"]
    assert meta["labels"] == {CLUSTER_LABEL: "id-1"}
    assert meta["finalizers"] == ["karmada.io/cluster-propagation-policy-controller"]


def test_an_update_keeps_id_and_finalizers(completed: Any) -> None:
    assert completed(MUTATE, policy(), policy())["metadata"] == policy()["metadata"]


def test_no_tolerations_are_added(completed: Any) -> None:
    assert "clusterTolerations" not in completed(MUTATE, policy())["spec"]["placement"]


def test_completing_twice_changes_nothing_more(completed: Any) -> None:
    once = completed(MUTATE, application(), policy())
    assert completed(MUTATE, once, once) == once
