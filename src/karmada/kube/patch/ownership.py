"""From objects to sets of owned paths: what an applied configuration owns, and what a write changed.

A type is divided into `Place`s: a Node, read for server-side apply. A Place says what kind of owner a value has: LEAF
(a scalar, or something owned as one value), STRUCT (declared fields), MAP (free keys), KEYED (a list of objects,
identified by key fields), SET (a list of scalars, identified by value) or ANY (no schema: objects are maps, the rest is
a leaf). Places are made on first use, from the root down, so recursive types and seldom used parts cost nothing;
`fields[name]` is a plain dict lookup from the second time on. Metadata is the same for every kind, so its place is made
here and does not depend on what a CRD says about it.

Three readings of an object: `applied` takes a configuration by itself (leaves, map keys, list items; not the structs
and lists around them), `created` a new object against the empty object of its type, and `compare` a new against an old
object. In the last two every node that was not there before counts, hence the `.` of a new struct, map or list. Equal
subtrees are passed over by one comparison in C, so an update costs what it changed.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import orjson

from karmada.kube.patch.fieldset import LEAF, FieldSet, member_key
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


_MISSING: Final = object()


# What appeared.


def added(place: Place | None, value: Any) -> FieldSet:
    """Return the subtree of a value that was not there: all its paths and itself."""
    if place is None or not value:
        return LEAF
    out: FieldSet = {}
    kind = place.kind
    if value.__class__ is dict:
        if kind == STRUCT:
            fields = place.fields
            for name, item in value.items():
                key, child, _ = fields[name]
                out[key] = added(child, item) if child is not None and item else LEAF
        elif kind in (MAP, ANY_KIND):
            child = ANY if kind == ANY_KIND else place.values
            for name, item in value.items():
                out["f:" + name] = added(child, item) if child is not None and item else LEAF
    elif value.__class__ is list:
        if kind == KEYED:
            out = _items(place, value, added)
        elif kind == SET:
            out = {member_key(item): LEAF for item in value}
    if not out:
        return LEAF
    out["."] = LEAF
    return out


def _below(place: Place, value: Any) -> FieldSet:
    """Return all paths strictly below a value; empty when there are none."""
    return {key: below for key, below in added(place, value).items() if key != "."}


def _items(place: Place, items: list[Any], of_item: Any) -> FieldSet:
    """Return the items of an associative list by key; one that occurs twice is owned as a whole."""
    out: FieldSet = {}
    child = place.items
    for item in items:
        if item.__class__ is not dict:
            continue
        key = place.key_of(item)
        out[key] = LEAF if key in out else of_item(child, item)
    return out


def created(place: Place, value: Any) -> FieldSet:
    """Return the paths below a value compared with the empty form of its type.

    In that form the structs that are held by value and the lists that are never left out exist already.
    """
    out: FieldSet = {}
    if value.__class__ is not dict:
        return out
    fields = place.fields
    for name, item in value.items():
        key, child, exists = fields[name]
        if child is None:
            if item or not exists:
                out[key] = LEAF
        elif not exists:
            out[key] = added(child, item) if item else LEAF
        elif item:
            below = created(child, item) if child.kind == STRUCT else _below(child, item)
            if below:
                out[key] = below
    return out


# What changed.


def compare(place: Place, old: Any, new: Any) -> tuple[FieldSet, FieldSet]:
    """Two objects of one type: (changed or added paths, removed paths), both strictly below the object."""
    changed: FieldSet = {}
    removed: FieldSet = {}
    struct = place.fields if place.kind == STRUCT else None
    values = ANY if place.kind == ANY_KIND else place.values
    kept = 0
    for name, item in new.items():
        before = old.get(name, _MISSING)
        if before is item:
            kept += 1
            continue
        if before is not _MISSING:
            kept += 1
            if before == item:
                continue
        if struct is not None:
            key, child, _ = struct[name]
        else:
            key, child = "f:" + name, values
        if before is _MISSING:
            changed[key] = LEAF if child is None else added(child, item)
        elif child is None:
            changed[key] = LEAF
        else:
            more, less = _differ(child, before, item)
            if more is not None:
                changed[key] = more
            if less:
                removed[key] = less
    if kept != len(old):
        for name in old.keys() - new.keys():
            removed["f:" + name] = added(place.below(name), old[name])
    return changed, removed


def _differ(place: Place, old: Any, new: Any) -> tuple[FieldSet | None, FieldSet | None]:
    """Two different values of one place: (changed subtree, removed subtree), None where there is none."""
    if not old and not new:
        return LEAF, None
    form: type[Any] = list if place.kind in (KEYED, SET) else dict
    before: Any = form() if old is None else old
    now: Any = form() if new is None else new
    if before.__class__ is not form or now.__class__ is not form:
        return added(place, new), _below(place, old)
    if place.kind == KEYED:
        more, less = _compare_items(place, before, now)
    elif place.kind == SET:
        more, less = _compare_members(place, before, now)
    else:
        more, less = compare(place, before, now)
    return more or None, less


def _compare_members(place: Place, old: list[Any], new: list[Any]) -> tuple[FieldSet, FieldSet]:
    before, now = _below(place, old), _below(place, new)
    changed = {key: LEAF for key in now if key not in before}
    return changed, {key: LEAF for key in before if key not in now}


def _compare_items(place: Place, old: list[Any], new: list[Any]) -> tuple[FieldSet, FieldSet]:
    before, now = _index(place, old), _index(place, new)
    changed: FieldSet = {}
    removed: FieldSet = {}
    for key, items in now.items():
        others = before.get(key)
        if others is None:
            changed[key] = LEAF if len(items) > 1 else added(place.items, items[0])
        elif others != items:
            _compare_one(place, key, others, items, changed, removed)
    for key in before.keys() - now.keys():
        removed[key] = LEAF if len(before[key]) > 1 else added(place.items, before[key][0])
    return changed, removed


def _compare_one(place: Place, key: str, old: list[Any], new: list[Any], changed: FieldSet, removed: FieldSet) -> None:
    """Compare the items of one key in the old and new list; several items of a key count as one value."""
    child = place.items
    if len(old) == 1 and len(new) == 1 and child is not None:
        more, less = _differ(child, old[0], new[0])
        if more is not None:
            changed[key] = more
        if less:
            removed[key] = less
        return
    changed[key] = LEAF if len(new) > 1 else added(child, new[0])
    if len(old) == 1 and child is not None:
        below = _below(child, old[0])
        if below:
            removed[key] = below


def _index(place: Place, items: list[Any]) -> dict[str, list[Any]]:
    index: dict[str, list[Any]] = {}
    for item in items:
        if item.__class__ is dict:
            index.setdefault(place.key_of(item), []).append(item)
    return index


# What a configuration says.


def applied(place: Place, config: Any) -> FieldSet:
    """Return the paths strictly below an applied value that its manager owns."""
    kind = place.kind
    if config.__class__ is list:
        if kind == KEYED:
            return _items(place, config, _applied_item)
        return {member_key(item): LEAF for item in config} if kind == SET else {}
    out: FieldSet = {}
    if config.__class__ is not dict or kind in (KEYED, SET):
        return out
    if kind != STRUCT:
        child = ANY if kind == ANY_KIND else place.values
        return {"f:" + name: _applied_item(child, item) for name, item in config.items()}
    fields = place.fields
    for name, item in config.items():
        key, child, _ = fields[name]
        if child is None or item is None or name not in fields:
            out[key] = _applied_item(child, item)
            continue
        below = applied(child, item)
        if below:
            out[key] = below
        elif not item if item.__class__ is dict else child.kind == ANY_KIND:
            out[key] = LEAF
    return out


def _applied_item(place: Place | None, item: Any) -> FieldSet:
    below = LEAF if place is None else applied(place, item)
    return {".": LEAF, **below} if below else LEAF


def collapse(place: Place, fields: FieldSet) -> FieldSet:
    """Return the set as the type now divides it: what lies below a value that is owned as a whole becomes that value.

    A schema may have turned atomic since the set was written.
    """
    out: FieldSet | None = None
    for key, below in fields.items():
        if not below or key == ".":
            continue
        child = place.below(key[2:]) if key[0] == "f" else place.items
        left = LEAF if child is None else collapse(child, below)
        if left is not below:
            out = dict(fields) if out is None else out
            out[key] = left
    return fields if out is None else out
