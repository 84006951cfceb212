"""The scale subresource: an autoscaling/v1 Scale in front of an object's replicas."""

from __future__ import annotations

from collections.abc import Callable

from karmada.kube.objects.errors import Invalid, invalid
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.clock import Clock
from karmada.kube.schema.node import Node
from karmada.kube.server.bodies import Bodies
from karmada.kube.server.options import ListOptions, WriteOptions, write_options
from karmada.kube.server.patching import APPLY, Patcher
from karmada.kube.server.reads import Reads
from karmada.kube.server.request import Request
from karmada.kube.server.resource import Resource
from karmada.kube.server.results import ObjectResult, Result
from karmada.kube.server.writes import Change, Writes

SCALE = GVK("autoscaling", "v1", "Scale")
MakePatcher = Callable[..., tuple[Patcher, WriteOptions]]


class Scaling:
    def __init__(self, reads: Reads, writes: Writes, bodies: Bodies, clock: Clock) -> None:
        self._reads = reads
        self._writes = writes
        self._bodies = bodies
        self._clock = clock
        self.schema: Callable[[], Node] = lambda: Node(type="object", preserve=True)

    async def handle(self, request: Request, resource: Resource, make_patcher: MakePatcher) -> Result:
        info = request.info
        namespace = info.namespace if resource.namespaced else ""
        scale = resource.strategy.scale
        assert scale is not None, f"{resource.gvk} serves scale without saying how"
        if info.verb == "get":
            found = await self._reads.get(resource, namespace, info.name, ListOptions())
            return ObjectResult(obj=scale.get(found.object()))
        if info.verb == "update":
            options = write_options(request.query, "UpdateOptions")
            body = self._bodies.object(request, SCALE, self.schema(), options.validation)

            async def replace(_scale: Obj) -> Obj:
                return body

            return await self._write(request, resource, namespace, options, replace)
        patcher, options = make_patcher(request, SCALE, self.schema(), custom=False)
        if patcher.media == APPLY:
            return await self._apply(request, resource, namespace, patcher.config(), make_patcher)
        return await self._write(request, resource, namespace, options, patcher.change)

    async def _apply(
        self, request: Request, resource: Resource, namespace: str, config: Obj, make_patcher: MakePatcher
    ) -> ObjectResult:
        """A Scale applied: the parent's configuration with nothing but its replicas."""
        scale = resource.strategy.scale
        assert scale is not None
        name = request.info.name
        parent: Obj = {"apiVersion": resource.gvk.api_version, "kind": resource.gvk.kind, "metadata": {"name": name}}
        if namespace:
            parent["metadata"]["namespace"] = namespace
        scale.set(parent, (config.get("spec") or {}).get("replicas") or 0)
        patcher, options = make_patcher(
            request, resource.gvk, resource.schema(), custom=resource.custom, has_status=resource.has_status
        )

        async def change(live: Obj) -> Obj:
            applied = patcher.applied(live, parent, "scale")
            applied["metadata"].pop("resourceVersion", None)
            return applied

        result = await self._writes.update(
            request, resource, namespace, name, options, change, subresource="scale", owned=True, patch=True
        )
        return ObjectResult(obj=scale.get(result.object()))

    async def _write(
        self,
        request: Request,
        resource: Resource,
        namespace: str,
        options: WriteOptions,
        change: Change,
    ) -> ObjectResult:
        scale = resource.strategy.scale
        assert scale is not None
        name = request.info.name

        async def rescale(live: Obj) -> Obj:
            shown = scale.view(live)
            version = live["metadata"]["resourceVersion"]
            changed = await change(shown)
            replicas = (changed.get("spec") or {}).get("replicas") or 0
            if replicas < 0:
                error = invalid("spec.replicas", replicas, "must be greater than or equal to 0")
                raise Invalid.of(SCALE.group_kind, name, [error])
            given = (changed.get("metadata") or {}).get("resourceVersion") or ""
            live["metadata"]["resourceVersion"] = given if given != version else ""
            scale.set(live, replicas)
            return live

        result = await self._writes.update(
            request, resource, namespace, name, options, rescale, subresource="scale", patch=True
        )
        return ObjectResult(obj=scale.get(result.object()))
