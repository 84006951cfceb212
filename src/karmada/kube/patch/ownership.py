"""From objects to sets of owned paths: what an applied configuration owns, and what a write changed.

Three readings of an object: `applied` takes a configuration by itself (leaves, map keys, list items; not the structs
and lists around them), `created` a new object against the empty object of its type, and `compare` a new against an old
object. In the last two every node that was not there before counts, hence the `.` of a new struct, map or list. Equal
subtrees are passed over by one comparison in C, so an update costs what it changed.
"""

from __future__ import annotations

from typing import Any, Final

from karmada.kube.patch.fieldset import LEAF, FieldSet, member_key
from karmada.kube.patch.places import ANY, ANY_KIND, KEYED, MAP, SET, STRUCT, Place

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
