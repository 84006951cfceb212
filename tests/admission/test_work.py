from __future__ import annotations

from typing import Any

import pytest

from karmada.admission.context import Refusal
from karmada.kube.objects.types import Obj
from tests.support.cases import cases
from tests.support.objects import kube_object

ID = "work.karmada.io/permanent-id"
MANAGED = "resourcetemplate.karmada.io/managed-annotations"
MANAGED_LABELS = "resourcetemplate.karmada.io/managed-labels"
BOTH = f"{MANAGED},{MANAGED_LABELS}"


def work(*manifests: Any) -> Obj:
    return kube_object("work.karmada.io/v1alpha1", "Work", "w", "karmada-es-m1", labels={ID: "w-1"}) | {
        "spec": {"workload": {"manifests": list(manifests)}}
    }


def manifest(kind: str, meta: Obj | None = None, **more: Any) -> Obj:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": "x", **(meta or {})}, **more}


@pytest.fixture
def sent(completed: Any) -> Any:
    """The manifest as it is sent, without what is recorded in every one."""

    def run(obj: Obj) -> Obj:
        [made] = completed("mutate-work", work(obj))["spec"]["workload"]["manifests"]
        for key in (MANAGED, MANAGED_LABELS):
            del made["metadata"]["annotations"][key]
        del made["metadata"]["labels"][ID]
        for part in ("annotations", "labels"):
            if not made["metadata"][part]:
                del made["metadata"][part]
        return made

    return run


def test_a_work_gets_a_permanent_id_that_its_manifests_carry(completed: Any) -> None:
    obj = work(manifest("ConfigMap"))
    obj["metadata"].pop("labels")
    made = completed("mutate-work", obj)
    assert made["metadata"]["labels"] == {ID: "id-1"}
    assert made["spec"]["workload"]["manifests"][0]["metadata"]["labels"] == {ID: "id-1"}


def test_what_a_manifest_has_is_written_down(completed: Any) -> None:
    obj = work(manifest("ConfigMap", {"annotations": {"z": "1", "a": "2"}, "labels": {"z": "1"}}))
    [made] = completed("mutate-work", obj)["spec"]["workload"]["manifests"]
    assert made["metadata"]["annotations"] == {
        "z": "1",
        "a": "2",
        MANAGED: f"a,{BOTH},z",
        MANAGED_LABELS: f"{ID},z",
    }
    assert made["metadata"]["labels"] == {"z": "1", ID: "w-1"}


def test_doing_it_again_changes_nothing(completed: Any) -> None:
    once = completed("mutate-work", work(manifest("Service", spec={"clusterIP": "10.0.0.1"})))
    assert completed("mutate-work", once, once) == once


def test_a_work_without_manifests_gets_an_empty_workload(completed: Any) -> None:
    obj = work()
    obj["spec"] = {}
    assert completed("mutate-work", obj)["spec"] == {"workload": {}}


@cases(
    (
        manifest("ConfigMap", {"creationTimestamp": "t", "deletionTimestamp": "t", "deletionGracePeriodSeconds": 1,
                               "generation": 1, "managedFields": [], "resourceVersion": "1", "selfLink": "s",
                               "uid": "u", "ownerReferences": [{}], "finalizers": ["f"], "generateName": "x-"},
                 status={"a": 1}, data={"k": "v"}),
        manifest("ConfigMap", {"generateName": "x-"}, data={"k": "v"}),
    ),
    (
        manifest("Deployment", {"annotations": {"deployment.kubernetes.io/revision": "1", "a": "b",
                                                "deployment.kubernetes.io/revision-history": "2"}}),
        manifest("Deployment", {"annotations": {"a": "b"}}),
    ),
    (
        manifest("Job", spec={
            "ttlSecondsAfterFinished": 5,
            "selector": {"matchLabels": {"controller-uid": "u", "batch.kubernetes.io/controller-uid": "u",
                                         "a": "b"}},
            "template": {"metadata": {"labels": {"controller-uid": "u", "batch.kubernetes.io/controller-uid": "u",
                                                 "job-name": "x", "batch.kubernetes.io/job-name": "x",
                                                 "a": "b"}}}}),
        manifest("Job", spec={"selector": {"matchLabels": {"a": "b"}},
                              "template": {"metadata": {"labels": {"a": "b"}}}}),
    ),
    (
        manifest("Job", spec={"ttlSecondsAfterFinished": 5, "manualSelector": True,
                              "selector": {"matchLabels": {"controller-uid": "u"}}}),
        manifest("Job", spec={"manualSelector": True, "selector": {"matchLabels": {"controller-uid": "u"}}}),
    ),
    (
        manifest("Secret", {"annotations": {"kubernetes.io/service-account.uid": "u"}}, data={"token": "t"},
                 type="kubernetes.io/service-account-token"),
        manifest("Secret", data=None, type="kubernetes.io/service-account-token"),
    ),
    (manifest("Secret", data={"k": "v"}, type="Opaque"), manifest("Secret", data={"k": "v"}, type="Opaque")),
    (
        manifest("ServiceAccount", secrets=[{"name": "x-token-a"}, {"name": "x-token-b"}, {"name": "mine"}]),
        manifest("ServiceAccount", secrets=[{"name": "mine"}]),
    ),
    (
        manifest("Service", spec={"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "type": "ClusterIP"}),
        manifest("Service", spec={"type": "ClusterIP"}),
    ),
    (
        manifest("Service", spec={"clusterIP": "None", "clusterIPs": ["None"]}),
        manifest("Service", spec={"clusterIP": "None", "clusterIPs": ["None"]}),
    ),
    (
        manifest("PersistentVolumeClaim", {"annotations": {"volume.kubernetes.io/selected-node": "n"}}),
        manifest("PersistentVolumeClaim"),
    ),
)  # fmt: skip
def test_what_belongs_to_the_control_plane_is_taken_out(given: Obj, kept: Obj, sent: Any) -> None:
    assert sent(given) == kept


@cases({"apiVersion": "v1"}, 5, None)
def test_what_is_no_object_cannot_be_sent(bad: Any, completed: Any) -> None:
    with pytest.raises(Refusal, match="Object 'Kind' is missing in") as refusal:
        completed("mutate-work", work(bad))
    assert refusal.value.code == 500
