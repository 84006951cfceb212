"""Many new objects of one kind as one write of the store: for writers inside this process, such as that of Events.

Each object is completed, admitted and validated for itself, as any create, and is refused alone. What they share is the
rest of a request: one authorisation, one wait for the store, no task and no response for each. That is a third of
the CPU of as many creates at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from karmada.kube.kinds.resource import Resource
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.types import Obj
from karmada.kube.server.admission.chain import Chain
from karmada.kube.server.admission.interface import CREATE, Attributes
from karmada.kube.server.handlers.versions import Versions
from karmada.kube.server.handlers.writes import Writes, encoded, store_error
from karmada.kube.server.http.options import WriteOptions
from karmada.kube.server.http.request import Request
from karmada.kube.server.storage.interface import Failure, RevisionConflict, StoreUnavailable, Write, write_all
from karmada.kube.server.watchcache.cache import Cache, storage_key


class _Ready(NamedTuple):
    """An object that is admitted and valid."""

    position: int
    name: str
    attributes: Attributes
    write: Write


class GroupCreates:
    def __init__(self, cache: Cache, versions: Versions, admission: Chain, writes: Writes) -> None:
        self._cache = cache
        self._versions = versions
        self._admission = admission
        self._writes = writes

    def takes(self, request: Request, resource: Resource, namespace: str) -> bool:
        """Whether no step of such a create waits for others: then one of them never holds up the rest of its group."""
        if resource.strategy.reserve is not None or resource.convert is not None:
            return False
        return not self._admission.may_wait(Attributes(CREATE, resource, "", namespace, "", {}, None, request.user))

    async def create(
        self,
        request: Request,
        resource: Resource,
        namespace: str,
        objects: Sequence[Obj],
        options: WriteOptions,
        check: Callable[[Obj], None],
    ) -> list[ApiError | None]:
        """Create objects that have their names; the error of each that was refused. They are the server's from now on.

        `check` brings the body of a request into the form of its kind.
        """
        outcomes: list[ApiError | None] = [None] * len(objects)
        group: list[_Ready] = []
        for index, obj in enumerate(objects):
            try:
                check(obj)
                group.append(await self._ready(index, request, resource, namespace, obj, options))
            except ApiError as error:
                outcomes[index] = error
        written = await write_all(self._cache.store, [ready.write for ready in group])
        last = 0
        for ready, outcome in zip(group, written, strict=True):
            if isinstance(outcome, int):
                last = max(last, outcome)
            else:
                outcomes[ready.position] = self._error(resource, namespace, ready.name, outcome)
            self._admission.finish(ready.attributes, _stored(outcome))
        await self._writes.reached(last)
        return outcomes

    async def _ready(
        self, index: int, request: Request, resource: Resource, namespace: str, obj: Obj, options: WriteOptions
    ) -> _Ready:
        attributes = await self._writes.admitted(request, resource, namespace, obj, options, owned=False)
        try:
            resource.strategy.prepare_create(obj)
            self._writes.validate_create(request, resource, namespace, obj)
            resource.strategy.canonicalize(obj)
            await self._admission.validate(attributes)
            name = obj["metadata"]["name"]
            key = storage_key(resource.storage_resource, namespace, name)
            return _Ready(index, name, attributes, Write(key, encoded(await self._versions.store(resource, obj)), 0))
        except ApiError:
            self._admission.finish(attributes, False)
            raise

    def _error(self, resource: Resource, namespace: str, name: str, failure: Failure) -> ApiError:
        if isinstance(failure, RevisionConflict):
            return self._writes.exists(resource, namespace, name, generated=False)
        return store_error(failure)


def _stored(outcome: int | Failure) -> bool | None:
    """None: nobody knows."""
    return None if isinstance(outcome, StoreUnavailable) else isinstance(outcome, int)
