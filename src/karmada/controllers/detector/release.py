"""Taking a policy's claim off templates and bindings. What the policy has brought about stays as it is."""

from __future__ import annotations

from typing import Final

from karmada.api import well_known
from karmada.controllers.context import Context
from karmada.controllers.detector.bindings import binding_resource
from karmada.controllers.detector.claims import PolicyKind, releasing_patch
from karmada.controllers.detector.kinds import Kinds
from karmada.controllers.detector.writer import BindingWriter
from karmada.controllers.template_refs import ref_of
from karmada.kube.objects import meta
from karmada.kube.objects.errors import Conflict, NotFound
from karmada.kube.objects.gvk import GVK, GVR
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key

_TRIES: Final = 5


class Release:
    def __init__(self, context: Context, kinds: Kinds, bindings: BindingWriter) -> None:
        self._client = context.client
        self._kinds = kinds
        self._bindings = bindings

    async def template(self, kind: PolicyKind, policy_id: str, template: Obj) -> None:
        """The binding first: it must not be left with a claim that nobody looks for any more."""
        namespace, name = meta.key(template)
        gvr = binding_resource(template)
        key = Key(namespace, well_known.binding_name(template["kind"], name))
        binding = self._bindings.get(gvr, key)
        if binding is not None:
            await self.one(gvr, binding, kind, policy_id)
        await self.one(await self._kinds.resource(ref_of(template)), template, kind, policy_id)

    async def one(self, resource: GVR | GVK, obj: Obj, kind: PolicyKind, policy_id: str) -> None:
        """Take the claim off one object, unless it is somebody else's by now."""
        metadata = obj["metadata"]
        name, namespace = metadata["name"], metadata.get("namespace", "")
        for attempt in range(_TRIES):
            if meta.labels(obj).get(kind.id_label) != policy_id:
                return
            try:
                await self._client.patch(resource, name, namespace, releasing_patch(obj, kind))
                return
            except NotFound:
                return
            except Conflict:
                if attempt == _TRIES - 1:
                    raise
            try:
                obj = await self._client.get(resource, name, namespace, metadata_only=True)
            except NotFound:
                return
