"""Deployments, ReplicaSets, StatefulSets, DaemonSets, ReplicationControllers: defaults, rules, updates, scale."""

from __future__ import annotations

from typing import Any

import pytest

from karmada.kube.kinds import workloads as w
from karmada.kube.kinds.resource import Strategy
from karmada.kube.objects.copying import copy_json
from tests.kube.kinds.texts import texts
from tests.support.cases import cases

ALL = [w.DEPLOYMENT, w.REPLICASET, w.STATEFULSET, w.DAEMONSET]


def workload(kind: Strategy = w.DEPLOYMENT, /, **spec: Any) -> dict[str, Any]:
    found = {
        "metadata": {"name": "web", "namespace": "ns", "uid": "u"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": "nginx:1"}]},
            },
            **spec,
        },
    }
    kind.default(found)
    return found


@pytest.mark.parametrize("strategy", ALL)
def test_a_plain_workload_is_valid_and_its_defaults_are_stable(strategy: Strategy) -> None:
    found = workload(strategy)
    assert strategy.validate(found) == []
    again = copy_json(found)
    strategy.default(again)
    assert again == found


def test_deployment_defaults() -> None:
    spec = workload()["spec"]
    assert spec["replicas"] == 1
    assert spec["strategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}}
    assert (spec["revisionHistoryLimit"], spec["progressDeadlineSeconds"]) == (10, 600)
    assert workload(strategy={"type": "Recreate"})["spec"]["strategy"] == {"type": "Recreate"}


def test_statefulset_defaults() -> None:
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    spec = workload(w.STATEFULSET, volumeClaimTemplates=[claim])["spec"]
    assert spec["podManagementPolicy"] == "OrderedReady"
    assert spec["updateStrategy"] == {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
    assert spec["persistentVolumeClaimRetentionPolicy"] == {"whenDeleted": "Retain", "whenScaled": "Retain"}
    assert spec["volumeClaimTemplates"][0]["status"] == {"phase": "Pending"}
    assert spec["volumeClaimTemplates"][0]["spec"]["volumeMode"] == "Filesystem"


def test_daemonset_defaults() -> None:
    spec = workload(w.DAEMONSET)["spec"]
    assert spec["updateStrategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}
    assert spec["revisionHistoryLimit"] == 10
    assert "replicas" not in spec


def test_a_replication_controller_takes_selector_and_labels_from_its_template() -> None:
    template = workload()["spec"]["template"]
    found = {"metadata": {"name": "rc"}, "spec": {"template": template}}
    w.REPLICATION_CONTROLLER.default(found)
    assert found["spec"]["selector"] == {"app": "web"}
    assert found["metadata"]["labels"] == {"app": "web"}
    assert w.REPLICATION_CONTROLLER.validate(found) == []


@pytest.mark.parametrize("strategy", ALL)
@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ({"selector": None}, "spec.selector: Required value"),
        (
            {"selector": {"matchLabels": {"app": "other"}}},
            'spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not match template `labels`',
        ),
        (
            {"selector": {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}},
            'spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not match template `labels`',
        ),
    ],
)
def test_the_selector_must_select_the_template(strategy: Strategy, spec: dict[str, Any], wanted: str) -> None:
    assert wanted in texts(strategy.validate(workload(strategy, **spec)))


@pytest.mark.parametrize("strategy", ALL)
def test_pods_of_a_workload_always_restart(strategy: Strategy) -> None:
    found = workload(strategy)
    found["spec"]["template"]["spec"]["restartPolicy"] = "Never"
    wanted = 'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"'
    assert texts(strategy.validate(found)) == [wanted]


@cases(w.DEPLOYMENT, w.REPLICASET, w.STATEFULSET)
def test_replicas_are_not_negative(strategy: Strategy) -> None:
    wanted = "spec.replicas: Invalid value: -1: must be greater than or equal to 0"
    assert texts(strategy.validate(workload(strategy, replicas=-1))) == [wanted]


@cases(
    (
        {"strategy": {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 0}}},
        "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0",
    ),
    (
        {"strategy": {"rollingUpdate": {"maxUnavailable": "101%"}}},
        'spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "101%": must not be greater than 100%',
    ),
    (
        {"strategy": {"rollingUpdate": {"maxUnavailable": "many"}}},
        'spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "many": a valid percent string must be',
    ),
    (
        {"strategy": {"type": "Recreate", "rollingUpdate": {}}},
        "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'",
    ),
    (
        {"progressDeadlineSeconds": 5, "minReadySeconds": 5},
        "spec.progressDeadlineSeconds: Invalid value: 5: must be greater than minReadySeconds",
    ),
)
def test_deployment_rules(spec: dict[str, Any], wanted: str) -> None:
    assert any(wanted in text for text in texts(w.DEPLOYMENT.validate(workload(**spec))))


def test_claims_of_a_statefulset_can_be_mounted() -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = {"metadata": {"name": "data"}, "spec": spec}
    found = workload(w.STATEFULSET, volumeClaimTemplates=[claim])
    found["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/d"}]
    assert w.STATEFULSET.validate(found) == []


@cases(w.DEPLOYMENT, w.REPLICASET, w.DAEMONSET)
def test_the_selector_is_immutable(strategy: Strategy) -> None:
    old = workload(strategy)
    new = copy_json(old)
    new["spec"]["selector"]["matchLabels"] = {"app": "x"}
    wanted = 'spec.selector: Invalid value: {"matchLabels":{"app":"x"}}: field is immutable'
    assert texts(strategy.validate_update(new, old)) == [wanted]
    assert strategy.validate_update(old, old) == []


def test_most_of_a_statefulset_is_fixed() -> None:
    old = workload(w.STATEFULSET)
    assert w.STATEFULSET.validate_update(workload(w.STATEFULSET, replicas=5, minReadySeconds=3), old) == []
    [error] = w.STATEFULSET.validate_update(workload(w.STATEFULSET, serviceName="other"), old)
    assert str(error) == f"spec: Forbidden: {w.STATEFULSET_FORBIDDEN}"


_OVER = "cannot be greater than status.replicas"


@cases(
    (w.DEPLOYMENT, {"replicas": 2, "readyReplicas": 2, "availableReplicas": 1}, []),
    (w.DEPLOYMENT, {"replicas": 1, "updatedReplicas": 2, "availableReplicas": 1, "readyReplicas": 1}, [
        f"status.updatedReplicas: Invalid value: 2: {_OVER}"]),
    (w.DEPLOYMENT, {"replicas": 3, "availableReplicas": 2, "readyReplicas": 1}, [
        "status.availableReplicas: Invalid value: 2: cannot be greater than readyReplicas"]),
    (w.DEPLOYMENT, {"replicas": -1}, [
        "status.replicas: Invalid value: -1: must be greater than or equal to 0",
        f"status.updatedReplicas: Invalid value: 0: {_OVER}",
        f"status.readyReplicas: Invalid value: 0: {_OVER}",
        f"status.availableReplicas: Invalid value: 0: {_OVER}"]),
    (w.REPLICASET, {"replicas": 0, "fullyLabeledReplicas": 1}, [
        f"status.fullyLabeledReplicas: Invalid value: 1: {_OVER}"]),
    (w.STATEFULSET, {"replicas": 1, "currentReplicas": 2, "availableReplicas": 1}, [
        f"status.currentReplicas: Invalid value: 2: {_OVER}",
        "status.availableReplicas: Invalid value: 1: cannot be greater than status.readyReplicas"]),
    (w.DAEMONSET, {"numberReady": -1, "desiredNumberScheduled": 0}, [
        "status.numberReady: Invalid value: -1: must be greater than or equal to 0"]),
    (w.REPLICATION_CONTROLLER, {"replicas": 0, "readyReplicas": 1}, [
        f"status.readyReplicas: Invalid value: 1: {_OVER}"]),
)  # fmt: skip
def test_status_rules(strategy: Strategy, status: dict[str, Any], wanted: list[str]) -> None:
    assert texts(strategy.validate_status({"status": status}, {})) == wanted


@cases(w.DEPLOYMENT, w.STATEFULSET, w.DAEMONSET)
def test_collisions_are_only_counted_up(strategy: Strategy) -> None:
    [error] = strategy.validate_status({"status": {"replicas": 0}}, {"status": {"collisionCount": 2}})
    assert str(error) == "status.collisionCount: Invalid value: 0: cannot be decremented"


def test_a_deployments_generation_follows_spec_and_annotations() -> None:
    old, generation = workload(), w.DEPLOYMENT.generation
    assert generation is not None
    annotated = copy_json(old)
    annotated["metadata"]["annotations"] = {"a": "b"}
    labelled = copy_json(old)
    labelled["metadata"]["labels"] = {"a": "b"}
    assert generation(annotated) != generation(old)
    assert generation(labelled) == generation(old)
    assert generation(workload(replicas=9)) != generation(old)


def test_a_daemonset_counts_changes_of_its_template() -> None:
    found = workload(w.DAEMONSET)
    w.DAEMONSET.prepare_create(found)
    assert found["metadata"]["annotations"] == {w.TEMPLATE_GENERATION: "1"}
    assert found["status"]["desiredNumberScheduled"] == 0
    new = copy_json(found)
    new["metadata"].pop("annotations")
    new["spec"]["template"]["spec"]["containers"][0]["image"] = "nginx:2"
    w.DAEMONSET.prepare_update(new, found)
    assert new["metadata"]["annotations"][w.TEMPLATE_GENERATION] == "2"
    same = copy_json(found)
    w.DAEMONSET.prepare_update(same, found)
    assert same == found


def test_status_counters_make_sense() -> None:
    old = {"metadata": {}, "status": {"collisionCount": 2}}
    new = {"metadata": {}, "status": {"replicas": 1, "readyReplicas": 2, "collisionCount": 1, "updatedReplicas": -1}}
    assert texts(w.DEPLOYMENT.validate_status(new, old)) == [
        "status.updatedReplicas: Invalid value: -1: must be greater than or equal to 0",
        "status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas",
        "status.collisionCount: Invalid value: 1: cannot be decremented",
    ]


def test_a_workload_as_a_scale() -> None:
    found = workload(
        replicas=3,
        selector={
            "matchLabels": {"app": "web"},
            "matchExpressions": [{"key": "tier", "operator": "In", "values": ["b", "a"]}],
        },
    )
    found["metadata"]["resourceVersion"] = "5"
    found["status"] = {"replicas": 2}
    scale = w.DEPLOYMENT.scale
    assert scale is not None
    assert scale.get(found) == {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {"name": "web", "namespace": "ns", "uid": "u", "resourceVersion": "5"},
        "spec": {"replicas": 3},
        "status": {"replicas": 2, "selector": "app=web,tier in (a,b)"},
    }
    scale.set(found, 7)
    assert found["spec"]["replicas"] == 7


def test_a_replication_controllers_selector_is_a_map() -> None:
    scale = w.REPLICATION_CONTROLLER.scale
    assert scale is not None
    found = {"metadata": {"name": "rc"}, "spec": {"selector": {"b": "2", "a": "1"}}}
    assert scale.get(found)["status"]["selector"] == "a=1,b=2"


def test_a_pod_spec_is_judged_again_when_it_was_changed() -> None:
    found = workload()
    for _ in range(2):
        assert w.DEPLOYMENT.validate(found) == []
    spec = found["spec"]["template"]["spec"]
    spec["containers"][0]["name"] = "Not A Name"
    for _ in range(2):
        [error] = texts(w.DEPLOYMENT.validate(found))
        assert "spec.template.spec.containers[0].name" in error
