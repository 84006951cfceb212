"""The operations of a resource, once, in a form both OpenAPI versions are written from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from karmada.kube.kinds.resource import Resource
from karmada.kube.objects.gvk import GVK
from karmada.kube.server.handlers.patching import APPLY, JSON_PATCH, MERGE, STRATEGIC

_LIST_PARAMETERS = (
    "allowWatchBookmarks", "continue", "fieldSelector", "labelSelector", "limit", "resourceVersion",
    "resourceVersionMatch", "sendInitialEvents", "timeoutSeconds", "watch",
)  # fmt: skip
_WRITE_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation")
_PARAMETERS = {
    "list": _LIST_PARAMETERS,
    "get": (),
    "create": _WRITE_PARAMETERS,
    "update": _WRITE_PARAMETERS,
    "patch": (*_WRITE_PARAMETERS, "force"),
    "delete": ("dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy"),
    "deletecollection": (*_LIST_PARAMETERS, "dryRun", "gracePeriodSeconds", "propagationPolicy"),
}
_OPERATION_VERBS = {"get": "read", "update": "replace", "deletecollection": "deleteCollection"}
_COLLECTION = (("get", "list"), ("post", "create"), ("delete", "deletecollection"))
_ITEM = (("get", "get"), ("put", "update"), ("patch", "patch"), ("delete", "delete"))
_SUB = (("get", "get"), ("post", "create"), ("put", "update"), ("patch", "patch"))
PARAMETER_TYPES = {
    "allowWatchBookmarks": "boolean", "limit": "integer", "sendInitialEvents": "boolean", "timeoutSeconds": "integer",
    "watch": "boolean", "force": "boolean", "gracePeriodSeconds": "integer", "orphanDependents": "boolean",
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

    @property
    def operation_id(self) -> str:
        scope = "Namespaced" if self.resource.namespaced else ""
        group = "".join(part.capitalize() for part in (self.resource.gvk.group or "core").split(".")[:1])
        verb = _OPERATION_VERBS.get(self.action, self.action)
        version = self.resource.gvk.version.capitalize()
        if self.everywhere:
            return f"{verb}{group}{version}{self.resource.gvk.kind}ForAllNamespaces"
        return f"{verb}{group}{version}{scope}{self.resource.gvk.kind}{self.subresource.capitalize()}"


def patch_media(resource: Resource) -> tuple[str, ...]:
    return (JSON_PATCH, MERGE, STRATEGIC, APPLY) if resource.builtin else (JSON_PATCH, MERGE, APPLY)


def base_path(gvk: GVK) -> str:
    return f"/apis/{gvk.api_version}" if gvk.group else f"/api/{gvk.version}"


def paths_of(resource: Resource) -> Iterator[tuple[str, list[Operation]]]:
    base = base_path(resource.gvk)
    scoped = (
        f"{base}/namespaces/{{namespace}}/{resource.plural}" if resource.namespaced else f"{base}/{resource.plural}"
    )
    yield scoped, _operations(resource, _COLLECTION, resource.verbs)
    yield f"{scoped}/{{name}}", _operations(resource, _ITEM, resource.verbs)
    if resource.namespaced and "list" in resource.verbs:
        [everywhere] = _operations(resource, (("get", "list"),), resource.verbs)
        yield f"{base}/{resource.plural}", [replace(everywhere, everywhere=True)]
    for name, sub in sorted(resource.subresources.items()):
        yield f"{scoped}/{{name}}/{name}", _operations(resource, _SUB, sub.verbs, name, sub.kind)


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
            patch_media(resource) if action == "patch" else ("application/json",),
            resource,
            subresource,
        )
        for method, action in table
        if action in verbs
    ]
