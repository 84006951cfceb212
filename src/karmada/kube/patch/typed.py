"""A configuration and its type: validation, and merging into the live object.

`check` finds what server-side apply refuses whatever the owners: unknown fields, values of the wrong type, list items
without their keys, and two items with the same keys. It also checks atomic values, which have no places of their own,
so it walks Nodes. `merge` walks places: structs and maps member by member, associative lists item by
item, everything else is the configuration's. A result shares with the live object all that did not change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from karmada.kube.objects.errors import MESSAGE
from karmada.kube.objects.types import Obj
from karmada.kube.patch.fieldset import item_key, member_key, text
from karmada.kube.patch.gotext import go_syntax, go_type, go_value
from karmada.kube.patch.ownership import ANY_KIND, KEYED, MAP, OBJECT_META, SET, STRUCT, SYSTEM_META, Place
from karmada.kube.schema.node import UNSET, Node

_MISSING: Final = object()
_SCHEMALESS: Final = Node(type="object", preserve=True)


def check(node: Node | None, config: Obj, *, custom: bool) -> list[str]:
    """Return what is wrong with a whole object, each line with its path."""
    checker = _Checker(custom)
    checker.root(node if node is not None and node.properties else _SCHEMALESS, config)
    return checker.errors


class _Checker:
    def __init__(self, custom: bool) -> None:
        self.custom = custom
        self.path: list[str] = []
        self.errors: list[str] = []
        self._room = MESSAGE

    def report(self, message: str) -> None:
        """Note what is wrong, as much as a message has room for."""
        if self._room <= 0:
            return
        where = text(tuple(self.path))
        self.errors.append(f"{where}: {message}" if where else message)
        self._room -= len(self.errors[-1])
        if self._room <= 0:
            self.errors.append("and more errors")

    def root(self, node: Node, config: Obj) -> None:
        for name, value in config.items():
            if name == "metadata":
                self.into("f:metadata", OBJECT_META, value)
            elif name not in ("apiVersion", "kind") or name in node.properties:
                self.member(node, name, value)

    def into(self, element: str, node: Node | None, value: Any) -> None:
        self.path.append(element)
        if node is not None and value is not None:
            self.value(node, value)
        self.path.pop()

    def member(self, node: Node, name: str, value: Any) -> bool:
        child = node.properties.get(name) or node.values
        if child is None and not self._is_free(node):
            self.path.append("f:" + name)
            self.report("field not declared in schema")
            self.path.pop()
            return False
        self.into("f:" + name, child, value)
        return True

    def _is_free(self, node: Node) -> bool:
        return node.preserve or not (node.properties or node.values or (self.custom and node.type == "object"))

    def value(self, node: Node, value: Any) -> None:
        if node.type == "object" or (not node.type and (node.properties or node.values)):
            self.object(node, value)
        elif node.type == "array":
            self.array(node, value)
        elif not node.preserve:
            self.scalar(node, value)

    def object(self, node: Node, value: Any) -> None:
        if not isinstance(value, dict):
            self.report(f"expected map, got &{{{go_value(value)}}}")
            return
        for name, item in value.items():
            if not self.member(node, name, item):
                return

    def array(self, node: Node, value: Any) -> None:
        if not isinstance(value, list):
            self.report(f"expected list, got &{{{go_value(value)}}}")
            return
        element = _element_of(node)
        seen: set[str] = set()
        for index, item in enumerate(value):
            try:
                key = f"i:{index}" if element is None else element(item)
            except ValueError as error:
                self.report(f"element {index}: {error}")
                return
            if key in seen:
                self.report(f"duplicate entries for key {text((key,))}")
            seen.add(key)
            self.into(key, node.items, item)

    def scalar(self, node: Node, value: Any) -> None:
        if not node.type and node.alternative is not None:
            return  # a schema, or something else in its place: the published type says nothing of it
        if node.special in ("quantity", "int-or-string") or not node.type:
            if isinstance(value, (dict, list)):
                self.report(f"expected any scalar, got &{{{go_value(value)}}}")
        elif node.type == "string":
            if not isinstance(value, str):
                self.report(f"expected string, got &value.valueUnstructured{{Value:{go_syntax(value)}}}")
        elif node.type == "boolean":
            if not isinstance(value, bool):
                self.report(f"expected boolean, got &{{{go_value(value)}}}")
        elif isinstance(value, bool) or not isinstance(value, (int, float)):
            self.report(f"expected numeric (int or float), got {go_type(value)}")


def _element_of(node: Node) -> Callable[[Any], str] | None:
    """Return how items of a list are named; None: by index."""
    if node.list_type == "map" and node.list_keys:
        return lambda item: _keyed_element(node, item)
    return _set_element if node.list_type == "set" else None


def _keyed_element(node: Node, item: Any) -> str:
    if item is None:
        raise ValueError("associative list with keys may not have a null element")
    if not isinstance(item, dict):
        raise ValueError("associative list with keys may not have non-map elements")
    properties = node.items.properties if node.items is not None else {}
    named = {}
    for key in node.list_keys:  # an element without a key field is for validation to refuse
        value = item.get(key, properties[key].default if key in properties else UNSET)
        if value is not UNSET:
            named[key] = value
    return item_key(named)


def _set_element(item: Any) -> str:
    if item is None:
        raise ValueError("associative list without keys has an element that's an explicit null")
    if isinstance(item, dict):
        raise ValueError("associative list without keys has an element that's a map type")
    if isinstance(item, list):
        raise ValueError("not supported: associative list with lists as elements")
    return member_key(item)


def merge_objects(root: Place, live: Obj, config: Obj) -> Obj:
    """Return the live object with a configuration merged in; the live object itself when that changes nothing."""
    metadata = config.get("metadata")
    if metadata:
        # A null here is what serializers write for "not set", and must not erase what the server set.
        kept = {key: value for key, value in metadata.items() if value is not None or key not in SYSTEM_META}
        config = {**config, "metadata": kept}
    merged: Obj = _merge(root, live, config)
    return merged


def _merge(place: Place | None, live: Any, config: Any) -> Any:
    if place is None:
        return config
    if not live and not config:
        return config
    kind = place.kind
    if kind in (STRUCT, MAP, ANY_KIND):
        if live.__class__ is dict:
            if config is None:
                return live
            if config.__class__ is dict:
                return _merge_members(place, live, config)
    elif live.__class__ is list and kind in (KEYED, SET):
        if config is None:
            return live
        if config.__class__ is list:
            return _merge_items(place, live, config)
    return config


def _merge_members(place: Place, live: Obj, config: Obj) -> Obj:
    out: Obj | None = None
    for name, value in config.items():
        before = live.get(name, _MISSING)
        if before is value:
            continue
        if before is _MISSING:
            if value is None and not _nullable(place, name):
                continue  # Already so.
            after = value
        elif before.__class__ is value.__class__ and before == value:
            continue
        else:
            after = _merge(place.below(name), before, value)
            if after is before:
                continue
        out = dict(live) if out is None else out
        out[name] = after
    return live if out is None else out


def _merge_items(place: Place, live: list[Any], config: list[Any]) -> list[Any]:
    """Both lists' items: the configuration's in its order, the others as near as can be to where they were.

    The lists are walked side by side. Up to the next item that both have, live items come first; those that both have
    but in another order wait for their turn in the configuration.
    """
    element: Callable[[Any], str] = place.key_of if place.kind == KEYED else member_key
    theirs = [element(item) for item in live]
    ours = [element(item) for item in config]
    wanted = set(ours)
    found: dict[str, Any] = {}
    for key, item in zip(theirs, live, strict=True):
        found[key] = _MISSING if key in found else item
    shared = [key for key in ours if key in found]
    shared.reverse()
    out: list[Any] = []
    at = 0
    for key, item in zip(ours, config, strict=True):
        stop = shared[-1] if shared else None
        while at < len(theirs) and theirs[at] != stop:
            if theirs[at] not in wanted:
                out.append(live[at])
            at += 1
        if key == stop:
            shared.pop()
            at += at < len(theirs)
        before = found.get(key, _MISSING)
        out.append(item if before is _MISSING else _merge(place.items, before, item))
    out.extend(live[index] for index in range(at, len(live)) if theirs[index] not in wanted)
    unchanged = len(out) == len(live) and all(a is b or a == b for a, b in zip(out, live, strict=True))
    return live if unchanged else out


def drop_nulls(place: Place | None, value: Any) -> Any:
    """Return the value without the members that are null, except where the type allows null."""
    if value.__class__ is list:
        if place is None or place.kind != KEYED:
            return value
        items = [drop_nulls(place.items, item) for item in value]
        return value if all(a is b for a, b in zip(items, value, strict=True)) else items
    if value.__class__ is not dict or place is None or place.kind == ANY_KIND:
        return value
    out: Obj | None = None
    for name, item in value.items():
        left = None if item is None else drop_nulls(place.below(name), item)
        if left is item and (item is not None or _nullable(place, name)):
            continue
        out = dict(value) if out is None else out
        if left is None:
            del out[name]
        else:
            out[name] = left
    return value if out is None else out


def _nullable(place: Place, name: str) -> bool:
    """Return whether a null is kept; elsewhere it is the same as no value."""
    node = place.node
    child = None if node is None else node.properties.get(name) or node.values
    return place.custom and (child is None or child.nullable)
