"""Sets of field paths, in the very form that managedFields stores them (fieldsV1).

A set is a tree of dicts. A key is one path element: `f:name` a field or map key, `k:{...}` an item of an associative
list by its keys, `v:...` a member of a set, `i:0` an index. An empty dict is an owned path with nothing owned below
it, a `.` member marks a path that is owned besides what is below it, and a dict without `.` is only on the way. At the
root an empty dict is the empty set. So nothing is converted between storage and use. No function mutates its arguments,
and results share what they can: a result that equals an argument is that argument, by which callers detect that nothing
changed. `LEAF` is the one empty dict that sets built here share.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeAlias

import orjson

FieldSet: TypeAlias = dict[str, Any]
LEAF: Final[FieldSet] = {}
_MAX_DEPTH: Final = 200
_KIND_ORDER: Final = {"f": 0, "k": 1, "v": 2, "i": 3}


def is_member(node: FieldSet | None) -> bool:
    """Return whether the path that leads to this subtree is itself in the set."""
    return node is not None and (not node or "." in node)


def item_key(keys: dict[str, Any]) -> str:
    """Return the path element of an associative list's item."""
    return "k:" + orjson.dumps(keys, option=orjson.OPT_SORT_KEYS).decode()


def member_key(value: Any) -> str:
    """Return the path element of a set's member."""
    return "v:" + orjson.dumps(value).decode()


def union(a: FieldSet, b: FieldSet) -> FieldSet:
    if not a:
        return b
    out: FieldSet | None = None
    for key, more in b.items():
        have = a.get(key)
        both = more if have is None else _union_below(have, more)
        if both is not have:
            out = dict(a) if out is None else out
            out[key] = both
    return a if out is None else out


def _union_below(a: FieldSet, b: FieldSet) -> FieldSet:
    if not b:
        return a if is_member(a) else {".": LEAF, **a}
    if not a:
        return b if "." in b else {".": LEAF, **b}
    return union(a, b)


def all_of(sets: Iterable[FieldSet]) -> FieldSet:
    """Return the union of many."""
    out: FieldSet = LEAF
    for one in sets:
        out = union(out, one)
    return out


def difference(a: FieldSet, b: FieldSet) -> FieldSet:
    """Return the paths of `a` that are not in `b`; a path in `b` does not remove those below it."""
    out: FieldSet | None = None
    for key, less in b.items():
        have = a.get(key)
        if have is None:
            continue
        left = _difference_below(have, less)
        if left is have:
            continue
        out = dict(a) if out is None else out
        if left is None:
            del out[key]
        else:
            out[key] = left
    return a if out is None else out


def _difference_below(a: FieldSet, b: FieldSet) -> FieldSet | None:
    """Return what is left of a subtree; None: nothing."""
    if not a:
        return None if is_member(b) else a
    if not b:
        return _without_self(a)
    below = difference(a, b)
    if below is a:
        return a
    if not below:
        return None
    return LEAF if len(below) == 1 and "." in below else below


def _without_self(a: FieldSet) -> FieldSet | None:
    if "." not in a:
        return a
    return {key: below for key, below in a.items() if key != "."} or None


def without(a: FieldSet, b: FieldSet) -> FieldSet:
    """Return the paths of `a` that are neither in `b` nor below a path of `b`."""
    out: FieldSet | None = None
    for key, less in b.items():
        have = a.get(key)
        if have is None or key == ".":
            continue
        left = None if not less or "." in less else (without(have, less) if have else have)
        if left is have:
            continue
        out = dict(a) if out is None else out
        if left:
            out[key] = LEAF if len(left) == 1 and "." in left else left
        else:
            del out[key]
    return a if out is None else out


def within(a: FieldSet, b: FieldSet) -> FieldSet:
    """Return the paths of `a` that are in `b` or below a path of `b`."""
    out: FieldSet = {}
    for key, part in b.items():
        have = a.get(key)
        if have is None or key == ".":
            continue
        if is_member(part):
            out[key] = have
        elif have:
            left = within(have, part)
            if left:
                out[key] = left
    return out


def intersection(a: FieldSet, b: FieldSet) -> FieldSet:
    out: FieldSet = {}
    small, large = (a, b) if len(a) <= len(b) else (b, a)
    for key, one in small.items():
        other = large.get(key)
        if other is None:
            continue
        both = _intersection_below(one, other)
        if both is not None:
            out[key] = both
    return out


def _intersection_below(a: FieldSet, b: FieldSet) -> FieldSet | None:
    if not a or not b:
        return LEAF if is_member(a) and is_member(b) else None
    both = intersection(a, b)
    return LEAF if len(both) == 1 and "." in both else both or None


def valid(tree: Any, depth: int = 0) -> bool:
    """Return whether something a client sent is a field set, and not deeper than any object."""
    if not isinstance(tree, dict) or depth > _MAX_DEPTH:
        return False
    for key, below in tree.items():
        if key == ".":
            if below != {}:
                return False
        elif not _valid_element(key) or not valid(below, depth + 1):
            return False
    return True


def _valid_element(key: Any) -> bool:
    if not isinstance(key, str) or key[1:2] != ":":
        return False
    kind, rest = key[0], key[2:]
    if kind == "f":
        return True
    if kind == "i":
        return rest.isdigit()
    try:
        value = orjson.loads(rest)
    except orjson.JSONDecodeError:
        return False
    return isinstance(value, dict) if kind == "k" else kind == "v"


def paths(tree: FieldSet) -> Iterator[tuple[str, ...]]:
    """Yield every path of the set: at each level first the owned elements, then what is below them, both sorted."""
    yield from _paths(tree, ())


def _paths(tree: FieldSet, prefix: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    keys = sorted((key for key in tree if key != "."), key=_element_order)
    for key in keys:
        if is_member(tree[key]):
            yield (*prefix, key)
    for key in keys:
        yield from _paths(tree[key], (*prefix, key))


def _element_order(key: str) -> tuple[int, Any]:
    kind = _KIND_ORDER[key[0]]
    return kind, int(key[2:]) if kind == 3 else key


def text(path: tuple[str, ...]) -> str:
    """Return a path as people read it: `.spec.containers[name="c"].image`."""
    return "".join(map(_element_text, path))


def _element_text(element: str) -> str:
    kind, rest = element[0], element[2:]
    if kind == "f":
        return "." + rest
    if kind == "k":
        keys = orjson.loads(rest)
        return "[" + ",".join(f"{name}={_scalar_text(keys[name])}" for name in sorted(keys)) + "]"
    if kind == "v":
        return f"[={_scalar_text(orjson.loads(rest))}]"
    return f"[{rest}]"


def _scalar_text(value: Any) -> str:
    return orjson.dumps(value).decode()
