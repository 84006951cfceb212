"""A kind of its own, its scripts, and a fleet in memory that propagates it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from karmada.api.config import ResourceInterpreterCustomization
from karmada.api.policy import PropagationPolicy
from karmada.api.work import ResourceBinding
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import CRDS
from karmada.kube.objects.types import Obj
from tests.support.custom_kinds import definition, version
from tests.support.objects import kube_object
from tests.support.played_fleet import PlayedFleet
from tests.support.propagation import policy

WORKLOADS = GVR("workload.example.io", "v1alpha1", "workloads")
CUSTOMIZATIONS = ResourceInterpreterCustomization.gvr
MEMBERS = ("m1", "m2")
SCRIPTS = {
    "replicaResource": "function GetReplicas(obj) return obj.spec.replicas, nil end",
    "replicaRevision": "function ReviseReplica(obj, n) obj.spec.replicas = n return obj end",
    "retention": "function Retain(desired, observed) desired.spec.paused = observed.spec.paused return desired end",
    "statusReflection": "function ReflectStatus(obj) return {ready = obj.status.ready} end",
    "healthInterpretation": "function InterpretHealth(obj) return obj.status.ready == obj.spec.replicas end",
    "statusAggregation": """
function AggregateStatus(obj, items)
  local sum = 0
  for i = 1, #(items or {}) do
    if items[i].status ~= nil then sum = sum + (items[i].status.ready or 0) end
  end
  obj.status = {ready = sum}
  return obj
end""",
    "dependencyInterpretation": """
function GetDependencies(obj)
  return {{apiVersion = "v1", kind = "ConfigMap", namespace = obj.metadata.namespace, name = obj.spec.config}}
end""",
}


def workload_kind() -> Obj:
    return definition("workload.example.io", "Workload", version("v1alpha1", subresources={"status": {}}))


def workload(name: str = "app", replicas: int = 4, **spec: Any) -> Obj:
    return kube_object("workload.example.io/v1alpha1", "Workload", name, "default") | {
        "spec": {"replicas": replicas, "config": "settings", **spec}
    }


def customization(name: str = "workload", **scripts: str) -> Obj:
    return kube_object(ResourceInterpreterCustomization.gvk.api_version, "ResourceInterpreterCustomization", name) | {
        "spec": {
            "target": {"apiVersion": "workload.example.io/v1alpha1", "kind": "Workload"},
            "customizations": {field: {"luaScript": script} for field, script in scripts.items()},
        },
    }


DIVIDED = {
    "replicaScheduling": {
        "replicaSchedulingType": "Divided",
        "replicaDivisionPreference": "Weighted",
        "weightPreference": {
            "staticWeightList": [{"targetCluster": {"clusterNames": [name]}, "weight": 1} for name in MEMBERS]
        },
    }
}


class CustomKinds(PlayedFleet):
    """A fleet of two members that serve the kind, as the control plane does."""

    async def start(self) -> None:
        await self.begin(*MEMBERS, seconds=0)
        await self.serve(workload_kind())
        await self.fleet.run(60)

    async def serve(self, crd: Obj) -> None:
        for client in (self.client, *(member.client for member in self.fleet.members.values())):
            await client.create(CRDS, crd)
        await self.fleet.run(1)

    async def propagate(self, obj: Obj, gvr: GVR = WORKLOADS, **spec: Any) -> None:
        name = obj["metadata"]["name"]
        selector = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "name": name}
        placement = {"clusterAffinity": {"clusterNames": list(MEMBERS)}, **spec.pop("placement", DIVIDED)}
        await self.client.create(PropagationPolicy.gvr, policy(name, selector, placement=placement, **spec))
        await self.client.create(gvr, obj)
        await self.fleet.run(5)

    async def binding(self, name: str = "app", kind: str = "workload") -> Obj:
        found: Obj = await self.client.get(ResourceBinding.gvr, f"{name}-{kind}", "default")
        return found

    async def in_member(self, member: str, name: str = "app", gvr: GVR = WORKLOADS) -> Obj:
        return await self.fleet.members[member].client.get(gvr, name, "default")

    async def report(self, member: str, status: Obj, name: str = "app", gvr: GVR = WORKLOADS) -> None:
        """As the operator of the kind in the member would."""
        client = self.fleet.members[member].client
        await client.patch(gvr, name, "default", {"status": status}, subresource="status")
        await self.fleet.run(3)

    async def health(self, name: str = "app", kind: str = "workload") -> dict[str, str]:
        binding = await self.binding(name, kind)
        return {item["clusterName"]: item["health"] for item in binding["status"].get("aggregatedStatus") or ()}

    async def reasons(self, name: str = "app") -> dict[str, str]:
        """Messages of the events about the template, by their reasons."""
        await self.fleet.run(3)
        events = (await self.client.list_all(GVR("", "v1", "events"), "default")).items
        return {event["reason"]: event["message"] for event in events if event["involvedObject"]["name"] == name}


def played(folder: Path, scenario: Callable[[CustomKinds], Coroutine[Any, Any, None]]) -> None:
    kinds = CustomKinds(folder)
    kinds.play(kinds.start())
    kinds.play(scenario(kinds))
    kinds.stop()
