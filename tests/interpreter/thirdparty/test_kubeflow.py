"""Kinds of Kubeflow."""

from __future__ import annotations

import pytest

from tests.interpreter.thirdparty.cases import NOW, Case, Maker, check, items, result
from tests.support.cases import cases

NOTEBOOK, TORCH = Maker("kubeflow.org/v1", "Notebook"), Maker("kubeflow.org/v1", "PyTorchJob")
TENSORFLOW, MPI = Maker("kubeflow.org/v1", "TFJob"), Maker("kubeflow.org/v2beta1", "MPIJob")
POD = "{spec: {containers: [{name: a, resources: {requests: {cpu: 1}}, envFrom: [{secretRef: {name: token}}]}]}}"
NEEDS = "{resourceRequest: {cpu: '1'}}"
PROBED = "lastProbeTime: '" + NOW + "', lastTransitionTime: '" + NOW + "'"

CASES: list[Case] = [
    NOTEBOOK.replicas("has one replica", "{spec: {template: " + POD + "}}", 1, NEEDS),
    NOTEBOOK.healthy("without a state is unhealthy", "{status: {readyReplicas: 1}}", False),
    NOTEBOOK.healthy("that runs is healthy", "{status: {containerState: {running: {startedAt: t}}}}", True),
    NOTEBOOK.healthy("that is created is healthy",
                     "{status: {containerState: {waiting: {reason: ContainerCreating}}}}", True),
    NOTEBOOK.healthy("that waits is unhealthy", "{status: {containerState: {waiting: {reason: ErrImagePull}}}}", False),
    NOTEBOOK.healthy("that ended is healthy",
                     "{status: {containerState: {terminated: {reason: Completed, exitCode: 0}}}}", True),
    NOTEBOOK.healthy("that ended with an exit code is unhealthy",
                     "{status: {containerState: {terminated: {reason: Completed, exitCode: 1}}}}", False),
    NOTEBOOK.healthy("that was killed is unhealthy",
                     "{status: {containerState: {terminated: {reason: OOMKilled, exitCode: 0}}}}", False),
    NOTEBOOK.reflected("reports its container",
    "{status: {containerState: {running: {}}, conditions: [{type: A}], x: 1}}",
                       "{readyReplicas: 0, containerState: {}, conditions: [{type: A}]}"),
    NOTEBOOK.aggregated("without clusters is unchanged", "{status: {a: 1}}", "{}", "{status: {a: 1}}"),
    NOTEBOOK.aggregated("of one cluster is as it is there", "{status: {a: 1}}", "{m1: {readyReplicas: 1}}",
                        "{status: {readyReplicas: 1}}"),
    NOTEBOOK.aggregated(
        "is ready when it is everywhere, since the last start", "{}",
        "{m1: {readyReplicas: 1, containerState: {running: {startedAt: '2'}}},"
        " m2: {readyReplicas: 1, containerState: {running: {startedAt: '1'}}}}",
        "{status: {readyReplicas: 2, containerState: {running: {startedAt: '2'}}, conditions: [{type: Ready,"
        " status: 'True', " + PROBED + ", reason: Ready, message: All notebooks are ready}]}}"),
    NOTEBOOK.aggregated(
        "is as it is in the last cluster where it failed", "{}",
        "{m1: {containerState: {waiting: {reason: W}}}, m2: {readyReplicas: 1,"
        " containerState: {running: {startedAt: '1'}}},"
        " m3: {containerState: {}}}",
        "{status: {readyReplicas: 1, containerState: {waiting: {reason: Unschedulable}}, conditions: [{type: Failed,"
        " status: 'True', " + PROBED + ", reason: NotebookFailed,"
        " message: 'Notebook executed failed in member clusters: m1, m3'}]}}"),
    NOTEBOOK.aggregated(
        "has no condition while a cluster has not reported", "{status: {conditions: [{type: Ready}]}}",
        "{m1: {readyReplicas: 1, containerState: {running: {startedAt: '1'}}}, m2: null}",
        "{status: {readyReplicas: 1, containerState: {running: {startedAt: '1'}}}}"),
    TORCH.components(
        "has a component for each role",
        "{spec: {pytorchReplicaSpecs: {Worker: {replicas: 3, template: {spec: {}}}, Master: {template: " + POD + "}}}}",
        "[{name: master, replicas: 1, replicaRequirements: " + NEEDS + "}, {name: worker, replicas: 3}]"),
    *(job.healthy("without conditions is unhealthy", "{status: {}}", False) for job in (TORCH, TENSORFLOW, MPI)),
    *(job.healthy("that failed is unhealthy", "{status: {conditions: [{type: Failed, status: 'True'}]}}", False)
      for job in (TORCH, TENSORFLOW, MPI)),
    *(job.healthy("that does not fail any more is healthy", "{status: {conditions: [{type: Failed, status: 'False'}]}}",
                  True) for job in (TORCH, TENSORFLOW, MPI)),
    MPI.healthy("with an empty list of conditions is unhealthy", "{status: {conditions: []}}", False),
    TORCH.depends("refers to what its Pods do",
                  "{spec: {pytorchReplicaSpecs: {Worker: {template: " + POD + "}, Master: {template: {spec:"
                  " {serviceAccountName: robot}}}}}}", "Secret/token", "ServiceAccount/robot"),
    TORCH.depends("without Pods refers to nothing", "{spec: {}}"),
    *(job.aggregated("without clusters starts anew",
                     "{status: {startTime: t, completionTime: t, replicaStatuses: {Worker: {active: 1}},"
                     " conditions: [{type: A}], more: 1}}", "{}",
                     "{status: {more: 1}}") for job in (TORCH, TENSORFLOW)),
    TORCH.aggregated(
        "runs", "{}",
        "{m1: {startTime: '2', replicaStatuses: {Master: {active: 1}, Worker: {active: 2}},"
        " conditions: [{type: Created,"
        " status: 'True'}, {type: Running, status: 'True', lastUpdateTime: '3', lastTransitionTime: '3'}]},"
        " m2: {startTime: '1', lastReconcileTime: '4', completionTime: '9', replicaStatuses: {Worker: {succeeded: 1}},"
        " conditions: [{type: Succeeded, status: 'True'}]}}",
        "{status: {startTime: '1', lastReconcileTime: '4', replicaStatuses: {Master: {active: 1}, Worker: {active: 2,"
        " succeeded: 1}}, conditions: [{type: Created, status: 'True', lastUpdateTime: '1', lastTransitionTime: '1',"
        " reason: PyTorchJobCreated, message: PyTorchJob is created.}, {type: Running, status: 'True',"
        " lastUpdateTime: '3',"
        " lastTransitionTime: '3', reason: PyTorchJobRunning, message: PyTorchJob is running.}]}}"),
    TORCH.aggregated(
        "has failed when it has anywhere", "{}",
        "{m1: {completionTime: '8', conditions: [{type: Succeeded, status: 'True'}, {type: Failed, status: 'True'}]},"
        " m2: {conditions: [{type: Running, status: 'True', lastUpdateTime: '3', lastTransitionTime: '2'}]},"
        " m3: {completionTime: '9', conditions: [{type: Failed, status: 'True'}]}}",
        "{status: {conditions: [{type: Running, status: 'False', lastUpdateTime: '3', lastTransitionTime: '2',"
        " reason: PyTorchJobRunning, message: PyTorchJob is running.}, {type: Failed, status: 'True',"
        " lastUpdateTime: '9',"
        " lastTransitionTime: '9', reason: PyTorchJobFailed,"
        " message: 'PyTorchJob executed failed in member clusters: m1, m3'}]}}"),
    TORCH.aggregated(
        "has succeeded when it has everywhere", "{}",
        "{m1: {completionTime: '8', conditions: [{type: Succeeded, status: 'True'}]},"
        " m2: {completionTime: '9', conditions: [{type: Succeeded, status: 'True'}]}}",
        "{status: {completionTime: '9', conditions: [{type: Succeeded, status: 'True', lastUpdateTime: '9',"
        " lastTransitionTime: '9', reason: PyTorchJobSucceeded, message: PyTorchJob is successfully completed.}]}}"),
    TENSORFLOW.components(
        "has a component for each role",
        "{spec: {tfReplicaSpecs: {Evaluator: {template: {spec: {}}}, Master: {template: {spec: {}}}, Chief: {template:"
        " {spec: {}}}, Worker: {replicas: 2, template: " + POD + "}, PS: {replicas: 3, template: {spec: {}}}}}}",
        "[{name: ps, replicas: 3}, {name: worker, replicas: 2, replicaRequirements: " + NEEDS + "}, {name: chief,"
        " replicas: 1}, {name: master, replicas: 1}, {name: evaluator, replicas: 1}]"),
    TENSORFLOW.depends("refers to what its Pods do",
                       "{spec: {tfReplicaSpecs: {PS: {template: " + POD + "}, Worker: {template: " + POD + "}}}}",
                       "Secret/token"),
    TENSORFLOW.aggregated(
        "has failed where its last condition says so", "{}",
        "{m1: {startTime: '2', replicaStatuses: {PS: {failed: 1}}, conditions: [{type: Succeeded, status: 'True'},"
        " {type: Failed, status: 'True'}]}, m2: {startTime: '1', completionTime: '5', replicaStatuses: {PS: {failed: 1,"
        " succeeded: 2}}, conditions: [{type: Failed, status: 'True'}, {type: Succeeded, status: 'True'}]}}",
        "{status: {startTime: '1', replicaStatuses: {PS: {failed: 2, succeeded: 2}}, conditions: [{type: Failed,"
        " status: 'True', " + PROBED + ", reason: TFJobFailed,"
        " message: 'TFJob executed failed in member clusters: m1'}]}}"),
    TENSORFLOW.aggregated(
        "has succeeded when it has everywhere", "{}",
        "{m1: {completionTime: '5', conditions: [{type: Succeeded, status: 'True'}]},"
        " m2: {completionTime: '4', conditions: [{type: Succeeded, status: 'True'}]}}",
        "{status: {completionTime: '5', conditions: [{type: Succeeded, status: 'True', " + PROBED + ","
        " reason: Completed,"
        " message: TFJob completed successfully}]}}"),
    TENSORFLOW.aggregated(
        "has no condition while it runs", "{}", "{m1: {conditions: [{type: Succeeded, status: 'True'}]}, m2: null}",
        "{}"),
    MPI.components(
        "has a component for each role that has Pods, and no workers by default",
        "{spec: {mpiReplicaSpecs: {Launcher: {template: " + POD + "}, Worker: {template: {spec: {}}}, Other: {}}}}",
        "[{name: Launcher, replicas: 1, replicaRequirements: " + NEEDS + "}, {name: Worker, replicas: 0}]"),
    MPI.reflected(
        "reports its Pods by role",
        "{status: {replicaStatuses: {Worker: {active: 0, selector: s, labelSelector: {}}}, startTime: t, more: 1}}",
        "{replicaStatuses: {Worker: {active: 0, selector: s}}, startTime: t}"),
    MPI.aggregated("without clusters is unchanged", "{status: {a: 1}}", "{}", "{status: {a: 1}}"),
    MPI.aggregated(
        "of one cluster is as it is there", "{status: {a: 1}}", "{m1: {startTime: t}}", "{status: {startTime: t}}",
    ),
    MPI.aggregated(
        "has the latest condition of each type", "{}",
        "{m1: {startTime: '2', completionTime: '5', replicaStatuses: {Worker: {active: 1, selector: s}}, conditions:"
        " [{type: Created, lastUpdateTime: '1', message: a}, {type: Running, lastTransitionTime: '4'}, {type: Odd}]},"
        " m2: {startTime: '1', lastReconcileTime: '6', replicaStatuses: {Worker: {active: 2}, Launcher: {failed: 1}},"
        " conditions: [{type: Created, lastUpdateTime: '2', message: b}, {type: Running, lastUpdateTime: '3'}]}}",
        "{status: {startTime: '1', completionTime: '5', lastReconcileTime: '6', replicaStatuses: {Worker: {active: 3,"
        " succeeded: 0, failed: 0}, Launcher: {active: 0, succeeded: 0, failed: 1}}, conditions: [{type: Created,"
        " lastUpdateTime: '2', message: b}, {type: Running, lastTransitionTime: '4'}]}}"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_kinds_of_kubeflow(case: Case) -> None:
    check(case)


@cases(
    (NOTEBOOK, "{m1: {containerState: {waiting: {reason: W}}}, m2: {containerState: {}}}"),
    (TENSORFLOW, "{m1: {conditions: [{type: Failed, status: 'True'}]}, m2: null}"),
)
def test_a_condition_that_has_not_changed_keeps_its_times(maker: Maker, reported: str) -> None:
    once = result("aggregate_status", maker.make(), items(reported))
    once["status"]["conditions"][0]["lastTransitionTime"] = "2020-01-01T00:00:00Z"
    assert result("aggregate_status", once, items(reported)) == once
