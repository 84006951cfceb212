"""A fleet in memory with quotas: two members, and workloads that request CPU."""

from __future__ import annotations

from karmada.api.policy import FederatedResourceQuota, PropagationPolicy
from karmada.api.well_known import execution_namespace
from karmada.api.work import ResourceBinding, Work
from karmada.kube.objects import meta
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import DEPLOYMENTS
from karmada.kube.objects.types import Obj
from tests.support.objects import kube_object
from tests.support.played_fleet import PlayedFleet
from tests.support.propagation import deployment, placed, policy, selecting

QUOTAS, EVENTS = FederatedResourceQuota.gvr, GVR("", "v1", "events")
RESOURCE_QUOTAS = GVR("", "v1", "resourcequotas")


def quota(overall: Obj, name: str = "team", **assigned: Obj) -> Obj:
    assignments = [{"clusterName": cluster, "hard": hard} for cluster, hard in assigned.items()]
    return kube_object(FederatedResourceQuota.gvk.api_version, "FederatedResourceQuota", name, "default") | {
        "spec": {"overall": overall, "staticAssignments": assignments}
    }


def workload(name: str, replicas: int, cpu: str) -> Obj:
    made = deployment(name, replicas=replicas)
    made["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    return made


class QuotaFleet(PlayedFleet):
    async def start(self) -> None:
        await self.begin("m1", "m2", nodes=2, seconds=60)

    async def clear(self) -> None:
        await self.remove(PropagationPolicy.gvr, DEPLOYMENTS, QUOTAS)
        await self.run(60)

    # what happens

    async def run(self, seconds: float = 20) -> None:
        await self.fleet.run(seconds)

    async def limit(self, made: Obj) -> None:
        await self.client.create(QUOTAS, made)
        await self.run()

    async def change(self, patch: Obj, name: str = "team") -> None:
        await self.client.patch(QUOTAS, name, "default", patch)
        await self.run()

    async def deploy(self, name: str, replicas: int, cpu: str = "1") -> None:
        """All replicas in m1."""
        placement = {**placed("m1"), "replicaScheduling": {"replicaSchedulingType": "Divided"}}
        await self.client.create(PropagationPolicy.gvr, policy(name, selecting(name=name), placement=placement))
        await self.client.create(DEPLOYMENTS, workload(name, replicas, cpu))
        await self.run()

    async def scale(self, name: str, replicas: int) -> None:
        await self.client.patch(DEPLOYMENTS, name, "default", {"spec": {"replicas": replicas}})
        await self.run()

    # what is there

    def status(self, name: str = "team") -> Obj:
        found: Obj = self.stored(QUOTAS)[name].get("status") or {}
        return found

    def works(self, cluster: str) -> dict[str, Obj]:
        works = self.stored(Work.gvr, execution_namespace(cluster))
        label = "federatedresourcequota.karmada.io/name"
        return {name: work for name, work in works.items() if label in meta.labels(work)}

    def hard(self, cluster: str) -> dict[str, Obj]:
        found = self.stored(RESOURCE_QUOTAS, member=cluster)
        return {name: one["spec"]["hard"] for name, one in found.items()}

    def reasons(self, name: str = "team") -> dict[str, str]:
        """Messages of the events of a quota, by reason."""
        events = self.stored(EVENTS).values()
        return {event["reason"]: event["message"] for event in events if event["involvedObject"]["name"] == name}

    def scheduled(self, name: str) -> tuple[str, str]:
        """Reason and message of the condition Scheduled of a Deployment's binding."""
        binding = self.stored(ResourceBinding.gvr)[f"{name}-deployment"]
        [found] = [c for c in binding["status"]["conditions"] if c["type"] == "Scheduled"]
        return found["reason"], found["message"]
