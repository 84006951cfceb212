"""Informers: a live copy of one resource, and handlers that are called for every change.

An informer lists once (any cached state will do), then watches from the list's resourceVersion, which events and
bookmarks both move (the loop is the reflector's). When the server no longer has that version (410), the informer lists
again, not older than its cache, and delivers the difference to the handlers; when even that version is unknown there (a
restored or replaced server), it takes the latest state whatever its version.

What this process writes is taken in when the server has returned it (`wrote`): reads, indexes and handlers have it from
then on, so nobody acts twice because a cache lags, and what the server sends of the object until then is dropped.

Handlers are plain functions `(old, new)`: an added object has no old, a deleted one no new. They are called for the
changes that concern them (see event_filter), inside the informer's one task, or where something is written, in order,
without a task or a queue per event; they must be quick and must not wait (a controller's handlers put a key into a
queue). A handler that fails is logged and gets the next event all the same. The objects are those the transport
returned, so over the in-process transport they are the server's own.
"""

from __future__ import annotations

import asyncio
import builtins
import contextlib
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from types import FrameType

from karmada.kube.client.client import Client
from karmada.kube.objects.clock import Clock, RealClock
from karmada.kube.objects.errors import Expired, Gone, Timeout
from karmada.kube.objects.gvk import GVK, GVR
from karmada.kube.objects.selectors import parse_labels
from karmada.kube.objects.shapes import WHOLE, Shape
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.cache import Cache, IndexFn
from karmada.kube.runtime.current_work import Work, describes_work
from karmada.kube.runtime.event_filter import EVERYTHING, EventFilter, Handler, Subscription, concerned
from karmada.kube.runtime.keys import Key, key_of, number, version
from karmada.kube.runtime.logging import get_logger
from karmada.kube.runtime.reflector import EVENTS_IN_A_ROW, Reflector, WatchFailed
from karmada.kube.runtime.time_slice import TimeSlice, in_slices

log = get_logger("informer")


class Informer(Cache, Reflector):
    """Read as the cache that it is; nobody else puts objects into it."""

    def __init__(
        self,
        client: Client,
        gvr: GVR | GVK,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        shape: Shape = WHOLE,
        indexes: Mapping[str, IndexFn] | None = None,
        clock: Clock | None = None,
        optional: bool = False,
    ) -> None:
        """`shape` is how much is kept of an object, and how.

        `optional` is for kinds that the server may not have: then there are no objects, until a later list finds some.
        """
        Cache.__init__(self, indexes, shape)
        Reflector.__init__(self, gvr, clock or RealClock(), optional=optional)
        self._paged = shape.paged or shape.as_docs
        self.namespace = namespace
        self.label_selector = label_selector
        self.field_selector = field_selector
        self.history = 0
        """Raised whenever the server may be another one, so that versions cannot be compared with those before."""
        self._client = client
        self._subscriptions: list[Subscription] = []
        self._undelivered: list[Subscription] = []
        """Those whose handlers have not been called for the existing objects."""
        self.delivering = False
        """True if handlers are being called for an object that existed before they were there."""
        self.synced = False
        """True when the first list has been stored and delivered to every handler."""
        self._when_synced: builtins.list[Callable[[], None]] = []
        self._changed: asyncio.Future[None] | None = None
        self._version_unavailable = False
        self._listing: _Listing | None = None
        self._ahead: OrderedDict[Key, int] = OrderedDict()  # a dict would scan what was removed from its front
        """Versions that were written here, of objects whose events for them have not come."""
        self._selected = parse_labels(label_selector) if label_selector else None

    # reading

    async def scan(self, namespace: str = "") -> AsyncIterator[Obj]:
        """Yield all objects without blocking the event loop; those that come or go meanwhile may be left out."""
        async for key in in_slices(self.keys(namespace)):
            obj = self.peek(key)
            if obj is not None:
                yield obj

    def has_passed(self, wanted: int) -> bool:
        """Return whether every object is shown at least as new as in this version of this history."""
        return wanted <= number(self.resource_version)

    def has_reached(self, key: Key, wanted: int, history: int) -> bool:
        """Return whether what is shown of an object is at least as new as a version of it that a server returned.

        A list counts for each object from the moment that object was stored or removed, not only when all were.
        """
        same = history == self.history
        if same and self.has_passed(wanted):
            return True
        listing = self._listing
        if listing is None:
            return not same and self.resource_version != ""
        found = self.get(key) if key in listing.seen or not self._version_unavailable else None
        if same and found is not None and version(found) >= wanted:
            return True
        if same and wanted > listing.version:
            return False
        return key in listing.seen or (listing.complete and found is None)

    async def wait_synced(self) -> None:
        await self.until(lambda: self.synced)

    def when_synced(self, call: Callable[[], None]) -> None:
        """Call this once, when `synced` becomes true; now if it is. For callers that have no task to wait in."""
        if self.synced:
            call()
        else:
            self._when_synced.append(call)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until `condition` holds; it is evaluated after every change."""
        while not condition():
            if self._changed is None:
                self._changed = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._changed)

    # handlers

    def add_handler(self, handler: Handler) -> Callable[[], None]:
        """Call `handler(old, new)` on every change, and now for each object that is already there.

        Returns a function that takes the handler away again.
        """
        subscription = Subscription(handler, EVERYTHING)
        remove = self._add(subscription)
        for key in self.keys():
            self._deliver(self.peek(key), (subscription,))
        return remove

    @property
    def has_handlers(self) -> bool:
        return bool(self._subscriptions)

    def subscribe(self, handler: Handler, wanted: EventFilter = EVERYTHING) -> Callable[[], None]:
        """Add a handler for which existing objects are delivered by `deliver_existing`, to all such ones at once."""
        subscription = Subscription(handler, wanted)
        self._undelivered.append(subscription)
        return self._add(subscription)

    async def deliver_existing(self) -> None:
        waiting, self._undelivered = self._undelivered, []
        if not waiting:
            return
        turn = TimeSlice()
        for key in self.keys():
            self._deliver(self.peek(key), waiting)
            if turn.is_over():
                await turn.next()

    def take_undelivered(self) -> Callable[[Key], None] | None:
        """Return what delivers an existing object to the handlers that were not called for it; None if there are none.

        Whoever takes it delivers all of them, no faster than they are reconciled: they are kept parsed.
        """
        waiting, self._undelivered = self._undelivered, []
        return (lambda key: self._deliver(self.get(key), waiting)) if waiting else None

    def _deliver(self, obj: Obj | None, subscriptions: Iterable[Subscription]) -> None:
        if obj is not None:
            self.delivering = True
            self._notify(None, obj, subscriptions)
            self.delivering = False

    def _add(self, subscription: Subscription) -> Callable[[], None]:
        self._subscriptions = [*self._subscriptions, subscription]

        def remove() -> None:
            self._subscriptions = [one for one in self._subscriptions if one is not subscription]
            self._undelivered = [one for one in self._undelivered if one is not subscription]

        return remove

    def _notify(self, old: Obj | None, new: Obj | None, subscriptions: Iterable[Subscription] | None = None) -> None:
        """Call the handlers that a change concerns; those of all who have subscribed, if not of these."""
        for handler in concerned(self._subscriptions if subscriptions is None else subscriptions, old, new):
            try:
                handler(old, new)
            except Exception as error:
                obj = new if new is not None else old
                log.exception("A handler failed", error, resource=self._named, key=str(key_of(obj)) if obj else "")

    # own writes

    def wrote(self, obj: Obj) -> None:
        """Take in what the server returned for a create, update or patch, unless something newer is known.

        What was removed with its last finalizer is removed. Of objects selected by fields, only their events count.
        """
        metadata = obj["metadata"]
        written = number(metadata.get("resourceVersion", ""))
        if written <= number(self.resource_version) or self.field_selector:
            return  # as most are by the time of the response, where the server is in this process
        key = key_of(obj)
        if written <= self._ahead.pop(key, 0):
            self._ahead[key] = written
            return
        known = self._listing is not None and self.has_reached(key, written, self.history)
        self._ahead[key] = written
        if known:
            return
        leaves = metadata.get("deletionTimestamp") and not metadata.get("deletionGracePeriodSeconds")
        is_gone = leaves and not metadata.get("finalizers")
        if is_gone or (self._selected is not None and not self._selected.matches(metadata.get("labels"))):
            self._forget(key, obj)
        else:
            self._store(key, obj, same_history=not self._version_unavailable)
        if self._changed is not None:
            self._note_change()

    def _check_ahead(self) -> None:
        """List again if a watch gets past what was written here without its event: the server is another one."""
        key, written = next(iter(self._ahead.items()))
        if self.has_passed(written):
            del self._ahead[key]
            raise WatchFailed(f"the watch got past a write of {key} without an event of it")

    # life

    async def _not_served(self) -> None:
        self._ahead.clear()
        await self._listed(set(), "")

    def forget_history(self) -> None:
        """Forget versions seen so far: the server may be another one."""
        self._version_unavailable = True
        self.resource_version = ""
        self.history += 1
        self._listing = None
        self._ahead.clear()

    # list

    async def _list(self) -> None:
        """Make the cache equal to a list of the server, and deliver the changes."""
        since = "" if self._version_unavailable or self._paged else (self.resource_version or "0")
        listed_at = ""
        listing = self._listing = _Listing()
        try:
            async for page in self._client.pages(
                self.gvr,
                self.namespace,
                label_selector=self.label_selector,
                field_selector=self.field_selector,
                resource_version=since,
                shape=self.shape,
                new_first=True,
            ):
                if page.first:
                    listing.seen.clear()
                listed_at = page.resource_version
                listing.version = number(listed_at)
                await self._take(page.items, listing, same_history=not (self._version_unavailable or self._paged))
        except (Expired, Gone, Timeout) as error:
            if isinstance(error, Timeout) and not error.has_cause("ResourceVersionTooLarge"):
                raise
            if self._version_unavailable:
                raise
            self.forget_history()
            await self._list()
            return
        listing.complete = True
        await self._listed(listing.seen, listed_at)

    async def _listed(self, seen: set[Key], listed_at: str) -> None:
        """Take over a complete list."""
        turn = TimeSlice()
        position = number(listed_at)
        for key in self.keys_outside(seen):
            if self._ahead.get(key, 0) <= position:
                self._forget(key, None)
            if turn.is_over():
                await turn.next()
        for key in [key for key, written in self._ahead.items() if written <= position]:
            del self._ahead[key]
        self.resource_version = listed_at
        self._listing = None
        self._version_unavailable = False
        self.last_error = None
        self.synced = True
        calls, self._when_synced = self._when_synced, []
        for call in calls:
            call()
        if self._changed is not None:
            self._note_change()

    async def _take(self, items: Iterable[Obj], listing: _Listing, *, same_history: bool) -> None:
        """After a jump to another history (a restored server), equal versions do not mean equal objects.

        What was written here and is not in a list that is newer is no more: an older copy of the state is served.
        """
        turn, seen, listed = TimeSlice(), listing.seen, listing.version
        for obj in items:
            key = key_of(obj)
            seen.add(key)
            if self._ahead and version(obj) <= self._ahead.get(key, 0) > listed:
                pass
            elif key not in self:
                self._notify(None, self.replace(key, None, obj, keep=False))
            elif same_history or self.get(key) != self.shape.of(obj):
                self._store(key, obj, same_history=same_history)
            if turn.is_over():
                await turn.next()

    def _store(self, key: Key, obj: Obj, *, same_history: bool = True) -> None:
        old = self.get(key)
        if old is not None:
            was, now = old["metadata"], obj["metadata"]
            if was.get("uid") != now.get("uid"):
                new = self.replace(key, old, obj)
                self._notify(old, None)
                self._notify(None, new)
                return
            if same_history and was.get("resourceVersion") == now.get("resourceVersion"):
                return
        self._notify(old, self.replace(key, old, obj))

    def _forget(self, key: Key, last: Obj | None) -> None:
        """`last` is the object's final state, where the server sent it."""
        old = self.pop(key)
        if old is not None:
            self._notify(old if last is None else self.shape.of(last), None)

    # watch

    async def _watch_once(self) -> None:
        stream = await self._client.watch(
            self.gvr,
            self.namespace,
            resource_version=self.resource_version,
            label_selector=self.label_selector,
            field_selector=self.field_selector,
            timeout=self._watch_seconds(),
            shape=self.shape,
        )
        async with contextlib.AsyncExitStack() as stack:
            close = getattr(stream, "aclose", None)
            if close is not None:
                stack.push_async_callback(close)
            async for kind, obj in stream:
                self._apply(kind, obj)
                self._events += 1
                if self._events % EVENTS_IN_A_ROW == 0:
                    await asyncio.sleep(0)

    def _apply(self, kind: str, obj: Obj) -> None:
        """Take in an event of the watch, unless something newer was written here."""
        at = obj["metadata"]["resourceVersion"]
        if kind != "BOOKMARK":
            key = key_of(obj)
            written = self._ahead.get(key, 0) if self._ahead else 0
            sent = number(at) if written else 0
            if written and sent >= written:
                del self._ahead[key]
            if written and sent <= written:
                pass
            elif kind in ("ADDED", "MODIFIED"):
                self._store(key, obj)
            elif kind == "DELETED":
                self._forget(key, obj)
            else:
                raise WatchFailed(f"unknown event type {kind!r}")
        self.resource_version = at
        if self._changed is not None:
            self._note_change()
        if self._ahead:
            self._check_ahead()

    def _note_change(self) -> None:
        changed, self._changed = self._changed, None
        if changed is not None and not changed.done():
            changed.set_result(None)


class _Listing:
    """A list that is being stored, object by object."""

    __slots__ = ("complete", "seen", "version")

    def __init__(self) -> None:
        self.version = 0
        self.seen: set[Key] = set()
        self.complete = False
        """All of it is stored: what was not seen is being removed."""


@describes_work
def _delivered(frame: FrameType) -> Work | None:
    """Return the object that a frame delivers to handlers."""
    if frame.f_code is not Informer._notify.__code__:
        return None
    informer: Informer = frame.f_locals["self"]
    old, new = frame.f_locals["old"], frame.f_locals["new"]
    return Work("object", f"{informer._named} {key_of(new or old)}")
