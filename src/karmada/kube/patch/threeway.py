"""Three-way merges: the patch that makes what a server has into what a file says now, given what the file said last.

What the file changed or added is the difference between the server's object and the file's, without deletions: fields
that others wrote stay. What the file no longer has is the difference between the file's last and present content, of
which only deletions count. Both differences are merge patches, or strategic merge patches for kinds whose lists are
keyed; then they carry directives (see patch.strategic), so that the order of lists becomes the file's. Inputs are not
changed; results may share parts with them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from karmada.kube.objects.types import Obj
from karmada.kube.patch.jsonpatch import json_equal
from karmada.kube.patch.mergepatch import create_merge_patch
from karmada.kube.patch.strategic import child_of, strategies_of
from karmada.kube.schema.node import Node

_PATCH: Final = "$patch"
_RETAIN_KEYS: Final = "$retainKeys"
_DELETE_SCALARS: Final = "$deleteFromPrimitiveList/"
_ORDER: Final = "$setElementOrder/"


class PatchConflict(Exception):
    """The live object was changed where the patch would change it."""

    def __init__(self, patch: Obj, changes: Obj) -> None:
        super().__init__("the patch conflicts with changes made from original to current")
        self.patch = patch
        self.changes = changes


# merge patches


def three_way_merge_patch(original: Obj, modified: Obj, current: Obj) -> Obj:
    """For kinds without keyed lists."""
    changes = _without_nulls(create_merge_patch(current, modified))
    deletions = _only_nulls(create_merge_patch(original, modified))
    return _united(deletions, changes)


def _without_nulls(patch: Obj) -> Obj:
    kept: Obj = {}
    for key, value in patch.items():
        if isinstance(value, dict):
            value = _without_nulls(value)
            if not value and patch[key]:
                continue
        if value is not None:
            kept[key] = value
    return kept


def _only_nulls(patch: Obj) -> Obj:
    kept: Obj = {}
    for key, value in patch.items():
        if value is None:
            kept[key] = None
        elif isinstance(value, dict):
            inner = _only_nulls(value)
            if inner:
                kept[key] = inner
    return kept


def _united(first: Obj, second: Obj) -> Obj:
    """Both patches in one; where they set the same path, the second wins."""
    out = dict(first)
    for key, value in second.items():
        before = out.get(key)
        out[key] = _united(before, value) if isinstance(before, dict) and isinstance(value, dict) else value
    return out


# strategic merge patches


@dataclass(frozen=True, slots=True)
class _Want:
    changes: bool = True
    deletions: bool = True
    order: bool = True
    retain_keys: bool = False


def three_way_strategic_patch(
    original: Obj, modified: Obj, current: Obj, node: Node | None, *, overwrite: bool = True
) -> Obj:
    """Return the patch; without `overwrite` raise PatchConflict when others changed what it would change."""
    changes = _diff(current, modified, node, _Want(deletions=False))
    deletions = _diff(original, modified, node, _Want(changes=False))
    patch = _merged(deletions, changes, node)
    if not overwrite:
        others = _diff(original, current, node, _Want(order=False))
        if _conflict(patch, others, node):
            raise PatchConflict(patch, others)
    return patch


def _diff(original: Obj, modified: Obj, node: Node | None, want: _Want) -> Obj:
    patch: Obj = {}
    for key, value in modified.items():
        child = child_of(node, key)
        if key not in original:
            if want.changes:
                patch[key] = value
            continue
        before = original[key]
        below = replace(want, retain_keys="retainKeys" in strategies_of(child))
        if isinstance(before, dict) and isinstance(value, dict):
            _diff_objects(patch, key, before, value, child, below)
        elif isinstance(before, list) and isinstance(value, list) and "merge" in strategies_of(child):
            _diff_lists(patch, key, before, value, child, below)
        elif want.changes and not json_equal(before, value):
            patch[key] = value
    if want.deletions:
        patch.update({key: None for key in original if key not in modified})
    if want.retain_keys:
        kept = sorted(key for key, value in modified.items() if value is not None)
        if kept and (patch or any(key not in modified for key in original)):
            patch[_RETAIN_KEYS] = kept
    return patch


def _diff_objects(patch: Obj, key: str, before: Obj, value: Obj, child: Node | None, want: _Want) -> None:
    if "replace" in strategies_of(child):
        if want.changes:
            patch[key] = value
        return
    inner = _diff(before, value, child, want)
    if inner:
        patch[key] = inner


def _diff_lists(patch: Obj, key: str, before: list[Any], value: list[Any], child: Node | None, want: _Want) -> None:
    if not before:
        if value and want.changes:
            patch[key] = value
        return
    if not any(isinstance(item, dict) for item in (*before, *value)):
        _diff_scalars(patch, key, before, value, want)
        return
    name = child.patch_merge_key if child is not None else ""
    if not name or not all(isinstance(item, dict) and name in item for item in (*before, *value)):
        if want.changes and not json_equal(before, value):
            patch[key] = value
        return
    items = _diff_items(before, value, child, name, want)
    if items:
        patch[key] = items
    same_order = [item[name] for item in before] == [item[name] for item in value]
    if want.order and ((want.changes and (items or not same_order)) or (want.deletions and items)):
        _set_order(patch, key, [{name: item[name]} for item in value])


def _diff_scalars(patch: Obj, key: str, before: list[Any], value: list[Any], want: _Want) -> None:
    added = [item for item in dict.fromkeys(value) if item not in before] if want.changes else []
    gone = [item for item in dict.fromkeys(before) if item not in value] if want.deletions else []
    if added:
        patch[key] = added
    if gone:
        patch[_DELETE_SCALARS + key] = gone
    if want.order and (gone or (want.changes and before != value)):
        _set_order(patch, key, value)


def _set_order(patch: Obj, key: str, order: list[Any]) -> None:
    if order:
        patch[_ORDER + key] = order


def _diff_items(before: list[Obj], value: list[Obj], child: Node | None, name: str, want: _Want) -> list[Obj]:
    """Return the patch of a list that is merged by `name`: changes in the new order, then deletions."""
    old = {_ident(item[name]): item for item in before}
    new = {_ident(item[name]) for item in value}
    inner = None if child is None else child.items
    items: list[Obj] = []
    for item in value:
        known = old.get(_ident(item[name]))
        if known is None:
            if want.changes:
                items.append(item)
            continue
        changed = _diff(known, item, inner, want)
        if changed:
            items.append({**changed, name: item[name]})
    if want.deletions:
        items += [{_PATCH: "delete", name: item[name]} for key, item in old.items() if key not in new]
    return items


def _ident(value: Any) -> Any:
    return (type(value), value)


# two patches of the same object in one


def _merged(deletions: Obj, changes: Obj, node: Node | None) -> Obj:
    out = dict(deletions)
    for key, value in changes.items():
        before = out.get(key)
        child = child_of(node, key)
        if isinstance(before, dict) and isinstance(value, dict):
            out[key] = value if "replace" in strategies_of(child) else _merged(before, value, child)
        elif isinstance(before, list) and isinstance(value, list) and "merge" in strategies_of(child):
            out[key] = _merged_items(before, value, child, changes.get(_ORDER + key) or deletions.get(_ORDER + key))
        else:
            out[key] = value
    return out


def _merged_items(deletions: list[Any], changes: list[Any], child: Node | None, order: Any) -> list[Any]:
    name = child.patch_merge_key if child is not None else ""
    if not name or not all(isinstance(item, dict) and name in item for item in (*deletions, *changes)):
        return changes
    inner = None if child is None else child.items
    found = {_ident(item[name]): item for item in deletions}
    for item in changes:
        key = _ident(item[name])
        found[key] = _merged(found[key], item, inner) if key in found and _PATCH not in found[key] else item
    rank = {_ident(item[name]): place for place, item in enumerate(order or ())}
    return sorted(found.values(), key=lambda item: (_PATCH in item, rank.get(_ident(item[name]), len(rank))))


# conflicts


def _conflict(ours: Any, theirs: Any, node: Node | None) -> bool:
    """Return whether two patches of the same object set the same path to different values."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        if ours.get(_PATCH) != theirs.get(_PATCH):
            return True
        shared = [key for key in ours if key in theirs and not key.startswith("$")]
        return any(_conflict(ours[key], theirs[key], child_of(node, key)) for key in shared)
    if isinstance(ours, list) and isinstance(theirs, list) and "merge" in strategies_of(node):
        return _items_conflict(ours, theirs, node)
    return not json_equal(ours, theirs)


def _items_conflict(ours: list[Any], theirs: list[Any], node: Node | None) -> bool:
    name = node.patch_merge_key if node is not None else ""
    if not name:
        return False
    found = {_ident(item[name]): item for item in theirs if isinstance(item, dict) and name in item}
    inner = None if node is None else node.items
    return any(
        _conflict(item, found[_ident(item[name])], inner)
        for item in ours
        if isinstance(item, dict) and name in item and _ident(item[name]) in found
    )
