"""Kinds of KubeRay."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karmada.interpreter.operations import InterpreterError
from karmada.kube.objects.types import Obj
from tests.interpreter.thirdparty.cases import Case, Maker, check, result
from tests.support.cases import cases

CLUSTER, JOB, SERVICE = Maker("ray.io/v1", "RayCluster"), Maker("ray.io/v1", "RayJob"), Maker("ray.io/v1", "RayService")
ALL = (CLUSTER, JOB, SERVICE)
SMALL = "{spec: {containers: [{resources: {requests: {cpu: 1, memory: 4Gi}}}]}}"
LARGE = "{spec: {containers: [{resources: {requests: {cpu: 2, memory: 1Gi, nvidia.com/gpu: 1}}}]}}"
RAY = (
    "{headGroupSpec: {template: "
    + SMALL
    + "}, workerGroupSpecs: [{groupName: gpu, replicas: 2, template: "
    + LARGE
    + "}, {}]}"
)
PARTS = (
    "[{name: ray-head, replicas: 1, replicaRequirements: {resourceRequest: {cpu: '1', memory: 4Gi}}},"
    " {name: gpu, replicas: 2, replicaRequirements: {resourceRequest: {cpu: '2', memory: 1Gi, nvidia.com/gpu: '1'}}},"
    " {name: worker-2, replicas: 0}]"
)
REFERRING = (
    "{headGroupSpec: {template: {spec: {serviceAccountName: robot,"
    " ephemeralContainers: [{envFrom: [{secretRef: {name: no}}]}],"
    " volumes: [{secret: {secretName: a}, cephfs: {secretRef: {name: b}}, configMap: {name: c}}]}}},"
    " workerGroupSpecs: [{template: {spec: {imagePullSecrets: [{name: a}]}}}]}"
)

CASES: list[Case] = [
    CLUSTER.components("has a head and groups of workers", "{spec: " + RAY + "}", PARTS),
    CLUSTER.components("without a head has only workers", "{spec: {workerGroupSpecs: [{replicas: 1}]}}",
                       "[{name: worker-1, replicas: 1}]"),
    JOB.components("has those of its cluster", "{spec: {rayClusterSpec: " + RAY + "}}", PARTS),
    JOB.components("without a cluster of its own has none", "{spec: {}}", "[]"),
    CLUSTER.healthy("that is provisioned is healthy", "{status: {conditions: [{type: HeadPodReady, status: 'True'},"
                    " {type: RayClusterProvisioned, status: 'True'}]}}", True),
    CLUSTER.healthy("without a head is unhealthy",
                    "{status: {conditions: [{type: RayClusterProvisioned, status: 'True'}]}}", False),
    CLUSTER.healthy("whose replicas fail is unhealthy", "{status: {conditions: [{type: HeadPodReady, status: 'True'},"
                    " {type: RayClusterProvisioned, status: 'True'}, {type: RayClusterReplicaFailure,"
                    " status: 'True'}]}}",
                    False),
    JOB.healthy("that runs is healthy", "{status: {jobDeploymentStatus: Running}}", True),
    JOB.healthy("that succeeded is healthy", "{status: {jobDeploymentStatus: Complete, jobStatus: SUCCEEDED}}", True),
    JOB.healthy(
        "that completed otherwise is unhealthy", "{status: {jobDeploymentStatus: Complete, jobStatus: FAILED}}", False,
    ),
    JOB.healthy("without a status is unhealthy", "{}", False),
    SERVICE.healthy("that is ready is healthy", "{status: {conditions: [{type: Ready, status: 'True'}]}}", True),
    SERVICE.healthy(
        "that is not ready is unhealthy", "{status: {conditions: [{type: Ready, status: 'False'}]}}", False,
    ),
    *(maker.aggregated("without clusters is unchanged", "{spec: {a: 1}, status: {b: 1}}", "{}",
                       "{spec: {a: 1}, status: {b: 1}}") for maker in ALL),
    *(maker.aggregated("of one cluster is as it is there", "{spec: {a: 1}, status: {b: 1}}", "{m1: {odd: 2}}",
                       "{status: {odd: 2}}") for maker in ALL),
    CLUSTER.aggregated(
        "adds up workers and resources", "{spec: {a: 1}}",
        "{m1: {readyWorkerReplicas: 1, desiredCPU: '1', desiredMemory: 1Gi, desiredGPU: '1', lastUpdateTime: '2',"
        " conditions: [{type: A}], endpoints: {e: 1}}, m2: {readyWorkerReplicas: 2, desiredCPU: 500m,"
        " desiredMemory: 1Gi,"
        " desiredGPU: '2', lastUpdateTime: '1', conditions: [{type: A}], endpoints: {e: 2}, head: {h: 2}, state: ready,"
        " stateTransitionTimes: {ready: t}}, m3: null}",
        "{status: {readyWorkerReplicas: 3, availableWorkerReplicas: 0, maxWorkerReplicas: 0, minWorkerReplicas: 0,"
        " desiredWorkerReplicas: 0, desiredCPU: 1500m, desiredMemory: 2Gi, desiredGPU: '3', desiredTPU: '0',"
        " lastUpdateTime: '2', conditions: [{type: A}, {type: A}], endpoints: {e: 1}, head: {h: 2}, state: ready,"
        " stateTransitionTimes: {ready: t}}}"),
    JOB.aggregated(
        "shows the worst of deployment and job, each for itself", "{spec: {a: 1}, status: {jobId: i}}",
        "{m1: {jobDeploymentStatus: Running, jobStatus: FAILED, message: a},"
        " m2: {jobDeploymentStatus: ValidationFailed,"
        " reason: r, message: b}, m3: {jobDeploymentStatus: Complete, jobStatus: SUCCEEDED}, m4: null}",
        "{status: {jobId: i, jobDeploymentStatus: ValidationFailed, reason: r, message: b, jobStatus: FAILED}}"),
    JOB.aggregated(
        "shows the first of equals", "{}",
        "{m1: {jobDeploymentStatus: Suspending, jobStatus: ODD}, m2: {jobDeploymentStatus: Suspended}}",
        "{status: {jobDeploymentStatus: Suspending, jobStatus: ODD}}"),
    SERVICE.aggregated(
        "shows the worst state of each application", "{spec: {a: 1}}",
        "{m1: {serviceStatus: Running, numServeEndpoints: 1, observedGeneration: 2, lastUpdateTime: '1', conditions:"
        " [{type: A}], activeServiceStatus: {rayClusterName: x, applicationStatuses: {web: {status: RUNNING},"
        " api: {status: UNHEALTHY}}}}, m2: {serviceStatus: Running, numServeEndpoints: 2, observedGeneration: 1,"
        " lastUpdateTime: '2', activeServiceStatus: {rayClusterName: y, applicationStatuses: {web: {status: DEPLOYING},"
        " api: {status: RUNNING}}}, pendingServiceStatus: {p: 1}}}",
        "{status: {serviceStatus: Running, numServeEndpoints: 3, observedGeneration: 2, lastUpdateTime: '2',"
        " conditions:"
        " [{type: A}], activeServiceStatus: {rayClusterName: x, applicationStatuses: {web: {status: DEPLOYING},"
        " api: {status: UNHEALTHY}}}, pendingServiceStatus: {p: 1}}}"),
    SERVICE.aggregated(
        "does not run while a cluster has an empty state", "{}",
        "{m1: {serviceStatus: Running}, m2: {serviceStatus: ''}}",
        "{status: {serviceStatus: '', numServeEndpoints: 0, observedGeneration: 0}}"),
    JOB.depends("refers to what its Pods do, and all sources of volumes",
                "{spec: {rayClusterSpec: " + REFERRING + ","
                " submitterPodTemplate: {spec: {volumes: [{configMap: {name: d}}]}}}}",
                "ConfigMap/c", "ConfigMap/d", "Secret/a", "Secret/b", "ServiceAccount/robot"),
    SERVICE.depends("refers to what its Pods do", "{spec: {rayClusterConfig: " + REFERRING + "}}",
                    "ConfigMap/c", "Secret/a", "Secret/b", "ServiceAccount/robot"),
    SERVICE.replicas("has a head and workers, each as large as the largest",
    "{spec: {rayClusterConfig: " + RAY + "}}", 3,
                     "{resourceRequest: {cpu: '2', memory: 4Gi}}"),
    SERVICE.replicas("without a head has none", "{spec: {rayClusterConfig: {}}}", 0),
    SERVICE.replicas("whose head needs nothing needs nothing",
                     "{spec: {rayClusterConfig: {headGroupSpec: {template: {spec: {}}},"
                     " workerGroupSpecs: [{replicas: 2,"
                     " template: " + LARGE + "}]}}}", 3),
    SERVICE.revised(
        "without workers is unchanged", "{spec: {rayClusterConfig: {}}}", 4, "{spec: {rayClusterConfig: {}}}",
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_kinds_of_kuberay(case: Case) -> None:
    check(case)


def service(groups: list[int]) -> Obj:
    specs = [{"groupName": f"g{index}", "replicas": count} for index, count in enumerate(groups)]
    return {**SERVICE.make(), "spec": {"rayClusterConfig": {"workerGroupSpecs": specs}}}


def revised(groups: list[int], replicas: int) -> list[int]:
    made = result("revise_replica", service(groups), replicas)
    return [group["replicas"] for group in made["spec"]["rayClusterConfig"]["workerGroupSpecs"]]


@cases(
    ([3], 7, [6]),
    ([1, 2, 3], 13, [2, 4, 6]),
    ([0, 0], 7, [3, 3]),
    ([0, 0, 0], 6, [2, 2, 1]),
    ([2, 3], 1, [0, 0]),
    ([2, 3], 0, [0, 0]),
    ([1, 1], 2, [1, 0]),
)
def test_workers_are_divided_as_they_are_now(groups: list[int], replicas: int, expected: list[int]) -> None:
    assert revised(groups, replicas) == expected


@given(st.lists(st.integers(0, 50), min_size=1, max_size=6), st.integers(0, 200))
def test_no_worker_is_lost_when_replicas_are_revised(groups: list[int], replicas: int) -> None:
    assert sum(revised(groups, replicas)) == max(0, replicas - 1)


@cases(("x" * 33, "32"), (3, "Expected `str`"))
def test_a_group_whose_name_no_component_can_have_is_an_error(group: object, problem: str) -> None:
    cluster = {**CLUSTER.make(), "spec": {"workerGroupSpecs": [{"groupName": group}]}}
    with pytest.raises(InterpreterError, match=rf"components\[0\]: .*{problem}"):
        result("get_components", cluster)
