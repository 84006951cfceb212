"""Whether a value already conforms to the schema of a custom resource, found in one quick walk.

Nearly everything that is written is in order: nothing to prune, no null, no default missing, nothing to complain of. A
test compiled from the schema finds that out in a fraction of the time that pruning, defaulting and validation take to
do nothing. What it does not vouch for is no worse for it; those who change and complain look themselves. Rules are
never looked at here.

A write is checked several times on its way, each time with the same content: parts that conformed a moment ago are
recognised by their bytes, which are made in a tenth of the time of the walk; unless the walk is short.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import Any, Final, TypeAlias

from karmada.kube.objects.memo import Recognised
from karmada.kube.objects.types import Obj
from karmada.kube.schema.node import UNSET, Node
from karmada.kube.schema.structural import Checks
from karmada.kube.schema.validation import duplicates, satisfies

Test: TypeAlias = Callable[[Any], bool]

_IDENTITY: Final = frozenset({"apiVersion", "kind", "metadata"})
_SCALARS: Final[dict[str, type]] = {"string": str, "boolean": bool, "integer": int}
_REMEMBERED_WORDS: Final = 64
_SHORT: Final = 128
"""Characters of a text that may be remembered."""


def conforming(node: Node, obj: Obj) -> frozenset[str]:
    """Return the parts of an object (spec, status and the like) that are all right."""
    properties, found = node.properties, []
    for key, value in obj.items():
        if key not in _IDENTITY:
            child = properties.get(key)
            if child is not None and child.checks is not None:
                test: Test = child.checks.conforms or _compiled(child)
                if test(value):
                    found.append(key)
    return frozenset(found)


def _compiled(part: Node) -> Test:
    """Return the test of a part of an object, which is kept with its conditions."""
    test = part.checks.conforms = _test(part) if _is_shallow(part) else _recognising(_test(part))
    return test


def _recognising(test: Test) -> Test:
    recent = Recognised()

    def recognised(value: Any) -> bool:
        raw = recent.unknown(value)
        if not raw:
            return raw is None
        if not test(value):
            return False
        recent.add(raw)
        return True

    return recognised


def _is_shallow(node: Node) -> bool:
    """Return whether a test looks at few values, however large the part is.

    Most of such a part has no schema, as manifests of a Work. Then the test takes less than the bytes.
    """
    if node.checks is None or node.checks.conditions or node.values is not None:
        return False
    if node.items is not None:
        return not node.items.properties and _is_shallow(node.items)
    return all(map(_is_shallow, node.properties.values()))


def _test(node: Node) -> Test:
    checks: Checks | None = node.checks
    if checks is None:
        return _never
    form = _form(node)
    if not checks.conditions or form is _never:
        return form
    if node.type == "string":
        return _words(checks)
    return lambda value: form(value) and satisfies(checks, value)


def _words(checks: Checks) -> Test:
    """Return the test of a text with conditions.

    Most are one of a few (types, reasons, this second): those are kept.
    """
    recent: dict[str, None] = {}

    def test(value: Any) -> bool:
        if type(value) is not str:
            return False
        if value in recent:
            return True
        if not satisfies(checks, value):
            return False
        if len(value) <= _SHORT:
            if len(recent) == _REMEMBERED_WORDS:
                del recent[next(iter(recent))]
            recent[value] = None
        return True

    return test


def _form(node: Node) -> Test:
    """Without the conditions of this very place."""
    if node.embedded:
        return _never
    if node.type == "object":
        return _struct(node)
    if node.type == "array":
        return _list(node)
    if node.special == "int-or-string":
        return _one_of((str, int))
    if node.type == "number":
        return _number
    if node.type in _SCALARS:
        return _one_of((_SCALARS[node.type],))
    free = node.preserve and not node.properties and node.values is None and node.items is None
    return _something if free else _never


def _never(_value: Any) -> bool:
    return False


def _something(value: Any) -> bool:
    return value is not None and (type(value) is not float or isfinite(value))  # those are null once they are written


def _number(value: Any) -> bool:
    return type(value) is int or (type(value) is float and isfinite(value))


def _anything(_value: Any) -> bool:
    return True


def _one_of(kinds: tuple[type, ...]) -> Test:
    return lambda value: type(value) in kinds


def _struct(node: Node) -> Test:
    plain = {name: _plain(child) for name, child in node.properties.items()}
    deep = {name: _test(child) for name, child in node.properties.items()}
    other = _test(node.values) if node.values is not None else _anything if node.preserve else _never
    wanted = {name for name, child in node.properties.items() if child.default is not UNSET} | {*node.required}

    def test(value: Any) -> bool:
        if type(value) is not dict or not wanted <= value.keys():
            return False
        for key, item in value.items():
            if type(item) is not plain.get(key) and not deep.get(key, other)(item):
                return False
        return True

    return test


def _plain(node: Node) -> type | None:
    """Return the class whose values all conform: of a scalar without conditions, or of an object without a schema."""
    checks: Checks | None = node.checks
    if checks is None or checks.plain is not None:
        return None if checks is None else checks.plain
    free = node.type == "object" and node.preserve and not node.properties and node.values is None
    return dict if free and not (node.embedded or node.required or checks.conditions) else None


def _list(node: Node) -> Test:
    if node.items is None:
        return _never
    item_fits, plain, keyed = _test(node.items), _plain(node.items), node.list_type != "atomic"

    def test(value: Any) -> bool:
        if type(value) is not list or not all(type(item) is plain or item_fits(item) for item in value):
            return False
        return not (keyed and duplicates(node, value))

    return test
