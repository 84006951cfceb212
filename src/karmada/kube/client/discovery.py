"""Discovery and the REST mapper: which kinds a server has, and what their resources are called.

The mapper reads aggregated discovery (two requests for everything) and falls back to the legacy walk (one request per
group-version). It keeps the result until an unknown kind is looked up: CRDs appear at run time, so a miss causes
another discovery, but not more often than once in `min_interval`, and never twice at the same time. A group-version
whose backend is down is remembered as failed and does not hide the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from karmada.kube.client.transport import Call, Transport
from karmada.kube.objects.clock import SYSTEM, Clock
from karmada.kube.objects.errors import ApiError, NotAcceptable, NotFound, error_from_status
from karmada.kube.objects.gvk import GVK, GVR, GroupKind, GroupResource, GroupVersion
from karmada.kube.objects.types import Obj

AGGREGATED = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
)


class NoMatch(LookupError):
    """The server has no such kind or resource (according to discovery)."""


@dataclass(frozen=True, slots=True)
class Mapping:
    """One served resource of one version."""

    gvr: GVR
    gvk: GVK
    namespaced: bool
    verbs: tuple[str, ...] = ()
    """In the server's order."""
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: frozenset[str] = frozenset()

    def allows(self, *verbs: str) -> bool:
        return all(verb in self.verbs for verb in verbs)


@dataclass(slots=True)
class Catalog:
    """All mappings in the server's order: the first version of a group that has a kind is its preferred one."""

    mappings: list[Mapping] = field(default_factory=list)
    group_versions: list[GroupVersion] = field(default_factory=list)
    failed: dict[GroupVersion, str] = field(default_factory=dict)
    by_gvk: dict[GVK, Mapping] = field(default_factory=dict)
    by_gvr: dict[GVR, Mapping] = field(default_factory=dict)
    by_group_kind: dict[GroupKind, Mapping] = field(default_factory=dict)
    by_group_resource: dict[GroupResource, Mapping] = field(default_factory=dict)
    by_word: dict[str, Mapping] = field(default_factory=dict)

    def add(self, mapping: Mapping) -> None:
        self.mappings.append(mapping)
        self.by_gvk.setdefault(mapping.gvk, mapping)
        self.by_gvr.setdefault(mapping.gvr, mapping)
        self.by_group_kind.setdefault(mapping.gvk.group_kind, mapping)
        self.by_group_resource.setdefault(mapping.gvr.group_resource, mapping)

    def finish(self) -> None:
        """Words a person may type: plurals before singulars before short names, earlier groups first."""
        for words in (_plural, _singulars, _short_names):
            for mapping in self.mappings:
                for word in words(mapping):
                    self.by_word.setdefault(word, mapping)

    def named(self, word: str) -> Mapping | None:
        """`deploy`, `deployments`, `deployment`, `deployments.apps`, `deployments.v1.apps`."""
        word = word.lower()
        found = self.by_word.get(word)
        if found is not None or "." not in word:
            return found
        base, _, rest = word.partition(".")
        version, _, group = rest.partition(".")
        for mapping in self.mappings:
            if base not in {*_plural(mapping), *_singulars(mapping), *_short_names(mapping)}:
                continue
            if mapping.gvr.group == rest or (mapping.gvr.version, mapping.gvr.group) == (version, group):
                return mapping
        return None


def _plural(mapping: Mapping) -> Iterable[str]:
    return (mapping.gvr.resource,)


def _singulars(mapping: Mapping) -> Iterable[str]:
    return (mapping.singular or mapping.gvk.kind.lower(), mapping.gvk.kind.lower())


def _short_names(mapping: Mapping) -> Iterable[str]:
    return mapping.short_names


async def discover(transport: Transport) -> Catalog:
    """Return everything the server serves; ApiError when not even the list of groups can be read, or makes no sense."""
    try:
        return await _discover(transport)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise _nonsense("discovery", error) from error


def _nonsense(what: str, error: Exception) -> ApiError:
    return error_from_status({"code": 500, "message": f"the server's {what} makes no sense: {error!r}"})


async def _discover(transport: Transport) -> Catalog:
    core, groups = await asyncio.gather(_aggregated(transport, "/api"), _aggregated(transport, "/apis"))
    catalog = Catalog()
    if core is not None and groups is not None:
        for item in [*core["items"], *groups["items"]]:
            _read_aggregated(catalog, item)
    else:
        await _read_legacy(catalog, transport)
    catalog.finish()
    return catalog


async def _aggregated(transport: Transport, path: str) -> Obj | None:
    try:
        answer = await transport.call(Call("GET", path, accept=AGGREGATED))
    except (NotAcceptable, NotFound):
        return None
    return answer if answer.get("kind") == "APIGroupDiscoveryList" else None


class DiscoveryPage(NamedTuple):
    """`items` is None when the server knows only the older form."""

    tag: str
    items: list[Obj] | None


async def read_page(transport: Transport, path: str, tag: str = "") -> DiscoveryPage | None:
    """Return the aggregated discovery at /api or /apis; None while it is still the one with this tag (its ETag).

    For those who look again and again: an unchanged page is neither sent nor parsed.
    """
    headers = {"If-None-Match": tag} if tag else None
    status, received, body = await transport.answer(Call("GET", path, accept=AGGREGATED), headers)
    if status == 304 and tag:
        return None
    if status in (404, 406):
        return DiscoveryPage("", None)
    if status != 200:
        raise error_from_status({"code": status, "message": f"the server responded with {status} at {path}"})
    try:
        page = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise error_from_status({"code": 500, "message": f"the response at {path} is no JSON: {error}"}) from error
    if not isinstance(page, dict) or page.get("kind") != "APIGroupDiscoveryList":
        return DiscoveryPage("", None)
    return DiscoveryPage(received.get("ETag", ""), page.get("items") or [])


def _read_aggregated(catalog: Catalog, item: Obj) -> None:
    group = (item.get("metadata") or {}).get("name") or ""
    for version in item.get("versions") or ():
        group_version = GroupVersion(group, version["version"])
        if version.get("freshness") == "Stale":
            catalog.failed[group_version] = "the group-version's discovery is stale"
            continue
        catalog.group_versions.append(group_version)
        for resource in version.get("resources") or ():
            kind = resource.get("responseKind") or {}
            if not kind.get("kind"):
                continue
            gvk = GVK(kind.get("group") or group, kind.get("version") or group_version.version, kind["kind"])
            catalog.add(
                Mapping(
                    gvr=GVR(*group_version, resource["resource"]),
                    gvk=gvk,
                    namespaced=resource.get("scope") == "Namespaced",
                    verbs=tuple(resource.get("verbs") or ()),
                    singular=resource.get("singularResource") or "",
                    short_names=tuple(resource.get("shortNames") or ()),
                    categories=tuple(resource.get("categories") or ()),
                    subresources=frozenset(s["subresource"] for s in resource.get("subresources") or ()),
                )
            )


async def _read_legacy(catalog: Catalog, transport: Transport) -> None:
    core, groups = await asyncio.gather(
        transport.call(Call("GET", "/api")), transport.call(Call("GET", "/apis")), return_exceptions=False
    )
    versions = [GroupVersion("", version) for version in core.get("versions") or ()]
    for group in groups.get("groups") or ():
        preferred = (group.get("preferredVersion") or {}).get("version")
        names = [version["version"] for version in group.get("versions") or ()]
        names.sort(key=lambda name: name != preferred)
        versions += [GroupVersion(group["name"], name) for name in names]
    answers = await asyncio.gather(*(_resource_list(transport, version) for version in versions))
    for group_version, answer in zip(versions, answers, strict=True):
        if isinstance(answer, ApiError):
            catalog.failed[group_version] = answer.message
            continue
        catalog.group_versions.append(group_version)
        for mapping in _legacy_mappings(group_version, answer.get("resources") or []):
            catalog.add(mapping)


async def _resource_list(transport: Transport, version: GroupVersion) -> Any:
    path = f"/apis/{version.group}/{version.version}" if version.group else f"/api/{version.version}"
    try:
        return await transport.call(Call("GET", path))
    except ApiError as error:
        return error


def _legacy_mappings(group_version: GroupVersion, resources: list[Obj]) -> Iterator[Mapping]:
    subresources: dict[str, list[str]] = {}
    for resource in resources:
        parent, slash, name = resource["name"].partition("/")
        if slash:
            subresources.setdefault(parent, []).append(name)
    for resource in resources:
        if "/" in resource["name"]:
            continue
        yield Mapping(
            gvr=GVR(*group_version, resource["name"]),
            gvk=GVK(
                resource.get("group") or group_version.group,
                resource.get("version") or group_version.version,
                resource["kind"],
            ),
            namespaced=bool(resource.get("namespaced")),
            verbs=tuple(resource.get("verbs") or ()),
            singular=resource.get("singularName") or "",
            short_names=tuple(resource.get("shortNames") or ()),
            categories=tuple(resource.get("categories") or ()),
            subresources=frozenset(subresources.get(resource["name"], ())),
        )


class RESTMapper:
    def __init__(self, transport: Transport, *, clock: Clock = SYSTEM, min_interval: float = 1.0) -> None:
        self._transport = transport
        self._clock = clock
        self._min_interval = min_interval
        self._catalog: Catalog | None = None
        self._read_at = 0.0
        self._reading: asyncio.Task[Catalog] | None = None

    async def catalog(self) -> Catalog:
        """Return what is known; read on first use."""
        return self._catalog if self._catalog is not None else await self.refresh()

    async def refresh(self) -> Catalog:
        """Request discovery now; concurrent callers share one request."""
        if self._reading is None:
            self._reading = asyncio.create_task(self._read(), name="discovery")
        return await asyncio.shield(self._reading)

    async def _read(self) -> Catalog:
        try:
            self._read_at = self._clock.monotonic()
            self._catalog = await discover(self._transport)
            return self._catalog
        finally:
            self._reading = None

    async def mapping(self, kind: GVK | GroupKind) -> Mapping:
        """Return the mapping of a kind; a GroupKind gives its preferred version."""
        if isinstance(kind, GVK):
            return await self._find(lambda catalog: catalog.by_gvk.get(kind), str(kind))
        return await self._find(lambda catalog: catalog.by_group_kind.get(kind), str(kind))

    async def kind_of(self, resource: GVR | GroupResource) -> Mapping:
        if isinstance(resource, GVR):
            return await self._find(lambda catalog: catalog.by_gvr.get(resource), str(resource))
        return await self._find(lambda catalog: catalog.by_group_resource.get(resource), str(resource))

    async def named(self, word: str) -> Mapping:
        """Return what a person calls a resource on the command line."""
        return await self._find(lambda catalog: catalog.named(word), word)

    def known(self, kind: GVK) -> Mapping | None:
        """Without a request to the server."""
        return self._catalog.by_gvk.get(kind) if self._catalog else None

    async def _find(self, look: Any, what: str) -> Mapping:
        found: Mapping | None = look(await self.catalog())
        if found is None and self._may_refresh():
            found = look(await self.refresh())
        if found is None:
            raise NoMatch(f'the server doesn\'t have a resource type "{what}"')
        return found

    def _may_refresh(self) -> bool:
        """Return whether to read discovery again: a reading under way is the newest there will soon be."""
        return self._reading is not None or self._clock.monotonic() - self._read_at >= self._min_interval
