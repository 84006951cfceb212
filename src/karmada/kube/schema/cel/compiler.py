"""Turns a checked tree into nested closures: evaluating an expression is one call with a frame.

A frame is a list: slot 0 counts the steps that are left, the others hold variables. Every turn of a loop and every
operation on text, lists and maps takes steps, so the budget that an evaluation starts with bounds its time.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

from karmada.kube.schema.cel.checker import TYPE_NAMES
from karmada.kube.schema.cel.costs import both_lists, weight
from karmada.kube.schema.cel.registry import Overload
from karmada.kube.schema.cel.syntax import (
    Bind,
    Call,
    Cond,
    Expr,
    Fold,
    Ident,
    Literal,
    Logic,
    MakeList,
    MakeMap,
    MakeObject,
    Select,
)
from karmada.kube.schema.cel.values import NONE, BudgetExceeded, CelError, NoOverload, ObjectValue, Opt, SetList, equal

Frame = list[Any]
Run = Callable[[Frame], Any]

_SMALL = frozenset({"int", "uint", "bool", "timestamp", "duration"})
_SHORT = 64
"""Characters that are compared in no time."""
_GENERIC = frozenset({"dyn", "A", "B"})


def charge(frame: Frame, steps: int) -> None:
    frame[0] -= steps
    if frame[0] < 0:
        raise BudgetExceeded


def compile_tree(expr: Expr) -> Run:
    run: Run = _COMPILE[type(expr)](expr)
    return run


def _literal(expr: Literal) -> Run:
    value = expr.value
    return lambda _: value


def _ident(expr: Ident) -> Run:
    if expr.slot < 0:
        kind = TYPE_NAMES[expr.name]
        return lambda _: kind
    return operator.itemgetter(expr.slot)


def _select(expr: Select) -> Run:
    operand, name = compile_tree(expr.operand), expr.name
    if expr.test:
        return _has(operand, name)
    if expr.optional or expr.operand.type.name == "optional_type":
        return _select_optional(operand, name)
    maybe_optional = expr.operand.type.name == "dyn"

    def run(frame: Frame) -> Any:
        value = operand(frame)
        try:
            return value[name]
        except KeyError:
            raise CelError(f"no such key: {name}") from None
        except TypeError:
            if maybe_optional and isinstance(value, Opt):
                return _optional_field(value, name)
            raise NoOverload from None

    return run


def _optional_field(value: Any, name: str) -> Opt:
    if isinstance(value, Opt):
        if not value.present:
            return NONE
        value = value.get()
    if value is None:
        return NONE
    if not isinstance(value, dict):
        raise NoOverload
    return Opt(value[name]) if name in value else NONE


def _select_optional(operand: Run, name: str) -> Run:
    return lambda frame: _optional_field(operand(frame), name)


def _has(operand: Run, name: str) -> Run:
    def run(frame: Frame) -> bool:
        value = operand(frame)
        if isinstance(value, dict):
            return name in value
        return _optional_field(value, name).present

    return run


def _call(expr: Call) -> Run:
    exprs = ([expr.target] if expr.target is not None else []) + expr.args
    args = [compile_tree(arg) for arg in exprs]
    overloads: list[Overload] = expr.overloads
    if expr.name in ("_==_", "_!=_"):
        return _equality(expr, args)
    overload = overloads[0]
    doubtful = any(
        arg.type.name == "dyn" and param.name not in _GENERIC for arg, param in zip(exprs, overload.params, strict=True)
    )
    if len(overloads) > 1 or doubtful:
        return _dispatch(overloads, args)
    return _direct(overload, args)


def _equality(expr: Call, args: list[Run]) -> Run:
    left, right = args
    negate = expr.name == "_!=_"
    if expr.args[0].type == expr.args[1].type and expr.args[0].type.name in _SMALL:
        compare: Callable[[Any, Any], bool] = operator.ne if negate else operator.eq
        return lambda frame: compare(left(frame), right(frame))

    def run(frame: Frame) -> bool:
        a, b = left(frame), right(frame)
        if isinstance(a, SetList) and isinstance(b, list):
            charge(frame, both_lists(a, b))
        elif isinstance(a, list | dict) or (isinstance(a, str | bytes) and len(a) > _SHORT):
            charge(frame, weight(a))
        return equal(a, b) is not negate

    return run


def _direct(overload: Overload, args: list[Run]) -> Run:
    fn, cost = overload.fn, overload.cost
    if cost is not None:

        def run(frame: Frame) -> Any:
            values = [arg(frame) for arg in args]
            charge(frame, cost(*values))
            return fn(*values)

        return run
    if len(args) == 1:
        only = args[0]
        return lambda frame: fn(only(frame))
    if len(args) == 2:
        first, second = args
        return lambda frame: fn(first(frame), second(frame))
    return lambda frame: fn(*[arg(frame) for arg in args])


def _dispatch(overloads: list[Overload], args: list[Run]) -> Run:
    """Return the overload that fits; it depends only on the classes of the values and is remembered by them."""
    chosen: dict[tuple[type, ...], Overload] = {}

    def run(frame: Frame) -> Any:
        values = [arg(frame) for arg in args]
        classes = tuple(map(type, values))
        overload = chosen.get(classes)
        if overload is None:
            overload = next((candidate for candidate in overloads if candidate.accepts(values)), None)
            if overload is None:
                raise NoOverload
            chosen[classes] = overload
        if overload.cost is not None:
            charge(frame, overload.cost(*values))
        return overload.fn(*values)

    return run


def _logic(expr: Logic) -> Run:
    left, right = compile_tree(expr.left), compile_tree(expr.right)
    decides: bool = not expr.is_and

    def run(frame: Frame) -> bool:
        try:
            if _holds(left, frame) is decides:
                return decides
        except CelError:
            if _holds(right, frame) is decides:
                return decides
            raise
        return _holds(right, frame)

    return run


def _cond(expr: Cond) -> Run:
    test, then, other = compile_tree(expr.test), compile_tree(expr.then), compile_tree(expr.other)

    def run(frame: Frame) -> Any:
        chosen = test(frame)
        if chosen is True:
            return then(frame)
        if chosen is False:
            return other(frame)
        raise NoOverload

    return run


def _make_list(expr: MakeList) -> Run:
    items = [(compile_tree(item), optional) for item, optional in expr.items]
    if not any(optional for _, optional in items):
        plain = [item for item, _ in items]
        return lambda frame: [item(frame) for item in plain]

    def run(frame: Frame) -> list[Any]:
        made: list[Any] = []
        for item, optional in items:
            value = item(frame)
            if not optional:
                made.append(value)
            elif value.present:
                made.append(value.get())
        return made

    return run


def _make_map(expr: MakeMap) -> Run:
    entries = [(compile_tree(key), compile_tree(value), optional) for key, value, optional in expr.entries]

    def run(frame: Frame) -> dict[Any, Any]:
        made: dict[Any, Any] = {}
        for key_of, value_of, optional in entries:
            key, value = key_of(frame), value_of(frame)
            if not isinstance(key, str | int):
                raise CelError("unsupported key type")
            if key in made:
                raise CelError(f"Failed with repeated key: {key}")
            if not optional:
                made[key] = value
            elif value.present:
                made[key] = value.get()
        return made

    return run


def _make_object(expr: MakeObject) -> Run:
    name = expr.name
    entries = [(token.text, compile_tree(value), optional) for token, value, optional in expr.entries]

    def run(frame: Frame) -> ObjectValue:
        made = ObjectValue(name)
        for key, value_of, optional in entries:
            value = value_of(frame)
            if not optional:
                made[key] = value
            elif value.present:
                made[key] = value.get()
        return made

    return run


Turns = Callable[[Frame], Iterable[Any]]


def _turns(expr: Fold) -> Turns:
    """Run over the range: set the variables, take a step, and yield the key (or the item of a one-variable loop)."""
    over, slots = compile_tree(expr.range), expr.slots
    two = len(slots) == 2

    def run(frame: Frame) -> Iterable[Any]:
        values = over(frame)
        if isinstance(values, list):
            pairs: Iterable[Any] = enumerate(values) if two else values
        elif isinstance(values, dict):
            pairs = values.items() if two else values
        else:
            raise NoOverload
        for turn in pairs:
            frame[0] -= 1
            if frame[0] < 0:
                raise BudgetExceeded
            if two:
                frame[slots[0]], frame[slots[1]] = turn
                yield turn[0]
            else:
                frame[slots[0]] = turn
                yield turn

    return run


def _holds(test: Run, frame: Frame) -> bool:
    value = test(frame)
    if value is True or value is False:
        return bool(value)
    raise NoOverload


def _quantifier(turns: Turns, test: Run, decides: bool) -> Run:
    """Compile all and exists: the deciding value wins over errors of other turns."""

    def run(frame: Frame) -> bool:
        failure: CelError | None = None
        for _ in turns(frame):
            try:
                if _holds(test, frame) is decides:
                    return decides
            except CelError as error:
                failure = error
        if failure is not None:
            raise failure
        return not decides

    return run


def _exists_one(turns: Turns, test: Run) -> Run:
    return lambda frame: sum(_holds(test, frame) for _ in turns(frame)) == 1


def _filter(turns: Turns, test: Run) -> Run:
    return lambda frame: [turn for turn in turns(frame) if _holds(test, frame)]


def _transform_list(turns: Turns, test: Run | None, result: Run) -> Run:
    if test is None:
        return lambda frame: [result(frame) for _ in turns(frame)]
    return lambda frame: [result(frame) for _ in turns(frame) if _holds(test, frame)]


def _transform_map(turns: Turns, test: Run | None, result: Run) -> Run:
    if test is None:
        return lambda frame: {key: result(frame) for key in turns(frame)}
    return lambda frame: {key: result(frame) for key in turns(frame) if _holds(test, frame)}


def _transform_entries(turns: Turns, test: Run | None, result: Run) -> Run:
    def run(frame: Frame) -> dict[Any, Any]:
        made: dict[Any, Any] = {}
        for _ in turns(frame):
            if test is not None and not _holds(test, frame):
                continue
            for key, value in result(frame).items():
                if key in made:
                    raise CelError(f"insert failed: key {key} already exists")
                made[key] = value
        return made

    return run


def _fold(expr: Fold) -> Run:
    turns = _turns(expr)
    test = None if expr.test is None else compile_tree(expr.test)
    result = None if expr.result is None else compile_tree(expr.result)
    if result is None:
        assert test is not None
        if expr.macro in ("all", "exists"):
            return _quantifier(turns, test, expr.macro == "exists")
        return _exists_one(turns, test) if expr.macro == "exists_one" else _filter(turns, test)
    if expr.macro == "transformMap":
        return _transform_map(turns, test, result)
    if expr.macro == "transformMapEntry":
        return _transform_entries(turns, test, result)
    return _transform_list(turns, test, result)


def _bind(expr: Bind) -> Run:
    init, body, slot, macro = compile_tree(expr.init), compile_tree(expr.body), expr.slot, expr.macro

    def run(frame: Frame) -> Any:
        value = init(frame)
        if macro != "bind":
            if not isinstance(value, Opt):
                raise NoOverload
            if not value.present:
                return NONE
            value = value.get()
        frame[slot] = value
        result = body(frame)
        return Opt(result) if macro == "optMap" else result

    return run


_COMPILE: dict[type[Expr], Any] = {
    Literal: _literal,
    Ident: _ident,
    Select: _select,
    Call: _call,
    Logic: _logic,
    Cond: _cond,
    MakeList: _make_list,
    MakeMap: _make_map,
    MakeObject: _make_object,
    Fold: _fold,
    Bind: _bind,
}
