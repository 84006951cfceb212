"""How a type is divided into owned places: a Node, read for server-side apply.

A `Place` says what kind of owner a value has: LEAF (a scalar, or something owned as one value), STRUCT (declared
fields), MAP (free keys), KEYED (a list of objects, identified by key fields), SET (a list of scalars, identified by
value) or ANY (no schema: objects are maps, the rest is a leaf). Places are made on first use, from the root down, so
recursive types and seldom used parts cost nothing; `fields[name]` is a plain dict lookup from the second time on.

Metadata is the same for every kind, so its place is made here and does not depend on what a CRD says about it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import orjson

from karmada.kube.schema.node import UNSET, Node

LEAF_KIND: Final = 0
STRUCT: Final = 1
MAP: Final = 2
KEYED: Final = 3
SET: Final = 4
ANY_KIND: Final = 5

_STRING: Final = Node(type="string")
_STRINGS: Final = Node(type="object", values=_STRING)
OBJECT_META: Final = Node(
    type="object",
    properties={
        **dict.fromkeys(
            (
                "name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "creationTimestamp",
                "deletionTimestamp",
            ),
            _STRING,
        ),
        "generation": Node(type="integer"),
        "deletionGracePeriodSeconds": Node(type="integer"),
        "labels": _STRINGS,
        "annotations": _STRINGS,
        "finalizers": Node(type="array", items=_STRING, list_type="set"),
        "ownerReferences": Node(
            type="array",
            list_type="map",
            list_keys=("uid",),
            items=Node(
                type="object",
                map_type="atomic",
                properties={
                    **dict.fromkeys(("apiVersion", "kind", "name", "uid"), _STRING),
                    **dict.fromkeys(("controller", "blockOwnerDeletion"), Node(type="boolean")),
                },
            ),
        ),
        "managedFields": Node(type="array", items=Node(preserve=True)),
    },
)  # fmt: skip


_LONG: Final = 256
"""Keys from this length on are no names, and not kept."""


@lru_cache(maxsize=4096)
def _item_named(key: str, value: str) -> str:
    """Return the path element of an item with one key, which is text: containers, volumes, variables."""
    return "k:" + orjson.dumps({key: value}).decode()


class Place:
    """One place in a type, as ownership sees it."""

    __slots__ = ("custom", "fields", "items", "keys", "kind", "node", "values")

    def __init__(self, node: Node | None, custom: bool, *, root: bool = False) -> None:
        self.node = node
        self.custom = custom
        self.kind = kind_of(node)
        self.fields: _Fields = _Fields(self, root)
        self.values: Place | None = None
        """Values of a MAP; None: the values are leaves."""
        self.items: Place | None = None
        """Items of a KEYED list; None: an item is owned as a whole."""
        self.keys: tuple[tuple[str, Any], ...] = ()
        """Key fields of a KEYED list and their defaults (UNSET: none), sorted by name."""
        if node is None:
            return
        if self.kind == MAP:
            self.values = _branch(node.values, custom)
        elif self.kind == KEYED and node.items is not None:
            properties = node.items.properties
            self.items = _branch(node.items, custom)
            self.keys = tuple(
                (key, properties[key].default if key in properties else UNSET) for key in sorted(node.list_keys)
            )

    def key_of(self, item: dict[str, Any]) -> str:
        """Return the path element of an item of a KEYED list; key fields that are missing take their default."""
        if len(self.keys) == 1:
            key, value = self.keys[0][0], item.get(self.keys[0][0])
            if value.__class__ is str and len(value) < _LONG:
                return _item_named(key, value)
        named = {}
        for name, default in self.keys:
            value = item.get(name, default)
            if value is not UNSET:
                named[name] = int(value) if value.__class__ is float and value.is_integer() else value
        return "k:" + orjson.dumps(named).decode()

    def below(self, name: str) -> Place | None:
        """Return the place of a member of a STRUCT, MAP or ANY; None: a leaf."""
        if self.kind == STRUCT:
            return self.fields[name][1]
        return self.values if self.kind == MAP else ANY

    def declares(self, name: str) -> bool:
        """Return whether the type of a STRUCT names this member; unknown fields it does not."""
        fields = self.fields
        return name in fields or (fields[name] is not None and name in fields)


class _Fields(dict[str, tuple[str, Place | None, bool]]):
    """A STRUCT's fields: name → (path element, place or None for a leaf, is it there in an empty object).

    Any name can be looked up; only declared ones are kept, so that afterwards `name in fields` distinguishes them.
    """

    __slots__ = ("place", "root")

    def __init__(self, place: Place, root: bool) -> None:
        super().__init__()
        self.place = place
        self.root = root

    def __missing__(self, name: str) -> tuple[str, Place | None, bool]:
        place, node = self.place, self.place.node
        if self.root and name == "metadata":
            found = ("f:metadata", _branch(OBJECT_META, False), True)
        elif node is not None and name in node.properties:
            child = node.properties[name]
            found = ("f:" + name, _branch(child, place.custom), not place.custom and _in_empty_form(node, name, child))
        else:
            return "f:" + name, (node and node.values and _branch(node.values, place.custom)) or ANY, False
        self[name] = found
        return found


def _in_empty_form(node: Node, name: str, child: Node) -> bool:
    """Return whether an object of a built-in type has this field before anything was set in it."""
    if child.type == "array":
        return bool(node.always or node.omit_empty or node.required) and name not in node.omit_empty
    return name in node.always or name in node.zeros


def kind_of(node: Node | None) -> int:
    if node is None:
        return ANY_KIND
    if node.type == "array":
        return _list_kind(node)
    if node.type not in ("object", "") or node.map_type == "atomic":
        return LEAF_KIND
    if node.properties:
        return STRUCT
    if node.values is not None:
        return MAP
    return ANY_KIND if node.preserve or node.type == "object" else LEAF_KIND


def _list_kind(node: Node) -> int:
    if node.list_type == "map" and node.list_keys:
        return KEYED
    return SET if node.list_type == "set" else LEAF_KIND


def _branch(node: Node | None, custom: bool) -> Place | None:
    """Return the place of a node; None for a leaf, so that loops recognise leaves without inspecting them."""
    kind = kind_of(node)
    if kind == LEAF_KIND:
        return None
    return ANY if kind == ANY_KIND else Place(node, custom)


ANY: Final = Place(None, True)
_SCHEMALESS: Final = Node(type="object", preserve=True, properties={"apiVersion": _STRING, "kind": _STRING})


@lru_cache(maxsize=1024)
def root_place(node: Node | None, custom: bool) -> Place:
    """Return the place of a whole object; kept for the node's next object."""
    whole = node if node is not None and node.properties else _SCHEMALESS
    return Place(whole, custom, root=True)


SYSTEM_META: Final = (
    "name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "selfLink", "managedFields",
)  # fmt: skip
