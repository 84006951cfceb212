"""The operations of a resource, once, in a form both OpenAPI versions are written from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from karmada.kube.kinds.resource import Resource
from karmada.kube.objects.gvk import GVK
from karmada.kube.server.handlers.patching import APPLY, JSON_PATCH, MERGE, STRATEGIC
from karmada.kube.server.http.negotiation import JSON, MEDIA, STREAMS, YAML, has_protobuf
from karmada.kube.server.http.request import CONNECT_SUBRESOURCES

_LIST_PARAMETERS = (
    "allowWatchBookmarks", "continue", "fieldSelector", "labelSelector", "limit", "resourceVersion",
    "resourceVersionMatch", "sendInitialEvents", "timeoutSeconds", "watch",
)  # fmt: skip
_WRITE_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation")
_DELETE_PARAMETERS = (
    "dryRun", "gracePeriodSeconds", "ignoreStoreReadErrorWithClusterBreakingPotential", "orphanDependents",
    "propagationPolicy",
)  # fmt: skip
_PARAMETERS = {
    "list": _LIST_PARAMETERS,
    "get": (),
    "create": _WRITE_PARAMETERS,
    "update": _WRITE_PARAMETERS,
    "patch": (*_WRITE_PARAMETERS, "force"),
    "delete": _DELETE_PARAMETERS,
    "deletecollection": tuple(sorted({*_LIST_PARAMETERS, *_DELETE_PARAMETERS} - {"allowWatchBookmarks", "watch"})),
    "connect": (),
    "watch": (),
    "watchlist": (),
}
_STATUSES = {
    "create": {"200": "OK", "201": "Created", "202": "Accepted"},
    "update": {"200": "OK", "201": "Created"},
    "patch": {"200": "OK", "201": "Created"},
    "delete": {"200": "OK", "202": "Accepted"},
}
_OPERATION_VERBS = {"get": "read", "update": "replace", "watchlist": "watch"}
_ACTIONS = {"create": "post", "update": "put"}
_COLLECTION = (("get", "list"), ("post", "create"), ("delete", "deletecollection"))
_ITEM = (("get", "get"), ("put", "update"), ("patch", "patch"), ("delete", "delete"))
_SUB = (("get", "get"), ("post", "create"), ("put", "update"), ("patch", "patch"))
_CONNECT_METHODS = {
    "proxy": ("get", "put", "post", "delete", "options", "head", "patch"),
    "exec": ("get", "post"),
    "attach": ("get", "post"),
    "portforward": ("get", "post"),
}
PARAMETER_TYPES = {
    "allowWatchBookmarks": "boolean", "limit": "integer", "sendInitialEvents": "boolean", "timeoutSeconds": "integer",
    "watch": "boolean", "force": "boolean", "gracePeriodSeconds": "integer", "orphanDependents": "boolean",
    "ignoreStoreReadErrorWithClusterBreakingPotential": "boolean",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Operation:
    method: str
    action: str
    gvk: GVK
    parameters: tuple[str, ...]
    media: tuple[str, ...]
    resource: Resource
    subresource: str = ""
    everywhere: bool = False
    """Over all namespaces."""
    with_path: bool = False
    """A connection to a path below the object."""

    @property
    def operation_id(self) -> str:
        """verb, group, version, then what the verb is done to, as generated clients name their methods."""
        gvk = self.resource.gvk
        group = "".join(part[:1].upper() + part[1:] for part in group_words(gvk.group)) + gvk.version.capitalize()
        scope = "Namespaced" if self.resource.namespaced and not self.everywhere else ""
        kind = f"{scope}{gvk.kind}{self.subresource.capitalize()}"
        verb = _OPERATION_VERBS.get(self.action, self.action)
        if self.action == "connect":
            return f"connect{group}{self.method.capitalize()}{kind}{'WithPath' if self.with_path else ''}"
        if self.action == "deletecollection":
            return f"delete{group}Collection{kind}"
        suffix = ("List" if self.action == "watchlist" else "") + ("ForAllNamespaces" if self.everywhere else "")
        return f"{verb}{group}{kind}{suffix}"

    @property
    def tag(self) -> str:
        first, *rest = group_words(self.resource.gvk.group)
        return f"{first}{''.join(word.capitalize() for word in rest)}_{self.resource.gvk.version}"

    @property
    def shown_action(self) -> str:
        """As x-kubernetes-action has it."""
        return _ACTIONS.get(self.action, self.action)

    @property
    def produces(self) -> tuple[str, ...]:
        """Return the media types of its answer."""
        if self.action == "connect":
            return ("*/*",)
        whole = MEDIA if has_protobuf(self.resource) or self.gvk != self.resource.gvk else (JSON, YAML)
        return (*whole, *STREAMS) if self.action in ("list", "watch", "watchlist") and whole == MEDIA else whole

    @property
    def statuses(self) -> dict[str, str]:
        """Return the codes of its answers with an object."""
        return _STATUSES.get(self.action, {"200": "OK"})


@dataclass(frozen=True, slots=True)
class Path:
    """A path with its operations; `parameters` are those in the query that all of them have."""

    path: str
    operations: list[Operation]
    parameters: tuple[str, ...] = ("pretty",)

    @property
    def in_path(self) -> list[str]:
        return [name for name in ("name", "namespace", "path") if f"{{{name}}}" in self.path]


def group_words(group: str) -> list[str]:
    """Return the words of a group in names of operations: Kubernetes' own groups go without their domain."""
    return (group or "core").removesuffix(".k8s.io").split(".")


def patch_media(resource: Resource) -> tuple[str, ...]:
    return (JSON_PATCH, MERGE, STRATEGIC, APPLY) if resource.builtin else (JSON_PATCH, MERGE, APPLY)


def base_path(gvk: GVK) -> str:
    return f"/apis/{gvk.api_version}" if gvk.group else f"/api/{gvk.version}"


def paths_of(resource: Resource) -> Iterator[Path]:
    base = base_path(resource.gvk)
    within = f"namespaces/{{namespace}}/{resource.plural}" if resource.namespaced else resource.plural
    scoped = f"{base}/{within}"
    found = [
        Path(scoped, _operations(resource, _COLLECTION, resource.verbs)),
        Path(f"{scoped}/{{name}}", _operations(resource, _ITEM, resource.verbs)),
    ]
    if resource.namespaced and "list" in resource.verbs:
        [everywhere] = _operations(resource, (("get", "list"),), resource.verbs)
        own = replace(everywhere, everywhere=True, parameters=())
        found.append(Path(f"{base}/{resource.plural}", [own], ("pretty", *_LIST_PARAMETERS)))
    for name, sub in sorted(resource.subresources.items()):
        if name in CONNECT_SUBRESOURCES:
            found += _connections(resource, f"{scoped}/{{name}}/{name}", name, sub.kind or resource.gvk)
        else:
            found.append(Path(f"{scoped}/{{name}}/{name}", _operations(resource, _SUB, sub.verbs, name, sub.kind)))
    if "watch" in resource.verbs and not resource.custom:
        found += _watches(resource, f"{base}/watch", within)
    return iter([path for path in found if path.operations])


def _watches(resource: Resource, base: str, within: str) -> Iterator[Path]:
    """Yield the watch endpoints of old, which built-in resources still have."""
    parameters = ("pretty", *_LIST_PARAMETERS)
    listing, single = (
        Operation("get", action, resource.gvk, (), (JSON,), resource) for action in ("watchlist", "watch")
    )
    yield Path(f"{base}/{within}", [listing], parameters)
    yield Path(f"{base}/{within}/{{name}}", [single], parameters)
    if resource.namespaced:
        yield Path(f"{base}/{resource.plural}", [replace(listing, everywhere=True)], parameters)


def _connections(resource: Resource, path: str, name: str, kind: GVK) -> Iterator[Path]:
    operations = [Operation(method, "connect", kind, (), ("*/*",), resource, name) for method in _CONNECT_METHODS[name]]
    yield Path(path, operations, ())
    if name == "proxy":
        yield Path(f"{path}/{{path}}", [replace(operation, with_path=True) for operation in operations], ())


def _operations(
    resource: Resource,
    table: tuple[tuple[str, str], ...],
    verbs: tuple[str, ...],
    subresource: str = "",
    kind: GVK | None = None,
) -> list[Operation]:
    return [
        Operation(
            method,
            action,
            kind or resource.gvk,
            _PARAMETERS[action],
            patch_media(resource) if action == "patch" else (JSON,),
            resource,
            subresource,
        )
        for method, action in table
        if action in verbs
    ]
