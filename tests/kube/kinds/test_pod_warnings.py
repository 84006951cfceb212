"""What Pods and templates may say and should not: the warnings, their places and their order."""

from __future__ import annotations

from typing import Any

from karmada.kube.kinds.address_warnings import cidr_warnings, ip_warnings
from karmada.kube.kinds.batch import CRONJOB
from karmada.kube.kinds.networking import INGRESS
from karmada.kube.kinds.pod_warnings import for_pods
from karmada.kube.kinds.services import SERVICE
from karmada.kube.kinds.storage import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, STORAGE_CLASS
from karmada.kube.kinds.workloads import DEPLOYMENT, STATEFULSET
from karmada.kube.objects.types import Obj
from tests.support.cases import cases


def pod(annotations: Obj | None = None, **spec: Any) -> Obj:
    return {
        "metadata": {"name": "p", "annotations": annotations or {}},
        "spec": {"containers": [{"name": "c"}], **spec},
    }


def container(**fields: Any) -> list[Obj]:
    return [{"name": "c", **fields}]


SECCOMP = "seccomp.security.alpha.kubernetes.io/pod"
APPARMOR = "container.apparmor.security.beta.kubernetes.io/c"


@cases(
    (pod(), []),
    (
        pod(nodeSelector={"beta.kubernetes.io/os": "linux"}),
        ['spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead'],
    ),
    (
        pod(topologySpreadConstraints=[{"topologyKey": "failure-domain.beta.kubernetes.io/zone"}]),
        [
            "spec.topologySpreadConstraints[0].topologyKey: failure-domain.beta.kubernetes.io/zone is deprecated "
            'since v1.17; use "topology.kubernetes.io/zone" instead',
            "spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no pod",
        ],
    ),
    (
        pod({SECCOMP: "x", APPARMOR: "runtime/default"}),
        [
            f'metadata.annotations[{SECCOMP}]: non-functional in v1.27+; use the "seccompProfile" field instead',
            f'metadata.annotations[{APPARMOR}]: deprecated since v1.30; use the "appArmorProfile" field instead',
        ],
    ),
    (
        pod(volumes=[{"name": "v", "gitRepo": {}}, {"name": "w", "storageos": {}}]),
        [
            "spec.volumes[0].gitRepo: deprecated in v1.11",
            "spec.volumes[1].storageOS: deprecated in v1.22, non-functional in v1.25+",
        ],
    ),
    (
        pod(volumes=[{"name": "v", "configMap": {"name": "m", "items": [{"path": "a"}, {"path": "a/b"}]}}]),
        ['volume "v" (ConfigMap "m"): overlapping paths: "a/b" with "a"'],
    ),
    (
        pod(imagePullSecrets=[{"name": "a"}, {"name": "a"}, {"name": ""}]),
        [
            'spec.imagePullSecrets[1].name: duplicate name "a"',
            'spec.imagePullSecrets[2].name: invalid empty name ""',
        ],
    ),
    (
        pod(containers=container(resources={"limits": {"memory": "1500m"}, "requests": {"memory": "1"}})),
        ['spec.containers[0].resources.limits[memory]: fractional byte value "1500m" is invalid, must be an integer'],
    ),
    (
        pod(containers=container(env=[{"name": "A"}, {"name": "A", "value": "$(A)x"}, {"name": "A", "value": "y"}])),
        ['spec.containers[0].env[2]: hides previous definition of "A", which may be dropped when using apply'],
    ),
    (
        pod(
            initContainers=container(ports=[{"containerPort": 80, "protocol": "TCP"}]),
            containers=container(ports=[{"containerPort": 80, "protocol": "TCP", "hostIP": "1.2.3.4"}]),
        ),
        [
            "spec.containers[0].ports[0]: hostIP set without hostPort: {Name: HostPort:0 ContainerPort:80 "
            "Protocol:TCP HostIP:1.2.3.4}",
            "spec.containers[0].ports[0]: overlapping port definition with spec.initContainers[0].ports[0]",
        ],
    ),
    (
        pod(terminationGracePeriodSeconds=-1),
        ["spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1"],
    ),
    (
        pod(affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "x"}]}}),
        [
            "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector: a null "
            "labelSelector results in matching no pod"
        ],
    ),
)
def test_a_pod_is_created_with_warnings(found: Obj, expected: list[str]) -> None:
    assert for_pods(found, None) == expected
    assert for_pods(found, found) == []


def test_a_name_that_is_no_label_makes_odd_host_names() -> None:
    found = pod()
    found["metadata"]["name"] = "a.b"
    [warning] = for_pods(found, None)
    assert warning.startswith("metadata.name: this is used in the Pod's hostname, which can result in surprising")


def workload(generation: int, *path: str, **spec: Any) -> Obj:
    inner: Obj = {"spec": {"containers": [{"name": "c"}], **spec}}
    for key in reversed(path):
        inner = {key: inner}
    return {"metadata": {"name": "w", "generation": generation}, **inner}


def test_templates_are_warned_of_at_their_place_and_when_they_change() -> None:
    bad = {"terminationGracePeriodSeconds": -1}
    text = "terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1"
    deployment = workload(1, "spec", "template", **bad)
    assert DEPLOYMENT.warnings(deployment, None) == [f"spec.template.spec.{text}"]
    assert DEPLOYMENT.warnings(deployment, deployment) == []
    assert DEPLOYMENT.warnings({**deployment, "metadata": {"generation": 2}}, deployment) == [
        f"spec.template.spec.{text}"
    ]
    cron_job = workload(1, "spec", "jobTemplate", "spec", "template", **bad)
    assert CRONJOB.warnings(cron_job, None) == [f"spec.jobTemplate.spec.template.spec.{text}"]
    stateful = workload(1, "spec", "template")
    stateful["spec"]["revisionHistoryLimit"] = -1
    assert STATEFULSET.warnings(stateful, None) == [
        "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"
    ]


BETA = "metadata.annotations[volume.beta.kubernetes.io/storage-class]"


def test_storage_kinds_are_warned_of() -> None:
    annotations = {"volume.beta.kubernetes.io/storage-class": "x"}
    deprecated = f'{BETA}: deprecated since v1.8; use "storageClassName" attribute instead'
    claim = {"metadata": {"annotations": annotations}, "spec": {"resources": {"requests": {"storage": "1500m"}}}}
    assert PERSISTENT_VOLUME_CLAIM.warnings(claim, None) == [
        deprecated,
        'spec.resources.requests[storage]: fractional byte value "1500m" is invalid, must be an integer',
    ]
    volume = {"metadata": {"annotations": annotations}, "spec": {"persistentVolumeReclaimPolicy": "Recycle", "rbd": {}}}
    assert PERSISTENT_VOLUME.warnings(volume, None) == [
        deprecated,
        "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended "
        "approach is to use dynamic provisioning.",
        "spec.rbd: deprecated in v1.28, non-functional in v1.31+",
    ]
    topologies = [{"matchLabelExpressions": [{"key": "beta.kubernetes.io/arch", "values": ["x"]}]}]
    [text] = STORAGE_CLASS.warnings({"metadata": {}, "allowedTopologies": topologies}, None)
    assert text.startswith("allowedTopologies[0].matchLabelExpressions[0].key: beta.kubernetes.io/arch is deprecated")


def test_services_and_ingresses_are_warned_of() -> None:
    ingress = {"metadata": {"annotations": {"kubernetes.io/ingress.class": "nginx"}}}
    assert INGRESS.warnings(ingress, None) == [
        "annotation \"kubernetes.io/ingress.class\" is deprecated, please use 'spec.ingressClassName' instead"
    ]
    spec = {"type": "ClusterIP", "clusterIP": "None", "sessionAffinity": "ClientIP", "externalName": "x"}
    assert SERVICE.warnings({"metadata": {}, "spec": spec}, None) == [
        "spec.SessionAffinity is ignored for headless services",
        'spec.externalName is ignored when spec.type is not "ExternalName"',
    ]


@cases(
    (ip_warnings, "10.0.0.1", []),
    (
        ip_warnings,
        "010.0.0.1",
        ['p: non-standard IP address "010.0.0.1" will be considered invalid in a future Kubernetes release: use '
         '"10.0.0.1"'],
    ),
    (
        ip_warnings,
        "2001:DB8::1",
        ['p: IPv6 address "2001:DB8::1" should be in RFC 5952 canonical format ("2001:db8::1")'],
    ),
    (
        cidr_warnings,
        "10.0.0.1/8",
        ['p: non-standard CIDR value "10.0.0.1/8" will be considered invalid in a future Kubernetes release: use '
         '"10.0.0.0/8"'],
    ),
    (cidr_warnings, "10.0.0.0/8", []),
)  # fmt: skip
def test_addresses_that_are_not_in_their_usual_form(check: Any, text: str, expected: list[str]) -> None:
    assert list(check("p", text)) == expected


def test_a_spec_without_warnings_is_looked_at_again_when_it_or_its_annotations_have_some() -> None:
    silent = pod(hostname="looked-at-again")
    for _ in range(2):
        assert for_pods(silent, None) == []
    annotated = {**silent, "metadata": {"name": "p", "annotations": {SECCOMP: "x"}}}
    silent["spec"]["terminationGracePeriodSeconds"] = -1
    for _ in range(2):
        assert len(for_pods(silent, None)) == 1
        assert len(for_pods(annotated, None)) == 2
