"""Which kinds a member serves: the status field apiEnablements and the condition CompleteAPIEnablements.

Discovery is read on every pass, so it has to be cheap: the two aggregated pages are requested with their ETags, and
only a page that has changed is sent and parsed. Servers without aggregated discovery need a request for every
group-version; those are read once a minute, or on every pass as long as some of them fail.

What cannot be read is taken to be as it was: a member that fails some requests for a moment must not seem to have lost
kinds, since workloads would be moved for it. The condition says that the list may not be complete.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import is_not
from typing import NamedTuple

from karmada.api.cluster_bounds import bounded_enablements
from karmada.kube.client.discovery import Catalog, discover, read_page
from karmada.kube.client.transport import ConnectionFailed, Transport
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.logging import get_logger

COMPLETE = "CompleteAPIEnablements"
_PAGES = ("/api", "/apis")
_WALK_EVERY = 60.0
log = get_logger("cluster-status")


class Enablements(NamedTuple):
    """`complete`: nothing of discovery failed."""

    entries: list[Obj]
    complete: bool


_NOTHING_KNOWN: Mapping[str, Obj] = {}


def condition(found: Enablements) -> Obj:
    count = len(found.entries)
    if not count:
        return _condition("False", "Empty", "collected empty APIEnablements from the cluster")
    if not found.complete:
        return _condition("False", "Partial", f"might collect partial APIEnablements({count}) from the cluster")
    return _condition("True", "Complete", "collected complete APIEnablements from the cluster")


def _condition(status: str, reason: str, message: str) -> Obj:
    return {"type": COMPLETE, "status": status, "reason": reason, "message": message}


def from_groups(groups: Iterable[Obj], known: Mapping[str, Obj] = _NOTHING_KNOWN) -> Enablements:
    """From the items of an aggregated page. A version whose own server does not answer is stale: as it was known."""
    entries, complete = [], True
    for group in groups:
        name = (group.get("metadata") or {}).get("name") or ""
        for version in group.get("versions") or ():
            group_version = f"{name}/{version['version']}" if name else version["version"]
            if version.get("freshness") == "Stale":
                complete = False
                entries += [known[group_version]] if group_version in known else []
                continue
            served = [
                (resource["resource"], (resource.get("responseKind") or {}).get("kind") or "")
                for resource in version.get("resources") or ()
            ]
            entries.append(_entry(group_version, served))
    return Enablements(entries, complete)


def from_catalog(catalog: Catalog, known: Mapping[str, Obj] = _NOTHING_KNOWN) -> Enablements:
    served: dict[str, list[tuple[str, str]]] = {
        str(version): [] for version in catalog.group_versions if version not in catalog.failed
    }
    for mapping in catalog.mappings:
        served[str(mapping.gvr.group_version)].append((mapping.gvr.resource, mapping.gvk.kind))
    kept = [known[str(version)] for version in catalog.failed if str(version) in known]
    return Enablements([*(_entry(version, kinds) for version, kinds in served.items()), *kept], not catalog.failed)


def _entry(group_version: str, served: Iterable[tuple[str, str]]) -> Obj:
    resources = [{"name": name, "kind": kind} for name, kind in sorted(served) if kind and "/" not in name]
    return {"groupVersion": group_version, "resources": resources}


def _joined(parts: Iterable[Enablements]) -> Enablements:
    parts = list(parts)
    entries = [entry for part in parts for entry in part.entries]
    entries.sort(key=lambda entry: entry["groupVersion"])
    kept = bounded_enablements(entries)
    return Enablements(kept, kept is entries and all(part.complete for part in parts))


class EnablementReader:
    """One member's discovery, read again and again."""

    def __init__(self, transport: Transport, clock: Clock, cluster: str = "", known: Iterable[Obj] = ()) -> None:
        """`known` are the entries that were read before this process started."""
        self._transport = transport
        self._log = log.bind(cluster=cluster)
        self._clock = clock
        self._pages: dict[str, tuple[str, Enablements]] = {}
        self._parts: list[Enablements] = []
        self._joined = Enablements(list(known), False)
        self._walk_again = 0.0

    async def read(self) -> Enablements:
        """Return what is served now; what cannot be read is as it was, and the result says that it is not complete.

        As long as nothing changes, the very same object.
        """
        if self._clock.monotonic() < self._walk_again:
            return self._joined
        parts = [await self._page(path) for path in _PAGES]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return await self._walk()
        if len(self._parts) != len(known) or any(map(is_not, known, self._parts)):
            self._parts, self._joined = known, _joined(known)
        return self._joined

    async def _page(self, path: str) -> Enablements | None:
        """Return None when the server has no aggregated discovery."""
        tag, found = self._pages.get(path) or ("", Enablements(self._known_under(path), False))
        try:
            page = await read_page(self._transport, path, tag)
        except (ApiError, ConnectionFailed) as error:
            self._log.error("Discovery of a cluster failed", error, path=path)
            return Enablements(found.entries, False)
        if page is None:
            return found
        if page.items is None:
            return None
        try:
            new = from_groups(page.items, {entry["groupVersion"]: entry for entry in found.entries})
        except (AttributeError, LookupError, TypeError) as error:
            self._log.error("Discovery of a cluster makes no sense", error, path=path)
            return Enablements(found.entries, False)
        self._pages[path] = (page.tag, new)
        return new

    def _known_under(self, path: str) -> list[Obj]:
        """Return the entries that one of the two pages has: groups with a name are under /apis."""
        return [entry for entry in self._joined.entries if ("/" in entry["groupVersion"]) == (path == "/apis")]

    async def _walk(self) -> Enablements:
        self._parts = []
        try:
            catalog = await discover(self._transport)
            known = {entry["groupVersion"]: entry for entry in self._joined.entries}
            self._joined = _joined([from_catalog(catalog, known)])
        except (ApiError, ConnectionFailed) as error:
            self._log.error("Discovery of a cluster failed", error)
            self._joined = Enablements(self._joined.entries, False)
        if self._joined.complete:
            self._walk_again = self._clock.monotonic() + _WALK_EVERY
        return self._joined
