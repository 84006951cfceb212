"""One resource of one cluster: listed once, then watched, kept as the bytes that the member sent.

Nothing is parsed but the names: a list is split into the bytes of its objects, of which name, namespace, uid and
version are read. What has not changed for a while is compressed. The current state and the recent changes are a
Collection, as in the server's own watch cache, so watches resume from versions of the member within that window; a
list after a gap (410) ends them and makes older versions expired, as a member itself would.
"""

from __future__ import annotations

import asyncio
import builtins
import contextlib
from collections.abc import Iterable, Sequence
from sys import intern
from typing import Final, NoReturn

import msgspec
import orjson

from karmada.kube.client.client import JSON, resource_path
from karmada.kube.client.discovery import Mapping as Kind
from karmada.kube.client.limits import LIST_BYTES
from karmada.kube.client.transport import Call, ConnectionFailed, Transport
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.doc import Compressor, Doc
from karmada.kube.objects.errors import ApiError, Expired, Gone, TooManyRequests, error_from_status
from karmada.kube.runtime.reflector import EVENTS_IN_A_ROW, Reflector, WatchFailed
from karmada.kube.runtime.time_slice import TimeSlice
from karmada.kube.server.storage.interface import Compacted, Event
from karmada.kube.server.watchcache.collection import Collection, History
from karmada.kube.server.watchcache.entry import ADDED, DELETED, MODIFIED, Change, prefix
from karmada.kube.server.watchcache.subscription import Matches, Subscription
from karmada.search.cached_object import Form
from karmada.search.registries import Namespaces, covers, upstream
from karmada.search.sinks import Sink

PAGE: Final = 1_000
_CHUNK: Final = 100
_RECENT: Final = 64
"""Objects that are not compressed, of each resource of each cluster: most of them have no more than hundreds."""
KEEP: Final = History(seconds=300.0, at_least=100, at_most=2_000, most_bytes=4 << 20)
"""Changes that watches can resume over; there is such a window for every resource of every cluster."""


class _Metadata(msgspec.Struct):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    version: str = msgspec.field(name="resourceVersion", default="")


class _Head(msgspec.Struct):
    metadata: _Metadata


class _ListMetadata(msgspec.Struct):
    version: str = msgspec.field(name="resourceVersion", default="")
    token: str = msgspec.field(name="continue", default="")


class _Page(msgspec.Struct):
    metadata: _ListMetadata
    items: list[msgspec.Raw] | None = None


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


_head = msgspec.json.Decoder(_Head).decode
_page = msgspec.json.Decoder(_Page).decode
_event = msgspec.json.Decoder(_Event).decode


class _Forgotten:
    """There is nothing behind the window."""

    async def history(self, _prefix: str, *, since: int, until: int, limit: int = 0) -> list[Event]:  # noqa: ARG002
        raise Compacted(until)


class ReflectedKind(Reflector):
    def __init__(
        self,
        cluster: str,
        kind: Kind,
        namespaces: Namespaces,
        transport: Transport,
        clock: Clock,
        sinks: Sequence[Sink] = (),
    ) -> None:
        super().__init__(kind.gvr, clock, optional=True)
        self.cluster = cluster
        self.kind = kind
        self.namespaces = namespaces
        self.revision = 0
        """`resource_version` as a number."""
        self._transport = transport
        self._sinks = tuple(sinks)
        self._form = Form(kind.gvk)
        self._prefix = prefix(kind.gvr.group_resource)
        namespace, self._filtered = upstream(namespaces)
        self._path = resource_path(kind.gvr, namespace)
        self._collection = self._empty(0)
        self._synced = asyncio.Event()
        self._histories = 0
        self._other_history = False
        """The member may be another one: equal versions do not mean equal objects."""
        self._undone = 0
        """Versions up to this one may be of a history that is no more: the member was put back to an older state."""

    def _empty(self, revision: int) -> Collection:
        resource = self.kind.gvr.group_resource
        return Collection(resource, _Forgotten(), self, revision, KEEP)

    @property
    def _named(self) -> str:
        return f"{super()._named} of cluster {self.cluster}"

    # reading

    @property
    def synced(self) -> bool:
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        await self._synced.wait()

    @property
    def count(self) -> int:
        return self._collection.count

    def get(self, namespace: str, name: str) -> Doc | None:
        return self._collection.get(namespace, name)

    def list(self, namespace: str = "") -> builtins.list[Doc]:
        return self._collection.list(namespace)

    def snapshot(self, revision: int, namespace: str = "") -> builtins.list[Doc] | None:
        return self._collection.snapshot(revision, namespace)

    async def subscribe(
        self, since: int | None = None, *, namespace: str = "", name: str = "", matches: Matches | None = None
    ) -> Subscription:
        if not self.synced or not self.resource_version:
            raise TooManyRequests(f"storage is (re)initializing: cluster {self.cluster}", retry_after=1)
        if since is not None and self.revision < since <= self._undone:
            raise Expired(f"resource version {since} of cluster {self.cluster} was undone")
        if since is not None and since > self.revision and not await self._has_reached(since):
            raise Expired(f"cluster {self.cluster} has not reached resource version {since}: it may be another one")
        return await self._collection.subscribe(since, namespace=namespace, name=name, matches=matches)

    async def _has_reached(self, revision: int) -> bool:
        """Return whether the member itself is at a version that is not here yet; believed while it does not respond."""
        call = Call("GET", self._path, {"limit": "1"}, accept=JSON, most=LIST_BYTES, retried=False)
        try:
            version = self._decoded(await self._transport.body(call)).metadata.version
        except (ApiError, ConnectionFailed):
            return True
        return not version.isdecimal() or int(version) >= revision

    # life

    async def stop(self) -> None:
        await super().stop()
        self._collection.end_watches()

    def forget_history(self) -> None:
        self._histories += 1
        self._other_history = True
        self.resource_version = ""
        self._collection.end_watches()

    async def _not_served(self) -> None:
        await self._replace([], "0")

    # list

    async def _list(self) -> None:
        limit, token, history = PAGE, "", self._histories
        found: builtins.list[Doc] = []
        compressor = Compressor(_RECENT)
        while True:
            query = {"limit": str(limit)} if limit else {}
            if token:
                query["continue"] = token
            try:
                body = await self._transport.body(Call("GET", self._path, query, accept=JSON, most=LIST_BYTES))
            except (Expired, Gone):
                if not token:
                    raise
                limit, token = 0, ""  # the snapshot expired between two pages: again, in one piece
                found.clear()
                continue
            page = self._decoded(body)
            await self._read(page.items or (), found, compressor)
            token = page.metadata.token
            if not token:
                break
        if history != self._histories:
            raise Expired("the pages of this list may be of different clusters")
        if not page.metadata.version.isdecimal():
            raise self._nonsense("list", ValueError("it has no resourceVersion"))
        await self._replace(found, page.metadata.version)

    def _decoded(self, body: bytes) -> _Page:
        try:
            return _page(body)
        except msgspec.MsgspecError as error:
            raise self._nonsense("list", error) from error

    def _nonsense(self, what: str, error: Exception) -> ConnectionFailed:
        return ConnectionFailed(f"the {what} of {self._named} makes no sense: {error}")

    async def _read(
        self,
        items: Iterable[msgspec.Raw],
        found: builtins.list[Doc],
        compressor: Compressor,
    ) -> None:
        turn = TimeSlice()
        for raw in items:
            obj = self._object(raw)
            if obj is not None:
                found.append(obj)
                compressor.add(obj)
            if turn.is_over():
                await turn.next()

    def _object(self, raw: msgspec.Raw) -> Doc | None:
        """Return the object of these bytes, the one that is cached if it is the same; None if it is not wanted."""
        try:
            metadata = _head(raw).metadata
            revision = int(metadata.version)
        except ValueError as error:  # those of msgspec are such
            raise self._nonsense("object", error) from error
        name, namespace = metadata.name, metadata.namespace
        if self._filtered and not covers(self.namespaces, namespace):
            return None
        known = self.get(namespace, name)
        if known is not None and known.revision == revision and not self._other_history:
            return known
        key = f"{self._prefix}{namespace}/{name}" if namespace else self._prefix + name
        obj = Doc(key, intern(namespace), name, revision, self._form.normal(memoryview(raw)))
        return known if known is not None and known.revision == revision and known.raw == obj.raw else obj

    async def _replace(self, found: builtins.list[Doc], version: str) -> None:
        """Take over a complete list. Sinks get the difference first, so that they never lag behind a reader."""
        if self._sinks:
            await self._report(found)
        revision = int(version)
        if self._other_history or not self.synced or not self._holds(found):
            await self._load(found, revision)
        if revision < self.revision:
            self._undone = max(self._undone, self.revision)
        self.revision, self.resource_version = revision, version
        self._other_history = False
        self.last_error = None
        self._synced.set()
        for sink in self._sinks:
            sink.replaced(self.cluster, self.kind.gvr)

    async def _load(self, found: builtins.list[Doc], revision: int) -> None:
        """Aside, so that readers see either the old state or the new one. Watches of the old one end."""
        found.sort(key=_list_order)
        fresh, turn = self._empty(revision), TimeSlice()
        for start in range(0, len(found), _CHUNK):
            fresh.load(found[start : start + _CHUNK])
            if turn.is_over():
                await turn.next()
        old, self._collection = self._collection, fresh
        old.end_watches()

    def _holds(self, found: builtins.list[Doc]) -> bool:
        """Return whether a list brought nothing new, so that watches can go on."""
        return len(found) == self.count and all(self.get(obj.namespace, obj.name) is obj for obj in found)

    async def _report(self, found: builtins.list[Doc]) -> None:
        turn = TimeSlice()
        gone = {(obj.namespace, obj.name): obj for obj in self.list()}
        for obj in found:
            old = gone.pop((obj.namespace, obj.name), None)
            if old is not obj:
                if old is not None and old.uid != obj.uid:
                    self._deleted(old)
                self._upserted(obj)
            if turn.is_over():
                await turn.next()
        for old in gone.values():
            self._deleted(old)
            if turn.is_over():
                await turn.next()

    def _upserted(self, obj: Doc) -> None:
        for sink in self._sinks:
            sink.upsert(self.cluster, self.kind.gvr, obj)

    def _deleted(self, obj: Doc) -> None:
        for sink in self._sinks:
            sink.delete(self.cluster, self.kind.gvr, obj.namespace, obj.name, obj.uid)

    # watch

    async def _watch_once(self) -> None:
        if self._other_history:
            raise Expired("the cluster may be another one by now")
        query = {
            "watch": "true",
            "resourceVersion": self.resource_version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(self._watch_seconds()),
        }
        lines = self._transport.lines(Call("GET", self._path, query, accept=JSON))
        async with contextlib.AsyncExitStack() as stack:
            close = getattr(lines, "aclose", None)
            if close is not None:
                stack.push_async_callback(close)
            async for line in lines:
                self._apply(line)
                self._events += 1
                if self._events % EVENTS_IN_A_ROW == 0:
                    await asyncio.sleep(0)

    def _apply(self, line: bytes) -> None:
        if self._other_history:
            raise Expired("the cluster may be another one by now")
        try:
            event = _event(line)
            if event.type == "ERROR":
                self._refused(event.object)
            revision = int(_head(event.object).metadata.version)
        except ValueError as error:
            raise self._nonsense("watch", error) from error
        if event.type in (ADDED, MODIFIED):
            self._store(event.object)
        elif event.type == DELETED:
            self._forget(event.object)
        elif event.type != "BOOKMARK":
            raise WatchFailed(f"unknown event type {event.type!r}")
        self.revision, self.resource_version = revision, str(revision)

    def _refused(self, status: msgspec.Raw) -> NoReturn:
        raise error_from_status(orjson.loads(memoryview(status)))

    def _store(self, raw: msgspec.Raw) -> None:
        obj = self._object(raw)
        if obj is None:
            return
        previous = self.get(obj.namespace, obj.name)
        if previous is obj:
            return
        now = self._clock.monotonic()
        self._collection.take(Change(ADDED if previous is None else MODIFIED, obj, previous, now))
        self._upserted(obj)

    def _forget(self, raw: msgspec.Raw) -> None:
        last = self._object(raw)
        previous = self.get(last.namespace, last.name) if last is not None else None
        if last is None or previous is None:
            return
        self._collection.take(Change(DELETED, last, previous, self._clock.monotonic()))
        self._deleted(previous)


def _list_order(obj: Doc) -> tuple[str, str]:
    return obj.namespace + "/", obj.name
