"""Whether a value already is as the schema of a custom resource wants it, told in one quick walk.

Nearly everything that is written is in order: nothing to prune, no null, no default missing, nothing to complain of. A
test compiled from the schema finds that out in a fraction of the time that pruning, defaulting and validation take to
do nothing. What it does not vouch for is no worse for it; those who change and complain look themselves. Rules are
never looked at here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from karmada.kube.objects.types import Obj
from karmada.kube.schema.node import UNSET, Node
from karmada.kube.schema.structural import Checks
from karmada.kube.schema.validation import duplicates, satisfies

Test: TypeAlias = Callable[[Any], bool]

_IDENTITY: Final = frozenset({"apiVersion", "kind", "metadata"})
_SCALARS: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}


def conforming(node: Node, obj: Obj) -> frozenset[str]:
    """The parts of an object (spec, status and the like) that are all right."""
    properties = node.properties
    return frozenset(
        key
        for key, value in obj.items()
        if key not in _IDENTITY and (child := properties.get(key)) is not None and _test(child)(value)
    )


def _test(node: Node) -> Test:
    checks: Checks | None = node.checks
    if checks is None:
        return _never
    if checks.conforms is None:
        checks.conforms = _compiled(node, checks)
    test: Test = checks.conforms
    return test


def _compiled(node: Node, checks: Checks) -> Test:
    form = _form(node)
    if not checks.conditions or form is _never:
        return form
    return lambda value: form(value) and satisfies(checks, value)


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
    if node.type in _SCALARS:
        return _one_of(_SCALARS[node.type])
    free = node.preserve and not node.properties and node.values is None and node.items is None
    return _something if free else _never


def _never(_value: Any) -> bool:
    return False


def _something(value: Any) -> bool:
    return value is not None


def _anything(_value: Any) -> bool:
    return True


def _one_of(kinds: tuple[type, ...]) -> Test:
    return lambda value: type(value) in kinds


def _struct(node: Node) -> Test:
    plain = {name: child.checks.plain for name, child in node.properties.items() if child.checks is not None}
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


def _list(node: Node) -> Test:
    if node.items is None:
        return _never
    item_fits, keyed = _test(node.items), node.list_type != "atomic"

    def test(value: Any) -> bool:
        return type(value) is list and all(map(item_fits, value)) and not (keyed and duplicates(node, value))

    return test
