"""Objects from an informer, each at least as new as what was last written here, and writing them only when they change.

Informers lag a little behind writes, and a comparison with an old state could take a change for none; so the last write
of each object is kept until the informer has it, too.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from karmada.kube.client.client import Client
from karmada.kube.objects import meta
from karmada.kube.objects.errors import AlreadyExists, ApiError, Conflict, NotFound
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.keys import Key, key_of
from karmada.kube.runtime.writes import Write

_TRIES: Final = 5

Make: TypeAlias = Callable[[Obj | None], Awaitable[Obj | None]]
"""What an object should be, from what it is (None when it is not there); None when it should be left alone."""


class Recent:
    def __init__(self, client: Client, gvr: GVR, informer: Informer) -> None:
        self.informer = informer
        self._client = client
        self._gvr = gvr
        self._written: dict[Key, Obj] = {}
        informer.add_handler(self._heard)

    def get(self, key: Key) -> Obj | None:
        return self._written.get(key) or self.informer.get(key)

    async def live(self, key: Key) -> Obj | None:
        try:
            return await self._client.get(self._gvr, key.name, key.namespace)
        except NotFound:
            return None

    async def converge(self, key: Key, make: Make, before: Callable[[], None] | None = None) -> Write | None:
        """Have an object as `make` says, with one request or none; `before` is called ahead of the first request.

        `make` is asked again, with the server's state, when somebody else was faster.
        """
        current = self.get(key)
        for attempt in range(_TRIES):
            wanted = await make(current)
            if wanted is None:
                return None
            if wanted == current:
                return Write("unchanged", wanted)
            if before is not None and attempt == 0:
                before()
            try:
                if current is None:
                    write = Write("created", await self._client.create(self._gvr, wanted))
                else:
                    write = Write("updated", await self._client.update(self._gvr, wanted))
            except (AlreadyExists, Conflict) as error:
                lost: ApiError = error
            except NotFound as error:
                if current is None:
                    raise  # its namespace is missing
                lost = error
            else:
                self._wrote(write.object)
                return write
            current = await self.live(key)
        raise Conflict(lost.message)

    def _wrote(self, obj: Obj) -> None:
        key = key_of(obj)
        seen = self.informer.get(key)
        if seen is None or version(seen) < version(obj):
            self._written[key] = obj

    def _heard(self, old: Obj | None, new: Obj | None) -> None:
        obj = new if new is not None else old
        if obj is None or not self._written:
            return
        key = key_of(obj)
        written = self._written.get(key)
        if written is not None and version(obj) >= version(written):
            del self._written[key]


def version(obj: Obj) -> int:
    """To tell which of two states of an object is the newer one."""
    text = meta.resource_version(obj)
    return int(text) if text.isdecimal() else 0
