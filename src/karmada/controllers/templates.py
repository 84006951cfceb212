"""Templates, as bindings refer to them: from the informer that follows their kind anyway, or from the server.

A binding names the version of the template it was made from. An informer that has not come that far is not asked, so a
new binding never meets an old template.
"""

from __future__ import annotations

from karmada.controllers.context import Context
from karmada.controllers.own_writes import OwnWrites, number, version
from karmada.kube.client.discovery import NoMatch
from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.gvk import GVK, GVR
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key


class Templates:
    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._informers = context.informers
        self._followed: dict[GVR, OwnWrites] = {}

    async def of(self, reference: Obj) -> Obj | None:
        """The template of a binding's spec.resource; None when it is gone, or its kind is."""
        try:
            gvr = await self._client.resource(GVK.parse(reference["apiVersion"], reference["kind"]))
        except NoMatch:
            return None
        known = self._known(gvr, reference)
        return known if known is not None else await self._live(gvr, reference)

    async def read(self, reference: Obj) -> Obj | None:
        """The same, from the server."""
        return await self._live(
            await self._client.resource(GVK.parse(reference["apiVersion"], reference["kind"])), reference
        )

    def known(self, reference: Obj) -> Obj | None:
        """What can be told without waiting."""
        mapping = self._client.mapper.known(GVK.parse(reference["apiVersion"], reference["kind"]))
        return None if mapping is None else self._known(mapping.gvr, reference)

    async def write_status(self, template: Obj) -> Obj:
        gvr = await self._client.resource_of(template)
        written = await self._client.update_status(gvr, template)
        followed = self._followed.get(gvr)
        if followed is not None:
            followed.wrote(written)
        return written

    def _known(self, gvr: GVR, reference: Obj) -> Obj | None:
        followed = self._followed.get(gvr)
        if followed is None:
            followed = self._followed[gvr] = OwnWrites(self._informers.of(gvr))
        if not followed.informer.synced:
            return None
        found = followed.get(Key(reference.get("namespace") or "", reference["name"]))
        if found is not None and version(found) < number(reference.get("resourceVersion") or ""):
            return None
        return found

    async def _live(self, gvr: GVR, reference: Obj) -> Obj | None:
        try:
            return await self._client.get(gvr, reference["name"], reference.get("namespace") or "")
        except NotFound:
            return None
