"""For tests of workload controllers: a kubelet without delays, manifests, short ways to look at what came of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import DEPLOYMENTS, PODS, REPLICA_SETS
from karmada.kube.objects.meta import get_condition, is_deleting
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Reconciler, Result, Watch
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.keys import Key
from karmada.kube.sim.context import KUBELET, Context
from tests.kube.sim.harness import Harness
from tests.support.eventually import eventually
from tests.support.objects import kube_object


class ReadyPods(Reconciler):
    """Makes every pod ready at once, unless `broken` says otherwise, and lets go of those that are being deleted."""

    name = "ready-pods"
    workers = 4

    def __init__(self, context: Context) -> None:
        self._client = context.client(KUBELET)
        self._clock = context.clock
        self._pods = context.informers.of(PODS)
        self.watches = (Watch(PODS),)
        self.broken: Callable[[Obj], bool] = lambda _: False
        self.holds_on = False
        """Keep pods that are being deleted."""

    async def reconcile(self, key: Key) -> Result:
        pod = self._pods.get(key)
        if pod is None:
            return Done
        try:
            await (self._end(pod, key) if is_deleting(pod) else self._begin(pod, key))
        except NotFound:
            return Done
        return Done

    async def _end(self, pod: Obj, key: Key) -> None:
        if not self.holds_on:
            await self._client.delete(PODS, key.name, key.namespace, grace_period=0, uid=pod["metadata"]["uid"])

    async def _begin(self, pod: Obj, key: Key) -> None:
        if not pod["spec"].get("nodeName"):
            binding = kube_object("v1", "Binding", key.name)
            target = {"target": {"kind": "Node", "name": "n1"}}
            await self._client.create_subresource(PODS, key.name, key.namespace, "binding", binding | target)
            return
        if pod["status"]["phase"] == "Pending" and not self.broken(pod):
            ready = {"type": "Ready", "status": "True", "lastTransitionTime": rfc3339(self._clock.now())}
            patch = {"status": {"phase": "Running", "conditions": [ready]}}
            await self._client.patch(PODS, key.name, key.namespace, patch, type="strategic", subresource="status")


def pod_template(image: str = "nginx:1", app: str = "web") -> Obj:
    return {"metadata": {"labels": {"app": app}}, "spec": {"containers": [{"name": "c", "image": image}]}}


def workload(kind: str, replicas: int = 1, *, name: str = "web", image: str = "nginx:1", **spec: Any) -> Obj:
    return kube_object("apps/v1", kind, name, "default") | {
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": pod_template(image, name),
            **spec,
        },
    }


class Look:
    """What informers of the running cluster know, by kind."""

    def __init__(self, cluster: Harness) -> None:
        self.cluster = cluster

    def _informer(self, resource: GVR) -> Informer:
        return self.cluster.context.informers.of(resource)

    def pods(self, *, going: bool = False) -> list[Obj]:
        return [pod for pod in self._informer(PODS).list() if is_deleting(pod) is going]

    def sets(self) -> list[Obj]:
        return sorted(self._informer(REPLICA_SETS).list(), key=lambda rs: int(rs["metadata"]["annotations"][REVISION]))

    def sizes(self) -> dict[str, int]:
        """Replicas wanted of each ReplicaSet, by its image."""
        return {rs["spec"]["template"]["spec"]["containers"][0]["image"]: rs["spec"]["replicas"] for rs in self.sets()}

    def deployment(self, name: str = "web") -> Obj:
        return self._informer(DEPLOYMENTS).get(Key("default", name)) or {}

    def condition(self, kind: str, obj: Obj | None = None) -> tuple[str, str, str] | None:
        """(status, reason, message)"""
        found = get_condition(((obj or self.deployment()).get("status") or {}).get("conditions"), kind)
        return (found["status"], found["reason"], found["message"]) if found else None

    def complete(self) -> bool:
        """What `kubectl rollout status` waits for."""
        deployment = self.deployment()
        if not deployment:
            return False
        spec, status = deployment["spec"], deployment.get("status") or {}
        return (
            status.get("observedGeneration", 0) >= deployment["metadata"]["generation"]
            and status.get("updatedReplicas", 0) == spec["replicas"] == status.get("availableReplicas", 0)
            and status.get("replicas", 0) == spec["replicas"]
        )

    async def until_complete(self) -> Obj:
        await eventually(self.complete, show=lambda: (self.deployment().get("status"), self.sizes()))
        return self.deployment()


REVISION = "deployment.kubernetes.io/revision"


def rolling(**settings: Any) -> Obj:
    return {"type": "RollingUpdate", "rollingUpdate": settings}
