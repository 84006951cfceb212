"""What clusters keep when a template is applied again."""

from __future__ import annotations

from typing import Any

import pytest

from karmada.interpreter.operations import InterpreterError
from karmada.kube.objects.types import Obj

RETAIN = {"labels": {"resourcetemplate.karmada.io/retain-replicas": "true"}}
TOKEN = "kubernetes.io/service-account-token"


def of(kind: str, spec: Obj | None = None, metadata: Obj | None = None, **fields: Any) -> Obj:
    groups = {"Deployment": "apps/v1", "Job": "batch/v1"}
    obj: Obj = {"apiVersion": groups.get(kind, "v1"), "kind": kind, "metadata": metadata or {}, **fields}
    return obj if spec is None else {**obj, "spec": spec}


def named(*names: str, **fields: Any) -> list[Obj]:
    return [{"name": name, **fields} for name in names]


def mounts(*names: str) -> Obj:
    return {"volumeMounts": named(*names)}


SPECS: list[tuple[str, Obj, Obj, Obj]] = [
    ("Service", {}, {"clusterIP": "10.0.0.1"}, {"clusterIP": "10.0.0.1"}),
    ("Service", {"clusterIP": "None"}, {"clusterIP": "10.0.0.1"}, {"clusterIP": "10.0.0.1"}),
    ("Service", {"clusterIP": "a"}, {"clusterIP": ""}, {"clusterIP": "a"}),
    ("Service", {"a": 1}, {"healthCheckNodePort": 30000}, {"a": 1, "healthCheckNodePort": 30000}),
    ("Service", {"a": 1}, {"healthCheckNodePort": 0}, {"a": 1}),
    ("Service", {"a": 1}, {"clusterIPs": ["1"], "sessionAffinity": "None"}, {"a": 1}),
    ("PersistentVolumeClaim", {"a": 1}, {"volumeName": "pv"}, {"a": 1, "volumeName": "pv"}),
    ("PersistentVolumeClaim", {"volumeName": "mine"}, {"volumeName": ""}, {"volumeName": "mine"}),
    ("PersistentVolume", {"a": 1}, {"claimRef": {"name": "c"}}, {"a": 1, "claimRef": {"name": "c"}}),
    ("PersistentVolume", {"claimRef": {"name": "d"}}, {}, {"claimRef": {"name": "d"}}),
    ("Job", {"a": 1}, {"selector": {"matchLabels": {"x": "y"}}}, {"a": 1, "selector": {"matchLabels": {"x": "y"}}}),
    (
        "Job",
        {"template": {"metadata": {"labels": {"mine": "1"}, "annotations": {"a": "b"}}, "spec": {}}},
        {"template": {"metadata": {"labels": {"x": "y"}}}},
        {"template": {"metadata": {"labels": {"x": "y"}, "annotations": {"a": "b"}}, "spec": {}}},
    ),
    ("Job", {"a": 1}, {"selector": {}, "template": {"metadata": {}}}, {"a": 1}),
    ("Pod", {}, {"nodeName": "n", "serviceAccountName": "s"}, {"nodeName": "n", "serviceAccountName": "s"}),
    ("Pod", {"a": 1}, {"nodeName": "n", "b": 1}, {"a": 1, "nodeName": "n"}),
    ("Pod", {"nodeName": "m", "volumes": named("v"), "serviceAccountName": "s"}, {}, {}),
    ("Pod", {"volumes": named("v")}, {"volumes": named("w", "x")}, {"volumes": named("w", "x")}),
    (
        "Pod",
        {"containers": named("a", "b", "c", **mounts("mine"))},
        {"containers": [{"name": "b", **mounts("theirs")}, {"name": "c"}, {"name": "d", **mounts("x")}]},
        {"containers": [{"name": "a", **mounts("mine")}, {"name": "b", **mounts("theirs")}, {"name": "c"}]},
    ),
    (
        "Pod",
        {"initContainers": named("a")},
        {"initContainers": named("a", **mounts("x"))},
        {"initContainers": named("a", **mounts("x"))},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "desired", "observed", "kept"), SPECS)
def test_a_cluster_keeps_its_decisions(native: Any, kind: str, desired: Obj, observed: Obj, kept: Obj) -> None:
    assert native.retain(of(kind, desired), of(kind, observed)) == of(kind, kept)


def test_a_deployment_keeps_its_scale_only_when_its_label_says_so(native: Any) -> None:
    there = of("Deployment", {"replicas": 5})
    assert native.retain(of("Deployment", {"replicas": 1, "a": 1}, RETAIN), there)["spec"] == {"replicas": 5, "a": 1}
    assert native.retain(of("Deployment", {}, RETAIN), there)["spec"] == {"replicas": 5}
    for metadata in ({}, {"labels": {"resourcetemplate.karmada.io/retain-replicas": "yes"}}):
        template = of("Deployment", {"replicas": 1}, metadata)
        assert native.retain(template, there) is template
    assert native.retain(of("Deployment", {"replicas": 1}), of("Deployment", {}, RETAIN))["spec"] == {"replicas": 1}


@pytest.mark.parametrize("spec", [{}, {"replicas": "5"}, None])
def test_a_scale_that_cannot_be_read_is_an_error(native: Any, spec: Obj | None) -> None:
    with pytest.raises(InterpreterError, match=r"spec\.replicas"):
        native.retain(of("Deployment", {"replicas": 1}, RETAIN), of("Deployment", spec))


@pytest.mark.parametrize("field", ["secrets", "imagePullSecrets"])
@pytest.mark.parametrize(
    ("desired", "observed", "kept"),
    [
        (["a"], ["a", "a-token-x"], ["a", "a-token-x"]),
        (["b", "a"], ["c", "a"], ["b", "a", "c"]),
        ([], ["c"], ["c"]),
        (["a"], [], ["a"]),
    ],
)
def test_a_service_account_keeps_what_was_added(
    native: Any, field: str, desired: list[str], observed: list[str], kept: list[str]
) -> None:
    mine, theirs = ({**of("ServiceAccount"), field: named(*names)} for names in (desired, observed))
    assert native.retain(mine, theirs)[field] == named(*kept)


def test_a_service_account_without_secrets_gets_no_fields(native: Any) -> None:
    template = of("ServiceAccount")
    assert native.retain(template, of("ServiceAccount")) is template


def test_a_token_secret_keeps_its_token_and_no_other_secret_does(native: Any) -> None:
    there = of("Secret", data={"token": "x"})
    assert native.retain(of("Secret", type=TOKEN, data=None), there)["data"] == {"token": "x"}
    assert native.retain(of("Secret", type=TOKEN, data={"a": "b"}), of("Secret"))["data"] == {"a": "b"}
    assert native.retain(of("Secret", type="Opaque", data={"a": "b"}), there)["data"] == {"a": "b"}


def test_nothing_to_keep_gives_the_desired_object_itself(native: Any) -> None:
    for kind in ("Deployment", "Service", "PersistentVolumeClaim", "PersistentVolume", "Job", "Secret"):
        desired = of(kind, {"a": 1})
        assert native.retain(desired, of(kind)) is desired
