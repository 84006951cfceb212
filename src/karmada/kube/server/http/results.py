"""What a handler returns, before it is turned into bytes for HTTP or handed over as it is in-process.

A stored object travels as its cache Doc: HTTP sends the entry's bytes, an in-process caller gets its shared object,
and nobody serialises it again.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, overload

from karmada.kube.kinds.resource import Resource
from karmada.kube.objects.doc import Doc
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.types import Obj
from karmada.kube.server.watchcache.entry import Change


@dataclass(slots=True)
class ObjectResult:
    """One object: `entry` when it is stored in the request's version, else `obj`."""

    obj: Obj | None = None
    entry: Doc | None = None
    status: int = 200
    resource: Resource | None = None

    def object(self) -> Obj:
        if self.entry is not None:
            return self.entry.object()
        assert self.obj is not None
        return self.obj


@dataclass(slots=True)
class ListResult:
    """A list: `entries` in the request's version, or `objects` when they had to be converted."""

    resource: Resource
    metadata: Obj
    entries: list[Doc] = field(default_factory=list)
    objects: list[Obj] | None = None

    def items(self) -> list[Obj]:
        return [entry.object() for entry in self.entries] if self.objects is None else self.objects

    def one_by_one(self, parse: Callable[[Doc], Obj] = Doc.object) -> Sequence[Obj]:
        """Return the items, each parsed when it is iterated over."""
        return ParsedLater(self.entries, parse) if self.objects is None else self.objects


class ParsedLater(Sequence[Obj]):
    """Stored objects, each parsed on access: all of a page at once would stop everything else for long."""

    __slots__ = ("_entries", "_parse")

    def __init__(self, entries: Sequence[Doc], parse: Callable[[Doc], Obj]) -> None:
        self._entries = entries
        self._parse = parse

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Obj]:
        return map(self._parse, self._entries)

    @overload
    def __getitem__(self, index: int) -> Obj: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Obj]: ...

    def __getitem__(self, index: int | slice) -> Obj | Sequence[Obj]:
        if isinstance(index, slice):
            return ParsedLater(self._entries[index], self._parse)
        return self._parse(self._entries[index])


@dataclass(slots=True)
class StreamedList:
    """A list that is sent while it is read: each item is the JSON of an object, with apiVersion and kind.

    Its metadata comes first, so it is known before the items are. An ApiError of the first batches is the response;
    later, when the response has begun, it breaks the connection.
    """

    resource: Resource
    metadata: Obj
    batches: AsyncGenerator[Sequence[bytes], None]


class Changes(Protocol):
    """Changes in batches, as a Subscription has them; waiting for the next batch can be cancelled without a loss."""

    @property
    def progress(self) -> int | str:
        """Return the resourceVersion up to which the reader has everything."""

    def close(self) -> None: ...

    def __aiter__(self) -> AsyncIterator[list[Change]]: ...

    async def __anext__(self) -> list[Change]: ...


@dataclass(slots=True)
class WatchResult:
    """A watch: `initial` objects (as ADDED), a bookmark if requested, then the changes of `subscription`."""

    resource: Resource
    initial: list[Doc]
    subscription: Changes
    revision: int
    bookmarks: bool
    end_of_initial: bool
    timeout: float
    convert: Callable[[list[Obj]], Awaitable[list[Obj]]] | None = None
    overdue: Callable[[], ApiError | None] | None = None
    """For a watch from a version that is still to come: the error it ends with if that takes too long."""


@dataclass(slots=True)
class RawResult:
    body: bytes
    content_type: str = "application/json"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


PAGE_NOT_FOUND = RawResult(b"404 page not found\n", "text/plain; charset=utf-8", 404)
"""For a path that nothing serves."""


@dataclass(slots=True)
class TakeOver:
    """The handler answers on the connection itself: upgrades, proxied streams. HTTP only."""

    run: Callable[[Any], Awaitable[Any]]
    """Gets the HTTP front's request, returns its response."""


Result: TypeAlias = ObjectResult | ListResult | StreamedList | WatchResult | RawResult | TakeOver


async def page_not_found() -> Result:
    return PAGE_NOT_FOUND


def success(name: str, resource: Resource, uid: str) -> Obj:
    """Return the Status that most deletions answer."""
    details: Obj = {"name": name}
    if resource.gvk.group:
        details["group"] = resource.gvk.group
    details["kind"] = resource.plural
    details["uid"] = uid
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
