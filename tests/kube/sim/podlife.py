"""What scheduler and kubelet do to pods, without either: bind them, make them ready, end deleted ones, all at once."""

from __future__ import annotations

from collections.abc import Callable

from karmada.kube.objects.errors import Conflict, NotFound
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import PODS
from karmada.kube.objects.meta import is_deleting
from karmada.kube.objects.podstate import is_ready, is_terminal, node_name
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Reconciler, Watch
from karmada.kube.runtime.keys import Key
from karmada.kube.sim.context import KUBELET, Context
from karmada.kube.sim.controllers.daemonset_pods import target_node
from tests.kube.sim.harness import Harness
from tests.support.eventually import eventually


class PodLife(Reconciler):
    """`may_start` and `may_end` hold pods back; call `resume` after changing them."""

    name = "pod-life"

    def __init__(self, context: Context) -> None:
        self._client = context.client(KUBELET)
        self._clock = context.clock
        self._pods = context.informers.of(PODS)
        self.may_start: Callable[[Obj], bool] = lambda _: True
        self.may_end: Callable[[Obj], bool] = lambda _: True
        self.watches = [Watch(PODS)]

    async def resume(self) -> None:
        for pod in self._pods.list():
            await self.reconcile(Key(pod["metadata"]["namespace"], pod["metadata"]["name"]))

    async def reconcile(self, key: Key) -> None:
        pod = self._pods.get(key)
        try:
            if pod is not None:
                await self._move(pod, key)
        except (NotFound, Conflict):
            return

    async def _move(self, pod: Obj, key: Key) -> None:
        if not node_name(pod) and not is_deleting(pod):
            target = {"apiVersion": "v1", "kind": "Node", "name": target_node(pod) or "somewhere"}
            binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": key.name}, "target": target}
            await self._client.create_subresource(PODS, key.name, key.namespace, "binding", binding)
        elif is_deleting(pod):
            if self.may_end(pod):
                await self._client.delete(PODS, key.name, key.namespace, grace_period=0, uid=pod["metadata"]["uid"])
        elif not is_ready(pod) and not is_terminal(pod) and self.may_start(pod):
            since = rfc3339(self._clock.now())
            conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": since}]
            status = {"status": {"phase": "Running", "conditions": conditions}}
            await self._client.patch(PODS, key.name, key.namespace, status, type="strategic", subresource="status")


class SetCluster:
    """A cluster with one workload, whose pods a PodLife moves, and what informers know of the two."""

    def __init__(self, harness: Harness, life: PodLife, kind: GVR, name: str) -> None:
        self.harness, self.client, self.life = harness, harness.client, life
        self._kind, self._name = kind, name
        self._pods, self._sets = harness.context.informers.of(PODS), harness.context.informers.of(kind)

    @property
    def workload(self) -> Obj:
        found = self._sets.get(Key("default", self._name))
        return found if found is not None else {"metadata": {}, "status": {}}

    @property
    def status(self) -> Obj:
        status: Obj = self.workload.get("status") or {}
        return status

    async def create(self, workload: Obj) -> Obj:
        return await self._seen(await self.client.create(self._kind, workload))

    async def patch(self, patch: Obj) -> Obj:
        return await self._seen(await self.client.patch(self._kind, self._name, "default", patch, type="strategic"))

    async def new_image(self, image: str) -> Obj:
        return await self.patch({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}})

    async def _seen(self, workload: Obj) -> Obj:
        await self.harness.context.until_seen(self._sets, [workload])
        return workload

    async def quiet(self) -> None:
        """Wait until the controller has nothing to do."""
        queue = self.harness.manager.controllers[self._kind.resource.removesuffix("s")].queue
        await self.harness.clock.advance(0)
        await eventually(lambda: queue.idle)
