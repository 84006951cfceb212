"""Many new objects of one kind as one write of the store: for writers inside this process, such as that of Events.

Each object is completed, admitted and validated for itself, as any create, and is refused alone. What they share is the
rest of a request: one authorisation, one wait for the store, no task and no response for each. That is a third of
the CPU of as many creates at the same time. Events, in a namespace whose objects are all admitted as they are, are
encoded without these steps (event_encoder.py): a tenth of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from karmada.kube.objects import names
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.time_slice import in_slices
from karmada.kube.server.admission.chain import Chain
from karmada.kube.server.admission.interface import CREATE, Attributes
from karmada.kube.server.handlers import versions
from karmada.kube.server.handlers.event_encoder import EventEncoder, event_encoder
from karmada.kube.server.handlers.writes import Writes, WriteScope, manager_of, store_error
from karmada.kube.server.storage.interface import (
    Failure,
    GroupStore,
    RevisionConflict,
    StoreUnavailable,
    Write,
    write_all,
)
from karmada.kube.server.watchcache.cache import Cache, encode_value, storage_key
from karmada.kube.server.watchcache.entry import split_key

_EVENTS = GVK("", "v1", "Event")


class _Group:
    """The objects that are admitted and valid, by their position among all."""

    def __init__(self) -> None:
        self.writes: dict[int, Write] = {}
        self.attributes: dict[int, Attributes] = {}
        """For those whose admission is to be finished."""


class GroupCreates:
    def __init__(self, cache: Cache, admission: Chain, writes: Writes, clock: Clock) -> None:
        self._cache = cache
        self._admission = admission
        self._writes = writes
        self._clock = clock
        self._packs = isinstance(cache.store, GroupStore)

    async def create(
        self, scope: WriteScope, objects: Sequence[Obj], check: Callable[[Obj], None]
    ) -> list[ApiError | None] | None:
        """Create objects that have their names; return the error of each. They are the server's from now on.

        None if they must be created one by one: a step of such a create waits for others, and would hold up the rest
        of the group. `check` brings the body of a request into the form of its kind.
        """
        resource, namespace = scope.resource, scope.namespace
        if resource.strategy.reserve is not None or resource.convert is not None or scope.options.dry_run:
            return None
        any_create = Attributes(CREATE, resource, "", namespace, "", {}, None, scope.request.user)
        if self._admission.may_wait(any_create):
            return None
        outcomes: list[ApiError | None] = [None] * len(objects)
        group = _Group()
        start = storage_key(resource.storage_resource, namespace, "")
        encoder = await self._event_encoder(scope, any_create)
        async for index, obj in in_slices(enumerate(objects)):
            write = None if encoder is None else encoder.write(start, obj, pack=self._packs)
            if write is not None:
                group.writes[index] = write
                continue
            try:
                check(obj)
                attributes, value = await self._ready(scope, obj)
            except ApiError as error:
                outcomes[index] = error
                continue
            group.writes[index] = Write(start + obj["metadata"]["name"], value, 0)
            group.attributes[index] = attributes
        await self._write(scope, group, outcomes)
        return outcomes

    async def _write(self, scope: WriteScope, group: _Group, outcomes: list[ApiError | None]) -> None:
        """Write them, and put the outcome of each in place."""
        written = await write_all(self._cache.store, [*group.writes.values()])
        last = 0
        for (index, write), outcome in zip(group.writes.items(), written, strict=True):
            if isinstance(outcome, int):
                last = max(last, outcome)
            else:
                outcomes[index] = self._error(scope, write.key, outcome)
            if index in group.attributes:
                self._admission.finish(group.attributes[index], _stored(outcome))
        await self._writes.reached(last)

    async def _event_encoder(self, scope: WriteScope, any_create: Attributes) -> EventEncoder | None:
        """Return the encoder of Events; None if each has to pass every step: it may be changed, or all are refused."""
        if scope.resource.gvk != _EVENTS or scope.resource.closed or names.dns1123_label(scope.namespace):
            return None
        if not self._admission.decides_by_namespace(any_create):
            return None
        try:
            await self._admission.admit(any_create)
            await self._admission.validate(any_create)
        except ApiError:  # with a text of its own for each
            return None
        manager = scope.options.manager or manager_of(scope.request)
        return event_encoder(manager, scope.namespace, rfc3339(self._clock.now()))

    async def _ready(self, scope: WriteScope, obj: Obj) -> tuple[Attributes, bytes]:
        """Return what is to be stored for an object."""
        attributes, _ = await self._writes.admitted(scope, obj)
        try:
            self._writes.validate(scope, obj, None)
            await self._admission.validate(attributes)
            return attributes, encode_value(await versions.store(scope.resource, obj))
        except ApiError:
            self._admission.finish(attributes, False)
            raise

    def _error(self, scope: WriteScope, key: str, failure: Failure) -> ApiError:
        if isinstance(failure, RevisionConflict):
            return self._writes.exists(scope.resource, scope.namespace, split_key(key).name, generated=False)
        return store_error(failure)


def _stored(outcome: int | Failure) -> bool | None:
    """Return whether it was stored; None if nobody knows."""
    return None if isinstance(outcome, StoreUnavailable) else isinstance(outcome, int)
