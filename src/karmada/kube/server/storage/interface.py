"""What a store promises: what etcd promises, and no more.

Every committed write gets the next revision of one counter; a write is a compare-and-swap on the key's last revision;
a watch delivers every later write in order, without gaps; old revisions can be read until they are compacted away.
Values are opaque bytes. Backends: memory, sqlite and etcd, each behind this interface.

Keys are ordered by their bytes in UTF-8, which for Python strings is the plain `<`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

from karmada.kube.objects.types import Obj


class Stored(NamedTuple):
    key: str
    value: bytes
    revision: int


class Write(NamedTuple):
    """As the arguments of `Store.write`."""

    key: str
    value: bytes | None
    expected: int
    packed: bytes | None = None
    """In place of the value, as `packing.unpack` reads it: for a GroupStore."""
    obj: Obj | None = None


class Event(NamedTuple):
    """A write: `value` is None when the key was deleted, `previous` is None when it was created.

    An event for a listener need not have a `previous`: the listener has seen every write. It may have the value as it
    is packed, too, or in its place: only without both it is a deletion. And it may have the object that the value was
    encoded from, which nobody changes any more.
    """

    key: str
    value: bytes | None
    revision: int
    previous: Stored | None
    packed: bytes | None = None
    obj: Obj | None = None


class Progress(list[Event]):
    """An empty batch of a watch: everything that concerns it up to `revision` has been delivered."""

    def __init__(self, revision: int) -> None:
        super().__init__()
        self.revision = revision


class Page(NamedTuple):
    """Up to `limit` items in key order as of `revision`; `remaining` counts those after the last one."""

    items: list[Stored]
    revision: int
    remaining: int


class RevisionConflict(Exception):
    """The key's last revision is not the expected one: `revision` is what it is now (0: the key does not exist)."""

    def __init__(self, key: str, revision: int) -> None:
        super().__init__(f"{key}: is at revision {revision}")
        self.key = key
        self.revision = revision


class Compacted(Exception):
    """The requested revision was compacted away; `revision` is the oldest that is left."""

    def __init__(self, revision: int) -> None:
        super().__init__(f"compacted up to revision {revision}")
        self.revision = revision


class FutureRevision(Exception):
    """The requested revision is beyond the latest one, `revision`."""

    def __init__(self, revision: int) -> None:
        super().__init__(f"latest revision is {revision}")
        self.revision = revision


class StoreUnavailable(Exception):
    """The store cannot be reached or has failed; the outcome of a write in flight is unknown."""


class StoreDamaged(StoreUnavailable):
    """The store does not hold what was written, or lacks part of it; the message names it and the way out."""


class NewerFormat(StoreUnavailable):
    """The store is in a format of a later version: this one would misread it, so it writes and reads nothing."""

    def __init__(self, where: str, found: int, known: int) -> None:
        super().__init__(
            f"{where} has format {found}, of a later version of this program; this one knows formats up to {known}. "
            "Start the version that wrote it, or move it away and restore a backup (docs/upgrading.md)"
        )


class StoreFull(StoreUnavailable):
    """There is no space: the write has not happened. SQLite accepts deletions and what leads to them, etcd its own."""


class StoreLocked(StoreUnavailable):
    """Another process works on the same files."""


Listener: TypeAlias = Callable[[list[Event]], None]
Failure: TypeAlias = RevisionConflict | StoreUnavailable
"""Why a write has not happened, or may not have."""


class Store(Protocol):
    async def open(self) -> None: ...

    async def close(self) -> None: ...

    @property
    def revision(self) -> int:
        """Return the latest durable revision this process knows of."""

    @property
    def last_error(self) -> Exception | None:
        """Why the store cannot take writes at the moment; None: it is healthy."""

    def has_given(self, revision: int) -> bool:
        """Return whether this store gave out the revision, or it is compacted.

        What it has not given out comes from a state that an older copy has replaced, and nothing is known of it.
        """

    def earlier(self, revision: int, writes: int) -> int:
        """Return a revision that about so many writes came after, up to this one."""

    def is_stale(self, key: str, /) -> bool:
        """Return whether the value would be stored in another form now: then an unchanged update is worthwhile."""

    async def get(self, key: str) -> Stored | None: ...

    async def range(self, prefix: str, *, after: str = "", limit: int = 0, revision: int = 0) -> Page:
        """Keys that start with `prefix` and are greater than `after`; 0 means no limit, the latest revision."""

    async def write(self, key: str, value: bytes | None, *, expected: int, obj: Obj | None = None) -> int:
        """Set (or with None delete) the key if its last revision is `expected` (0: it must not exist).

        Returns the write's revision once it is durable; RevisionConflict otherwise. A store inside this process passes
        `obj`, which the value was encoded from, to its listeners.
        """

    def watch(self, prefix: str, *, since: int) -> AsyncIterator[list[Event]]:
        """Return every write after revision `since`, in order, in batches; Compacted if that history is gone.

        A store whose counter also counts what others write sends a `Progress` with its revision now and then.
        """

    async def history(self, prefix: str, *, since: int, until: int, limit: int = 0) -> list[Event]:
        """Return the first `limit` (0: all) writes with since < revision <= until; Compacted if they are gone."""

    async def compact(self, revision: int) -> None:
        """Forget what is superseded at `revision`; reads and watches from before it fail from now on."""


@runtime_checkable
class PushStore(Store, Protocol):
    """A store inside this process: it notifies listeners of a write before the write returns, and is read at once."""

    def peek(self, key: str) -> Stored | None:
        """As `get`, without waiting."""

    def scan(self, prefix: str, *, after: str = "", limit: int = 0, revision: int = 0) -> list[Stored]:
        """As `range`, without waiting and without counting what remains. Values are as `packing.pack` makes them."""

    def oldest(self, prefix: str, *, since: int, limit: int) -> list[Stored]:
        """Return the first objects that were last written after revision `since`, in the order of those writes."""

    def sizes(self, prefix: str, most: int) -> dict[str, int]:
        """Count versions of objects by what keys with this prefix start with up to their second slash.

        Counting ends at `most`.
        """

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with every batch of durable writes, before their `write` returns; the result ends it."""


@runtime_checkable
class GroupStore(Protocol):
    """A store for which many writes at once are less work than one by one, and which keeps values packed."""

    async def write_all(self, writes: Sequence[Write]) -> list[int | Failure]:
        """Return the outcome of each: its revision, or why it has not happened."""


async def write_all(store: Store, writes: Sequence[Write]) -> list[int | Failure]:
    """Many writes at the same time; each has an outcome of its own."""
    if isinstance(store, GroupStore):
        return await store.write_all(writes)
    return await asyncio.gather(*(_outcome(store, write) for write in writes))


async def _outcome(store: Store, write: Write) -> int | Failure:
    try:
        return await store.write(write.key, write.value, expected=write.expected)
    except (RevisionConflict, StoreUnavailable) as failure:
        return failure


def prefix_end(prefix: str) -> str:
    """Return the smallest key greater than every key that starts with `prefix`; "" if there is none."""
    while prefix:
        last = ord(prefix[-1])
        if last < 0x10FFFF:
            following = 0xE000 if last == 0xD7FF else last + 1  # surrogates are not characters
            return prefix[:-1] + chr(following)
        prefix = prefix[:-1]
    return ""


def resource_prefix(key: str) -> str:
    """Return what all keys of a key's resource start with: everything up to the second slash, if there are two."""
    return key[: key.find("/", key.find("/") + 1) + 1] or key
