"""What is taken off objects that go to other clusters."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karmada.interpreter.pruning import pruned
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.types import Obj

OWN = {"name": "web", "namespace": "ns", "labels": {"a": "b"}, "annotations": {"mine": "1"}}
SERVERS = {
    "creationTimestamp": "2024-01-01T00:00:00Z", "deletionTimestamp": "2024-01-01T00:00:00Z",
    "deletionGracePeriodSeconds": 0, "generation": 1, "managedFields": [], "resourceVersion": "1", "selfLink": "/a",
    "uid": "u", "ownerReferences": [{}], "finalizers": ["a"],
}  # fmt: skip
TOKEN = "kubernetes.io/service-account-token"
UIDS = {"controller-uid": "u", "batch.kubernetes.io/controller-uid": "u"}
JOB_NAMES = {"job-name": "web", "batch.kubernetes.io/job-name": "web"}


def obj(kind: str, annotations: dict[str, str] | None = None, **fields: Any) -> Obj:
    metadata = {**OWN, "annotations": {**OWN["annotations"], **(annotations or {})}}  # type: ignore[dict-item]
    return {"apiVersion": "example.io/v1", "kind": kind, "metadata": metadata, **fields}


def job(labels: Obj, template_labels: Obj, **spec: Any) -> Obj:
    template = {"metadata": {"labels": template_labels}, "spec": {"a": 1}}
    return obj("Job", spec={"selector": {"matchLabels": labels}, "template": template, **spec})


def test_what_belongs_to_the_server_goes() -> None:
    given = {**obj("Anything"), "status": {"a": 1}}
    given["metadata"] |= SERVERS
    before = copy_json(given)
    assert pruned(given) == obj("Anything")
    assert given == before


CASES = [
    (
        obj("Deployment", {"deployment.kubernetes.io/revision": "1", "deployment.kubernetes.io/revision-history": "1"}),
        obj("Deployment"),
    ),
    (obj("StatefulSet", {"deployment.kubernetes.io/revision": "1"}), ...),
    (job({**UIDS, "x": "y"}, {**UIDS, **JOB_NAMES, "x": "y"}), job({"x": "y"}, {"x": "y"})),
    (job(UIDS, {**UIDS, **JOB_NAMES}), job({}, {})),
    (job(UIDS, UIDS, manualSelector=True), ...),
    (job({}, {}, manualSelector=False, ttlSecondsAfterFinished=5), job({}, {}, manualSelector=False)),
    (obj("Job"), ...),
    (
        obj("Secret", {"kubernetes.io/service-account.uid": "u"}, type=TOKEN, data={"token": "x"}),
        obj("Secret", type=TOKEN, data=None),
    ),
    (obj("Secret", {"kubernetes.io/service-account.uid": "u"}, type="Opaque", data={"a": "x"}), ...),
    (
        obj("ServiceAccount", secrets=[{"name": n} for n in ("a", "web-token-1", "web-token-2", "b", "x-token-1")]),
        obj("ServiceAccount", secrets=[{"name": n} for n in ("a", "b", "x-token-1")]),
    ),
    (obj("ServiceAccount"), ...),
    (obj("Service", spec={"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "a": 1}), obj("Service", spec={"a": 1})),
    (obj("Service", spec={"clusterIP": "", "a": 1}), obj("Service", spec={"a": 1})),
    (obj("Service", spec={"clusterIP": "None", "clusterIPs": ["None"]}), ...),
    (obj("Service", spec={"clusterIPs": ["10.0.0.1"]}), ...),
    (
        obj("PersistentVolumeClaim", {"volume.kubernetes.io/selected-node": "n"}),
        obj("PersistentVolumeClaim"),
    ),
    (obj("ConfigMap", data={"a": "b"}), ...),
    (obj("Job", spec=[]), ...),
    (obj("Job", spec={"selector": "x", "template": {"metadata": 5}}), ...),
    (obj("Service", spec="x"), ...),
    (obj("ServiceAccount", secrets="x"), ...),
    (obj("ServiceAccount", secrets=["x", {"name": 5}]), ...),
]  # fmt: skip


@pytest.mark.parametrize(("given", "left"), CASES)
def test_some_kinds_have_more_that_belongs_to_their_cluster(given: Obj, left: Any) -> None:
    before = copy_json(given)
    assert pruned(given) == (given if left is ... else left)
    assert given == before


def test_the_time_to_live_of_a_job_may_stay() -> None:
    given = job({}, {}, ttlSecondsAfterFinished=5)
    assert pruned(given, keep_ttl=True) == given


@given(st.sampled_from([given for given, _ in CASES]))
def test_what_is_pruned_stays_as_it_is(given: Obj) -> None:
    assert pruned(pruned(given)) == pruned(given)
