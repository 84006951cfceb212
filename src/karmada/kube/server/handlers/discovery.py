"""Discovery: which groups, versions and resources are served, in the legacy and in the aggregated form.

Both are made from the registry and from the discovery of aggregated servers, and kept until either changes. Order has
a meaning: clients take a short name from the first group that has it, and the first version is the preferred one.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import orjson

from karmada.kube.kinds.inventory import group_priority, version_priority
from karmada.kube.kinds.resource import Resource
from karmada.kube.objects.errors import NotFound, ServiceUnavailable
from karmada.kube.objects.gvk import GVK, GroupVersion
from karmada.kube.objects.types import Obj
from karmada.kube.server.http.negotiation import (
    DOCUMENT,
    MEDIA,
    PLAIN,
    USUAL,
    check_produced,
    negotiate,
    parse_accept,
)
from karmada.kube.server.http.request import Request
from karmada.kube.server.http.results import PAGE_NOT_FOUND, ObjectResult, RawResult, Result
from karmada.kube.server.registry import Registry

_AGGREGATED_KIND = "APIGroupDiscoveryList"
_DISCOVERY_GROUP = "apidiscovery.k8s.io"
_VERSION = re.compile(r"^v(\d+)(?:(alpha|beta)(\d+))?$")
_NO_KIND: Obj = {"group": "", "version": "", "kind": ""}
_STAGES = {None: 2, "beta": 1, "alpha": 0}
_CUSTOM_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
"""The order in which custom resources list their verbs; built-in ones are sorted."""
_HASHED_AS = {GVK("apiextensions.k8s.io", "v1", "CustomResourceDefinition"): "v1beta1"}
"""Kinds whose published storage version is not the one they are stored in."""
_WITHOUT_BETA = 35
"""The first minor version of Kubernetes that offers aggregated discovery as v2 only."""


@dataclass(frozen=True, slots=True)
class RemoteVersion:
    """A group-version that another server serves; `resources` is its APIResourceList, None while it is unreachable."""

    version: GroupVersion
    group_priority: int
    version_priority: int
    resources: tuple[Obj, ...] | None


@dataclass(slots=True)
class _Documents:
    generation: tuple[int, int]
    groups: list[str] = field(default_factory=list)
    legacy: dict[str, bytes] = field(default_factory=dict)
    stale: set[str] = field(default_factory=set)
    aggregated: dict[tuple[str, str], tuple[bytes, str]] = field(default_factory=dict)


def version_order(version: str) -> tuple[int, int, int, str]:
    """Kubernetes' order of version names, best last: GA over beta over alpha, then higher numbers; others below."""
    match = _VERSION.match(version)
    if match is None:
        return (-1, 0, 0, version)
    return (_STAGES[match[2]], int(match[1]), int(match[3] or 0), "")


def aggregated_forms(kubernetes_version: str) -> tuple[str, ...]:
    """Return the versions of apidiscovery.k8s.io that a Kubernetes version offers."""
    return ("v2",) if int(kubernetes_version.split(".")[1]) >= _WITHOUT_BETA else ("v2", "v2beta1")


def storage_version_hash(gvk: GVK) -> str:
    digest = hashlib.sha256(f"{gvk.group}/{_HASHED_AS.get(gvk, gvk.version)}/{gvk.kind}".encode()).digest()
    return base64.b64encode(digest[:8]).decode()


def etag(body: bytes) -> str:
    return hashlib.sha512(body).hexdigest().upper()


def cacheable(request: Request, body: bytes, tag: str, content_type: str) -> RawResult:
    """Return a response with an ETag; a client that has it already gets 304."""
    headers = {"ETag": f'"{tag}"', "Vary": "Accept", "Cache-Control": "public"}
    if request.headers.get("If-None-Match", "") == f'"{tag}"':
        return RawResult(b"", content_type, 304, headers)
    return RawResult(body, content_type, 200, headers)


class Discovery:
    def __init__(
        self,
        registry: Registry,
        address: Callable[[], str],
        remote: Callable[[], Iterable[RemoteVersion]] = tuple,
        remote_generation: Callable[[], int] = lambda: 0,
        forms: tuple[str, ...] = ("v2",),
    ) -> None:
        """`remote` are the group-versions of aggregated servers, `forms` the versions of aggregated discovery."""
        self._registry = registry
        self._address = address
        self._forms = forms
        self._remote = remote
        self._remote_generation = remote_generation
        self._documents: _Documents | None = None

    def _current(self) -> _Documents:
        generation = (self._registry.generation, self._remote_generation())
        if self._documents is None or self._documents.generation != generation:
            self._documents = self._build(generation)
        return self._documents

    async def handle(self, request: Request) -> Result:
        """Serve /api, /apis, /apis/<group> and the group-versions' own pages."""
        path = request.info.path.rstrip("/")
        documents = self._current()
        accept = request.headers.get("Accept", "")
        if path in ("/api", "/apis"):
            version = _aggregated_version(accept, self._forms)
            if version:
                body, tag = documents.aggregated[path, version]
                media = f"application/json;g={_DISCOVERY_GROUP};v={version};as={_AGGREGATED_KIND}"
                return cacheable(request, body, tag, media)
        if path in documents.stale:
            raise ServiceUnavailable("the server is currently unable to handle the request")
        group = "" if path.startswith("/api/") else path.split("/")[2] if path.startswith("/apis/") else None
        found = documents.legacy.get(path)
        if found is not None:
            return _document(request, found, routed=path == "/api" or group == "" or path.count("/") == 3)
        if group is not None and self._registry.has_builtin(group):
            raise NotFound.resource()
        return PAGE_NOT_FOUND

    def paths(self) -> list[str]:
        return sorted(self._current().legacy)

    def _build(self, generation: tuple[int, int]) -> _Documents:
        documents = _Documents(generation)
        remote = {r.version: r for r in self._remote()}
        local = {v: sorted(self._registry.in_version(v), key=lambda r: r.plural) for v in self._registry.versions()}
        versions: dict[str, list[GroupVersion]] = {}
        for version in {*remote, *local}:
            versions.setdefault(version.group, []).append(version)
        for group in versions.values():
            group.sort(key=lambda v: (_version_rank(v, remote), version_order(v.version)), reverse=True)
        groups = sorted(versions, key=lambda g: (-_group_rank(g, versions[g], remote), g))
        self._build_legacy(documents, groups, versions, local, remote)
        for path, names in (("/api", [""]), ("/apis", [g for g in groups if g])):
            items = [_aggregated_group(g, versions.get(g, []), local, remote) for g in names]
            for form in self._forms:
                head = {"kind": _AGGREGATED_KIND, "apiVersion": f"{_DISCOVERY_GROUP}/{form}", "metadata": {}}
                body = orjson.dumps({**head, "items": items})
                documents.aggregated[path, form] = (body, etag(body))
        return documents

    def _build_legacy(
        self,
        documents: _Documents,
        groups: list[str],
        versions: dict[str, list[GroupVersion]],
        local: dict[GroupVersion, list[Resource]],
        remote: dict[GroupVersion, RemoteVersion],
    ) -> None:
        addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": self._address()}]
        core = {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses}
        documents.legacy["/api"] = orjson.dumps(core)
        listed = []
        for group in groups:
            if group:
                entry = _legacy_group(group, versions[group])
                listed.append(entry)
                documents.legacy[f"/apis/{group}"] = orjson.dumps({"kind": "APIGroup", "apiVersion": "v1", **entry})
            for version in versions[group]:
                path = f"/apis/{version}" if group else f"/api/{version}"
                resources = _legacy_resources(version, local, remote)
                if resources is None:
                    documents.stale.add(path)
                    continue
                head = {"kind": "APIResourceList"} | ({"apiVersion": "v1"} if group else {})
                documents.legacy[path] = orjson.dumps({**head, "groupVersion": str(version), "resources": resources})
        documents.legacy["/apis"] = orjson.dumps({"kind": "APIGroupList", "apiVersion": "v1", "groups": listed})


def _document(request: Request, body: bytes, *, routed: bool) -> Result:
    """Return a legacy document in the form the client accepts; group-versions are routed like resources."""
    accept = request.headers.get("Accept", "")
    if request.in_process or accept in USUAL:
        return RawResult(body)
    if routed:
        check_produced(accept, MEDIA)
    request.form = negotiate(accept, DOCUMENT)
    return ObjectResult(obj=orjson.loads(body))


def _aggregated_version(accept: str, forms: tuple[str, ...]) -> str:
    """Return the version of aggregated discovery that a client prefers to the legacy form; empty: none."""
    for clause in parse_accept(accept) if accept else ():
        params = clause.params
        if clause.media != PLAIN.media:
            continue
        if not params.get("as"):
            return ""
        known = params.get("g") == _DISCOVERY_GROUP and params.get("as") == _AGGREGATED_KIND
        if known and params.get("v") in forms:
            return params["v"]
    return ""


def _group_rank(group: str, versions: list[GroupVersion], remote: dict[GroupVersion, RemoteVersion]) -> int:
    ranks = [remote[v].group_priority for v in versions if v in remote]
    return max([*ranks, group_priority(group)] if len(ranks) < len(versions) else ranks)


def _version_rank(version: GroupVersion, remote: dict[GroupVersion, RemoteVersion]) -> int:
    return remote[version].version_priority if version in remote else version_priority(version)


def _legacy_group(group: str, versions: list[GroupVersion]) -> Obj:
    listed = [{"groupVersion": str(v), "version": v.version} for v in versions]
    return {"name": group, "versions": listed, "preferredVersion": listed[0]}


def _legacy_resources(
    version: GroupVersion, local: dict[GroupVersion, list[Resource]], remote: dict[GroupVersion, RemoteVersion]
) -> list[Obj] | None:
    if version in remote:
        resources = remote[version].resources
        return None if resources is None else list(resources)
    return [entry for resource in local[version] for entry in _legacy_entries(resource)]


def _legacy_entries(resource: Resource) -> list[Obj]:
    entry: Obj = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.gvk.kind,
        "verbs": _verbs(resource),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    if "watch" in resource.verbs:
        entry["storageVersionHash"] = storage_version_hash(resource.storage)
    entries = [entry]
    for name, sub in sorted(resource.subresources.items()):
        part: Obj = {
            "name": f"{resource.plural}/{name}",
            "singularName": "",
            "namespaced": resource.namespaced,
            "kind": (sub.kind or resource.gvk).kind,
            "verbs": sorted(sub.verbs),
        }
        if sub.kind is not None and sub.kind.group_version != resource.gvk.group_version:
            part |= {"group": sub.kind.group, "version": sub.kind.version}
        entries.append(part)
    return entries


def _verbs(resource: Resource) -> list[str]:
    return [verb for verb in _CUSTOM_VERBS if verb in resource.verbs] if resource.custom else sorted(resource.verbs)


def _aggregated_group(
    group: str,
    versions: list[GroupVersion],
    local: dict[GroupVersion, list[Resource]],
    remote: dict[GroupVersion, RemoteVersion],
) -> Obj:
    listed = []
    for version in versions:
        if version in remote:
            resources = remote[version].resources
            freshness = "Current" if resources is not None else "Stale"
            shown = _from_legacy(version, resources or ())
        else:
            freshness, shown = "Current", [_aggregated_resource(r) for r in local[version]]
        listed.append({"version": version.version, "freshness": freshness, "resources": shown})
    return {"metadata": {"name": group} if group else {}, "versions": listed}


def _kind(gvk: GVK, parent: GroupVersion) -> Obj:
    same = gvk.group_version == parent
    return {"group": "" if same else gvk.group, "version": "" if same else gvk.version, "kind": gvk.kind}


def _aggregated_resource(resource: Resource) -> Obj:
    version = resource.gvk.group_version
    shown: Obj = {
        "resource": resource.plural,
        "responseKind": _kind(resource.gvk, version),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": _verbs(resource),
    }
    if resource.short_names:
        shown["shortNames"] = list(resource.short_names)
    if resource.categories:
        shown["categories"] = list(resource.categories)
    if resource.subresources:
        shown["subresources"] = [
            {"subresource": name, "responseKind": _kind(sub.kind or resource.gvk, version), "verbs": sorted(sub.verbs)}
            for name, sub in sorted(resource.subresources.items())
        ]
    return shown


def _from_legacy(version: GroupVersion, resources: Iterable[Obj]) -> list[Obj]:
    """Return an APIResourceList's entries in the aggregated form: subresources under their parents."""
    shown: dict[str, Obj] = {}
    parts: list[tuple[str, str, Obj]] = []
    for entry in resources:
        kind = GVK(entry.get("group", version.group), entry.get("version", version.version), entry["kind"])
        parent, slash, name = entry["name"].partition("/")
        scope = "Namespaced" if entry["namespaced"] else "Cluster"
        if slash:
            part = {"subresource": name, "responseKind": _kind(kind, version), "verbs": entry["verbs"]}
            parts.append((parent, scope, part))
            continue
        shown[parent] = {
            "resource": parent,
            "responseKind": _kind(kind, version),
            "scope": scope,
            "singularResource": entry.get("singularName") or entry["kind"].lower(),
            "verbs": entry["verbs"],
        } | {key: entry[key] for key in ("shortNames", "categories") if entry.get(key)}
    for parent, scope, part in parts:
        bare: Obj = {"resource": parent, "responseKind": _NO_KIND, "scope": scope, "singularResource": "", "verbs": []}
        shown.setdefault(parent, bare).setdefault("subresources", []).append(part)
    return list(shown.values())
