"""Definitions that a server cannot be without come back when somebody has deleted them.

A CRD that is deleted takes its objects along, and may be on its way out for as long as one of them is held by a
finalizer; only when it is gone can it be made again. What was there at the start is seen to by the server itself, which
cannot wait for that: from then on it is this controller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from karmada.kube.client.client import Client
from karmada.kube.objects.errors import AlreadyExists
from karmada.kube.objects.gvrs import CRDS
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Reconciler, Result, Watch
from karmada.kube.runtime.informers import Informers
from karmada.kube.runtime.keys import Key, key_of
from karmada.kube.runtime.logging import get_logger

log = get_logger("default-definitions")


class DefaultDefinitions(Reconciler):
    name = "default-definitions"

    def __init__(self, client: Client, informers: Informers, wanted: Iterable[Obj]) -> None:
        self._client = client
        self._crds = informers.of(CRDS)
        self._wanted = {key_of(obj): obj for obj in wanted}
        self.watches = (Watch(CRDS, when=lambda _old, new: new is None),)

    def attach(self, add: Callable[[Key], None]) -> None:
        """Queue all definitions: one may have gone between the start of the server and this."""
        for key in self._wanted:
            add(key)

    async def reconcile(self, key: Key) -> Result:
        wanted = self._wanted.get(key)
        if wanted is None or self._crds.get(key) is not None:
            return Done
        try:
            await self._client.create(CRDS, wanted)
        except AlreadyExists:
            return Done
        log.info("A definition that was deleted is made again", definition=key.name)
        return Done
