"""Removes a policy's claim from templates and bindings. What was propagated stays as it is."""

from __future__ import annotations

from karmada.api import well_known
from karmada.controllers.context import Context
from karmada.controllers.detector.bindings import BindingWriter, binding_resource
from karmada.controllers.detector.claims import PolicyKind, released, releasing_patch
from karmada.controllers.detector.kinds import Kinds
from karmada.controllers.templates import ref_of
from karmada.kube.objects import meta
from karmada.kube.objects.gvk import GVK, GVR
from karmada.kube.objects.shapes import METADATA
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.converge import converge
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.writes import get_if_exists


class Release:
    def __init__(self, context: Context, kinds: Kinds, bindings: BindingWriter) -> None:
        self._client = context.client
        self._kinds = kinds
        self._bindings = bindings

    async def template(self, kind: PolicyKind, policy_id: str, template: Obj) -> None:
        """Release a template, its binding first: a retry finds that only through a template that is still claimed."""
        namespace, name = meta.key(template)
        gvr = binding_resource(template)
        key = Key(namespace, well_known.binding_name(template["kind"], name))
        binding = self._bindings.get(gvr, key)
        if binding is not None:
            await self.one(gvr, binding, kind, policy_id)
        await self.one(await self._kinds.resource(ref_of(template)), template, kind, policy_id)

    async def one(self, resource: GVR | GVK, obj: Obj, kind: PolicyKind, policy_id: str) -> None:
        """Remove the claim from one object, unless another policy has claimed it by now."""
        name, namespace = meta.name(obj), meta.namespace(obj)

        async def make(current: Obj | None) -> Obj | None:
            if current is None or meta.labels(current).get(kind.id_label) != policy_id:
                return None
            return released(current, kind)

        async def put(current: Obj | None, _wanted: Obj) -> Obj:
            assert current is not None
            return await self._client.patch(resource, name, namespace, releasing_patch(current, kind))

        async def live() -> Obj | None:
            return await get_if_exists(self._client, resource, name, namespace, shape=METADATA)

        await converge(make, obj, put, live)
