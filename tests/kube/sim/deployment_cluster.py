"""For tests of Deployments: a cluster that runs their controllers, with what kubectl would do to them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.gvrs import DEPLOYMENTS
from karmada.kube.objects.types import Obj
from karmada.kube.sim.controllers.deployment import Deployments
from karmada.kube.sim.controllers.replicaset import ReplicaSets
from karmada.kube.sim.profile import INSTANT, Profile
from tests.kube.sim.harness import running
from tests.kube.sim.workload_pods import REVISION, Look, ReadyPods, workload
from tests.support.eventually import eventually

HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED = "deployment.kubernetes.io/desired-replicas"
MAXIMUM = "deployment.kubernetes.io/max-replicas"
HASH = "pod-template-hash"


class Cluster(Look):
    kubelet: ReadyPods

    async def make(self, replicas: int = 1, *, annotations: dict[str, str] | None = None, **spec: Any) -> Obj:
        obj = workload("Deployment", replicas, **spec)
        obj["metadata"]["annotations"] = annotations or {}
        return await self.cluster.client.create(DEPLOYMENTS, obj)

    async def run(self, replicas: int = 1, **spec: Any) -> Obj:
        await self.make(replicas, **spec)
        return await self.until_complete()

    async def change(self, spec: Obj, kind: str = "strategic") -> Obj:
        changed = await self.cluster.client.patch(DEPLOYMENTS, "web", "default", {"spec": spec}, type=kind)
        await self.cluster.context.until_seen(self.cluster.context.informers.of(DEPLOYMENTS), [changed])
        return changed

    async def set_image(self, image: str) -> Obj:
        return await self.change({"template": {"spec": {"containers": [{"name": "c", "image": image}]}}})

    async def update(self, image: str) -> Obj:
        await self.set_image(image)
        return await self.until_complete()

    async def scale(self, replicas: int) -> Obj:
        """As kubectl scale does it."""
        client = self.cluster.client
        scale = await client.get(DEPLOYMENTS, "web", "default", subresource="scale")
        await client.update(DEPLOYMENTS, {**scale, "spec": {"replicas": replicas}}, subresource="scale")
        informer = self.cluster.context.informers.of(DEPLOYMENTS)
        await informer.until(lambda: self.deployment()["spec"]["replicas"] == replicas)
        return self.deployment()

    async def undo(self, revision: int) -> Obj:
        """What kubectl rollout undo sends: the old template and the old set's annotations."""
        old = next(rs for rs in self.sets() if rs["metadata"]["annotations"][REVISION] == str(revision))
        template = json.loads(json.dumps(old["spec"]["template"]))
        del template["metadata"]["labels"][HASH]
        kept = (REVISION, HISTORY, DESIRED, MAXIMUM)
        notes = {k: v for k, v in self.deployment()["metadata"].get("annotations", {}).items() if k in kept}
        notes |= {k: v for k, v in old["metadata"]["annotations"].items() if k not in kept}
        patch = [
            {"op": "replace", "path": "/spec/template", "value": template},
            {"op": "replace", "path": "/metadata/annotations", "value": notes},
        ]
        changed = await self.cluster.client.patch(DEPLOYMENTS, "web", "default", patch, type="json")
        await self.cluster.context.until_seen(self.cluster.context.informers.of(DEPLOYMENTS), [changed])
        return await self.until_complete()

    async def scaled(self) -> list[str]:
        """The steps of the events, with the images of the sets in place of their names."""
        images = {
            rs["metadata"]["name"]: rs["spec"]["template"]["spec"]["containers"][0]["image"] for rs in self.sets()
        }
        emitted = [message for _, reason, message in await self.cluster.events("web") if reason == "ScalingReplicaSet"]
        for name, image in images.items():
            emitted = [message.replace(f"replica set {name}", image) for message in emitted]
        return emitted

    async def until_progress(self, reason: str) -> None:
        await eventually(
            lambda: (self.condition("Progressing") or ("", "", ""))[1] == reason, show=lambda: self.deployment()
        )


@asynccontextmanager
async def cluster_of(folder: Path, *, version: str = "1.36", clock: FakeClock | None = None) -> AsyncIterator[Cluster]:
    made: list[ReadyPods] = []

    def parts(context: Any) -> list[Any]:
        made.append(ReadyPods(context))
        return [Deployments(context), ReplicaSets(context), made[0]]

    profile = Profile("test", latencies=INSTANT, version=version)
    async with running(folder, parts, profile=profile, clock=clock) as harness:
        cluster = Cluster(harness)
        cluster.kubelet = made[0]
        yield cluster


def image_of(obj: Obj) -> str:
    spec = obj["spec"]["template"]["spec"] if "template" in obj["spec"] else obj["spec"]
    return str(spec["containers"][0]["image"])
