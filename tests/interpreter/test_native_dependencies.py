"""What native templates refer to."""

from __future__ import annotations

from typing import Any

import pytest

from karmada.interpreter.dependencies import pod_dependencies, verify_dependencies
from karmada.interpreter.operations import InterpreterError
from karmada.kube.objects.types import Obj
from tests.support.cases import cases
from tests.support.objects import kube_object


def refs(**names: list[str]) -> list[Obj]:
    return [
        {"apiVersion": "v1", "kind": kind, "namespace": "ns", "name": name}
        for kind, found in names.items()
        for name in found
    ]


def sources(*keys: str) -> list[Obj]:
    """A container for each list of containers, each with references of its own."""
    return [
        {
            "envFrom": [{"configMapRef": {"name": f"cm-from-{key}"}}, {"secretRef": {"name": f"s-from-{key}"}}],
            "env": [
                {"name": "plain", "value": "x"},
                {"name": "field", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                {"name": "cm", "valueFrom": {"configMapKeyRef": {"name": f"cm-key-{key}", "key": "k"}}},
                {"name": "s", "valueFrom": {"secretKeyRef": {"name": f"s-key-{key}", "key": "k"}}},
            ],
        }
        for key in keys
    ]


PROJECTED = {
    "sources": [
        {"configMap": {"name": "cm-p"}}, {"secret": {"name": "s-p"}}, {"secret": {"name": "s-q"}},
        {"serviceAccountToken": {"path": "t"}},
    ]
}  # fmt: skip


@cases(
    ({"configMap": {"name": "a"}}, refs(ConfigMap=["a"])),
    ({"secret": {"secretName": "a"}}, refs(Secret=["a"])),
    ({"projected": PROJECTED}, refs(ConfigMap=["cm-p"], Secret=["s-p", "s-q"])),
    ({"persistentVolumeClaim": {"claimName": "a"}}, refs(PersistentVolumeClaim=["a"])),
    ({"azureFile": {"secretName": "a"}}, refs(Secret=["a"])),
    *(
        ({source: {"secretRef": {"name": "a"}}}, refs(Secret=["a"]))
        for source in ("cephfs", "cinder", "flexVolume", "rbd", "scaleIO", "iscsi", "storageos")
    ),
    ({"csi": {"nodePublishSecretRef": {"name": "a"}}}, refs(Secret=["a"])),
    ({"csi": {"driver": "x"}}, []),
    ({"cephfs": {}, "secret": {"secretName": "hidden"}}, []),
    ({"secret": {"secretName": "a"}, "csi": {"nodePublishSecretRef": {"name": "hidden"}}}, refs(Secret=["a"])),
    ({"emptyDir": {}}, []),
    ({"configMap": {"name": ""}, "secret": {}}, []),
)  # fmt: skip
def test_volumes_refer_to_what_they_show(volume: Obj, found: list[Obj]) -> None:
    assert pod_dependencies({"volumes": [{"name": "v", **volume}]}, "ns") == found


def test_every_container_of_a_pod_counts_and_every_name_once() -> None:
    pod = {
        "initContainers": sources("i"),
        "containers": sources("c", "c"),
        "ephemeralContainers": sources("e"),
        "imagePullSecrets": [{"name": "pull"}, {"name": "s-key-c"}, {}],
        "serviceAccountName": "runner",
        "volumes": [{"configMap": {"name": "cm-key-c"}}, {"persistentVolumeClaim": {"claimName": "data"}}] * 2,
    }
    found = pod_dependencies(pod, "ns")
    names = [f"{where}-{key}" for key in "ice" for where in ("from", "key")]
    by_kind = {
        kind: [r["name"] for r in found if r["kind"] == kind] for kind in dict.fromkeys(r["kind"] for r in found)
    }
    assert {kind: sorted(found) for kind, found in by_kind.items()} == {
        "ConfigMap": sorted(f"cm-{name}" for name in names),
        "Secret": sorted(["pull", *(f"s-{name}" for name in names)]),
        "ServiceAccount": ["runner"],
        "PersistentVolumeClaim": ["data"],
    }
    assert list(by_kind) == ["ConfigMap", "Secret", "ServiceAccount", "PersistentVolumeClaim"]


@cases({}, {"serviceAccountName": "default"}, {"serviceAccountName": ""}, {"volumes": None})
def test_a_pod_may_depend_on_nothing(pod: Obj) -> None:
    assert pod_dependencies(pod, "ns") == []


def test_a_reference_without_a_namespace_names_none() -> None:
    assert pod_dependencies({"serviceAccountName": "a"}, "") == [
        {"apiVersion": "v1", "kind": "ServiceAccount", "name": "a"}
    ]


POD = {"serviceAccountName": "runner", "volumes": [{"persistentVolumeClaim": {"claimName": "data"}}]}
TEMPLATE = {"template": {"spec": POD}}


def obj(api_version: str, kind: str, spec: Obj) -> Obj:
    return kube_object(api_version, kind, "web", "ns", spec=spec)


@cases(
    *(obj("apps/v1", kind, TEMPLATE) for kind in ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet")),
    obj("batch/v1", "Job", TEMPLATE),
    obj("batch/v1", "CronJob", {"jobTemplate": {"spec": TEMPLATE}}),
    obj("v1", "Pod", POD),
    ids=lambda template: template["kind"],
)
def test_workloads_depend_on_what_their_pods_do(template: Obj, native: Any) -> None:
    assert native.get_dependencies(template) == refs(ServiceAccount=["runner"], PersistentVolumeClaim=["data"])
    assert native.get_dependencies({**template, "spec": {}}) == []


def test_a_stateful_set_does_not_depend_on_the_claims_it_makes(native: Any) -> None:
    claims = {"volumeClaimTemplates": [{"metadata": {"name": "data"}}, {"metadata": {"name": "runner"}}]}
    found = native.get_dependencies(obj("apps/v1", "StatefulSet", {**TEMPLATE, **claims}))
    assert found == refs(ServiceAccount=["runner"])


def test_an_ingress_depends_on_its_certificates(native: Any) -> None:
    tls = {"tls": [{"hosts": ["a"], "secretName": "one"}, {"secretName": "two"}]}
    assert native.get_dependencies(obj("networking.k8s.io/v1", "Ingress", tls)) == refs(Secret=["one", "two"])
    assert native.get_dependencies(obj("networking.k8s.io/v1", "Ingress", {})) == []


def test_an_ingress_with_a_certificate_without_a_name_fails(native: Any) -> None:
    with pytest.raises(InterpreterError, match="dependency can not leave name and labelSelector all empty") as caught:
        native.get_dependencies(obj("networking.k8s.io/v1", "Ingress", {"tls": [{"secretName": "a"}, {}]}))
    assert str(caught.value).startswith("dependencies[1]: Invalid value: ")


def test_an_imported_service_depends_on_its_stand_in_and_its_addresses(native: Any) -> None:
    imported = kube_object("multicluster.x-k8s.io/v1alpha1", "ServiceImport", "web", "ns1")
    assert native.get_dependencies(imported) == [
        {"apiVersion": "v1", "kind": "Service", "namespace": "ns1", "name": "derived-web"},
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "namespace": "ns1",
            "labelSelector": {"matchLabels": {"kubernetes.io/service-name": "derived-web"}},
        },
    ]


@cases(
    ({"kind": "A", "name": "a"}, 'dependencies[0].apiVersion: Invalid value: "": missing required apiVersion'),
    ({"apiVersion": "v1", "name": "a"}, 'dependencies[0].kind: Invalid value: "": missing required kind'),
    (
        {"apiVersion": "v1", "kind": "A"},
        'dependencies[0]: Invalid value: {"apiVersion":"v1","kind":"A"}: '
        "dependency can not leave name and labelSelector all empty",
    ),
    (
        {"name": "a"},
        '[dependencies[0].apiVersion: Invalid value: "": missing required apiVersion, '
        'dependencies[0].kind: Invalid value: "": missing required kind]',
    ),
    (
        {"apiVersion": "v1", "kind": "A", "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}},
        'dependencies[0].labelSelector.matchExpressions[0].operator: Invalid value: "Is": '
        "not a valid selector operator",
    ),
)  # fmt: skip
def test_references_that_cannot_be_followed_are_refused(reference: Obj, message: str) -> None:
    with pytest.raises(InterpreterError) as caught:
        verify_dependencies([reference])
    assert str(caught.value) == message


def test_label_values_of_references_are_checked() -> None:
    with pytest.raises(InterpreterError, match=r"^dependencies\[1\]\.labelSelector\.matchLabels: Invalid value: \"_\""):
        verify_dependencies(
            [
                {"apiVersion": "v1", "kind": "A", "labelSelector": {}},
                {"apiVersion": "v1", "kind": "A", "labelSelector": {"matchLabels": {"a": "_"}}},
            ]
        )
