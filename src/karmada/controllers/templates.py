"""Templates, as bindings refer to them.

A whole template is always read from the server: in one process that costs as much as reading a cache, and no second
copy is kept. The last few are kept parsed, since several controllers read the same one within moments: the server gives
out the same object as long as somebody holds it. Labels come from the informers that watch the kinds anyway.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from karmada.controllers.context import Context
from karmada.controllers.light_templates import light_of
from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.gvk import gvk_of
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key

_RECENT: Final = 64
_recent: deque[Obj] = deque(maxlen=_RECENT)


def keep_parsed(template: Obj) -> None:
    """For the next controller that reads it, soon."""
    _recent.append(template)


class Templates:
    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._informers = context.informers

    async def of(self, reference: Obj) -> Obj | None:
        """The template of a binding's spec.resource; None when it is gone, NoMatch when its kind is not known (yet)."""
        try:
            found = await self._client.get(gvk_of(reference), reference["name"], reference.get("namespace") or "")
        except NotFound:
            return None
        keep_parsed(found)
        return found

    def light(self, reference: Obj) -> Obj | None:
        """Its name and labels, from the informer."""
        gvk = gvk_of(reference)
        mapping = self._client.mapper.known(gvk)
        if mapping is None:
            return None
        informer = self._informers.of(mapping.gvr, transform=light_of(gvk))
        return informer.get(Key(reference.get("namespace") or "", reference["name"]))

    async def write_status(self, template: Obj) -> Obj:
        """As it was stored; Conflict when the template has changed since it was read."""
        return await self._client.update_status(gvk_of(template), template)
