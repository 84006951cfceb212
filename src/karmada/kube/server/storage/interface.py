"""What a store promises: what etcd promises, and no more.

Every committed write gets the next revision of one counter; a write is a compare-and-swap on the key's last revision;
a watch delivers every later write in order, without gaps; old revisions can be read until they are compacted away.
Values are opaque bytes. Backends: memory, sqlite (and later etcd), each one small file behind this interface.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import NamedTuple, Protocol


class Stored(NamedTuple):
    key: str
    value: bytes
    revision: int


class Event(NamedTuple):
    """A write: `value` is None when the key was deleted, `previous` is None when it was created."""

    key: str
    value: bytes | None
    revision: int
    previous: Stored | None


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
    """The revision asked for was compacted away; `revision` is the oldest that is left."""

    def __init__(self, revision: int) -> None:
        super().__init__(f"compacted up to revision {revision}")
        self.revision = revision


class FutureRevision(Exception):
    """The revision asked for is beyond the latest one, `revision`."""

    def __init__(self, revision: int) -> None:
        super().__init__(f"latest revision is {revision}")
        self.revision = revision


class StoreUnavailable(Exception):
    """The store cannot be reached or has failed; the outcome of a write in flight is unknown."""


class Store(Protocol):
    async def open(self) -> None: ...

    async def close(self) -> None: ...

    @property
    def revision(self) -> int:
        """The latest durable revision this process knows of."""

    async def get(self, key: str) -> Stored | None: ...

    async def range(self, prefix: str, *, after: str = "", limit: int = 0, revision: int = 0) -> Page:
        """Keys that start with `prefix` and are greater than `after`; 0 means no limit, the latest revision."""

    async def write(self, key: str, value: bytes | None, *, expected: int) -> int:
        """Set (or with None delete) the key if its last revision is `expected` (0: it must not exist).

        Returns the write's revision once it is durable; RevisionConflict otherwise.
        """

    def watch(self, prefix: str, *, since: int) -> AsyncIterator[list[Event]]:
        """Every write after revision `since`, in order, in batches; Compacted if that history is gone."""

    async def compact(self, revision: int) -> None:
        """Forget what is superseded at `revision`; reads and watches from before it fail from now on."""
