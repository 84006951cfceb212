"""Kinds with several pod templates: their components are interpreted, written into bindings, and placed as a whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from karmada.api.work import ResourceBinding
from karmada.kube.objects import meta
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.types import Obj
from tests.interpreter.workloads import CustomKinds
from tests.support.custom_kinds import definition, version
from tests.support.objects import kube_object

FLINK = GVR("flink.apache.org", "v1beta1", "flinkdeployments")
ONE_CLUSTER = {
    "spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}],
    "replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"},
}


def flink(name: str, tasks: int) -> Obj:
    """One job manager and as many task managers, of three CPUs each."""
    needs = {"resource": {"cpu": 3, "memory": "1Gi"}}
    return kube_object("flink.apache.org/v1beta1", "FlinkDeployment", name, "default") | {
        "spec": {
            "jobManager": {"replicas": 1, **needs},
            "taskManager": {"replicas": tasks, **needs},
            "job": {"parallelism": tasks},
        },
    }


class Unequal(CustomKinds):
    """m1 has two nodes of four CPUs, m2 four of them."""

    async def start(self) -> None:
        await self.begin(seconds=0)
        await self.add("m1", nodes=2)
        await self.add("m2", nodes=4)
        await self.serve(
            definition("flink.apache.org", "FlinkDeployment", version("v1beta1", subresources={"status": {}}))
        )
        await self.fleet.run(60)


def outcome(folder: Path, gates: str, **jobs: int) -> dict[str, Obj]:
    """The bindings of Flink jobs with so many task managers, which may be in one cluster each."""

    kinds = Unequal(folder, gates=gates)

    async def play() -> dict[str, Obj]:
        await kinds.start()
        found: dict[str, Any] = {}
        for name, tasks in jobs.items():
            await kinds.propagate(flink(name, tasks), FLINK, placement=ONE_CLUSTER)
            found[name] = await kinds.client.get(ResourceBinding.gvr, f"{name}-flinkdeployment", "default")
        return found

    found = kinds.play(play())
    kinds.stop()
    return found


def test_a_job_goes_where_all_of_its_components_fit(tmp_path: Path) -> None:
    found = outcome(tmp_path, "MultiplePodTemplatesScheduling=true", large=3, huge=30)
    large, huge = found["large"]["spec"], found["huge"]
    assert [(part["name"], part["replicas"]) for part in large["components"]] == [("jobmanager", 1), ("taskmanager", 3)]
    assert large["components"][0]["replicaRequirements"]["resourceRequest"]["cpu"] == "3"
    assert "replicas" not in large
    assert large["clusters"] == [{"name": "m2"}], "the four pods need four nodes"
    condition = meta.get_condition(huge["status"]["conditions"], "Scheduled")
    assert condition is not None
    assert condition["status"] == "False"
    assert not huge["spec"].get("clusters")


def test_without_the_gate_components_are_one_number(tmp_path: Path) -> None:
    spec = outcome(tmp_path, "MultiplePodTemplatesScheduling=false", job=3)["job"]["spec"]
    assert "components" not in spec
    assert spec["replicas"] == 4
