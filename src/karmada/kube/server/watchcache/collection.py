"""The current objects of one resource in list order, and the recent changes that lead there.

Objects lie in one bucket per namespace: a dict for lookups and the sorted names for lists. Sorting namespaces as
`namespace + "/"` and names within them gives the byte order of the whole keys, the order in which the store pages.
Those that have not changed for long are squeezed. Those of a large resource are in the store only until somebody needs
all of them (deferred.py); those of one that is seldom read (Events) are given up again when nobody reads them any more.

The history ring holds the last changes: at least a hundred, then those of the last five minutes, within bounds of count
and bytes. It is kept per resource, so churn in one flushes no other. A watch from further back reads the store's
history as long as that is not compacted. A recent snapshot is the current state with the changes since then undone.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import groupby, takewhile
from operator import attrgetter
from typing import Protocol

from karmada.kube.objects.doc import Compressor, Doc
from karmada.kube.objects.errors import Expired, ServiceUnavailable
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.runtime.time_slice import TimeSlice
from karmada.kube.server.storage.interface import Compacted, Event, PushStore, StoreDamaged, StoreUnavailable
from karmada.kube.server.watchcache.deferred import Deferred
from karmada.kube.server.watchcache.entry import (
    DELETED,
    Change,
    KeyParts,
    change_of,
    doc_of,
    prefix,
    split_key,
    storage_key,
    stored_doc,
    written_doc,
)
from karmada.kube.server.watchcache.history import History
from karmada.kube.server.watchcache.subscription import Matches, Revisions, Subscribers, Subscription

_FRAMES = 256  # changes whose encoded frame is kept for watchers that are a little late
BUFFER = 10_000
_HISTORY_PAGE = 1_000
_UNREAD = 5
"""Minutes until what is seldom read and was read is given up."""


class Past(Protocol):
    async def history(self, prefix: str, *, since: int, until: int, limit: int = 0) -> list[Event]:
        """As a Store has it; Compacted where that is forgotten."""


class _Bucket:
    """The objects of one namespace."""

    __slots__ = ("entries", "names")

    def __init__(self) -> None:
        self.entries: dict[str, Doc] = {}
        self.names: list[str] = []

    def put(self, entry: Doc) -> None:
        if entry.name not in self.entries:
            insort(self.names, entry.name)
        self.entries[entry.name] = entry

    def remove(self, name: str) -> None:
        if self.entries.pop(name, None) is not None:
            del self.names[bisect_left(self.names, name)]

    def list(self) -> list[Doc]:
        entries = self.entries
        return [entries[name] for name in self.names]

    def after(self, name: str) -> int:
        """The position of the first name after this one."""
        return bisect_right(self.names, name)

    def some(self, start: int, limit: int) -> Sequence[Doc]:
        """At most `limit` of them, from a position on."""
        entries = self.entries
        return [entries[name] for name in self.names[start : start + limit]]


class Collection:
    def __init__(
        self,
        resource: GroupResource,
        store: Past,
        position: Revisions,
        subscribers: Subscribers,
        floor: int,
        keep: History,
    ) -> None:
        """`store` has what happened before what is remembered here."""
        self._keep = keep
        self.resource = resource
        self.count = 0
        self.changed = floor
        """The revision of the last change; at least that of the load, before which anything may have happened."""
        self.resets = 0
        """How often the content was replaced: what was derived from changes is void after that."""
        self._store = store
        self._position = position
        self._subscribers = subscribers
        self._buckets: dict[str, _Bucket] = {}
        self._namespaces: list[str] = []
        self._compressor = Compressor(keep.uncompressed, worth=self._is_worth_compressing)
        self._history: deque[Change] = deque()
        self._history_bytes = 0
        self._floor = floor
        """Every change after this revision is in the history."""
        self._deferred: Deferred | None = None
        self._home: PushStore | None = None
        self._unread = 0
        """How often `trim` was called since somebody read."""

    def keep_in(self, store: PushStore) -> None:
        """Its objects are in this store, and in memory only while somebody reads them."""
        self._home = store
        self.defer(store)

    def _rest(self) -> None:
        self._unread += 1
        if self._home is not None and self._deferred is None and not self.watchers and self._unread > _UNREAD:
            self._clear()
            self.defer(self._home)

    def defer(self, store: PushStore) -> None:
        """Its objects are in this store, and are loaded when they are needed."""
        self._deferred = Deferred(store, prefix(self.resource), self._begin_load, self.load, self._end_load)

    @property
    def deferred(self) -> bool:
        """Whether objects are still in the store only; until they are loaded, `count` does not count them."""
        return self._deferred is not None

    @property
    def resting(self) -> bool:
        """Whether nobody reads the objects, and of a write nothing but its revision matters."""
        return self._deferred is not None and not self._deferred.loading

    @property
    def at_rest(self) -> bool:
        """Whether it is seldom read, and resting: worth loading only for those who need all of it, or watch."""
        return self._home is not None and self.resting

    @property
    def damage(self) -> StoreDamaged | None:
        """Why the objects cannot be loaded."""
        return self._deferred.damage if self._deferred is not None else None

    async def loaded(self) -> None:
        """Until everything is in memory; ServiceUnavailable if the store cannot be read."""
        self._unread = 0
        if self._deferred is not None:
            await self._deferred.finish()

    def _load_now(self) -> None:
        self._unread = 0
        if self._deferred is not None:
            self._deferred.finish_now()

    def _begin_load(self, revision: int) -> None:
        self._clear()
        self._floor = revision
        self.changed = max(self.changed, revision)

    def _end_load(self, written: Iterable[tuple[Event, float]]) -> None:
        self._deferred = None
        for event, time in written:
            self.apply(event, split_key(event.key), time)

    # Reading

    @property
    def revision(self) -> int:
        """The revision this state is current at: the whole cache's, so a list's resourceVersion."""
        return self._position.revision

    def get(self, namespace: str, name: str) -> Doc | None:
        if self._deferred is not None:
            return self._deferred.get(storage_key(self.resource, namespace, name))
        bucket = self._buckets.get(namespace)
        return bucket.entries.get(name) if bucket is not None else None

    def stored(self, namespace: str, after: str, limit: int, revision: int) -> list[Doc]:
        """While it is at rest: some objects as they were at a revision, from behind this key, which has no prefix."""
        assert self._home is not None
        last = prefix(self.resource) + after
        found = self._home.scan(prefix(self.resource, namespace), after=last, limit=limit, revision=revision)
        return [stored_doc(one) for one in found]

    def stores_more_than(self, most: int) -> bool:
        """While it is at rest: whether there are more objects, or versions of them."""
        assert self._home is not None
        return any(size > most for size in self._home.sizes(prefix(self.resource), most + 1).values())

    def has_any(self, namespace: str) -> bool:
        if self._deferred is not None:
            return self._deferred.has_any(prefix(self.resource, namespace))
        return namespace in self._buckets

    def _is_worth_compressing(self, entry: Doc) -> bool:
        """What is not current is in the history, and goes with it."""
        bucket = self._buckets.get(entry.namespace)
        return bucket is not None and bucket.entries.get(entry.name) is entry

    def snapshot(self, revision: int, namespace: str = "") -> list[Doc] | None:
        """The list as it was at a recent revision; None if the history does not reach back that far."""
        current = self.list(namespace)
        if self.changed <= revision:
            return current
        changes = self.changes_since(revision)
        if changes is None:
            return None
        undone = {change.entry.key: change.previous for change in reversed(changes)}
        entries = [entry for entry in current if entry.key not in undone]
        entries += [entry for entry in undone.values() if entry is not None and namespace in ("", entry.namespace)]
        entries.sort(key=attrgetter("key"))
        return entries

    def page(self, namespace: str, after: str, limit: int) -> tuple[list[Doc], int]:
        """At most `limit` of the current objects whose keys come after this one, and how many there are behind those.

        Without looking at the others: a list that is read in pages must not cost its length for each page.
        """
        self._load_now()
        last = split_key(after)
        found: list[Doc] = []
        behind = 0
        for sorted_as in [namespace + "/"] if namespace else self._namespaces[self._namespace_at(last.namespace) :]:
            bucket = self._buckets.get(sorted_as[:-1])
            if bucket is None:
                continue
            start = bucket.after(last.name) if sorted_as[:-1] == last.namespace else 0
            some = bucket.some(start, limit - len(found))
            found += some
            behind += len(bucket.names) - start - len(some)
        return found, behind

    def page_at(self, revision: int, namespace: str, after: str, limit: int) -> tuple[list[Doc], int] | None:
        """The same of a recent revision; None if the history does not reach back that far.

        As many more entries are looked at as have changed since.
        """
        changes = self.changes_since(revision)
        if changes is None:
            return None
        undone = {
            change.entry.key: change.previous
            for change in reversed(changes)
            if namespace in ("", change.entry.namespace) and change.entry.key > after
        }
        found, behind = self.page(namespace, after, limit + len(undone))
        end = found[-1].key if behind else None
        entries = [entry for entry in found if entry.key not in undone]
        for key, previous in undone.items():
            if end is None or key <= end:
                entries += [previous] if previous is not None else []
            else:
                behind += (previous is not None) - (self.get(*split_key(key)[2:]) is not None)
        entries.sort(key=attrgetter("key"))
        return entries[:limit], behind + max(0, len(entries) - limit)

    def _namespace_at(self, namespace: str) -> int:
        return bisect_left(self._namespaces, namespace + "/")

    def changes_since(self, revision: int) -> list[Change] | None:
        """The changes after a revision, oldest first; None if the history does not reach back that far."""
        if self._deferred is not None or revision < self._floor:
            return None
        recent = list(takewhile(lambda change: change.revision > revision, reversed(self._history)))
        recent.reverse()
        return recent

    # Watching

    @property
    def watchers(self) -> int:
        return len(self._subscribers)

    async def subscribe(
        self,
        since: int | None = None,
        *,
        namespace: str = "",
        name: str = "",
        matches: Matches | None = None,
        buffer: int = BUFFER,
    ) -> Subscription:
        """Changes after `since` (None: from now on), which may be a revision still to come.

        Expired if that history is gone. From now on suspends only if all objects have to come from the store. A `list`
        and a subscription since the `revision` read with it miss and repeat nothing.
        """
        await self.loaded()
        subscription = Subscription(
            self._position, self._subscribers.remove, namespace=namespace, name=name, matches=matches, buffer=buffer,
            after=since or 0,
        )  # fmt: skip
        self._subscribers.add(subscription)
        try:
            if since is not None:
                recent = self.changes_since(since)
                if recent is None:
                    recent = await self._stored_changes(since, self._floor, list(self._history))
                await subscription.replay(recent)
        except BaseException:
            subscription.close()
            raise
        return subscription

    def end_watches(self) -> None:
        """The resource goes or changes its form: every watcher has to start again."""
        self._subscribers.end()

    async def _stored_changes(self, since: int, until: int, recent: list[Change]) -> list[Change]:
        """The changes up to `until` from the store, then the recent ones."""
        changes: list[Change] = []
        position, turn = since, TimeSlice()
        while position < until:
            if turn.is_over():
                await turn.next()
            events = await self._history_page(since, position, until)
            for key, value, revision, old, _ in events:
                entry = doc_of(key, value, revision) if value is not None else None
                changes.append(change_of(key, entry, revision, doc_of(*old) if old is not None else None))
            position = events[-1].revision if len(events) == _HISTORY_PAGE else until
        return changes + recent

    async def _history_page(self, since: int, position: int, until: int) -> list[Event]:
        try:
            return await self._store.history(prefix(self.resource), since=position, until=until, limit=_HISTORY_PAGE)
        except Compacted as e:
            raise Expired(f"too old resource version: {since} ({e.revision})") from e
        except StoreUnavailable as e:
            raise ServiceUnavailable(f"the store cannot be read: {e}", retry_after=1) from e

    # Following the store

    def load(self, entries: Iterable[Doc]) -> None:
        """Take these, which come in key order and after all that is here, as they are: no changes."""
        for namespace, some in groupby(entries, attrgetter("namespace")):
            bucket = self._bucket(namespace)
            for entry in some:
                bucket.entries[entry.name] = entry
                bucket.names.append(entry.name)
                self._compressor.add(entry)
                self.count += 1
                self.changed = max(self.changed, entry.revision)

    def apply(self, event: Event, parts: KeyParts, time: float, *, read_soon: bool = False) -> Doc | None:
        """Change the state by a write, add it to the history, and notify the subscribers.

        Returns the object, or None while the objects are in the store only.
        """
        if self._deferred is not None:
            self.changed = event.revision
            self._deferred.write(event, time)
            return None
        bucket = self._buckets.get(parts.namespace)
        previous = bucket.entries.get(parts.name) if bucket is not None else None
        entry = written_doc(event, parts, read_soon=read_soon)
        change = change_of(event.key, entry, event.revision, previous, time)
        self.take(change)
        return change.entry

    def take(self, change: Change) -> None:
        """The change that follows on the current state."""
        entry = change.entry
        if change.type == DELETED:
            self._remove(entry.namespace, entry.name)
        else:
            if change.previous is None:
                self.count += 1
            self._bucket(entry.namespace).put(entry)
            self._compressor.add(entry)
        self.changed = change.revision
        self._remember(change)
        self._subscribers.dispatch(change)

    def trim(self, now: float) -> None:
        """Forget changes that are too old or too many."""
        history, keep = self._history, self._keep
        while history and (
            (len(history) > keep.at_least and history[0].time < now - keep.seconds)
            or len(history) > keep.at_most
            or self._history_bytes > keep.most_bytes
        ):
            dropped = history.popleft()
            self._history_bytes -= dropped.size
            self._floor = dropped.revision

    def trim_all(self, now: float) -> None:
        """As `trim`, from time to time: what is seldom read goes back into the store."""
        self.trim(now)
        self._rest()

    def reset(self, floor: int) -> None:
        """Forget everything: the store has lost what happened since."""
        self.resets += 1
        self._clear()
        self.changed = floor
        self._floor = floor
        self._subscribers.end()

    def stop(self) -> None:
        """Load nothing any more."""
        if self._deferred is not None:
            self._deferred.stop()

    def _clear(self) -> None:
        self._buckets.clear()
        self._namespaces.clear()
        self._history.clear()
        self._history_bytes = self.count = 0

    def _remember(self, change: Change) -> None:
        history = self._history
        history.append(change)
        self._history_bytes += change.size
        if len(history) > _FRAMES:
            history[-_FRAMES - 1].forget_frame()
        self.trim(change.time)

    def _bucket(self, namespace: str) -> _Bucket:
        bucket = self._buckets.get(namespace)
        if bucket is None:
            bucket = self._buckets[namespace] = _Bucket()
            insort(self._namespaces, namespace + "/")
        return bucket

    def _remove(self, namespace: str, name: str) -> None:
        bucket = self._buckets[namespace]
        bucket.remove(name)
        self.count -= 1
        if not bucket.entries:
            del self._buckets[namespace]
            del self._namespaces[bisect_left(self._namespaces, namespace + "/")]

    def list(self, namespace: str = "") -> list[Doc]:
        """In key order: of one namespace, or with "" of all (and of a cluster-scoped resource)."""
        self._load_now()
        if namespace:
            bucket = self._buckets.get(namespace)
            return bucket.list() if bucket is not None else []
        if len(self._namespaces) == 1:
            return self._buckets[self._namespaces[0][:-1]].list()
        found: list[Doc] = []
        for sorted_as in self._namespaces:
            found += self._buckets[sorted_as[:-1]].list()
        return found
