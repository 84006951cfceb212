"""What a binding says, and what of it stays when it is written again."""

from __future__ import annotations

from typing import Any

import pytest

from karmada.controllers.detector.bindings import (
    OtherOwner,
    WantedBinding,
    affinity_groups,
    policy_fields,
    suspended,
)
from karmada.controllers.detector.claims import CLUSTER_POLICIES, POLICIES, PolicyKind
from karmada.kube.objects.types import Obj
from tests.support.cases import cases
from tests.support.propagation import cluster_policy, cluster_role, config_map, placed, policy

DISPATCHING = {"dispatching": True}


@cases(
    (None, None, None),
    (None, DISPATCHING, None),
    (None, {**DISPATCHING, "scheduling": True}, {"scheduling": True}),
    (DISPATCHING, None, DISPATCHING),
    (DISPATCHING, {"dispatchingOnClusters": {"clusterNames": ["m1"]}}, DISPATCHING),
    (DISPATCHING, {"scheduling": False}, {**DISPATCHING, "scheduling": False}),
    ({}, {"scheduling": True}, {"scheduling": True}),
)
def test_a_policy_suspends_dispatching_and_leaves_scheduling_alone(
    by_policy: Obj | None, current: Obj | None, merged: Obj | None
) -> None:
    assert suspended(by_policy, current) == merged


def test_everything_of_a_policy_goes_into_the_binding() -> None:
    failover = {"cluster": {"purgeMode": "Directly"}}
    found = policy_fields(
        policy(
            propagateDeps=True,
            schedulerName="mine",
            conflictResolution="Overwrite",
            failover=failover,
            preserveResourcesOnDeletion=False,
            suspension=DISPATCHING,
        )
    )
    assert found == {
        "propagateDeps": True,
        "schedulerName": "mine",
        "placement": placed("m1"),
        "conflictResolution": "Overwrite",
        "failover": failover,
        "preserveResourcesOnDeletion": False,
        "suspension": DISPATCHING,
    }


def test_a_policy_that_says_little_gets_the_defaults() -> None:
    assert policy_fields({"spec": {}}) == {
        "schedulerName": "default-scheduler",
        "placement": {},
        "conflictResolution": "Abort",
    }


@cases(
    (None, None),
    ({"affinity": {"groupByLabelKey": "app"}}, {"affinityGroup": "app=a"}),
    ({"antiAffinity": {"groupByLabelKey": "tier"}}, {"antiAffinityGroup": "tier="}),
    (
        {"affinity": {"groupByLabelKey": "app"}, "antiAffinity": {"groupByLabelKey": "no"}},
        {"affinityGroup": "app=a"},
    ),
    ({"affinity": {"groupByLabelKey": "no"}}, None),
)
def test_groups_come_from_the_templates_labels(affinity: Obj | None, groups: Obj | None) -> None:
    pp = policy(placement={"workloadAffinity": affinity} if affinity else {})
    assert affinity_groups(pp, config_map(labels={"app": "a", "tier": ""})) == groups


def wanted(template: Obj, kind: PolicyKind, by: Obj, **spec: Any) -> WantedBinding:
    by = {**by, "metadata": {**by["metadata"], "labels": {kind.id_label: "id"}}}
    template = {**template, "metadata": {**template["metadata"], "uid": "u1"}}
    return WantedBinding(template, kind, by, {"resource": {"name": "x"}, **spec})


def test_others_fields_stay() -> None:
    theirs = {
        "clusters": [{"name": "m1"}],
        "requiredBy": [{"name": "x"}],
        "gracefulEvictionTasks": [{"fromCluster": "m2"}],
        "rescheduleTriggeredAt": "2024-01-01T00:00:00Z",
    }
    current = {
        "metadata": {
            "name": "a",
            "finalizers": ["theirs"],
            "labels": {"their": "label", CLUSTER_POLICIES.id_label: "c"},
            "annotations": {"their": "note", CLUSTER_POLICIES.name_annotation: "c"},
        },
        "spec": {**theirs, "replicas": 3, "replicaRequirements": {}, "schedulePriority": {"priority": 1}},
        "status": {"conditions": []},
    }
    found = wanted(config_map("a"), POLICIES, policy(), replicas=5).over(current)
    assert found["spec"] == {**theirs, "resource": {"name": "x"}, "replicas": 5}
    assert found["metadata"] == {
        "name": "a",
        "finalizers": ["theirs", "karmada.io/binding-controller"],
        "labels": {"their": "label", POLICIES.id_label: "id"},
        "annotations": {"their": "note", POLICIES.namespace_annotation: "default", POLICIES.name_annotation: "pp"},
        "ownerReferences": [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "name": "a",
                "uid": "u1",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }
    assert found["status"] == {"conditions": []}


def test_a_cluster_wide_binding_keeps_what_it_was_made_with() -> None:
    extra = {
        "propagateDeps": True,
        "schedulePriority": {"priority": 1},
        "workloadAffinityGroups": {"affinityGroup": "a"},
    }
    made = wanted(cluster_role("a"), CLUSTER_POLICIES, cluster_policy(), **extra).fresh()
    assert made["spec"] == {"resource": {"name": "x"}, "propagateDeps": True}
    assert made["metadata"]["finalizers"] == ["karmada.io/cluster-resource-binding-controller"]
    again = wanted(cluster_role("a"), CLUSTER_POLICIES, cluster_policy(), schedulerName="s").over(made)
    assert again["spec"] == {"resource": {"name": "x"}, "propagateDeps": True, "schedulerName": "s"}


def test_the_binding_of_an_earlier_template_is_not_touched() -> None:
    current = {"metadata": {"name": "a", "ownerReferences": [{"uid": "u0", "controller": True}]}, "spec": {}}
    with pytest.raises(OtherOwner) as caught:
        wanted(config_map("a"), POLICIES, policy()).over(current)
    assert caught.value.message == (
        "failed to update binding due to different owner reference UID, will try again later after binding is "
        "garbage collected, see https://github.com/karmada-io/karmada/issues/2090"
    )
