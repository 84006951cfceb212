"""Objects by schema: the smallest one of a kind, and the same with one list, map or string of it made large.

Schemas do not say all that admission wants (a Service's ports, a selector that matches its template), so the reasons of
a refusal are read and heeded: a required field is filled in, a value is replaced by one that is supported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from karmada.kube.kinds.resource import Resource
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.types import Obj
from karmada.kube.schema.node import Node

ITEM, VALUE = "[]", "{}"
"""Steps of a path into a list, and into a map."""
KEY = "a"
NAME = "grown"
Path = tuple[str, ...]

_SPECIAL: Final[dict[str, Any]] = {
    "quantity": "1",
    "int-or-string": 1,
    "time": "2026-01-01T00:00:00Z",
    "micro-time": "2026-01-01T00:00:00.000000Z",
    "duration": "1s",
    "bytes": "YQ==",
    "json": {},
    "fields-v1": {},
    "schema-or-array": {},
    "schema-or-bool": True,
    "schema-or-strings": ["a"],
}
_PLAIN: Final[dict[str, Any]] = {"string": "a", "integer": 1, "number": 1, "boolean": True, "": {}}
_STRINGS: Final = (
    "a", "A", "a.example.com", "example.com/a", "v1", "1", "/a", "https://a.example.com", "10.0.0.1", "10.0.0.0/24",
    "0 0 * * *", "1s", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000000Z", "*", "Deployment", "apps/v1", "true",
    "return true", "v1alpha1", "CrossCluster", "",
)  # fmt: skip
_OTHERS: Final[dict[str, Sequence[Any]]] = {"integer": (0, 1, 2, 10, 80, 1000, -1), "boolean": (False, True)}
_METADATA = ("labels", "annotations", "finalizers", "ownerReferences")
_DEPTH = 12


@dataclass(frozen=True)
class Growth:
    """One list, map or string of a kind."""

    resource: Resource
    path: Path
    node: Node

    def __str__(self) -> str:
        return f"{self.resource.gvk.kind}.{'.'.join(self.path)}"


def smallest(node: Node) -> Any:
    if node.special in _SPECIAL:
        return copy_json(_SPECIAL[node.special])
    if node.properties:
        return {name: _required(node.properties[name]) for name in node.required if name in node.properties}
    if node.type == "array":
        return []
    if node.type == "object":
        return {}
    return _PLAIN.get(node.type, "a")


def _required(node: Node) -> Any:
    if node.type == "array" and node.items is not None:
        return [smallest(node.items)]
    return smallest(node)


def first(resource: Resource) -> Obj:
    """Return an object of the kind with what its schema requires."""
    metadata: Obj = {"name": NAME, **({"namespace": "default"} if resource.namespaced else {})}
    body: Obj = {**smallest(resource.schema()), "apiVersion": resource.gvk.api_version, "kind": resource.gvk.kind}
    body.pop("status", None)
    return {**body, "metadata": metadata}


def growths(resource: Resource, seen: set[object] | None = None) -> list[Growth]:
    """Return what of a kind can be made large; a type that it has in several places, or that was `seen`, only once."""
    return list(_growths(resource, resource.schema(), (), set() if seen is None else seen))


def _growths(resource: Resource, node: Node, path: Path, seen: set[object]) -> Iterator[Growth]:
    if len(path) > _DEPTH:
        return
    if node.properties:
        if (identity := node.definition or id(node)) in seen:
            return
        seen.add(identity)
        for name, child in node.properties.items():
            if _is_written(path, name):
                yield from _growths(resource, child, (*path, name), seen)
    elif node.type == "array" and node.items is not None:
        yield Growth(resource, path, node)
        if node.items.type != "string":
            yield from _growths(resource, node.items, (*path, ITEM), seen)
    elif node.type == "object" or node.special == "json":
        yield Growth(resource, path, node)
        if node.values is not None and node.values.type != "string":
            yield from _growths(resource, node.values, (*path, VALUE), seen)
    elif node.type == "string" and not node.special:
        yield Growth(resource, path, node)


def _is_written(path: Path, name: str) -> bool:
    """Return whether users write it when they create an object, and it says more than which object it is."""
    if path == ("metadata",):
        return name in _METADATA
    if path == ("spec",) and name == "finalizers":
        return False  # of a namespace: only what set them takes them away
    return bool(path) or name not in ("apiVersion", "kind", "status")


def grown(obj: Obj, growth: Growth, count: int) -> Obj:
    """Return a copy of an object that has one of what grows, with so many items, keys or characters of it."""
    obj = copy_json(obj)
    holder, last = _holder(obj, growth.path)
    one = holder[last]
    if isinstance(one, list):
        item = one[0] if one else "a"
        holder[last] = [_numbered(growth.node, item, n) for n in range(count)]
    elif isinstance(one, dict):
        value = next(iter(one.values()), "a")
        holder[last] = {f"{KEY}{n}": value for n in range(count)}
    else:
        holder[last] = (one or "a") * (count // max(1, len(one)))
    return obj


def has_place(obj: Obj, growth: Growth) -> bool:
    """Return whether an object has what grows; repairs may have taken it away."""
    try:
        holder, last = _holder(obj, growth.path)
        return isinstance(holder[last], (list, dict, str))
    except (KeyError, IndexError, TypeError, StopIteration):
        return False


def _numbered(node: Node, item: Any, n: int) -> Any:
    """Return an item that differs from the others in its keys and names."""
    if isinstance(item, str):
        return f"{item}{n}"
    if not isinstance(item, dict):
        return item
    keys = {*node.list_keys, node.patch_merge_key, "name", "id"} & item.keys()
    return item | {key: n + 1 if isinstance(item[key], int) else f"{item[key]}{n}" for key in keys}


def _holder(obj: Obj, path: Path) -> tuple[Any, Any]:
    """Return what holds the place at the end of a path, and its key or index there."""
    place: Any = obj
    for step in path[:-1]:
        place = place[_key(step, place)]
    return place, _key(path[-1], place)


def _key(step: str, place: Any) -> Any:
    return 0 if step == ITEM else next(iter(place)) if step == VALUE else step


def with_one(obj: Obj, growth: Growth) -> Obj:
    """Return a copy that has one item or key of what grows, and all that is on the way to it."""
    obj = copy_json(obj)
    place: Any = obj
    node = growth.resource.schema()
    for step in growth.path:
        child = _child(node, step)
        if step == ITEM:
            place[:] = place or [smallest(child)]
            place = place[0]
        elif step == VALUE:
            if not place:
                place[KEY] = smallest(child)
            place = next(iter(place.values()))
        elif step == growth.path[-1] and child is growth.node:
            place[step] = place.get(step) or _single(child)
        else:
            place = place.setdefault(step, smallest(child))
        node = child
    return obj


def _single(node: Node) -> Any:
    """Return a value that is not empty."""
    if node.properties or (node.special in _SPECIAL and node.special != "json"):
        return smallest(node)
    if node.type == "array" and node.items is not None:
        return [smallest(node.items)]
    if node.type == "object" or node.special == "json":
        return {KEY: smallest(node.values) if node.values is not None else "a"}
    return _PLAIN.get(node.type) or "a"


def _child(node: Node, step: str) -> Node:
    child = node.items if step == ITEM else node.values if step == VALUE else node.properties[step]
    assert child is not None
    return child


_STEP = re.compile(r"([^.\[\]]+)|\[([^\]]*)\]")
_SUPPORTED = re.compile(r'supported values: "?([^",]*)')


_ERROR = re.compile(r"([\w.\[\]-]+): (?:Required|Invalid|Unsupported|Duplicate) value")


def _named(message: str) -> list[tuple[str, int]]:
    """Return the fields that a message of a webhook names, and where in it each is."""
    return [(found[1].lstrip("["), found.start()) for found in _ERROR.finditer(message)]


class Repairs:
    """What was tried in the places that a server has refused."""

    def __init__(self, resource: Resource) -> None:
        self._resource = resource
        self._tried: dict[str, int] = {}

    def repair(self, obj: Obj, status: Obj) -> bool:
        """Change an object in place as the reasons of its refusal say; return whether anything was changed."""
        message = status.get("message", "")
        named = [{"field": field, "message": message[at:]} for field, at in _named(message)]
        causes = (status.get("details") or {}).get("causes") or named
        changed = [self._mend(obj, cause) for cause in causes[:10]]
        return any(changed)

    def _mend(self, obj: Obj, cause: Obj) -> bool:
        where = cause.get("field", "")
        if where.startswith("metadata.name"):
            return False
        steps = [name or index for name, index in _STEP.findall(where)]
        node, place, last = self._resource.schema(), obj, ""
        for number, step in enumerate(steps):
            try:
                inner = _into(node, step)
            except (KeyError, AssertionError):
                return False
            if number < len(steps) - 1:
                place = _entered(place, step, inner)
                if place is None:
                    return False
            node, last = inner, step
        if not steps:
            return False
        found = self._other(where, node, cause)
        if isinstance(place, list):
            index = int(last) if last.isdigit() else 0
            if index >= len(place):
                return False
            place[index] = found
        else:
            place[last] = found
        return True

    def _other(self, where: str, node: Node, cause: Obj) -> Any:
        """Return another value for a place."""
        supported = _SUPPORTED.search(cause.get("message", ""))
        if supported:
            value = supported[1]
            return (
                [value]
                if node.type == "array"
                else {value: _single(node.values or node)}
                if node.type == "object"
                else value
            )
        tried = self._tried[where] = self._tried.get(where, -1) + 1
        if node.special in _SPECIAL:
            return copy_json(_SPECIAL[node.special])
        if node.type == "array":
            return [_required(node.items)] if node.items is not None and not tried % 2 else []
        if node.properties:  # first with what is required only, then with one field after the other
            others = [name for name in node.properties if name not in node.required]
            more = (
                {}
                if not tried or not others
                else {(name := others[(tried - 1) % len(others)]): _single(node.properties[name])}
            )
            return smallest(node) | more
        if node.type == "object":
            return {KEY: "a" if node.values is None else smallest(node.values)}
        values = _STRINGS if node.type == "string" else _OTHERS.get(node.type, (1,))
        return values[tried % len(values)]


def _of(node: Node, value: str) -> Any:
    """Return a value that has to be an item of a list, a key of a map, or all of a field."""
    if node.type == "array":
        return [value]
    return {value: _single(node.values)} if node.type == "object" and node.values is not None else value


def _into(node: Node, step: str) -> Node:
    if node.properties:
        return node.properties[step]
    return _child(node, ITEM if node.type == "array" else VALUE)


def _entered(place: Any, step: str, inner: Node) -> Any:
    if isinstance(place, list):
        index = int(step) if step.isdigit() else 0
        return place[index] if index < len(place) else None
    if not isinstance(place.get(step), (dict, list)):
        place[step] = smallest(inner)
    return place[step]
