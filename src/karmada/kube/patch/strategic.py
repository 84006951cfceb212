"""Strategic merge patch: a merge patch that knows which lists are keyed, and may carry directives.

Objects merge member by member. A list whose field has the strategy `merge` is merged item by item: scalars as a set,
objects by the field's merge key; any other list is replaced. Directives in the patch say more: `$patch` replaces or
deletes an object or list item, `$retainKeys` drops all other members, `$deleteFromPrimitiveList/f` takes scalars out
of list f, and `$setElementOrder/f` says in which order list f must be. Inputs are not changed.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from karmada.kube.objects.errors import ApiError, BadRequest, Invalid
from karmada.kube.objects.types import Obj
from karmada.kube.patch.gotext import go_value
from karmada.kube.schema.node import Node

_PATCH: Final = "$patch"
_RETAIN_KEYS: Final = "$retainKeys"
_DELETE_SCALARS: Final = "$deleteFromPrimitiveList"
_ORDER: Final = "$setElementOrder"
_DIRECTIVES: Final = (_PATCH, _RETAIN_KEYS, _DELETE_SCALARS + "/", _ORDER + "/")


def apply_strategic_merge_patch(obj: Obj, patch: Any, node: Node | None) -> Obj:
    """Return the patched object. Raises BadRequest, Invalid or a plain ApiError as an API server does."""
    if not isinstance(patch, dict):
        raise BadRequest("invalid JSON document")
    return _merge_object(obj, patch, node)


def _merge_object(original: Obj, patch: Obj, node: Node | None) -> Obj:
    if _PATCH in patch:
        return _directed(patch)
    out = dict(original)
    rest = dict(patch)
    _retain_keys(out, rest)
    for key in [key for key in rest if key.startswith(_ORDER)]:
        _merge_in_order(out, rest, _field_named(key, _ORDER), rest.pop(key), node)
    for key in [key for key in rest if key.startswith(_DELETE_SCALARS)]:
        _delete_scalars(out, _field_named(key, _DELETE_SCALARS), rest.pop(key))
    for key, value in rest.items():
        _merge_member(out, key, value, child_of(node, key))
    return out


def _directed(patch: Obj) -> Obj:
    directive = patch[_PATCH]
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != _PATCH}
    if directive == "delete":
        return {}
    raise _bad_directive(patch)


def _merge_member(out: Obj, key: str, value: Any, child: Node | None) -> None:
    """In place: one member of the patch."""
    before = out.get(key)
    if value is None:
        out.pop(key, None)
    elif isinstance(before, dict) and isinstance(value, dict):
        if value.get(_PATCH) == "delete":
            del out[key]
        elif "replace" in strategies_of(child):
            out[key] = value
        else:
            out[key] = _merge_object(before, value, child)
    elif isinstance(before, list) and isinstance(value, list):
        out[key] = _merge_lists(before, value, child) if "merge" in strategies_of(child) else value
    elif isinstance(value, dict) and _PATCH in value:
        out.pop(key, None)
    else:
        out[key] = _clean(value)


def child_of(node: Node | None, key: str) -> Node | None:
    return None if node is None else node.properties.get(key) or node.values


def strategies_of(node: Node | None) -> frozenset[str]:
    return frozenset() if node is None else node.patch_strategy


def _clean(value: Any) -> Any:
    """Return a value that has no counterpart to merge with: without nulls, directives and what these delete."""
    if isinstance(value, dict):
        return {
            key: _clean(item)
            for key, item in value.items()
            if item is not None and not _marked(item) and not key.startswith(_DIRECTIVES)
        }
    if isinstance(value, list):
        return [_clean(item) for item in value if not _marked(item)]
    return value


def _marked(value: Any) -> bool:
    return isinstance(value, dict) and _PATCH in value


def _field_named(key: str, directive: str) -> str:
    """Return the field that `$directive/field` names."""
    name = key[len(directive) + 1 :]
    if not name or key[len(directive)] != "/":
        raise BadRequest(_bad_format("setElementOrder list" if directive == _ORDER else "primitive list"))
    return name


def _bad_format(what: str) -> str:
    return f"invalid patch format of {what}"


def _retain_keys(out: Obj, patch: Obj) -> None:
    """In place: $retainKeys, which leaves the patch."""
    if _RETAIN_KEYS not in patch:
        return
    listed = patch.pop(_RETAIN_KEYS)
    if not isinstance(listed, list):
        raise BadRequest(_bad_format("retainKeys"))
    kept = {key for key in listed if isinstance(key, str)}
    for key, value in patch.items():
        if value is not None and key not in kept and not key.startswith((_DELETE_SCALARS, _ORDER)):
            raise BadRequest(_bad_format("retainKeys"))
    for key in [key for key in out if key not in kept]:
        del out[key]


def _delete_scalars(out: Obj, field: str, values: Any) -> None:
    """In place: take scalars out of a list, whatever its strategy."""
    if not isinstance(values, list):
        raise BadRequest(_bad_format("primitive list"))
    before = out.get(field)
    if isinstance(before, list):
        gone = {_ident(value) for value in values}
        out[field] = [value for value in before if _ident(value) not in gone]


# Lists.


def _merge_in_order(out: Obj, patch: Obj, field: str, order: Any, node: Node | None) -> None:
    """In place: merge list `field`, which leaves the patch, and put it in the order that $setElementOrder gives."""
    before, items = out.get(field), patch.get(field)
    if not isinstance(order, list) or not all(isinstance(value, (list, type(None))) for value in (before, items)):
        raise BadRequest(_bad_format("setElementOrder list"))
    child = child_of(node, field)
    key = "" if child is None else child.patch_merge_key
    if items:
        _check_order(items, order, key)
    patch.pop(field, None)
    if before is None and items is None:
        return
    if before is None:
        merged = _clean(items)
    elif items is None:
        merged = before
    else:
        merged = _merge_lists(before, items, child) if "merge" in strategies_of(child) else items
    out[field] = _ordered(merged, order, before or [], key)


def _check_order(items: list[Any], order: list[Any], key: str) -> None:
    """Refuse items of a patch that are not some of the listed ones, in the same order."""
    listed = iter([_key_ident(item, key) for item in order])
    for item in items:
        if _marked(item) and item[_PATCH] == "delete":
            continue
        if _key_ident(item, key) not in listed:
            raise BadRequest(
                f"The order in patch list:\n{go_value(items)}\n doesn't match {_ORDER} list:\n{go_value(order)}\n"
            )


def _merge_lists(original: list[Any], patch: list[Any], node: Node | None) -> list[Any]:
    if not original and not patch:
        return original
    if not _holds_objects([*original, *patch]):
        merged = list({_ident(item): item for item in [*original, *patch]}.values())
        return _ordered(merged, patch, original, "")
    key = "" if node is None else node.patch_merge_key
    if not key:
        raise ApiError(f"cannot merge lists without merge key for {'' if node is None else node.go_type}".rstrip())
    original, patch = _special_items(original, patch, key)
    return _ordered(_merge_by_key(original, patch, key, node), patch, original, key)


def _holds_objects(items: list[Any]) -> bool:
    kinds = {type(item) for item in items}
    if list in kinds:
        raise Invalid("the server rejected our request due to an error in our request")
    if len(kinds) > 1:
        raise ApiError(f"list element types are not identical: {go_value(items)}")
    return dict in kinds


def _special_items(original: list[Any], patch: list[Any], key: str) -> tuple[list[Any], list[Any]]:
    """Apply the items that are directives: (what is left of the original, the ordinary items of the patch)."""
    ordinary, gone = [], set()
    replace = False
    for item in patch:
        directive = item.get(_PATCH)
        if _PATCH not in item:
            ordinary.append(item)
        elif directive == "delete":
            gone.add(_key_ident(item, key))
        elif directive == "replace":
            replace = True
        elif directive == "merge":
            raise ApiError("merging lists cannot yet be specified in the patch")
        else:
            raise _bad_directive(item)
    if replace:
        return ordinary, []
    kept = [other for other in original if key not in other or _key_ident(other, key) not in gone] if gone else original
    return kept, ordinary


def _merge_by_key(original: list[Any], patch: list[Any], key: str, node: Node | None) -> list[Any]:
    out = list(original)
    at: dict[Any, int] = {}
    for index, item in enumerate(out):
        if key in item:
            at.setdefault(_ident(item[key]), index)
    items = None if node is None else node.items
    for item in patch:
        ident = _key_ident(item, key)
        if ident in at:
            out[at[ident]] = _merge_object(out[at[ident]], item, items)
        else:
            at[ident] = len(out)
            out.append(_clean(item))
    return out


def _ordered(merged: list[Any], order: list[Any], server: list[Any], key: str) -> list[Any]:
    """Return listed items in order; each other item before the first listed one that it preceded on the server."""
    rank = _ranks(order, key)
    place = _ranks(server, key)
    listed: list[tuple[Any, Any]] = []
    others: list[tuple[Any, Any]] = []
    for item in merged:
        ident = _key_ident(item, key)
        (listed if ident in rank else others).append((ident, item))
    listed.sort(key=lambda pair: rank[pair[0]])
    others.sort(key=lambda pair: place.get(pair[0], len(place)))
    out = []
    waiting = iter(others)
    next_other = next(waiting, None)
    for ident, item in listed:
        while next_other is not None and ident in place and place.get(next_other[0], len(place)) < place[ident]:
            out.append(next_other[1])
            next_other = next(waiting, None)
        out.append(item)
    if next_other is not None:
        out.append(next_other[1])
    out.extend(item for _, item in waiting)
    return out


def _ranks(items: list[Any], key: str) -> dict[Any, int]:
    ranks: dict[Any, int] = {}
    for index, item in enumerate(items):
        ranks.setdefault(_key_ident(item, key), index)
    return ranks


def _key_ident(item: Any, key: str) -> Any:
    if not key:
        return _ident(item)
    if not isinstance(item, dict) or key not in item:
        raise ApiError(f"map: {go_value(item)} does not contain declared merge key: {key}")
    return _ident(item[key])


def _ident(value: Any) -> Any:
    """Return a scalar's identity: unlike in Python, in JSON true is not 1."""
    return value if value.__class__ is str else orjson.dumps(value)


def _bad_directive(patch: Obj) -> ApiError:
    return ApiError(f"unknown patch type: {go_value(patch[_PATCH])} in map: {go_value(patch)}")
