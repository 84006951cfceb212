"""get, list and watch, served from the watch cache; older snapshots (continue tokens, exact revisions) from the store.

A continue token has the snapshot's revision and the last key, so that all pages of a list are from one snapshot, and
how many objects remain. Pages of a resource that is in the store only, because it is seldom read, are read there.
"""

from __future__ import annotations

import base64
import random
import re
from bisect import bisect_right
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import NamedTuple

import orjson

from karmada.kube.kinds.resource import Resource
from karmada.kube.objects.doc import Doc
from karmada.kube.objects.errors import ApiError, BadRequest, Expired, NotFound, ServerTimeout, Timeout, invalid
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.objects.selectors import FieldRequirement
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.time_slice import TimeSlice
from karmada.kube.schema.gojson import unmarshal
from karmada.kube.server.handlers import versions
from karmada.kube.server.http.options import ListOptions
from karmada.kube.server.http.results import ListResult, ObjectResult, WatchResult
from karmada.kube.server.storage.interface import Compacted, FutureRevision, StoreUnavailable
from karmada.kube.server.watchcache.cache import Cache
from karmada.kube.server.watchcache.entry import doc_of, prefix
from karmada.kube.server.watchcache.field_index import FieldIndex
from karmada.kube.server.watchcache.unloaded import Unloaded

FRESHNESS_SECONDS = 3.0
_LARGEST_PAGE = 1_000
"""Objects that are read from the store in one go,"""
_MOST_COUNTED = 10_000
"""and that are counted there: some milliseconds."""
_TOKEN_VERSION = "meta.k8s.io/v1"
_NOT_BASE64 = re.compile(r"[^A-Za-z0-9_-]")
_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)
_TOO_OLD_EXACT = "The resourceVersion for the provided list is too old."


class Selection(NamedTuple):
    """The selectors of a list or watch; `matches` is None when every entry (of that name) matches."""

    name: str
    matches: Callable[[Doc], bool] | None
    indexed: FieldRequirement | None = None
    """One by which the objects can be found; `matches` tests it, too."""

    async def filter(self, entries: list[Doc], limit: int = 0) -> list[Doc]:
        """Those that match; with a limit, one more than that at most, by which a page knows that it is not the last.

        To match may mean to parse: others run in between, and a page does not match all that come after it.
        """
        matches = self.matches
        if matches is None:
            return entries
        found, turn = list[Doc](), TimeSlice()
        for entry in entries:
            if matches(entry):
                found.append(entry)
                if 0 < limit < len(found):
                    break
            if turn.is_over():
                await turn.next()
        return found


class Reads:
    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._indexes: dict[tuple[GroupResource, str], FieldIndex] = {}

    def entry(self, resource: Resource, namespace: str, name: str) -> Doc:
        entry = self._cache.collection(resource.storage_resource).get(namespace, name)
        if entry is None:
            raise NotFound.of(resource.group_resource, name)
        return entry

    async def get(self, resource: Resource, namespace: str, name: str, options: ListOptions) -> ObjectResult:
        await self._reach(options.resource_version, resource, "get")
        entry = self.entry(resource, namespace, name)
        return await versions.shown(resource, entry)

    async def _follow(self, resource: Resource, selection: Selection) -> None:
        """Before `_candidates`: what takes long of it, with pauses for others."""
        if selection.indexed is not None:
            await self._index(resource, selection.indexed.path).follow()

    def _candidates(self, resource: Resource, namespace: str, selection: Selection) -> list[Doc]:
        """Return the objects that are to be matched, as they are now."""
        collection = self._cache.collection(resource.storage_resource)
        if selection.name and (namespace or not resource.namespaced):
            entry = collection.get(namespace, selection.name)
            return [entry] if entry is not None else []
        if selection.indexed is not None:
            found = self._index(resource, selection.indexed.path).find(selection.indexed.value)
            return [entry for entry in found if namespace in ("", entry.namespace)]
        entries = collection.list(namespace)
        return [entry for entry in entries if entry.name == selection.name] if selection.name else entries

    def _new_first(self, entries: list[Doc]) -> list[Doc]:
        start = self._cache.started_at
        new = [entry for entry in entries if entry.revision > start]
        return [*new, *(entry for entry in entries if entry.revision <= start)] if new else entries

    async def _cut(
        self, resource: Resource, entries: list[Doc], revision: int, limit: int, options: ListOptions, behind: int
    ) -> ListResult:
        """Return the first `limit`, with a continue token if there are more (or `behind` more in the store)."""
        metadata: Obj = {"resourceVersion": str(revision)}
        if limit and (len(entries) > limit or behind):
            remaining = len(entries) - limit + behind
            entries = entries[:limit]
            after = entries[-1].key.removeprefix(prefix(resource.storage_resource))
            metadata["continue"] = _encode_token(revision, after, remaining)
            if options.labels is None and options.fields is None:
                metadata["remainingItemCount"] = remaining
        return await self._result(resource, metadata, entries)

    async def _result(self, resource: Resource, metadata: Obj, entries: list[Doc]) -> ListResult:
        if versions.same(resource):
            return ListResult(resource, metadata, entries)
        return ListResult(resource, metadata, objects=await versions.present(resource, entries))

    async def _stored_page(
        self, resource: Resource, namespace: str, unloaded: Unloaded, options: ListOptions
    ) -> ListResult | None:
        """Return a page of a resource that is in the store only; what remains is counted for the first.

        None for a token that does not say what remains, or has no revision that was reached; where there are too many
        to be counted; and where the store cannot be read: to load it says why.
        """
        limit = options.limit
        try:
            if options.token:
                revision, after, remaining = _decode_token(options.token)
                if remaining <= 0 or not 0 < revision <= self._cache.revision or self._lost(revision):
                    return None
                entries = unloaded.page(namespace, after, limit + 1, revision)  # whether there are more is certain
                behind = max(0, remaining - len(entries)) if len(entries) > limit else 0
            else:
                await self._reach("", resource, "list")
                if unloaded.has_more_than(_MOST_COUNTED):
                    return None
                revision, after = self._cache.revision, ""
                within = prefix(resource.storage_resource, namespace)
                items, _, behind = await self._cache.store.range(within, limit=limit, revision=revision)
                entries = [doc_of(*stored) for stored in items]
        except Compacted:
            raise _expired(after, continuing=bool(options.token)) from None
        except StoreUnavailable:
            return None
        return await self._cut(resource, entries, revision, limit, options, behind)

    async def _page(
        self, resource: Resource, namespace: str, selection: Selection, options: ListOptions, revision: int, after: str
    ) -> ListResult:
        """Return one page of a snapshot; `revision` -1 continues from `after` in the latest state."""
        start = prefix(resource.storage_resource)
        last = start + after if after else ""
        limit = options.limit
        at = revision if revision >= 0 else self._cache.revision
        if limit and selection.matches is None and _continues(resource, namespace, after):
            some = self._cache.collection(resource.storage_resource).page_at(at, namespace, last, limit)
            if some is not None:
                return await self._cut(resource, some[0], at, limit, options, some[1])
        recent = self._snapshot(resource, namespace, revision)
        if recent is not None:
            later = recent[bisect_right(recent, last, key=attrgetter("key")) :] if last else recent
            return await self._cut(resource, await selection.filter(later, limit), at, limit, options, 0)
        within = prefix(resource.storage_resource, namespace)
        entries = list[Doc]()
        at = revision
        while True:
            try:
                page = await self._cache.store.range(within, after=last, limit=limit, revision=at)
            except Compacted:
                raise _expired(after, continuing=bool(options.token)) from None
            except FutureRevision as error:
                raise too_large(revision, error.revision) from None
            except StoreUnavailable:
                raise _not_now(resource, "list") from None
            entries += await selection.filter([doc_of(*stored) for stored in page.items])
            if not page.remaining or not limit or len(entries) >= limit:
                return await self._cut(resource, entries, at, limit, options, page.remaining)
            last = page.items[-1].key

    def _snapshot(self, resource: Resource, namespace: str, revision: int) -> list[Doc] | None:
        collection = self._cache.collection(resource.storage_resource)
        return collection.list(namespace) if revision < 0 else collection.snapshot(revision, namespace)

    async def watch(
        self, resource: Resource, namespace: str, options: ListOptions, name: str = "", *, may_be_ahead: bool = False
    ) -> WatchResult:
        """`name` narrows the watch to one object, in addition to the selectors.

        `may_be_ahead`: a future resourceVersion is no error at once; the watch sends nothing until it is reached.
        """
        collection = self._cache.collection(resource.storage_resource)
        await collection.loaded()
        selection = self.selection(resource, options)
        if name:
            if selection.name not in ("", name):
                raise BadRequest(f"the field selector names {selection.name}, the path {name}")
            selection = selection._replace(name=name)
        since = await self._since(options, resource, may_be_ahead)
        if lost := self._lost(since):
            raise lost
        synthetic = options.send_initial_events
        if synthetic is None:
            synthetic = since == 0
        if synthetic:
            await self._follow(resource, selection)
        revision = self._cache.revision
        subscription = await collection.subscribe(
            None if synthetic or since == 0 else since,
            namespace=namespace,
            name=selection.name,
            matches=selection.matches,
        )
        initial: list[Doc] = []
        if synthetic:
            revision = self._cache.revision
            try:
                initial = await selection.filter(self._candidates(resource, namespace, selection))
            except BaseException:
                subscription.close()
                raise
        timeout = options.timeout if options.timeout else random.uniform(1800, 3600)
        return WatchResult(
            resource=resource,
            initial=initial,
            subscription=subscription,
            revision=revision,
            bookmarks=options.bookmarks,
            end_of_initial=synthetic and options.bookmarks,
            timeout=timeout,
            convert=None if versions.same(resource) else versions.converter(resource),
            overdue=partial(self._overdue, since) if since > revision else None,
        )

    def _overdue(self, since: int) -> ApiError | None:
        """Return the error of a watch whose resourceVersion is not reached in time: an older store took its place."""
        current = self._cache.revision
        return too_large(since, current) if since > current else self._lost(since)

    def _lost(self, since: int) -> ApiError | None:
        """Return the error of a revision that an older copy of the store has taken the place of."""
        if self._cache.store.has_given(since):
            return None
        return Expired(f"too old resource version: {since} ({self._cache.revision})")

    async def _since(self, options: ListOptions, resource: Resource, may_be_ahead: bool) -> int:
        """Return the revision after which a watch begins."""
        text = options.resource_version
        if may_be_ahead and options.send_initial_events is None and text not in ("", "0"):
            return _revision(text, "watch")
        return await self._reach(text, resource, "watch")

    async def _reach(self, text: str, resource: Resource, verb: str) -> int:
        """Wait until the cache is as new as the client requests; "" requests the latest committed state."""
        if text == "0":
            return 0
        if not text:
            try:
                fresh = await self._cache.fresh()
            except StoreUnavailable:
                fresh = False
            if not fresh:
                raise _not_now(resource, verb)
            return 0
        wanted = _revision(text, verb)
        if wanted > self._cache.revision and not await self._cache.wait_for(wanted, FRESHNESS_SECONDS):
            raise too_large(wanted, self._cache.revision)
        return wanted

    def selection(self, resource: Resource, options: ListOptions) -> Selection:
        name, indexed = "", None
        tests: list[Callable[[Doc], bool]] = []
        labels = options.labels
        if labels is not None:
            tests.append(lambda entry: labels.matches(entry.labels))
        for requirement in options.fields.requirements if options.fields is not None else ():
            if requirement.path == "metadata.name" and requirement.op == "=" and not name:
                name = requirement.value
            if requirement.path in resource.strategy.indexed and requirement.op == "=":
                indexed = requirement
            tests.append(self._field_test(resource, requirement))
        if not tests:
            return Selection(name, None)
        if len(tests) == 1:
            return Selection(name, tests[0], indexed)
        return Selection(name, lambda entry: all(test(entry) for test in tests), indexed)

    def _index(self, resource: Resource, path: str) -> FieldIndex:
        key = (resource.storage_resource, path)
        if key not in self._indexes:
            value_of, present = resource.strategy.fields[path], versions.presenter(resource)
            collection = self._cache.collection(resource.storage_resource)
            self._indexes[key] = FieldIndex(collection, lambda obj: value_of(present(obj)))
        return self._indexes[key]

    def _field_test(self, resource: Resource, requirement: FieldRequirement) -> Callable[[Doc], bool]:
        path, value, equal = requirement.path, requirement.value, requirement.op == "="
        if path == "metadata.name":
            return lambda entry: (entry.name == value) is equal
        if path == "metadata.namespace":
            return lambda entry: (entry.namespace == value) is equal
        getter = resource.strategy.fields.get(path)
        if getter is None:
            raise BadRequest(_unknown_field(resource, path))
        present = versions.presenter(resource)
        return lambda entry: (getter(present(entry.object())) == value) is equal

    async def list(
        self, resource: Resource, namespace: str, options: ListOptions, *, new_first: bool = False
    ) -> ListResult:
        """`new_first`: with what was written since the start first, and no pages where nothing is read for them."""
        collection = self._cache.collection(resource.storage_resource)
        selection = self.selection(resource, options)
        plain = selection.matches is None and not options.resource_version
        if collection.paged is not None and plain and 0 < options.limit <= _LARGEST_PAGE:
            page = await self._stored_page(resource, namespace, collection.paged, options)
            if page is not None:
                return page
        await collection.loaded()
        if options.token:
            if options.resource_version not in ("", "0"):
                raise BadRequest("specifying resource version is not allowed when using continue")
            revision, after, _ = _decode_token(options.token)
            if revision > self._cache.revision and not await self._cache.wait_for(revision, FRESHNESS_SECONDS):
                raise too_large(revision, self._cache.revision)
            if self._lost(revision):
                raise _expired(after, continuing=True)
            return await self._page(resource, namespace, selection, options, revision, after)
        wanted = await self._reach(options.resource_version, resource, "list")
        exact = options.match == "Exact" or (wanted > 0 and options.limit > 0 and not options.match)
        if exact and self._lost(wanted):
            raise _expired("", continuing=False)
        if exact and collection.changed > wanted:
            return await self._page(resource, namespace, selection, options, wanted, "")
        limit = options.limit if options.resource_version != "0" else 0
        if new_first and selection.matches is None and versions.same(resource):
            limit = 0
        await self._follow(resource, selection)
        revision = wanted if exact else self._cache.revision
        entries = await selection.filter(self._candidates(resource, namespace, selection), limit)
        if new_first and not limit:
            entries = self._new_first(entries)
        return await self._cut(resource, entries, revision, limit, options, 0)


def _continues(resource: Resource, namespace: str, after: str) -> bool:
    """Return whether a page goes on behind an object of this list."""
    of, slash, _ = after.partition("/")
    return bool(after) and after.count("/") == resource.namespaced and not (slash and namespace not in ("", of))


def _revision(text: str, verb: str) -> int:
    """Return a resourceVersion as a number; lists refuse others as the client's fault, other verbs as the server's."""
    if text.isascii() and text.isdigit() and len(text) <= 19:
        return int(text)
    why = invalid("resourceVersion", text, f'strconv.ParseUint: parsing "{text}": invalid syntax')
    raise BadRequest(f"invalid resource version: {why}") if verb == "list" else ApiError(str(why))


def _unknown_field(resource: Resource, path: str) -> str:
    if resource.strategy.fields or resource.custom:
        return f"field label not supported: {path}"
    return f'"{path}" is not a known field selector: only "metadata.name", "metadata.namespace"'


def _not_now(resource: Resource, verb: str) -> ServerTimeout:
    """Return the error for a latest revision that cannot be read from the store."""
    named = resource.group_resource
    details: Obj = {"group": named.group} if named.group else {}
    message = f"The {verb} operation against {named} could not be completed at this time, please try again."
    return ServerTimeout(message, details={**details, "kind": named.resource}, retry_after=1)


def too_large(wanted: int, current: int) -> Timeout:
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    message = f"Timeout: Too large resource version: {wanted}, current: {current}"
    return Timeout(message, details={"causes": [cause]}, retry_after=1)


def _expired(after: str, *, continuing: bool) -> ApiError:
    if not continuing:
        return Expired(_TOO_OLD_EXACT)
    return Expired(_TOO_OLD, metadata={"continue": _encode_token(-1, after)})


def _encode_token(revision: int, after: str, remaining: int = 0) -> str:
    """`remaining`: how many objects of the snapshot come after this page; 0 where that is not known."""
    token = orjson.dumps({"v": _TOKEN_VERSION, "rv": revision, "start": after + "\0", "remaining": remaining})
    return base64.urlsafe_b64encode(token).rstrip(b"=").decode()


def _decode_token(token: str) -> tuple[int, str, int]:
    illegal = _NOT_BASE64.search(token)
    if illegal or len(token) % 4 == 1:
        at = illegal.start() if illegal else len(token) - 1
        raise _invalid_token(f": illegal base64 data at input byte {at}")
    try:
        parsed = unmarshal(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    except ValueError as error:
        raise _invalid_token(f": {error}") from None
    if not isinstance(parsed, dict):
        parsed = {}
    version, revision, start = (parsed.get(key) for key in ("v", "rv", "start"))
    if version != _TOKEN_VERSION:
        raise _invalid_token(": server does not recognize this encoded version")
    if not isinstance(revision, int) or revision == 0 or revision < -1:
        raise _invalid_token(f": incorrect encoded start resourceVersion (version {_TOKEN_VERSION})")
    if not start or not isinstance(start, str):
        raise _invalid_token(f": encoded start key empty (version {_TOKEN_VERSION})")
    if not start.endswith("\0") or start.startswith("/") or ".." in start.split("/"):
        raise _invalid_token("")
    remaining = parsed.get("remaining")
    return revision, start.removesuffix("\0"), remaining if isinstance(remaining, int) else 0


def _invalid_token(why: str) -> BadRequest:
    return BadRequest(f"invalid continue token: continue key is not valid{why}")
