"""Defaults and rules of pod specs."""

from __future__ import annotations

from typing import Any

from karmada.kube.kinds import podspec
from karmada.kube.kinds.images import default_pull_policy
from karmada.kube.kinds.pods import default, qos_class
from karmada.kube.objects.copying import copy_json
from tests.support.cases import cases


def container(**fields: Any) -> dict[str, Any]:
    return {"name": "c", "image": "nginx:1", **fields}


def spec(**fields: Any) -> dict[str, Any]:
    return {"containers": [container()], **fields}


def defaulted(found: dict[str, Any]) -> dict[str, Any]:
    copy = copy_json(found)
    podspec.default_pod_spec(copy)
    return copy


def errors(found: dict[str, Any]) -> list[str]:
    result: list[Any] = []
    podspec.validate_pod_spec(result, "spec", defaulted(found))
    return [str(error) for error in result]


@cases(
    ("nginx", "Always"),
    ("nginx:latest", "Always"),
    ("nginx:1.25", "IfNotPresent"),
    ("localhost:5000/nginx", "Always"),
    ("localhost:5000/nginx:1", "IfNotPresent"),
    ("nginx@sha256:0123", "IfNotPresent"),
    ("nginx:latest@sha256:0123", "Always"),
    ("nginx:1@sha256:0123", "IfNotPresent"),
    ("", "IfNotPresent"),
)
def test_images_are_pulled_again_when_their_tag_moves(image: str, policy: str) -> None:
    assert default_pull_policy(image) == policy


def test_a_plain_spec_gets_all_its_defaults() -> None:
    assert defaulted({"containers": [{"name": "c", "image": "nginx", "ports": [{"containerPort": 80}]}]}) == {
        "containers": [
            {
                "name": "c",
                "image": "nginx",
                "ports": [{"containerPort": 80, "protocol": "TCP"}],
                "imagePullPolicy": "Always",
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
                "resources": {},
            }
        ],
        "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst",
        "schedulerName": "default-scheduler",
        "terminationGracePeriodSeconds": 30,
        "securityContext": {},
    }


def test_the_account_is_written_under_both_names() -> None:
    found = defaulted(spec(serviceAccountName="sa"))
    assert found["serviceAccount"] == "sa"
    assert defaulted(spec(serviceAccount="old"))["serviceAccountName"] == "old"


def test_probes_get_their_numbers() -> None:
    found = defaulted(
        spec(containers=[container(livenessProbe={"httpGet": {"port": 80}}, readinessProbe={"grpc": {"port": 1}})])
    )
    assert found["containers"][0]["livenessProbe"] == {
        "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"},
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    }
    assert found["containers"][0]["readinessProbe"]["grpc"] == {"port": 1, "service": ""}


@cases(
    ({}, {"emptyDir": {}}),
    ({"secret": {"secretName": "s"}}, {"secret": {"secretName": "s", "defaultMode": 420}}),
    ({"configMap": {"name": "c"}}, {"configMap": {"name": "c", "defaultMode": 420}}),
    ({"hostPath": {"path": "/x"}}, {"hostPath": {"path": "/x", "type": ""}}),
    ({"downwardAPI": {}}, {"downwardAPI": {"defaultMode": 420}}),
    (
        {"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
        {
            "projected": {
                "sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 3600}}],
                "defaultMode": 420,
            }
        },
    ),
)
def test_volumes_get_their_defaults(volume: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert defaulted(spec(volumes=[{"name": "v", **volume}]))["volumes"] == [{"name": "v", **wanted}]


def test_quantities_take_their_canonical_form() -> None:
    resources = {"limits": {"cpu": "1000m", "memory": "1024Mi"}, "requests": {"cpu": "0.0001", "memory": 1024}}
    found = defaulted(spec(containers=[container(resources=resources)]))["containers"][0]["resources"]
    assert found == {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1m", "memory": "1024"}}


def test_pods_request_what_they_are_limited_to() -> None:
    pod = {"metadata": {}, "spec": spec(containers=[container(resources={"limits": {"cpu": "1", "memory": "1Gi"}})])}
    default(pod)
    assert pod["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}
    assert pod["spec"]["enableServiceLinks"] is True


def test_pods_on_the_host_network_use_its_ports() -> None:
    pod = {"metadata": {}, "spec": spec(hostNetwork=True, containers=[container(ports=[{"containerPort": 80}])])}
    default(pod)
    assert pod["spec"]["containers"][0]["ports"][0]["hostPort"] == 80


def test_defaulting_twice_changes_nothing_more() -> None:
    rich = spec(
        initContainers=[container(name="i", resources={"limits": {"cpu": "2000m"}})],
        containers=[
            container(
                env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                startupProbe={"tcpSocket": {"port": 1}},
                lifecycle={"preStop": {"httpGet": {"port": 80}}},
            )
        ],
        volumes=[{"name": "a"}, {"name": "b", "image": {"reference": "x"}}],
    )
    once = defaulted(rich)
    assert defaulted(once) == once


@cases(
    ({"containers": []}, "spec.containers: Required value"),
    (spec(containers=[container(), container()]), 'spec.containers[1].name: Duplicate value: "c"'),
    (spec(containers=[{"name": "c"}]), "spec.containers[0].image: Required value"),
    (spec(containers=[{"image": "x"}]), "spec.containers[0].name: Required value"),
    (
        spec(containers=[container(imagePullPolicy="Often")]),
        'spec.containers[0].imagePullPolicy: Unsupported value: "Often": supported values: "Always", '
        '"IfNotPresent", "Never"',
    ),
    (
        spec(containers=[container(ports=[{"containerPort": 70000}])]),
        "spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
    ),
    (
        spec(containers=[container(ports=[{"name": "Web", "containerPort": 80}])]),
        'spec.containers[0].ports[0].name: Invalid value: "Web": must contain only alpha-numeric characters '
        "(a-z, 0-9), and hyphens (-)",
    ),
    (
        spec(containers=[container(ports=[{"containerPort": 80, "protocol": "ICMP"}])]),
        'spec.containers[0].ports[0].protocol: Unsupported value: "ICMP": supported values: "SCTP", "TCP", "UDP"',
    ),
    (spec(containers=[container(env=[{"value": "x"}])]), "spec.containers[0].env[0].name: Required value"),
    (
        spec(containers=[container(env=[{"name": "A=B"}])]),
        'spec.containers[0].env[0].name: Invalid value: "A=B": a valid environment variable name must consist',
    ),
    (
        spec(
            containers=[
                container(env=[{"name": "A", "value": "x", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}])
            ]
        ),
        'spec.containers[0].env[0].valueFrom: Invalid value: "": may not be specified when `value` is not empty',
    ),
    (
        spec(containers=[container(env=[{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "s"}}}])]),
        "spec.containers[0].env[0].valueFrom.configMapKeyRef.key: Required value",
    ),
    (
        spec(containers=[container(volumeMounts=[{"name": "v", "mountPath": "/x"}])]),
        'spec.containers[0].volumeMounts[0].name: Not found: "v"',
    ),
    (
        spec(
            volumes=[{"name": "v"}],
            containers=[container(volumeMounts=[{"name": "v", "mountPath": "/x"}, {"name": "v", "mountPath": "/x"}])],
        ),
        'spec.containers[0].volumeMounts[1].mountPath: Invalid value: "/x": must be unique',
    ),
    (
        spec(containers=[container(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}})]),
        'spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1',
    ),
    (
        spec(containers=[container(resources={"requests": {"cpu": "-1"}})]),
        'spec.containers[0].resources.requests[cpu]: Invalid value: "-1": must be greater than or equal to 0',
    ),
    (
        spec(containers=[container(resources={"requests": {"nvidia.com/gpu": "1"}})]),
        "spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable resources",
    ),
    (
        spec(containers=[container(resources={"limits": {"gpu": "1"}})]),
        'spec.containers[0].resources.limits: Invalid value: "gpu": must be a standard resource type or fully '
        "qualified",
    ),
    (
        spec(containers=[container(livenessProbe={"periodSeconds": 1})]),
        "spec.containers[0].livenessProbe: Required value: must specify a handler type",
    ),
    (
        spec(containers=[container(livenessProbe={"exec": {"command": ["x"]}, "successThreshold": 2})]),
        "spec.containers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1",
    ),
    (
        spec(restartPolicy="Sometimes"),
        'spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"',
    ),
    (spec(volumes=[{"name": "v"}, {"name": "v"}]), 'spec.volumes[1].name: Duplicate value: "v"'),
    (
        spec(volumes=[{"name": "v", "emptyDir": {}, "hostPath": {"path": "/"}}]),
        "spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type",
    ),
    (spec(volumes=[{"name": "v", "secret": {}}]), "spec.volumes[0].secret.secretName: Required value"),
    (
        spec(volumes=[{"name": "v", "configMap": {"name": "c", "defaultMode": 1000}}]),
        "spec.volumes[0].configMap.defaultMode: Invalid value: 1000: must be a number between 0 and 0777 (octal), "
        "both inclusive",
    ),
    (
        spec(tolerations=[{"key": "a", "operator": "Exists", "value": "x"}]),
        "value must be empty when `operator` is 'Exists'",
    ),
    (
        spec(tolerations=[{"operator": "Equal"}]),
        'operator must be Exists when `key` is empty, which means "match all values and all keys"',
    ),
    (
        spec(tolerations=[{"key": "a", "effect": "NoSchedule", "tolerationSeconds": 1}]),
        "effect must be 'NoExecute' when `tolerationSeconds` is set",
    ),
    (
        spec(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}),
        "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: Required "
        "value: must have at least one node selector term",
    ),
    (
        spec(topologySpreadConstraints=[{"maxSkew": 0, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]),
        "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero",
    ),
    (
        spec(activeDeadlineSeconds=0),
        "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647",
    ),
)
def test_a_bad_spec_is_refused_with_the_field_at_fault(found: dict[str, Any], wanted: str) -> None:
    messages = errors(found)
    assert any(wanted in message for message in messages), messages


def test_a_good_spec_has_no_errors() -> None:
    good = spec(
        containers=[
            container(
                ports=[{"name": "http", "containerPort": 80}],
                env=[{"name": "lower.case-1", "value": "x"}],
                volumeMounts=[{"name": "v", "mountPath": "/v"}],
                resources={
                    "limits": {"cpu": "1", "nvidia.com/gpu": "1"},
                    "requests": {"cpu": "1", "nvidia.com/gpu": "1"},
                },
                readinessProbe={"httpGet": {"port": "http"}},
            )
        ],
        initContainers=[container(name="i", restartPolicy="Always", startupProbe={"exec": {"command": ["x"]}})],
        volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "p"}}],
        nodeSelector={"a": "b"},
        tolerations=[{"operator": "Exists"}],
        imagePullSecrets=[{"name": "s"}],
    )
    assert errors(good) == []


@cases(
    ([{}], "BestEffort"),
    ([{"limits": {"cpu": "1", "memory": "1Gi"}}], "Guaranteed"),
    ([{"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1000m"}}], "Guaranteed"),
    ([{"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1m"}}], "Burstable"),
    ([{"limits": {"cpu": "1", "memory": "1Gi"}}, {}], "Burstable"),
    ([{"requests": {"nvidia.com/gpu": "1"}}], "BestEffort"),
    ([{"limits": {"cpu": "0"}}], "BestEffort"),
)
def test_quality_of_service_follows_from_resources(resources: list[dict[str, Any]], wanted: str) -> None:
    assert qos_class({"containers": [{"name": str(i), "resources": r} for i, r in enumerate(resources)]}) == wanted
