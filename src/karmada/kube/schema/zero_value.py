"""The JSON of an empty object of a built-in kind, as Go writes it: a bookmark is one, with a resourceVersion.

Structs held by value are written even when they are empty; lists, maps, pointers and times that are always written are
null; the rest of what is left out when empty is left out.
"""

from __future__ import annotations

from typing import Any

from karmada.kube.objects.types import Obj
from karmada.kube.schema.node import Node
from karmada.kube.schema.wire import message_of, rules_of

_TIMES = ("time", "micro-time")
_EMPTY = {"string": "", "integer": 0, "number": 0, "boolean": False}
_OMITTED = frozenset({("meta.v1.ObjectMeta", "creationTimestamp")})
"""Times that are left out when they are zero."""


def zero_value(node: Node) -> Obj:
    """Return the fields of an empty struct; apiVersion and kind are not among them."""
    message = message_of(node.definition)
    zero: Obj = {}
    for name, rule in rules_of(message).items():
        child = node.properties.get(name)
        if child is None or (message, name) in _OMITTED:
            continue
        if rule == "p":
            if name in node.required:
                zero[name] = None
        elif _is_struct(child):
            zero[name] = zero_value(child)
        elif rule in ("", "w") or child.special in _TIMES:
            zero[name] = _empty(child)
    return zero


def _is_struct(node: Node) -> bool:
    return node.is_struct and not node.special and node.items is None and node.values is None


def _empty(node: Node) -> Any:
    if node.special == "quantity":
        return "0"
    return None if node.special or node.items is not None or node.values is not None else _EMPTY.get(node.type)
