"""Kinds that run to an end: Argo's Workflow, Volcano's Job, Flink and Spark."""

from __future__ import annotations

from typing import Any

import pytest

from karmada.interpreter.operations import InterpreterError
from karmada.kube.objects.quantity import Quantity
from tests.interpreter.thirdparty.cases import NOW, Case, Maker, check, items, load, result
from tests.support.cases import cases

WORKFLOW = Maker("argoproj.io/v1alpha1", "Workflow")
VOLCANO = Maker("batch.volcano.sh/v1alpha1", "Job")
FLINK = Maker("flink.apache.org/v1beta1", "FlinkDeployment")
SPARK = Maker("sparkoperator.k8s.io/v1beta2", "SparkApplication")

FLINK_SPEC = """{spec: {
    flinkConfiguration: {taskmanager.numberOfTaskSlots: '2'},
    job: {parallelism: 5},
    jobManager: {resource: {cpu: 0.5, memory: 2048m}},
    taskManager: {resource: {cpu: 2, memory: 1Gi}},
    podTemplate: {spec: {nodeSelector: {disk: ssd}, priorityClassName: high}}}}"""
PODS = "nodeClaim: {nodeSelector: {disk: ssd}}, priorityClassName: high"

CASES: list[Case] = [
    WORKFLOW.replicas("runs one Pod by default", "{spec: {}}", 1),
    WORKFLOW.replicas(
        "runs as many Pods as it may, on its nodes",
        "{spec: {parallelism: 3, nodeSelector: {a: b}, tolerations: [{key: k}], affinity: {nodeAffinity:"
        " {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [1]}}},"
        " templates: [{container: {resources: {requests: {cpu: 1}}}}]}}", 3,
        "{nodeClaim: {nodeSelector: {a: b}, tolerations: [{key: k}], hardNodeAffinity: {nodeSelectorTerms: [1]}}}"),
    WORKFLOW.revised("is revised in its parallelism", "{spec: {}}", 2, "{spec: {parallelism: 2}}"),
    WORKFLOW.healthy("without a status is unhealthy", "{}", False),
    WORKFLOW.healthy("without a phase is unhealthy", "{status: {phase: ''}}", False),
    WORKFLOW.healthy("in error is unhealthy", "{status: {phase: Error}}", False),
    WORKFLOW.healthy("that failed is unhealthy", "{status: {phase: Failed}}", False),
    WORKFLOW.healthy("that runs is healthy", "{status: {phase: Running}}", True),
    WORKFLOW.retained("keeps its status and suspension", "{spec: {a: 1}, status: {b: 1}}",
                      "{spec: {suspend: true}, status: {c: 2}}", "{spec: {a: 1, suspend: true}, status: {c: 2}}"),
    WORKFLOW.retained(
        "without a status in the cluster is as desired", "{spec: {a: 1}}", "{spec: {}}", "{spec: {a: 1}}",
    ),
    WORKFLOW.reflected(
        "reports its whole status", "{status: {phase: Running, nodes: {}}}", "{phase: Running, nodes: {}}",
    ),
    WORKFLOW.depends(
        "refers to accounts, claims, ConfigMaps and Secrets",
        "{spec: {executor: {serviceAccountName: default}, serviceAccountName: robot, volumeClaimTemplates: [{metadata:"
        " {name: work}}], imagePullSecrets: [{name: pull}], volumes: [{persistentVolumeClaim: {claimName: data}},"
        " {configMap: {name: conf}}, {secret: {name: odd}}, {secret: {secretName: usual}}]}}",
        "ConfigMap/conf", "PersistentVolumeClaim/data", "PersistentVolumeClaim/work", "Secret/odd", "Secret/pull",
        "Secret/usual", "ServiceAccount/default", "ServiceAccount/robot"),
    WORKFLOW.depends("does not refer to the default account", "{spec: {serviceAccountName: default}}"),
    VOLCANO.components(
        "has a component for each task",
        "{spec: {tasks: [{name: ps, minAvailable: 2,"
        " template: {spec: {containers: [{resources: {requests: {cpu: 1}}}]}}},"
        " {replicas: 5, template: {spec: {}}}]}}",
        "[{name: ps, replicas: 2, replicaRequirements: {resourceRequest: {cpu: '1'}}}, {name: task-1, replicas: 1}]"),
    VOLCANO.components("without tasks has none", "{spec: {}}", "[]"),
    VOLCANO.healthy("that runs is healthy", "{status: {state: {phase: Running}}}", True),
    VOLCANO.healthy("that was aborted is healthy", "{status: {state: {phase: Aborted}}}", True),
    VOLCANO.healthy("that failed is unhealthy", "{status: {state: {phase: Failed}}}", False),
    VOLCANO.healthy("without a state is unhealthy", "{}", False),
    VOLCANO.reflected("reports counters and state",
    "{status: {running: 0, state: {phase: P}, more: 1, conditions: []}}",
                      "{running: 0, state: {phase: P}}"),
    VOLCANO.aggregated("without clusters is unchanged", "{status: {a: 1}}", "{}", "{status: {a: 1}}"),
    VOLCANO.aggregated("of one cluster is as it is there", "{status: {a: 1}}", "{m1: {running: 0, odd: x}}",
                       "{status: {running: 0, odd: x}}"),
    VOLCANO.aggregated(
        "adds up Pods and takes the longest time", "{}",
        "{m1: {running: 1, pending: 0, version: 3, runningDuration: 1m5s, taskStatusCount: {a: {phase: {Running: 1}}},"
        " controlledResources: {x: '1', y: '1'}, state: {phase: Running}, conditions: [{status: Pending,"
        " lastTransitionTime: t1}, {status: Running, lastTransitionTime: t2}]},"
        " m2: {running: 2, version: 2, runningDuration: 59s, taskStatusCount: {a: {phase: {Running: 2, Failed: 1}},"
        " b: {phase: {Pending: 1}}}, controlledResources: {y: '2'}, state: {phase: Completed}, conditions:"
        " [{status: Running, lastTransitionTime: t3}]}, m3: null}",
        "{status: {running: 3, version: 3, runningDuration: 1m5s, taskStatusCount: {a: {phase: {Running: 3,"
        " Failed: 1}},"
        " b: {phase: {Pending: 1}}}, controlledResources: {x: '1', y: '2'}, conditions: [{status: Pending,"
        " lastTransitionTime: t1}, {status: Running, lastTransitionTime: t3}]}}"),
    VOLCANO.aggregated(
        "has failed when it has anywhere, with the conditions from there", "{}",
        "{m1: {state: {phase: Running}, conditions: [{status: Running}]}, m2: {state: {phase: Aborted}, conditions:"
        " [{status: Running}, {status: Aborted}]}, m3: {state: {phase: Failed}, conditions: [{status: Failed}]}}",
        "{status: {state: {phase: Failed, reason: VolcanoJobFailed, message: 'Job failed in clusters: m2,m3',"
        " lastTransitionTime: '" + NOW + "'}, conditions: [{status: Running}, {status: Aborted}]}}"),
    VOLCANO.aggregated(
        "is completed when it is everywhere", "{}",
        "{m1: {state: {phase: Completed}}, m2: {state: {phase: Completed}}}",
        "{status: {state: {phase: Completed, reason: Completed, message: Job completed successfully,"
        " lastTransitionTime: '" + NOW + "'}}}"),
    FLINK.components(
        "has job managers and task managers", FLINK_SPEC,
        "[{name: jobmanager, replicas: 1, replicaRequirements: {resourceRequest: {cpu: 500m, memory: 2048m},"
        " " + PODS + "}},"
        " {name: taskmanager, replicas: 3, replicaRequirements: {resourceRequest: {cpu: '2', memory: '1073741824'}, "
        + PODS + "}}]"),
    FLINK.components(
        "has as many as it says", "{spec: {jobManager: {replicas: 2}, taskManager: {replicas: '4'}}}",
        "[{name: jobmanager, replicas: 2, replicaRequirements: {resourceRequest: {memory: '0'}}},"
        " {name: taskmanager, replicas: 4, replicaRequirements: {resourceRequest: {memory: '0'}}}]"),
    FLINK.replicas(
        "has the replicas of both, each as large as the larger",
        FLINK_SPEC, 4,
        "{resourceRequest: {cpu: '2', memory: 1Gi}, namespace: shop, " + PODS + "}"),
    *(FLINK.healthy(f"in state {state} is healthy", "{status: {jobStatus: {state: " + state + "}}}", True)
      for state in ("RUNNING", "FINISHED", "FAILED", "CANCELED", "SUSPENDED", "CANCELLING", "FAILING", "RESTARTING")),
    FLINK.healthy("without a job is healthy when it is stable",
                  "{status: {jobManagerDeploymentStatus: READY, lifecycleState: STABLE}}", True),
    FLINK.healthy("without a job is unhealthy when it is not", "{status: {lifecycleState: STABLE}}", False),
    FLINK.healthy("that starts is unhealthy", "{status: {jobStatus: {state: CREATED}}}", False),
    FLINK.healthy("that cannot start is healthy",
                  "{status: {jobStatus: {state: RECONCILING}, error: 'x ImagePullBackOff y'}}", True),
    FLINK.healthy("in an unknown state is unhealthy", "{status: {jobStatus: {state: ODD}}}", False),
    FLINK.reflected("reports its fields", "{status: {error: e, jobStatus: {state: RUNNING}, more: 1}}",
                    "{error: e, jobStatus: {state: RUNNING}}"),
    FLINK.aggregated("without clusters is unchanged", "{status: {a: 1}}", "{}", "{status: {a: 1}}"),
    FLINK.aggregated("is as in the last cluster", "{status: {error: old, more: 1}}",
                     "{m1: {error: e, lifecycleState: L}, m2: {lifecycleState: M, jobStatus: {state: S}}, m3: null}",
                     "{status: {lifecycleState: M, jobStatus: {state: S}, more: 1}}"),
    FLINK.aggregated("without any status has an empty one", "{status: {error: old, clusterInfo: {a: 1}}}", "{m1: null}",
                     "{status: {error: '', jobManagerDeploymentStatus: '', lifecycleState: '',"
                     " observedGeneration: 0}}"),
    SPARK.healthy("without a state is unhealthy", "{}", False),
    SPARK.healthy("that failed is unhealthy", "{status: {applicationState: {state: FAILED}}}", False),
    SPARK.healthy("that is submitted is healthy", "{status: {applicationState: {state: SUBMITTED}}}", True),
    SPARK.components(
        "needs a core and 1408Mi by default", "{spec: {type: Java}}",
        "[{name: driver, replicas: 1, replicaRequirements: {resourceRequest: {cpu: '1', memory: 1408Mi}}},"
        " {name: executor, replicas: 1, replicaRequirements: {resourceRequest: {cpu: '1', memory: 1408Mi}}}]"),
    SPARK.components(
        "needs what it says",
        "{spec: {type: scala, memoryOverheadFactor: '0.5', driver: {cores: 2, memory: 512m, memoryOverhead: 1g,"
        " nodeSelector:"
        " {a: b}, priorityClassName: high, gpu: {name: nvidia.com/gpu, quantity: 2}}, executor: {instances: 2,"
        " memory: 2gb,"
        " gpu: {name: nvidia.com/gpu, quantity: 0}}}}",
        "[{name: driver, replicas: 1, replicaRequirements: {resourceRequest: {cpu: '2', memory: 1536Mi,"
        " nvidia.com/gpu: '2'},"
        " nodeClaim: {nodeSelector: {a: b}}, priorityClassName: high}},"
        " {name: executor, replicas: 2, replicaRequirements: {resourceRequest: {cpu: '1', memory: 3Gi}}}]"),
    SPARK.reflected("reports its fields", "{status: {applicationState: {state: RUNNING}, submissionID: i, more: 1}}",
                    "{applicationState: {state: RUNNING}, submissionID: i}"),
    SPARK.aggregated("without clusters is unchanged", "{status: {a: 1}}", "{}", "{status: {a: 1}}"),
    SPARK.aggregated("of one cluster is as it is there", "{status: {a: 1}}", "{m1: {submissionID: i}}",
                     "{status: {submissionID: i}}"),
    SPARK.aggregated(
        "shows the worst state", "{}",
        "{m1: {applicationState: {state: RUNNING}, executionAttempts: 1, terminationTime: '2', executorState: {a: X}},"
        " m2: {applicationState: {state: FAILED, errorMessage: e}, executionAttempts: 2, terminationTime: '1',"
        " executorState: {b: Y}}, m3: {applicationState: {state: FAILING}}, m4: null}",
        "{status: {applicationState: {state: FAILED, errorMessage: e}, executionAttempts: 3, submissionAttempts: 0,"
        " lastSubmissionAttemptTime: '', terminationTime: '2', executorState: {a: X, b: Y}}}"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_kinds_that_run_to_an_end(case: Case) -> None:
    check(case)


@cases(
    ("{type: Python}", "1433.6Mi"),
    ("{type: R, driver: {memory: 10g}}", "14Gi"),
    ("{type: JAVA, driver: {memory: 10g}}", "11Gi"),
    ("{type: Java, driver: {memory: '1048576'}}", "385Mi"),
    ("{type: Java, driver: {memory: 1g, memoryOverhead: 512k}}", "1049088Ki"),
)
def test_memory_of_spark_is_what_it_says_and_an_overhead(spec: str, memory: str) -> None:
    driver = result("get_components", SPARK.make("{spec: " + spec + "}"))[0]
    needed = Quantity.parse(driver["replicaRequirements"]["resourceRequest"]["memory"])
    assert needed.value() == Quantity.parse(memory).value()


@cases(
    ("{enabled: true, initialExecutors: 3, minExecutors: 2}", 3),
    ("{enabled: true, initialExecutors: 2, minExecutors: 4}", 4),
    ("{enabled: false, initialExecutors: 3}", 1),
    ("{enabled: true}", 1),
)
def test_executors_that_are_allocated_dynamically_start_with_the_most_that_is_requested(
    allocation: str, executors: int
) -> None:
    spec = {"type": "Java", "executor": {"instances": 1}, "dynamicAllocation": load(allocation)}
    assert result("get_components", {**SPARK.make(), "spec": spec})[1]["replicas"] == executors


def test_a_state_that_has_not_changed_keeps_its_time() -> None:
    reports = items("{m1: {state: {phase: Completed}}, m2: {state: {phase: Completed}}}")
    once = result("aggregate_status", VOLCANO.make(), reports)
    once["status"]["state"]["lastTransitionTime"] = "2020-01-01T00:00:00Z"
    assert result("aggregate_status", once, reports) == once


@cases(
    ("get_components", (SPARK.make("{spec: {}}"),), r"spec\.type: required"),
    ("get_components", (SPARK.make("{spec: {type: R, driver: {memory: x}}}"),), r"spec\.driver\.memory: expected"),
    ("get_components", (VOLCANO.make("{spec: {tasks: [{name: a}]}}"),), "template: expected an object"),
    ("get_components", (FLINK.make("{spec: {jobManager: {resource: {memory: -1}}}}"),), "is negative"),
    (
        "aggregate_status",
        (SPARK.make(), items("{m1: {applicationState: {state: ODD}}, m2: null}")),
        "unknown state 'ODD'",
    ),
)
def test_what_cannot_be_read_is_an_error(operation: str, arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(InterpreterError, match=message):
        result(operation, *arguments)
