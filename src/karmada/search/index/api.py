"""`search/query`: searches over HTTP, and watches of what they find as JSON lines.

GET /apis/search.karmada.io/v1alpha1/search/query?q=TEXT with labelSelector, fieldSelector, owner=KIND/NAME, kind and
cluster (several, with commas), namespace, limit, continue, objects=true (whole objects), watch=true. It is not part of
Karmada's API. Who may call it is decided as for `search/cache`; it finds what the caller may list in the members.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, Final

import orjson
from aiohttp import web

from karmada.api.search import V1ALPHA1
from karmada.kube.client.discovery import Mapping as Kind
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.errors import BadRequest, Forbidden, MethodNotAllowed
from karmada.kube.objects.selectors import parse_fields, parse_labels
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.time_slice import TimeSlice
from karmada.kube.server.http.request import Query as Parameters
from karmada.kube.server.http.request import Request
from karmada.kube.server.http.results import RawResult, Result, TakeOver
from karmada.search.index.query import DEFAULT_RESULTS, MOST_RESULTS, Position, Query, check
from karmada.search.index.results import gone, result
from karmada.search.index.rights import SearchRights, Seen
from karmada.search.index.searching import Hit, Page
from karmada.search.index.service import SearchIndex
from karmada.search.index.watching import Watching
from karmada.search.interfaces import Caches, Reading
from karmada.search.pending import Source

CATEGORY: Final = "query"
_NAMED: Final = 10
"""Resources that a warning names."""
_HEARTBEAT: Final = 30.0
"""Seconds after which a watch without events sends an empty line, so that a client that is gone is noticed."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A query, and the resources it is for: all of them, or those of some kinds and clusters."""

    query: Query
    kinds: frozenset[str]
    clusters: frozenset[str]
    whole: bool

    def covers(self, source: Source, names: Iterable[str]) -> bool:
        """`names` are those of its kind."""
        if self.clusters and source.cluster not in self.clusters:
            return False
        return not self.kinds or not self.kinds.isdisjoint(names)


class QueryApi:
    def __init__(self, caches: Caches, index: SearchIndex, reading: Reading, clock: Clock) -> None:
        self._caches = caches
        self._index = index
        self._rights = SearchRights(index, reading)
        self._clock = clock

    async def handle(self, request: Request) -> Result:
        if request.method != "GET":
            raise MethodNotAllowed()
        wanted = self._parse(request.query)
        if request.query.flag("watch"):
            if request.in_process:
                raise BadRequest("a watch of a search is served over HTTP only")
            return TakeOver(await self._watch(request, wanted))
        seen = await self._seen(request, wanted, "list")
        page = await self._index.search(wanted.query, seen.scope)
        return RawResult(orjson.dumps(await self._list(page, wanted)))

    # lists

    async def _seen(self, request: Request, wanted: Wanted, verb: str) -> Seen:
        sources = await self._sources(wanted)
        seen = await self._rights.seen(request.user, wanted.query, sources, verb)
        if sources and not seen.scope:
            raise Forbidden(f'User "{request.user.name}" cannot {verb} {_refusals(seen)}')
        if seen.refused:
            request.warn(f"left out, because you may not {verb} them there: {_refusals(seen)}")
        return seen

    async def _sources(self, wanted: Wanted) -> dict[int, Source]:
        known = await self._index.sources()
        names = {gvr: _names(kind) for gvr, kind in self._caches.kinds.items()}
        cached = {n: source for n, (source, _) in known.items() if self._caches.cache(*source) is not None}
        return {n: source for n, source in cached.items() if wanted.covers(source, names.get(source.gvr, ()))}

    def _parse(self, parameters: Parameters) -> Wanted:
        """Parse the query; an owner's kind may be a short name, too."""
        wanted = parse(parameters)
        if wanted.query.owner is None:
            return wanted
        word, name = wanted.query.owner
        kinds = [kind.gvk.kind for kind in self._caches.kinds.values() if word.lower() in _names(kind)]
        return replace(wanted, query=replace(wanted.query, owner=(kinds[0] if kinds else word, name)))

    async def _list(self, page: Page, wanted: Wanted) -> Obj:
        return {
            "kind": "SearchResultList",
            "apiVersion": V1ALPHA1,
            "metadata": {"continue": page.next.encode()} if page.next else {},
            "registered": self._registered(),
            "unregistered": self._unregistered(wanted),
            "indexing": self._index.indexing or not self._synced(),
            "items": [item async for _, item in self._shown(page.hits, wanted)],
        }

    def _synced(self) -> bool:
        caches = (self._caches.cache(name, gvr) for gvr in self._caches.kinds for name in self._caches.clusters(gvr))
        return all(cache is None or cache.synced for cache in caches)

    def _registered(self) -> list[Obj]:
        """Return what registries select, so that a client can tell "nothing found" from "not looked at"."""
        return [
            {
                "apiVersion": kind.gvk.api_version,
                "kind": kind.gvk.kind,
                "resource": gvr.resource,
                "clusters": self._caches.clusters(gvr),
            }
            for gvr, kind in sorted(self._caches.kinds.items())
        ]

    def _unregistered(self, wanted: Wanted) -> list[str]:
        """Kinds that were requested and that no registry selects."""
        return sorted(wanted.kinds.difference(*(_names(kind) for kind in self._caches.kinds.values())))

    async def _shown(self, hits: tuple[Hit, ...], wanted: Wanted) -> AsyncIterator[tuple[Hit, Obj]]:
        """Return the results that are still cached; the index may lag behind."""
        turn = TimeSlice()
        for hit in hits:
            cache = self._caches.cache(*hit.source)
            cached = cache.get(hit.namespace, hit.name) if cache else None
            if cached is not None:
                yield hit, result(hit, cached.object(), self._clock.now(), whole=wanted.whole)
            if turn.is_over():
                await turn.next()

    # watches

    async def _watch(self, request: Request, wanted: Wanted) -> Any:
        """Refusals are responses, so they are found out before the stream begins."""
        watching = Watching(self._index)
        try:
            seen = await self._seen(request, wanted, "watch")
            page = await self._index.search(wanted.query, seen.scope)
        except BaseException:
            watching.close()
            raise

        async def run(raw: web.BaseRequest) -> web.StreamResponse:
            response = web.StreamResponse(headers={"Content-Type": "application/json"})
            response.enable_chunked_encoding()
            try:
                await response.prepare(raw)
                async with aclosing(self._events(request, wanted, page, watching)) as events:
                    async for line in events:
                        await response.write(line)
            finally:
                watching.close()
            await response.write_eof()
            return response

        return run

    async def _events(
        self, request: Request, wanted: Wanted, page: Page, watching: Watching
    ) -> AsyncGenerator[bytes, None]:
        shown: dict[int, Hit] = {}
        async for hit, item in self._shown(page.hits, wanted):
            shown[hit.id] = hit
            yield _line("ADDED", item)
        while True:
            try:
                async with asyncio.timeout(_HEARTBEAT):
                    change = await watching.next()
            except TimeoutError:
                yield b"\n"
                continue
            if change is None:
                return  # it was too slow: the client begins anew
            hits = await self._visible(request, wanted, change.source, change.written)
            async for hit, item in self._shown(tuple(hits.values()), wanted):
                yield _line("MODIFIED" if hit.id in shown else "ADDED", item)
                shown[hit.id] = hit
            for number in (*change.gone, *(n for n in change.written if n not in hits)):
                if number in shown:
                    yield _line("DELETED", gone(shown.pop(number)))

    async def _visible(self, request: Request, wanted: Wanted, source: Source, ids: Sequence[int]) -> Mapping[int, Hit]:
        """Return which of some objects of a source match, and may be seen at this time."""
        numbers = {n: s for n, s in (await self._sources(wanted)).items() if s == source} if ids else {}
        if not numbers:
            return {}
        seen = await self._rights.seen(request.user, wanted.query, numbers, "watch")
        page = await self._index.search(wanted.query, seen.scope, ids)
        return {hit.id: hit for hit in page.hits}


# parameters


def parse(parameters: Parameters) -> Wanted:
    """BadRequest that names the parameter."""
    after = parameters.get("continue")
    query = Query(
        text=" ".join(parameters.all("q")),
        labels=_parsed("labelSelector", parse_labels, parameters.get("labelSelector")),
        fields=_parsed("fieldSelector", parse_fields, parameters.get("fieldSelector")),
        owner=_parsed("owner", _owner, parameters.get("owner")),
        namespace=parameters.get("namespace"),
        limit=_parsed("limit", _limit, parameters.get("limit")),
        after=_parsed("continue", Position.decode, after) if after else None,
    )
    _parsed("query", check, query)
    return Wanted(
        query,
        frozenset(kind.lower() for kind in _several(parameters, "kind")),
        frozenset(_several(parameters, "cluster")),
        parameters.flag("objects"),
    )


def _several(parameters: Parameters, name: str) -> list[str]:
    return [part for given in parameters.all(name) for part in given.split(",") if part]


def _parsed(name: str, read: Any, value: Any) -> Any:
    try:
        return read(value)
    except ValueError as error:
        raise BadRequest(f"{name}: {error}") from error


def _owner(text: str) -> tuple[str, str] | None:
    if not text:
        return None
    kind, slash, name = text.partition("/")
    if not slash or not kind or not name:
        raise ValueError(f'"{text}" must be KIND/NAME, such as ReplicaSet/web-5d8f')
    return kind, name


def _limit(text: str) -> int:
    if not text:
        return DEFAULT_RESULTS
    if not text.isdecimal() or not 1 <= int(text) <= MOST_RESULTS:
        raise ValueError(f'"{text}" must be a number from 1 to {MOST_RESULTS}')
    return int(text)


# texts


def _names(kind: Kind) -> frozenset[str]:
    """Return what a kind may be named by, in lower case."""
    group = kind.gvk.group
    plain = {kind.gvr.resource, kind.gvk.kind.lower(), kind.singular or kind.gvk.kind.lower()}
    qualified = {f"{name}.{group}" for name in plain} if group else set()
    return frozenset(plain | qualified | set(kind.short_names))


def _refusals(seen: Seen) -> str:
    parts = [f"{gvr.resource} in {', '.join(clusters)}" for gvr, clusters in sorted(seen.refused.items())]
    more = len(parts) - _NAMED
    return "; ".join([*parts[:_NAMED], *([f"and {more} more resources"] if more > 0 else [])])


def _line(kind: str, item: Obj) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (kind.encode(), orjson.dumps(item))
