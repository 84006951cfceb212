"""Templates, as bindings refer to them.

A whole template is read from the server: no second copy is kept. The last few that were read are shared, since several
controllers read the same one within moments: another read of it is answered here while the informer that watches its
kind shows the same version, and the binding refers to no later one. Labels come from those informers.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, NamedTuple

from karmada.controllers.context import Context
from karmada.controllers.light_templates import light_of
from karmada.controllers.template_refs import Ref, ref_of
from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.gvk import gvk_of
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.versions import number

_RECENT: Final = 64


class _Read(NamedTuple):
    template: Obj
    informer: Informer | None
    """Which shows whether it has changed; None where nobody watches its kind."""
    history: int


_recent: OrderedDict[Ref, _Read] = OrderedDict()


def keep_read(ref: Ref, template: Obj, informer: Informer | None, history: int) -> None:
    """For the next controller that reads it, soon; `history` is the informer's from before it was read."""
    _recent.pop(ref, None)
    _recent[ref] = _Read(template, informer, history)
    if len(_recent) > _RECENT:
        _recent.popitem(last=False)


def recently_read(ref: Ref, informer: Informer | None) -> Obj | None:
    """A whole template that was read a moment ago, if it is still what this informer of light templates shows."""
    found = _recent.get(ref)
    if found is None or informer is None or found.informer is not informer or found.history != informer.history:
        return None
    light = informer.get(ref.key) if informer.running and informer.synced else None
    if light is None:
        return None
    read, shown = found.template["metadata"], light["metadata"]
    same = read["uid"] == shown["uid"] and read["resourceVersion"] == shown["resourceVersion"]
    return found.template if same else None


class Templates:
    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._informers = context.informers

    async def of(self, reference: Obj) -> Obj | None:
        """The template of a binding's spec.resource; None when it is gone, NoMatch when its kind is not known (yet)."""
        ref = _ref_of(reference)
        informer = self._informer(ref)
        found = recently_read(ref, informer)
        if found is not None and not _is_later(reference, found):
            return found
        history = 0 if informer is None else informer.history
        try:
            found = await self._client.get(ref.gvk, ref.name, ref.namespace)
        except NotFound:
            return None
        keep_read(ref, found, informer, history)
        return found

    def light(self, reference: Obj) -> Obj | None:
        """Its name and labels, from the informer."""
        ref = _ref_of(reference)
        mapping = self._client.mapper.known(ref.gvk)
        if mapping is None:
            return None
        return self._informers.of(mapping.gvr, transform=light_of(ref.gvk)).get(ref.key)

    async def write_status(self, template: Obj) -> Obj:
        """As it was stored; Conflict when the template has changed since it was read."""
        _recent.pop(ref_of(template), None)
        return await self._client.update_status(gvk_of(template), template)

    def _informer(self, ref: Ref) -> Informer | None:
        """The one that watches the kind, if somebody has it."""
        mapping = self._client.mapper.known(ref.gvk)
        return None if mapping is None else self._informers.existing(mapping.gvr, light_of(ref.gvk))


def _ref_of(reference: Obj) -> Ref:
    return Ref(gvk_of(reference), reference.get("namespace") or "", reference["name"])


def _is_later(reference: Obj, template: Obj) -> bool:
    """Whether a binding refers to a later state than this, or to another template of the name."""
    metadata, uid = template["metadata"], reference.get("uid")
    if uid and uid != metadata["uid"]:
        return True
    return number(reference.get("resourceVersion") or "") > number(metadata["resourceVersion"])
