"""The current objects of one resource in list order, and the recent changes that lead there.

Those that have not changed for long are compressed. Those of a large resource are in the store only until somebody
needs all of them (unloaded.py); those of one that is seldom read (Events) are unloaded when nobody reads them any more.

A watch from before the recent changes reads the store's history as long as that is not compacted. A recent snapshot is
the current state with the changes since then undone.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import groupby, takewhile
from operator import attrgetter
from typing import NamedTuple, Protocol

from karmada.kube.objects.doc import Compressor, Doc
from karmada.kube.objects.errors import Expired, ServiceUnavailable
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.runtime.time_slice import TimeSlice
from karmada.kube.server.storage.interface import Compacted, Event, PushStore, StoreUnavailable
from karmada.kube.server.watchcache.entry import (
    DELETED,
    Change,
    KeyParts,
    change_of,
    doc_of,
    prefix,
    split_key,
    written_doc,
)
from karmada.kube.server.watchcache.subscription import Matches, Revisions, Subscribers, Subscription
from karmada.kube.server.watchcache.unloaded import Unloaded

_FRAMES = 256
"""Changes whose encoded frame is kept for watchers that are a little late."""
BUFFER = 10_000
_HISTORY_PAGE = 1_000
_UNREAD = 5
"""Minutes until what is seldom read and was read is given up."""


class SortedObjects:
    """Objects of one resource in list order.

    They lie by namespace: a dict for lookups and the sorted names for lists. Sorting namespaces as `namespace + "/"`
    and names within them gives the byte order of the whole keys, the order in which the store pages.
    """

    def __init__(self) -> None:
        self.count = 0
        self.by_namespace: dict[str, dict[str, Doc]] = {}
        self._names: dict[str, list[str]] = {}
        self._namespaces: list[str] = []
        """Each with a slash behind it."""

    def put(self, doc: Doc) -> None:
        namespace, name = doc.namespace, doc.name
        objects = self.by_namespace.get(namespace)
        if objects is None:
            objects = self._add(namespace)
        if name not in objects:
            insort(self._names[namespace], name)
            self.count += 1
        objects[name] = doc

    def append(self, docs: Iterable[Doc]) -> None:
        """Add objects that come in key order and after all others."""
        for namespace, some in groupby(docs, attrgetter("namespace")):
            objects = self.by_namespace.get(namespace)
            if objects is None:
                objects = self._add(namespace)
            names = self._names[namespace]
            for doc in some:
                objects[doc.name] = doc
                names.append(doc.name)
                self.count += 1

    def remove(self, namespace: str, name: str) -> None:
        objects, names = self.by_namespace[namespace], self._names[namespace]
        if objects.pop(name, None) is None:
            return
        del names[bisect_left(names, name)]
        self.count -= 1
        if not objects:
            del self.by_namespace[namespace], self._names[namespace]
            del self._namespaces[self._position(namespace)]

    def clear(self) -> None:
        self.by_namespace.clear()
        self._names.clear()
        self._namespaces.clear()
        self.count = 0

    def page(self, namespace: str, after: str, limit: int) -> tuple[list[Doc], int]:
        """Return at most `limit` objects whose keys come after this one, and how many there are behind those.

        The others are not looked at: a list that is read in pages must not cost its length for each page.
        """
        last = split_key(after)
        found: list[Doc] = []
        behind = 0
        for one in self._from(namespace, last.namespace):
            names = self._names[one]
            start = bisect_right(names, last.name) if one == last.namespace else 0
            end = min(len(names), start + limit - len(found))
            found += map(self.by_namespace[one].__getitem__, names[start:end])
            behind += len(names) - end
        return found, behind

    def _from(self, namespace: str, first: str) -> Iterable[str]:
        """Return this namespace, if it has objects; with "" all of them, beginning with the first."""
        if namespace:
            return (namespace,) if namespace in self.by_namespace else ()
        return (one[:-1] for one in self._namespaces[self._position(first) :])

    def _position(self, namespace: str) -> int:
        return bisect_left(self._namespaces, namespace + "/")

    def _add(self, namespace: str) -> dict[str, Doc]:
        insort(self._namespaces, namespace + "/")
        self._names[namespace] = []
        objects = self.by_namespace[namespace] = {}
        return objects

    def list(self, namespace: str = "") -> list[Doc]:
        """Return the objects of a namespace, or with "" of all (and of a cluster-scoped resource)."""
        found: list[Doc] = []
        for one in self._from(namespace, namespace):
            found += map(self.by_namespace[one].__getitem__, self._names[one])
        return found


class History(NamedTuple):
    """How much of what happened, and how readily, a server keeps in memory; who goes further back reads the store."""

    look_back: int = 2_000
    """So many of the last revisions are loaded at the start."""
    seconds: float = 300.0
    """Changes of each resource are kept for so long,"""
    at_least: int = 100
    """the last of them in any case,"""
    at_most: int = 5_000
    """but never more than so many"""
    most_bytes: int = 16 << 20
    """or so much."""
    uncompressed: int = 2_048
    """So many of each resource are not compressed, the last that were written."""


class RecentChanges:
    """The last changes of a resource: at least some, then those of the last minutes, within bounds of count and bytes.

    There is one for each resource, so churn in one flushes no other.
    """

    def __init__(self, keep: History, floor: int) -> None:
        self._keep = keep
        self._changes: deque[Change] = deque()
        self._bytes = 0
        self.floor = floor
        """Every change after this revision is here."""

    def add(self, change: Change) -> None:
        changes = self._changes
        changes.append(change)
        self._bytes += change.size
        if len(changes) > _FRAMES:
            changes[-_FRAMES - 1].forget_frame()
        self.trim(change.time)

    def trim(self, now: float) -> None:
        """Forget changes that are too old or too many."""
        changes, keep = self._changes, self._keep
        while changes and (
            (len(changes) > keep.at_least and changes[0].time < now - keep.seconds)
            or len(changes) > keep.at_most
            or self._bytes > keep.most_bytes
        ):
            dropped = changes.popleft()
            self._bytes -= dropped.size
            self.floor = dropped.revision

    def since(self, revision: int) -> list[Change] | None:
        """Return the changes after a revision, oldest first; None if this does not reach back that far."""
        if revision < self.floor:
            return None
        recent = list(takewhile(lambda change: change.revision > revision, reversed(self._changes)))
        recent.reverse()
        return recent

    def clear(self, floor: int) -> None:
        self._changes.clear()
        self._bytes = 0
        self.floor = floor


class Past(Protocol):
    async def history(self, prefix: str, *, since: int, until: int, limit: int = 0) -> list[Event]:
        """As a Store has it; Compacted where that is forgotten."""


class Collection:
    def __init__(
        self,
        resource: GroupResource,
        store: Past,
        position: Revisions,
        floor: int,
        keep: History,
    ) -> None:
        """`store` has what happened before what is remembered here."""
        self.resource = resource
        self.changed = floor
        """The revision of the last change; at least that of the load, before which anything may have happened."""
        self.generation = 0
        """Rises with each change of the objects."""
        self.resets = 0
        """How often the content was replaced: what was derived from changes is void after that."""
        self.unloaded: Unloaded | None = None
        """The objects that are in the store only, or being loaded."""
        self._store = store
        self._position = position
        self._subscribers = Subscribers()
        self._objects = SortedObjects()
        self._recent = RecentChanges(keep, floor)
        self._compressor = Compressor(keep.uncompressed, worth=self._is_current)
        self._seldom_read: PushStore | None = None
        self._unread = 0
        """How often `trim` was called since somebody read."""

    @property
    def count(self) -> int:
        """Return how many objects are in memory."""
        return self._objects.count

    # Loading

    def unload(self, store: PushStore, *, seldom_read: bool = False) -> None:
        """Leave the objects in this store until they are needed, and again when what is seldom read was not read."""
        if seldom_read:
            self._seldom_read = store
        self.unloaded = Unloaded(store, self.resource, self._begin_load, self.load, self._end_load)

    @property
    def is_idle(self) -> bool:
        """Return whether the objects are in the store only: of a write nothing but its revision matters."""
        return self.unloaded is not None and self.unloaded.steps is None

    @property
    def paged(self) -> Unloaded | None:
        """Return where pages come from while a seldom read resource is idle: who needs all, or watches, loads it."""
        return self.unloaded if self._seldom_read is not None and self.is_idle else None

    async def loaded(self) -> None:
        """Wait until everything is in memory; ServiceUnavailable if the store cannot be read."""
        self._unread = 0
        if self.unloaded is not None:
            await self.unloaded.finish()

    def _load_now(self) -> None:
        self._unread = 0
        if self.unloaded is not None:
            self.unloaded.finish_now()

    def _begin_load(self, revision: int) -> None:
        self._objects.clear()
        self._recent.clear(revision)
        self.changed = max(self.changed, revision)

    def _end_load(self, written: Iterable[tuple[Event, float]]) -> None:
        self.unloaded = None
        for event, time in written:
            self.apply(event, split_key(event.key), time)

    # Reading

    @property
    def revision(self) -> int:
        """Return the revision this state is current at: the whole cache's, so a list's resourceVersion."""
        return self._position.revision

    def get(self, namespace: str, name: str) -> Doc | None:
        if self.unloaded is not None:
            return self.unloaded.get(namespace, name)
        objects = self._objects.by_namespace.get(namespace)
        return None if objects is None else objects.get(name)

    def has_any(self, namespace: str) -> bool:
        if self.unloaded is not None:
            return self.unloaded.has_any(namespace)
        return namespace in self._objects.by_namespace

    def _is_current(self, entry: Doc) -> bool:
        """Return whether this is worth compressing: what is not current goes with the recent changes."""
        return self._objects.by_namespace.get(entry.namespace, {}).get(entry.name) is entry

    def snapshot(self, revision: int, namespace: str = "") -> list[Doc] | None:
        """Return the list as it was at a recent revision; None if the history does not reach back that far."""
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

    def page_at(self, revision: int, namespace: str, after: str, limit: int) -> tuple[list[Doc], int] | None:
        """Return objects of a recent revision behind a key, at most `limit`, and how many more there are behind those.

        None if the history does not reach back that far. As many more are looked at as have changed since.
        """
        changes = self.changes_since(revision)
        if changes is None:
            return None
        undone = {
            change.entry.key: change.previous
            for change in reversed(changes)
            if namespace in ("", change.entry.namespace) and change.entry.key > after
        }
        self._load_now()
        found, behind = self._objects.page(namespace, after, limit + len(undone))
        end = found[-1].key if behind else None
        entries = [entry for entry in found if entry.key not in undone]
        for key, previous in undone.items():
            if end is None or key <= end:
                entries += [previous] if previous is not None else []
            else:
                behind += (previous is not None) - (self.get(*split_key(key)[1:]) is not None)
        entries.sort(key=attrgetter("key"))
        return entries[:limit], behind + max(0, len(entries) - limit)

    def changes_since(self, revision: int) -> list[Change] | None:
        """Return the changes after a revision, oldest first; None if the history does not reach back that far."""
        return None if self.unloaded is not None else self._recent.since(revision)

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
        """Watch changes after `since` (None: from now on), which may be a revision still to come.

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
                    recent = await self._stored_changes(since)
                await subscription.replay(recent)
        except BaseException:
            subscription.close()
            raise
        return subscription

    def end_watches(self) -> None:
        """End every watch, since the resource goes or changes its form."""
        self._subscribers.end()

    async def _stored_changes(self, since: int) -> list[Change]:
        """Return the changes from the store, up to the recent ones, then these."""
        changes: list[Change] = []
        position, until, turn = since, self._recent.floor, TimeSlice()
        recent = self._recent.since(until) or []
        while position < until:
            if turn.is_over():
                await turn.next()
            events = await self._history_page(since, position, until)
            for key, value, revision, old, *_ in events:
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

    def load(self, entries: Sequence[Doc]) -> None:
        """Take these, which come in key order and after all that is here, as they are: no changes."""
        self.generation += 1
        self._objects.append(entries)
        for entry in entries:
            self._compressor.add(entry)
            self.changed = max(self.changed, entry.revision)

    def apply(self, event: Event, parts: KeyParts, time: float) -> None:
        """Change the state by a write, add it to the history, and notify the subscribers."""
        if self.unloaded is not None:
            self.changed = event.revision
            self.generation += 1
            self.unloaded.write(event, time)
            return
        previous = self.get(parts.namespace, parts.name)
        self.take(change_of(event.key, written_doc(event, parts), event.revision, previous, time))

    def take(self, change: Change) -> None:
        """Take in the change that follows on the current state."""
        entry = change.entry
        if change.type == DELETED:
            self._objects.remove(entry.namespace, entry.name)
        else:
            self._objects.put(entry)
            self._compressor.add(entry)
        self.changed = change.revision
        self.generation += 1
        self._recent.add(change)
        self._subscribers.dispatch(change)

    def trim(self, now: float) -> None:
        """Forget changes that are too old; what is seldom read, and was not read for long, is unloaded."""
        self._recent.trim(now)
        self._unread += 1
        store = self._seldom_read
        if store is not None and self.unloaded is None and not self.watchers and self._unread > _UNREAD:
            self._objects.clear()
            self._recent.clear(self.changed)
            self.unload(store)

    def reset(self, floor: int) -> None:
        """Forget everything: the store has lost what happened since."""
        self.resets += 1
        self.generation += 1
        self._objects.clear()
        self._recent.clear(floor)
        self.changed = floor
        self._subscribers.end()

    def stop(self) -> None:
        """Load nothing any more."""
        if self.unloaded is not None:
            self.unloaded.stop()

    def list(self, namespace: str = "") -> list[Doc]:
        """Return the objects in key order: of one namespace, or with "" of all (and of a cluster-scoped resource)."""
        self._load_now()
        return self._objects.list(namespace)
