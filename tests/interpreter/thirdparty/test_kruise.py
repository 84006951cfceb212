"""Kinds of OpenKruise."""

from __future__ import annotations

import pytest

from karmada.interpreter.operations import InterpreterError
from tests.interpreter.thirdparty.cases import Case, Maker, check, result
from tests.support.cases import cases

ALPHA = "apps.kruise.io/v1alpha1"
CRON, BROADCAST, CLONES = Maker(ALPHA, "AdvancedCronJob"), Maker(ALPHA, "BroadcastJob"), Maker(ALPHA, "CloneSet")
DAEMONS, UNITED = Maker(ALPHA, "DaemonSet"), Maker(ALPHA, "UnitedDeployment")
SIDECARS = Maker(ALPHA, "SidecarSet", namespace="")
STATEFUL = Maker("apps.kruise.io/v1beta1", "StatefulSet")

POD = """{spec: {containers: [{name: web, envFrom: [{secretRef: {name: token}}],
          resources: {requests: {cpu: 100m}}}], volumes: [{configMap: {name: conf}}]}}"""
NEEDS = "{resourceRequest: {cpu: 100m}}"
CURRENT = "resourceTemplateGeneration: 5, generation: 2, observedGeneration: 2"
STALE = "resourceTemplateGeneration: 4, generation: 2, observedGeneration: 2"
ANNOTATED = "generation: 3, annotations: {resourcetemplate.karmada.io/generation: '7'}"

CASES: list[Case] = [
    CRON.aggregated("without reports is unchanged", "{status: {type: A}}", "{}", "{status: {type: A}}"),
    CRON.aggregated(
        "gathers what is active and keeps the last type and time",
        "{spec: {paused: true}, status: {lastScheduleTime: old, more: 1}}",
        "{m1: {active: [{name: a}], type: Job, lastScheduleTime: t1}, m2: {active: [{name: b}]}, m3: null}",
        "{spec: {paused: true}, status: {active: [{name: a}, {name: b}], type: Job, lastScheduleTime: t1, more: 1}}",
    ),
    CRON.aggregated(
        "without a type or time has neither", "{status: {lastScheduleTime: old}}", "{m1: {active: []}}",
        "{status: {type: ''}}",
    ),
    CRON.depends("refers to what its Job does",
    f"{{spec: {{template: {{jobTemplate: {{spec: {{template: {POD}}}}}}}}}}}",
                 "ConfigMap/conf", "Secret/token"),
    CRON.depends(
        "refers to what its BroadcastJob does rather than its Job",
        f"{{spec: {{template: {{jobTemplate: {{spec: {{template: {POD}}}}}, broadcastJobTemplate: {{spec: {{template: "
        "{spec: {serviceAccountName: robot}}}}}}}",
        "ServiceAccount/robot",
    ),
    CRON.depends("without a template refers to nothing", "{spec: {}}"),
    BROADCAST.replicas("runs one Pod at a time by default", f"{{spec: {{template: {POD}}}}}", 1, NEEDS),
    BROADCAST.replicas("runs as many as it says", f"{{spec: {{parallelism: 4, template: {POD}}}}}", 4, NEEDS),
    BROADCAST.revised("is revised in its parallelism", "{spec: {}}", 3, "{spec: {parallelism: 3}}"),
    BROADCAST.retained(
        "keeps the labels of its Pods", "{spec: {template: {metadata: {labels: {a: b}}, spec: {}}}}",
        "{spec: {template: {metadata: {labels: {c: d}}}}}",
        "{spec: {template: {metadata: {labels: {c: d}}, spec: {}}}}",
    ),
    BROADCAST.retained("without labels is as desired", "{spec: {a: 1}}", "{spec: {template: {}}}", "{spec: {a: 1}}"),
    BROADCAST.reflected(
        "reports its counters",
        f"{{{ANNOTATED}, status: {{active: 0, desired: 2, phase: running, more: 1, conditions: []}}}}",
        "{active: 0, desired: 2, phase: running}",
    ),
    BROADCAST.reflected("without a status reports nothing", "{}", "{}"),
    BROADCAST.healthy("without Pods to run is unhealthy", "{status: {desired: 0, failed: 0, active: 1}}", False),
    BROADCAST.healthy("with a failed Pod is unhealthy", "{status: {desired: 1, failed: 1, active: 1}}", False),
    BROADCAST.healthy("without a count of failures is unhealthy", "{status: {desired: 1, active: 1}}", False),
    BROADCAST.healthy(
        "that does nothing is unhealthy", "{status: {desired: 1, failed: 0, active: 0, succeeded: 0}}", False,
    ),
    BROADCAST.healthy("that runs is healthy", "{status: {desired: 1, failed: 0, active: 1, succeeded: 0}}", True),
    BROADCAST.aggregated("without reports is unchanged", "{status: {phase: x}}", "{}", "{status: {phase: x}}"),
    BROADCAST.aggregated(
        "is complete when it is everywhere", "{}",
        "{m1: {succeeded: 1, desired: 1, phase: completed, conditions: [{type: Complete, status: 'True'}]},"
        " m2: {succeeded: 2, desired: 2, phase: completed, conditions: [{type: Complete, status: 'True'}]}}",
        "{status: {active: 0, succeeded: 3, failed: 0, desired: 3, phase: completed, conditions:"
        " [{type: Completed, status: 'True', reason: Completed, message: Job completed}]}}",
    ),
    BROADCAST.aggregated(
        "has failed where it has, and in clusters after it that say nothing", "{}",
        "{m1: {failed: 1, conditions: [{type: Failed, status: 'True'}]}, m2: {active: 1}}",
        "{status: {active: 1, succeeded: 0, failed: 1, desired: 0, phase: '', conditions: [{type: Failed,"
        " status: 'True',"
        " reason: JobFailed, message: 'Job executed failed in member clusters: m1, m2'}]}}",
    ),
    BROADCAST.depends("refers to what its Pods do", f"{{spec: {{template: {POD}}}}}", "ConfigMap/conf", "Secret/token"),
    CLONES.replicas("has replicas", f"{{spec: {{replicas: 4, template: {POD}}}}}", 4, NEEDS),
    CLONES.revised("is revised in its replicas", "{spec: {a: {}, b: []}}", 3, "{spec: {a: {}, b: [], replicas: 3}}"),
    CLONES.reflected(
        "reports counters, revisions and generations",
        f"{{{ANNOTATED}, status: {{replicas: 1, updateRevision: r, observedGeneration: 3,"
        f" conditions: [{{type: A}}]}}}}",
        "{replicas: 1, updateRevision: r, observedGeneration: 3, generation: 3, resourceTemplateGeneration: 7}",
    ),
    CLONES.reflected(
        "with an annotation that is no number reports its own generation only",
        "{generation: 3, annotations: {resourcetemplate.karmada.io/generation: abc}, status: {replicas: 0}}",
        "{replicas: 0, generation: 3}",
    ),
    CLONES.aggregated(
        "without reports has observed everything and runs nothing",
        "{generation: 5, status: {observedGeneration: 1, replicas: 3, updateRevision: r}}", "{}",
        "{generation: 5, status: {observedGeneration: 5, replicas: 0, updatedReplicas: 0, readyReplicas: 0,"
        " availableReplicas: 0, updatedReadyReplicas: 0, expectedUpdatedReplicas: 0, updateRevision: r}}",
    ),
    CLONES.aggregated(
        "is observed when all clusters have observed it", "{generation: 5, status: {observedGeneration: 4}}",
        f"{{m1: {{{CURRENT}, replicas: 1, updateRevision: r1, labelSelector: l}}, m2: {{{CURRENT}, replicas: 2,"
        " updateRevision: '', readyReplicas: 2}}",
        "{generation: 5, status: {observedGeneration: 5, replicas: 3, updatedReplicas: 0, readyReplicas: 2,"
        " availableReplicas: 0, updatedReadyReplicas: 0, expectedUpdatedReplicas: 0, updateRevision: r1,"
        " currentRevision: '', labelSelector: l}}",
    ),
    CLONES.healthy(
        "that is rolled out is healthy",
        "{generation: 2, spec: {replicas: 2}, status: {observedGeneration: 2, updatedReplicas: 2,"
        " availableReplicas: 2}}",
        True,
    ),
    CLONES.healthy(
        "that is not observed is unhealthy",
        "{generation: 3, spec: {replicas: 2}, status: {observedGeneration: 2, updatedReplicas: 2,"
        " availableReplicas: 2}}",
        False,
    ),
    CLONES.healthy(
        "whose replicas are not all available is unhealthy",
        "{generation: 2, spec: {}, status: {observedGeneration: 2, updatedReplicas: 2, availableReplicas: 1}}",
        False,
    ),
    CLONES.depends("refers to what its Pods do", f"{{spec: {{template: {POD}}}}}", "ConfigMap/conf", "Secret/token"),
    CLONES.depends("whose Pods refer to nothing has no dependencies", "{spec: {template: {spec: {}}}}"),
    DAEMONS.reflected(
        "reports counters and its hash", f"{{{ANNOTATED}, status: {{numberReady: 1, daemonSetHash: h, more: 1}}}}",
        "{numberReady: 1, daemonSetHash: h, generation: 3, resourceTemplateGeneration: 7}",
    ),
    DAEMONS.aggregated(
        "is not observed while a cluster is behind", "{generation: 5, status: {observedGeneration: 4}}",
        f"{{m1: {{{CURRENT}, numberReady: 1}}, m2: {{{STALE}, numberReady: 2}}}}",
        "{generation: 5, status: {observedGeneration: 4, currentNumberScheduled: 0, numberMisscheduled: 0,"
        " desiredNumberScheduled: 0, numberReady: 3, updatedNumberScheduled: 0, numberAvailable: 0,"
        " numberUnavailable: 0,"
        " daemonSetHash: 0}}",
    ),
    DAEMONS.healthy(
        "on every node is healthy",
        "{generation: 1, status: {observedGeneration: 1, desiredNumberScheduled: 2, updatedNumberScheduled: 2,"
        " numberAvailable: 2}}", True,
    ),
    DAEMONS.healthy(
        "missing on a node is unhealthy",
        "{generation: 1, status: {observedGeneration: 1, desiredNumberScheduled: 2, updatedNumberScheduled: 1,"
        " numberAvailable: 2}}", False,
    ),
    DAEMONS.depends("refers to what its Pods do", f"{{spec: {{template: {POD}}}}}", "ConfigMap/conf", "Secret/token"),
    SIDECARS.replicas("has no replicas of its own", "{spec: {}}", 0),
    SIDECARS.retained("is as desired", "{spec: {a: 1}}", "{spec: {a: 2}}", "{spec: {a: 1}}"),
    SIDECARS.reflected("reports three counters", "{status: {matchedPods: 2, more: 1}}",
                       "{matchedPods: 2, updatedPods: 0, readyPods: 0}"),
    SIDECARS.reflected("without a status reports nothing", "{}", "{}"),
    SIDECARS.aggregated(
        "is returned without its spec", "{spec: {a: 1}, status: {more: 1}}",
        "{m1: {matchedPods: 2, updatedPods: 1, readyPods: 1}, m2: {matchedPods: 1}, m3: null}",
        "{status: {matchedPods: 3, updatedPods: 1, readyPods: 1}}",
    ),
    SIDECARS.healthy("without a status is unhealthy", "{}", False),
    SIDECARS.healthy("that matches nothing is healthy", "{status: {}}", True),
    SIDECARS.healthy("that is not in all Pods is unhealthy", "{status: {matchedPods: 2, updatedPods: 1}}", False),
    SIDECARS.healthy("that is in all Pods is healthy", "{status: {matchedPods: 2, updatedPods: 2}}", True),
    SIDECARS.depends(
        "refers to ConfigMaps and Secrets without a namespace",
        "{spec: {containers: [{env: [{valueFrom: {configMapKeyRef: {name: a}}}], envFrom: [{secretRef: {name: b}}]}],"
        " volumes: [{configMap: {name: a}}, {secret: {secretName: c}}, {projected: {sources: [{secret: {name: d}}]}},"
        " {persistentVolumeClaim: {claimName: e}}]}}",
        "ConfigMap/a", "Secret/b", "Secret/c", "Secret/d",
    ),
    UNITED.replicas("has replicas", f"{{spec: {{replicas: 4, template: {POD}}}}}", 4, NEEDS),
    UNITED.revised("is revised in its replicas", "{spec: {replicas: 1}}", 3, "{spec: {replicas: 3}}"),
    UNITED.reflected(
        "reports counters and conditions",
        f"{{{ANNOTATED}, status: {{replicas: 1, conditions: [{{type: A}}], more: 1}}}}",
        "{replicas: 1, conditions: [{type: A}], generation: 3, resourceTemplateGeneration: 7}",
    ),
    UNITED.aggregated(
        "has the last condition of each type", "{generation: 5}",
        f"{{m1: {{{CURRENT}, replicas: 1, conditions: [{{type: A, status: 'False'}}, {{type: B}}]}},"
        f" m2: {{{CURRENT}, unavailableReplicas: 2, conditions: [{{type: A, status: 'True'}}]}}}}",
        "{generation: 5, status: {observedGeneration: 5, replicas: 1, updatedReplicas: 0, readyReplicas: 0,"
        " availableReplicas: 0, unavailableReplicas: 2, conditions: [{type: A, status: 'True'}, {type: B}]}}",
    ),
    UNITED.aggregated(
        "keeps its conditions when there are no others", "{generation: 5, status: {conditions: [{type: A}]}}",
        "{m1: null}",
        "{generation: 5, status: {observedGeneration: 0, replicas: 0, updatedReplicas: 0, readyReplicas: 0,"
        " availableReplicas: 0, unavailableReplicas: 0, conditions: [{type: A}]}}",
    ),
    UNITED.healthy("without a spec is unhealthy", "{status: {observedGeneration: 0}}", False),
    UNITED.healthy(
        "that is rolled out is healthy",
        "{generation: 1, spec: {replicas: 1}, status: {observedGeneration: 1, updatedReplicas: 1,"
        " availableReplicas: 1}}",
        True,
    ),
    UNITED.depends("refers to what its Pods do", f"{{spec: {{template: {POD}}}}}", "ConfigMap/conf", "Secret/token"),
    STATEFUL.replicas("has replicas", f"{{spec: {{replicas: 4, template: {POD}}}}}", 4, NEEDS),
    STATEFUL.revised("is revised in its replicas", "{spec: {replicas: 1}}", 3, "{spec: {replicas: 3}}"),
    STATEFUL.reflected(
        "reports counters and revisions",
        f"{{{ANNOTATED}, status: {{currentReplicas: 1, currentRevision: r, more: 1}}}}",
        "{currentReplicas: 1, currentRevision: r, generation: 3, resourceTemplateGeneration: 7}",
    ),
    STATEFUL.aggregated(
        "adds up its replicas", "{generation: 5}",
        f"{{m1: {{{CURRENT}, currentReplicas: 1, currentRevision: a}}, m2: {{{CURRENT}, currentReplicas: 2}}}}",
        "{generation: 5, status: {observedGeneration: 5, replicas: 0, readyReplicas: 0, currentReplicas: 3,"
        " updatedReplicas: 0, availableReplicas: 0, updatedReadyReplicas: 0, updateRevision: '', currentRevision: a}}",
    ),
    STATEFUL.healthy(
        "whose replicas are not all updated is unhealthy",
        "{generation: 1, spec: {replicas: 2}, status: {observedGeneration: 1, updatedReplicas: 1,"
        " availableReplicas: 2}}",
        False,
    ),
    STATEFUL.depends(
        "also refers to claims that it makes itself",
        "{spec: {volumeClaimTemplates: [{metadata: {name: data}}], template: {spec: {volumes:"
        " [{persistentVolumeClaim: {claimName: data}}]}}}}",
        "PersistentVolumeClaim/data",
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_kinds_of_kruise(case: Case) -> None:
    check(case)


@cases(
    ("get_replicas", (CLONES.make("{spec: {template: {}}}"),), r"spec\.replicas: expected a number, got None"),
    ("get_replicas", (CLONES.make("{spec: {replicas: 1}}"),), "template: expected an object, got None"),
    ("aggregate_status", (SIDECARS.make(), []), "no cluster reports a status"),
    ("aggregate_status", (CRON.make(), [{"clusterName": "m1", "status": 3}]), "m1: expected an object"),
    ("aggregate_status", (CRON.make(), [{"clusterName": "m1", "status": {"active": 3}}]), "AggregateStatus: "),
    ("reflect_status", (CLONES.make("{status: 3}"),), "status: expected an object"),
)
def test_what_cannot_be_read_is_an_error(operation: str, arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(InterpreterError, match=message):
        result(operation, *arguments)
