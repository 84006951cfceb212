"""The table of functions: by name and style (member or global), the overloads with their types and implementation.

Libraries add rows with `define`. The checker narrows a call to the overloads that fit its static types; when a dyn
argument leaves more than one, or leaves a doubt, `accepts` picks by the values at run time.
An overload with a cost takes as many steps of the budget (see costs). Those of text and bytes cost the size of their
arguments unless they say otherwise, so that no function of text escapes the budget by being forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from karmada.kube.schema.cel.costs import base, total
from karmada.kube.schema.cel.types import Type
from karmada.kube.schema.cel.values import Duration, Opt, Timestamp, Uint

Cost = Callable[..., int]
"""Return the cost of a call with these arguments."""
_TEXT = frozenset({"string", "bytes"})


@dataclass(frozen=True, slots=True, eq=False)
class Overload:
    params: tuple[Type, ...]
    result: Type
    fn: Callable[..., Any]
    cost: Cost | None = None

    def accepts(self, args: Sequence[Any]) -> bool:
        return all(RUNTIME[param.name](value) for param, value in zip(self.params, args, strict=True))


FUNCTIONS: dict[tuple[str, bool], list[Overload]] = {}


def define(
    name: str,
    params: Sequence[Type],
    result: Type,
    fn: Callable[..., Any],
    *,
    member: bool = False,
    both: bool = False,
    sized: bool | None = None,
    cost: Cost | None = None,
) -> None:
    """Add an overload; a member's first parameter is its receiver, `both` adds it as member and as global function.

    `sized` says that it goes once through its arguments, which is assumed of those with text among them.
    """
    if sized is None:
        sized = any(param.name in _TEXT for param in params)
    steps = base(name, [param.name for param in params])
    overload = Overload(tuple(params), result, fn, _with_base(steps, cost or (total if sized else None)))
    for style in (True, False) if both else (member,):
        FUNCTIONS.setdefault((name, style), []).append(overload)


def _with_base(steps: int, sized: Cost | None) -> Cost | None:
    if not steps:
        return sized
    if sized is None:
        return lambda *_: steps
    return lambda *args: steps + sized(*args)


def is_int(value: Any) -> bool:
    return type(value) is int


def _anything(_: Any) -> bool:
    return True


def _instance(cls: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, cls)


RUNTIME: dict[str, Callable[[Any], bool]] = {
    "dyn": _anything,
    "A": _anything,
    "B": _anything,
    "int": is_int,
    "uint": _instance(Uint),
    "double": _instance(float),
    "bool": _instance(bool),
    "string": _instance(str),
    "bytes": _instance(bytes),
    "null": lambda value: value is None,
    "list": _instance(list),
    "map": _instance(dict),
    "object": _instance(dict),
    "timestamp": _instance(Timestamp),
    "duration": _instance(Duration),
    "type": _instance(Type),
    "optional_type": _instance(Opt),
}
"""Test by type name of a value at run time (element types are not looked at)."""


def define_type(kind: Type, cls: type) -> None:
    """Make a library's own type known at run time."""
    RUNTIME[kind.name] = _instance(cls)


def runtime_type(value: Any) -> str:
    """Return the name of a value's type, as type() and error messages show it."""
    for name in _NAMED:
        if RUNTIME[name](value):
            return name
    return next((name for name, test in RUNTIME.items() if name not in _UNNAMED and test(value)), "dyn")


_NAMED = (
    "bool", "uint", "int", "double", "string", "bytes", "null", "list", "map", "timestamp", "duration", "optional_type",
)  # fmt: skip
_UNNAMED = frozenset({"dyn", "A", "B", "object"})
