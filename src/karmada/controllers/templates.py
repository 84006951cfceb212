"""Templates, as bindings refer to them.

A whole template is read from the server: no second copy is kept. Those that were read a moment ago are shared (see
recent_templates), unless the binding refers to a later state. Labels come from informers.
"""

from __future__ import annotations

from karmada.controllers.context import Context
from karmada.controllers.light_templates import light_of
from karmada.controllers.template_refs import Ref, ref_of
from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.gvk import gvk_of
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.versions import number


class Templates:
    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._informers = context.informers
        self._recent = context.recent_templates

    async def of(self, reference: Obj) -> Obj | None:
        """Return the template of a binding's spec.resource; None when it is gone, NoMatch for an unknown kind."""
        ref = _ref_of(reference)
        informer = self._informer(ref)
        found = self._recent.find(ref, informer)
        if found is not None and not _is_later(reference, found):
            return found
        history = 0 if informer is None else informer.history
        try:
            found = await self._client.get(ref.gvk, ref.name, ref.namespace)
        except NotFound:
            return None
        self._recent.keep(ref, found, informer, history)
        return found

    def light(self, reference: Obj) -> Obj | None:
        """Return the template's name and labels, from the informer."""
        ref = _ref_of(reference)
        mapping = self._client.mapper.known(ref.gvk)
        if mapping is None:
            return None
        return self._informers.of(mapping.gvr, shape=light_of(ref.gvk)).get(ref.key)

    async def write_status(self, template: Obj) -> Obj:
        """As it was stored; Conflict when the template has changed since it was read."""
        self._recent.drop(ref_of(template))
        return await self._client.update_status(gvk_of(template), template)

    def _informer(self, ref: Ref) -> Informer | None:
        """Return the one that watches the kind, if somebody has it."""
        mapping = self._client.mapper.known(ref.gvk)
        return None if mapping is None else self._informers.existing(mapping.gvr, light_of(ref.gvk))


def _ref_of(reference: Obj) -> Ref:
    return Ref(gvk_of(reference), reference.get("namespace") or "", reference["name"])


def _is_later(reference: Obj, template: Obj) -> bool:
    """Return whether a binding refers to a later state than this, or to another template of the name."""
    metadata, uid = template["metadata"], reference.get("uid")
    if uid and uid != metadata["uid"]:
        return True
    return number(reference.get("resourceVersion") or "") > number(metadata["resourceVersion"])
