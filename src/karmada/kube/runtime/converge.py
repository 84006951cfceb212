"""Converging on a desired object: read, make, compare, write, and again from the server's state after a lost race.

`make` derives what an object should be from what it is, so nothing that others wrote in between is lost: a conflict
repeats it on their result. Nothing is sent when nothing differs, and the server is read only after a lost race.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, TypeAlias

from karmada.kube.client.client import Client
from karmada.kube.objects.errors import AlreadyExists, ApiError, Conflict, NotFound
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.meta import is_deleting
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.writes import Outcome, Write, get_if_exists

TRIES: Final = 5

Make: TypeAlias = Callable[[Obj | None], Awaitable[Obj | None]]
"""The desired object, from the current one (None when there is none); None to leave things as they are."""
Put: TypeAlias = Callable[[Obj | None, Obj], Awaitable[Obj]]
"""(current, desired): send the desired object, on condition that the current one is still current; what was stored."""


async def converge(
    make: Make,
    current: Obj | None,
    put: Put,
    live: Callable[[], Awaitable[Obj | None]],
    *,
    before: Callable[[], None] | None = None,
) -> Write | None:
    """Have an object as `make` says, from `current` (perhaps stale); None when `make` leaves it alone.

    `before` is called once, ahead of the first write. Conflict when others were faster TRIES times. NotFound when a
    create fails with it: the namespace or the kind is missing.
    """
    for attempt in range(TRIES):
        wanted = await make(current)
        if wanted is None:
            return None
        if wanted == current:
            return Write("unchanged", wanted)
        if before is not None and attempt == 0:
            before()
        try:
            stored = await put(current, wanted)
            return Write(_outcome(current, stored), stored)
        except (AlreadyExists, Conflict) as error:
            lost: ApiError = error
        except NotFound as error:
            if current is None:
                raise
            lost = error
        current = await live()
    raise Conflict(lost.message)


def _outcome(before: Obj | None, after: Obj) -> Outcome:
    """Return whether nothing changed, e.g. because of defaults: then the resourceVersion stays as it is."""
    if before is None:
        return "created"
    same = before["metadata"].get("resourceVersion") == after["metadata"].get("resourceVersion")
    return "unchanged" if same else "updated"


class ResourceWriter:
    """Objects of one resource, read from an informer that takes in what is written."""

    def __init__(self, client: Client, gvr: GVR, informer: Informer) -> None:
        self.informer = informer
        self._client = client
        self._gvr = gvr

    def get(self, key: Key) -> Obj | None:
        return self.informer.get(key)

    async def live(self, key: Key) -> Obj | None:
        """From the server; None when it does not exist."""
        return await get_if_exists(self._client, self._gvr, key.name, key.namespace)

    async def converge(self, key: Key, make: Make, *, before: Callable[[], None] | None = None) -> Write | None:
        """See `converge`; starts from what the informer has, and creates or updates."""
        current = self.informer.get(key)
        return self._noted(await converge(make, current, self._put, partial(self.live, key), before=before))

    async def change(self, key: Key, make: Callable[[Obj], Obj]) -> Write | None:
        """Have an existing object as `make` says; None when, by the server itself, there is none."""

        async def of(current: Obj | None) -> Obj | None:
            return None if current is None else make(current)

        current = self.informer.get(key) or await self.live(key)
        return self._noted(await converge(of, current, self._put, partial(self.live, key)))

    async def delete(self, obj: Obj) -> None:
        """Delete the object, unless it is gone; it stays as being deleted while it has finalizers."""
        metadata = obj["metadata"]
        name, namespace = metadata["name"], metadata.get("namespace", "")
        try:
            left = await self._client.delete(self._gvr, name, namespace, uid=metadata["uid"])
        except NotFound:
            return
        if left.get("kind") != "Status" and is_deleting(left):
            self.informer.wrote(left)

    def _noted(self, written: Write | None) -> Write | None:
        if written is not None and written.outcome != "unchanged":
            self.informer.wrote(written.object)
        return written

    def _put(self, current: Obj | None, wanted: Obj) -> Awaitable[Obj]:
        return self._client.create(self._gvr, wanted) if current is None else self._client.update(self._gvr, wanted)
