"""The scale subresource: an autoscaling/v1 Scale in front of an object's replicas."""

from __future__ import annotations

from collections.abc import Callable

from karmada.kube.kinds.resource import Resource
from karmada.kube.kinds.scale import SCALE
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.errors import BadRequest, Invalid, invalid
from karmada.kube.objects.types import Obj
from karmada.kube.schema.node import Node
from karmada.kube.server.handlers.aside import aside
from karmada.kube.server.handlers.patching import APPLY, Patcher
from karmada.kube.server.handlers.reads import Reads
from karmada.kube.server.handlers.writes import Change, Writes, WriteScope
from karmada.kube.server.http.bodies import Bodies
from karmada.kube.server.http.options import ListOptions, WriteOptions, write_options
from karmada.kube.server.http.request import Request
from karmada.kube.server.http.results import ObjectResult, Result

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
            body = await aside(request, self._bodies.object, request, SCALE, self.schema(), options.validation)
            _check_place(body, namespace, info.name)

            async def replace(_scale: Obj) -> Obj:
                return body

            return await self._write(request, resource, namespace, options, replace, patching=False)
        patcher, options = await aside(request, lambda: make_patcher(request, SCALE, self.schema(), custom=False))
        if patcher.media == APPLY:
            config = await aside(request, patcher.config)
            return await self._apply(request, resource, namespace, config, make_patcher)
        return await self._write(request, resource, namespace, options, patcher.change, patching=True)

    async def _apply(
        self, request: Request, resource: Resource, namespace: str, config: Obj, make_patcher: MakePatcher
    ) -> ObjectResult:
        """Return a Scale applied: the parent's configuration with nothing but its replicas."""
        scale = resource.strategy.scale
        assert scale is not None
        name = request.info.name
        self._bodies.normalize(config, SCALE, self.schema())
        _check_place(config, namespace, name)
        given: Obj = config.get("metadata") or {}
        parent: Obj = {"apiVersion": resource.api_version, "kind": resource.gvk.kind, "metadata": {"name": name}}
        if namespace:
            parent["metadata"]["namespace"] = namespace
        replicas = (config.get("spec") or {}).get("replicas")
        if replicas is not None:
            _check_replicas(name, replicas)
            scale.set(parent, replicas)
        patcher, options = make_patcher(request, resource.gvk, resource.schema(), custom=resource.custom)

        async def change(live: Obj) -> Obj:
            applied = await aside(request, patcher.applied, live, parent, "scale")
            _take_identity(applied["metadata"], given)
            return applied

        scope = WriteScope(request, resource, namespace, options, "scale", owned=True, patch=True)
        result = await self._writes.update(scope, name, change)
        return ObjectResult(obj=scale.get(result.object()))

    async def _write(
        self,
        request: Request,
        resource: Resource,
        namespace: str,
        options: WriteOptions,
        change: Change,
        *,
        patching: bool,
    ) -> ObjectResult:
        scale = resource.strategy.scale
        assert scale is not None
        name = request.info.name

        async def rescale(live: Obj) -> Obj:
            shown = scale.view(live)
            version = live["metadata"]["resourceVersion"]
            changed = await change(shown)
            _check_place(changed, namespace, name)
            replicas = (changed.get("spec") or {}).get("replicas") or 0
            _check_replicas(name, replicas)
            given: Obj = changed.get("metadata") or {}
            if patching and given.get("resourceVersion") == version:
                given = {**given, "resourceVersion": ""}  # the patch left it alone
            _take_identity(live["metadata"], given)
            scale.set(live, replicas)
            return live

        scope = WriteScope(request, resource, namespace, options, "scale", patch=True)
        result = await self._writes.update(scope, name, rescale)
        return ObjectResult(obj=scale.get(result.object()))


def _check_replicas(name: str, replicas: int) -> None:
    if replicas < 0:
        error = invalid("spec.replicas", replicas, "must be greater than or equal to 0")
        raise Invalid.of(SCALE.group_kind, name, [error])


def _check_place(scale: Obj, namespace: str, name: str) -> None:
    """Refuse a Scale whose namespace or name differs from the URL; it may leave them out."""
    meta = scale.get("metadata") or {}
    if meta.get("namespace") and meta["namespace"] != namespace:
        raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")
    if meta.get("name") and meta["name"] != name:
        raise BadRequest(f"the name of the object ({meta['name']}) does not match the name on the URL ({name})")


def _take_identity(parent: Obj, given: Obj) -> None:
    """Copy resourceVersion and uid of a Scale to its parent, as preconditions of the write."""
    for key in ("resourceVersion", "uid"):
        if given.get(key):
            parent[key] = given[key]
        elif key == "resourceVersion":
            parent.pop(key, None)
