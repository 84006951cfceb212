"""The bindings of templates: found by their policy, written when something changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypedDict, cast

import msgspec

from karmada.api.work import ClusterResourceBinding, ResourceBinding
from karmada.controllers.context import Context
from karmada.controllers.detector.bindings import WantedBinding
from karmada.controllers.detector.claims import POLICIES, PolicyKind
from karmada.controllers.indexes import BY_POLICY, policy_ids
from karmada.controllers.template_refs import Ref, ref_of_binding
from karmada.kube.objects import meta
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.converge import ResourceWriter
from karmada.kube.runtime.keys import Key


class _Namespaced(TypedDict, total=False):
    namespace: str


class _Referring(TypedDict):
    resource: Any


class _Reference(TypedDict):
    metadata: _Namespaced
    spec: _Referring


_decode = msgspec.json.Decoder(_Reference).decode


def _parse_reference(raw: bytes) -> Obj:
    """Return all of a binding that says which template it is of."""
    return cast("Obj", _decode(raw))


class BindingWriter:
    def __init__(self, context: Context) -> None:
        self._writers = {
            gvr: ResourceWriter(context.client, gvr, context.informers.of(gvr, indexes={BY_POLICY: policy_ids}))
            for gvr in (ResourceBinding.gvr, ClusterResourceBinding.gvr)
        }

    def get(self, gvr: GVR, key: Key) -> Obj | None:
        return self._writers[gvr].get(key)

    def template_of(self, gvr: GVR, key: Key) -> Ref | None:
        """Return the template of a binding, for those who go through many."""
        binding = self._writers[gvr].informer.cache.skim(key, _parse_reference)
        return None if binding is None else ref_of_binding(binding)

    def of_policy(self, kind: PolicyKind, policy: Obj) -> list[tuple[GVR, Key]]:
        """Return the bindings that carry the policy's id: their keys, since there may be many."""
        policy_id, namespace = kind.id_of(policy), meta.namespace(policy)
        gvrs = (ResourceBinding.gvr,) if kind is POLICIES else tuple(self._writers)
        found = [(gvr, key) for gvr in gvrs for key in self._writers[gvr].informer.keys_by_index(BY_POLICY, policy_id)]
        return [(gvr, key) for gvr, key in found if not namespace or key.namespace == namespace]

    async def write(self, wanted: WantedBinding, before: Callable[[], None]) -> str:
        """Make the binding as wanted; `before` is called once if there is something to write."""

        async def make(current: Obj | None) -> Obj:
            return wanted.fresh() if current is None else wanted.over(current)

        written = await self._writers[wanted.gvr].converge(wanted.key, make, before=before)
        return "unchanged" if written is None else written.outcome
