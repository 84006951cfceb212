"""What the template's content gives to the binding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from karmada.controllers.context import Context
from karmada.controllers.detector import detector_parts
from karmada.interpreter.operations import INTERPRET_COMPONENT, INTERPRET_REPLICA, InterpreterError, Replicas
from karmada.kube.objects.gvk import GVK, GVR
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Reconciler
from tests.support.cases import cases
from tests.support.control_plane import running
from tests.support.objects import kube_object
from tests.support.propagation import (
    BINDINGS,
    CLUSTER_BINDINGS,
    Propagation,
    cluster_policy,
    cluster_role,
    config_map,
    deployment,
    placed,
    policy,
    selecting,
)

PRIORITY_CLASSES = GVR("scheduling.k8s.io", "v1", "priorityclasses")
COMPONENTS = [{"name": "head", "replicas": 1}, {"name": "worker", "replicas": 3}]


class Scripted:
    """An interpreter whose answers the test sets; an error is raised."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers

    def enabled(self, gvk: GVK, operation: str) -> bool:
        return gvk.kind == "Deployment" and operation in self.answers

    def _answer(self, operation: str) -> Any:
        answer = self.answers[operation]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def get_replicas(self, _obj: Obj) -> Replicas:
        answer: Replicas = self._answer(INTERPRET_REPLICA)
        return answer

    async def get_components(self, _obj: Obj) -> list[Obj]:
        answer: list[Obj] = self._answer(INTERPRET_COMPONENT)
        return answer


async def bound(folder: Path, interpreter: Scripted, gates: str, *objects: Obj, classes: tuple[Obj, ...] = ()) -> Any:
    """The plane's bindings' specs by name, and the events of what is called nginx."""

    def parts(context: Context) -> list[Reconciler]:
        context.gates.set(gates)
        return detector_parts(context, interpreter)

    async with running(folder, parts) as control_plane:
        plane = Propagation(control_plane)
        for found in classes:
            await plane.client.create(PRIORITY_CLASSES, found)
        await plane.apply(*objects)
        specs = {}
        for kind in (BINDINGS, CLUSTER_BINDINGS):
            for binding in (await plane.client.list_all(kind)).items:
                specs[binding["metadata"]["name"]] = binding["spec"]
        return specs, await plane.events("nginx")


async def test_replicas_and_what_they_need_are_requested(folder: Path) -> None:
    interpreter = Scripted(InterpretReplica=Replicas(0, {}))
    specs, _ = await bound(folder, interpreter, "", deployment(), policy())
    assert "replicas" not in specs["nginx-deployment"]
    assert specs["nginx-deployment"]["replicaRequirements"] == {}


async def test_what_is_no_workload_has_no_replicas(folder: Path) -> None:
    specs, events = await bound(folder, Scripted(), "", config_map("nginx"), policy("pp", selecting("ConfigMap")))
    assert not {"replicas", "replicaRequirements", "components"} & specs["nginx-configmap"].keys()
    assert [reason for _, reason, _ in events] == ["ApplyPolicySucceed"]


async def test_a_failed_answer_is_reported_and_nothing_is_bound(folder: Path) -> None:
    interpreter = Scripted(InterpretReplica=InterpreterError("no such field"))
    specs, events = await bound(folder, interpreter, "", deployment(), policy())
    assert specs == {}
    assert events == [
        ("Warning", "GetReplicasFailed", "no such field"),
        ("Warning", "ApplyPolicyFailed", "Apply policy(default/pp) failed: no such field"),
    ]


async def test_quotas_are_estimated_in_the_templates_namespace(folder: Path) -> None:
    interpreter = Scripted(InterpretReplica=Replicas(1, {"resourceRequest": {"cpu": "1"}}))
    specs, _ = await bound(folder, interpreter, "ResourceQuotaEstimate=true", deployment(), policy())
    requirements = specs["nginx-deployment"]["replicaRequirements"]
    assert requirements == {"resourceRequest": {"cpu": "1"}, "namespace": "default"}


@cases(("true", "components"), ("false", "replicas"))
async def test_components_take_the_place_of_replicas_behind_a_gate(gate: str, field: str, folder: Path) -> None:
    interpreter = Scripted(InterpretReplica=Replicas(4, None), InterpretComponent=COMPONENTS)
    gates = f"MultiplePodTemplatesScheduling={gate}"
    specs, events = await bound(folder, interpreter, gates, deployment(), policy())
    assert specs["nginx-deployment"][field] == {"components": COMPONENTS, "replicas": 4}[field]
    assert ({"components", "replicas"} - {field}).pop() not in specs["nginx-deployment"]
    word = field.capitalize()
    assert events[0] == ("Normal", f"Get{word}Succeed", f"Get {field} of resource template successfully.")


async def test_failed_components_are_reported(folder: Path) -> None:
    interpreter = Scripted(InterpretComponent=InterpreterError("no pods"))
    specs, events = await bound(folder, interpreter, "MultiplePodTemplatesScheduling=true", deployment(), policy())
    assert (specs, events[0]) == ({}, ("Warning", "GetComponentsFailed", "no pods"))


async def test_priorities_and_groups_come_with_their_gates_and_only_in_namespaces(folder: Path) -> None:
    placement = {**placed("m1"), "workloadAffinity": {"affinity": {"groupByLabelKey": "app"}}}
    priority = {"priorityClassSource": "KubePriorityClass", "priorityClassName": "high"}
    rules: Any = {"placement": placement, "schedulePriority": priority}
    high = kube_object("scheduling.k8s.io/v1", "PriorityClass", "high", value=1000)
    objects = (
        deployment(labels={"app": "a"}),
        cluster_role("mine", labels={"app": "a"}),
        policy("pp", selecting(), **rules),
        cluster_policy("cpp", selecting("ClusterRole", name="mine"), **rules),
    )
    gates = "PriorityBasedScheduling=true,WorkloadAffinity=true"
    specs, _ = await bound(folder, Scripted(), gates, *objects, classes=(high,))
    assert specs["nginx-deployment"]["schedulePriority"] == {"priority": 1000}
    assert specs["nginx-deployment"]["workloadAffinityGroups"] == {"affinityGroup": "app=a"}
    assert not {"schedulePriority", "workloadAffinityGroups"} & specs["mine-clusterrole"].keys()
    without, _ = await bound(folder, Scripted(), "", *objects)
    assert not {"schedulePriority", "workloadAffinityGroups"} & without["nginx-deployment"].keys()


async def test_a_missing_priority_class_is_reported(folder: Path) -> None:
    priority = {"priorityClassSource": "KubePriorityClass", "priorityClassName": "none"}
    objects = (deployment(), policy("pp", selecting(), schedulePriority=priority))
    specs, events = await bound(folder, Scripted(), "PriorityBasedScheduling=true", *objects)
    text = 'Apply policy(default/pp) failed: priorityclasses.scheduling.k8s.io "none" not found'
    assert (specs, events) == ({}, [("Warning", "ApplyPolicyFailed", text)])
