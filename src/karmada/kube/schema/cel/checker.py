"""Gives every node of a syntax tree its type, its variables' slots and its functions' overloads, or says what is wrong.

All faults of an expression are collected. Variables get slots in one flat frame: a name that is bound twice gets two
slots, so that an evaluation never has to copy a scope.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from karmada.kube.schema.cel import types as t
from karmada.kube.schema.cel.registry import FUNCTIONS, Overload
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
    SyntaxIssue,
    parse,
)
from karmada.kube.schema.cel.types import Type

TYPE_NAMES = {
    kind.name: kind for kind in (t.INT, t.UINT, t.DOUBLE, t.BOOL, t.STRING, t.BYTES, Type("list"), Type("map"), t.TYPE)
} | {"null_type": t.NULL, "google.protobuf.Timestamp": t.TIMESTAMP, "google.protobuf.Duration": t.DURATION}


class CompileError(Exception):
    """An expression that is not valid; the message shows every fault with its place."""


def describe(text: str, issues: list[SyntaxIssue]) -> str:
    shown: list[str] = []
    for issue in issues:
        start = text.rfind("\n", 0, issue.position) + 1
        line = text[start:].partition("\n")[0]
        number, column = text.count("\n", 0, issue.position) + 1, issue.position - start
        shown.append(f"ERROR: <input>:{number}:{column + 1}: {issue.message}\n | {line}\n | {'.' * column}^")
    return "\n".join(shown)


class Checker:
    """Checks one expression; `used` then holds the outer variables that it refers to, `size` its number of slots."""

    def __init__(self, variables: Mapping[str, Type], *, patches: bool = False) -> None:
        self.patches = patches
        """True if the types of mutating policies are known."""
        self.scope: dict[str, tuple[int, Type]] = {}
        self.issues: list[SyntaxIssue] = []
        self.used: set[str] = set()
        self.size = 1
        """Slot 0 holds the budget."""
        self.outer: dict[str, int] = {}
        for name, kind in variables.items():
            self.outer[name] = self.size
            self.scope[name] = (self.size, kind)
            self.size += 1

    def issue(self, position: int, message: str) -> Type:
        self.issues.append(SyntaxIssue(position, message))
        return t.ERROR

    def check(self, expr: Expr) -> Type:
        expr.type = _CHECKS[type(expr)](self, expr)
        return expr.type

    def bind(self, name: str, kind: Type) -> tuple[int, tuple[int, Type] | None]:
        slot, before = self.size, self.scope.get(name)
        self.size += 1
        self.scope[name] = (slot, kind)
        return slot, before

    def unbind(self, name: str, before: tuple[int, Type] | None) -> None:
        if before is None:
            del self.scope[name]
        else:
            self.scope[name] = before

    def literal(self, expr: Literal) -> Type:
        return expr.kind

    def ident(self, expr: Ident) -> Type:
        found = self.scope.get(expr.name)
        if found is None:
            if expr.name in TYPE_NAMES:
                return t.TYPE
            return self.issue(expr.pos, f"undeclared reference to '{expr.name}' (in container '')")
        expr.slot = found[0]
        if self.outer.get(expr.name) == expr.slot:
            self.used.add(expr.name)
        return found[1]

    def select(self, expr: Select) -> Type:
        operand = self.check(expr.operand)
        optional = expr.optional
        if operand.name == "optional_type":
            operand, optional = operand.params[0], True
        result = self.field(expr, operand)
        if expr.test:
            return t.BOOL
        return t.optional_of(result) if optional else result

    def field(self, expr: Select, operand: Type) -> Type:
        if operand.name in ("dyn", "*error*"):
            return t.DYN
        if operand.name == "map":
            return operand.params[1]
        if operand.fields is None:
            return self.issue(expr.pos, f"type '{operand}' does not support field selection")
        found = operand.fields.get(expr.name)
        if found is None:
            return self.issue(expr.pos, f"undefined field '{expr.name}'")
        expr.name = found.name
        return found.type

    def call(self, expr: Call) -> Type:
        target, name = expr.target, expr.name
        if target is not None:
            qualified = self.qualified(target)
            if qualified and (f"{qualified}.{name}", False) in FUNCTIONS:
                expr.target, target, name = None, None, f"{qualified}.{name}"
                expr.name = name
        if name == "format":
            for arg in expr.args:
                if isinstance(arg, MakeList):
                    arg.mixed = True
        kinds = [self.check(arg) for arg in ([target] if target is not None else []) + expr.args]
        overloads = FUNCTIONS.get((name, target is not None))
        if overloads is None:
            return self.issue(expr.pos, f"undeclared reference to '{name}' (in container '')")
        found: list[Overload] = []
        results: list[Type] = []
        for overload in overloads:
            bindings: t.Bindings = {}
            if len(overload.params) == len(kinds) and all(map_assign(overload, kinds, bindings)):
                found.append(overload)
                results.append(t.substitute(overload.result, bindings))
        if not found:
            shown = self.signature(kinds, target is not None)
            return self.issue(expr.pos, f"found no matching overload for '{name}' applied to '{shown}'")
        expr.overloads = found
        return t.join(results)

    @staticmethod
    def signature(kinds: list[Type], member: bool) -> str:
        shown = [str(kind) for kind in kinds]
        return f"{shown[0]}.({', '.join(shown[1:])})" if member else f"({', '.join(shown)})"

    def qualified(self, expr: Expr) -> str:
        """Return the dotted name, when it is made of names only and does not start with a variable."""
        if isinstance(expr, Ident):
            return "" if expr.name in self.scope else expr.name
        if isinstance(expr, Select) and not expr.optional and not expr.test:
            prefix = self.qualified(expr.operand)
            return f"{prefix}.{expr.name}" if prefix else ""
        return ""

    def wants_bool(self, expr: Expr, kind: Type) -> None:
        if not t.assign(t.BOOL, kind, {}):
            self.issue(expr.pos, f"expected type 'bool' but found '{kind}'")

    def logic(self, expr: Logic) -> Type:
        kinds = [self.check(expr.left), self.check(expr.right)]
        if not all(t.assign(t.BOOL, kind, {}) for kind in kinds):
            name = "_&&_" if expr.is_and else "_||_"
            shown = self.signature(kinds, False)
            return self.issue(expr.pos, f"found no matching overload for '{name}' applied to '{shown}'")
        return t.BOOL

    def cond(self, expr: Cond) -> Type:
        kinds = [self.check(expr.test), self.check(expr.then), self.check(expr.other)]
        bindings: t.Bindings = {}
        fits = all(t.assign(w, k, bindings) for w, k in zip((t.BOOL, t.A, t.A), kinds, strict=True))
        if not fits:
            shown = self.signature(kinds, False)
            return self.issue(expr.pos, f"found no matching overload for '_?_:_' applied to '{shown}'")
        return bindings["A"]

    def same(self, exprs: list[tuple[Expr, bool]]) -> Type:
        """Return the one type that all of them have; an entry marked optional holds it in an optional."""
        bindings: t.Bindings = {}
        for expr, optional in exprs:
            kind = self.check(expr)
            if optional:
                if not t.assign(t.optional_of(t.DYN), kind, {}):
                    self.issue(expr.pos, f"expected type 'optional_type' but found '{kind}'")
                kind = kind.params[0] if kind.params else t.DYN
            if not t.assign(t.A, kind, bindings):
                self.issue(expr.pos, f"expected type '{bindings['A']}' but found '{kind}'")
        return bindings.get("A", t.DYN)

    def make_list(self, expr: MakeList) -> Type:
        if expr.mixed:
            return t.list_of(t.join([self.check(item) for item, _ in expr.items]))
        return t.list_of(self.same(expr.items))

    def make_map(self, expr: MakeMap) -> Type:
        key = self.same([(key, False) for key, _, _ in expr.entries])
        return t.map_of(key, self.same([(value, optional) for _, value, optional in expr.entries]))

    def make_object(self, expr: MakeObject) -> Type:
        kind = t.patch_type(expr.name) if self.patches else None
        given = [(token, optional, self.check(value)) for token, value, optional in expr.entries]
        if kind is None or kind.fields is None:
            return self.issue(expr.pos, f"undeclared reference to '{expr.name}' (in container '')")
        for token, optional, value in given:
            found = kind.fields.get(token.text)
            if found is None:
                self.issue(token.pos, f"undefined field '{token.text}'")
                continue
            wanted = t.optional_of(found.type) if optional else found.type
            if not t.assign(wanted, value, {}):
                types = f"'{wanted}' but provided type is '{value}'"
                self.issue(token.pos, f"expected type of field '{token.text}' is {types}")
        return kind

    def fold(self, expr: Fold) -> Type:
        over = self.check(expr.range)
        if over.name not in ("list", "map", "dyn", "*error*"):
            message = f"expression of type '{over}' cannot be range of a comprehension (must be list, map, or dynamic)"
            self.issue(expr.range.pos, message)
            over = t.ERROR
        if over.name == "list":
            key, value = t.INT, over.params[0]
        elif over.name == "map":
            key, value = over.params
        else:
            key = value = t.DYN
        one = value if over.name == "list" else key
        kinds = (one,) if len(expr.names) == 1 else (key, value)
        bound = [(name, *self.bind(name, kind)) for name, kind in zip(expr.names, kinds, strict=True)]
        expr.slots = tuple(slot for _, slot, _ in bound)
        if expr.test is not None:
            self.wants_bool(expr.test, self.check(expr.test))
        result = t.DYN if expr.result is None else self.check(expr.result)
        for name, _, before in bound:
            self.unbind(name, before)
        return self.folded(expr, over, key, one, result)

    def folded(self, expr: Fold, over: Type, key: Type, one: Type, result: Type) -> Type:
        if expr.macro in ("all", "exists", "exists_one"):
            return t.BOOL
        if expr.macro == "filter":
            return over if over.name == "list" else t.list_of(one)
        if expr.macro in ("map", "transformList"):
            return t.list_of(result)
        if expr.macro == "transformMap":
            return t.map_of(key, result)
        assert expr.result is not None
        if not t.assign(t.map_of(t.A, t.B), result, {}):
            return self.issue(expr.result.pos, f"expected type 'map' but found '{result}'")
        return result

    def let(self, expr: Bind) -> Type:
        kind = self.check(expr.init)
        if expr.macro != "bind":
            if not t.assign(t.optional_of(t.DYN), kind, {}):
                return self.issue(expr.pos, f"found no matching overload for '{expr.macro}' applied to '{kind}'")
            kind = kind.params[0] if kind.params else t.DYN
        expr.slot, before = self.bind(expr.name, kind)
        result = self.check(expr.body)
        self.unbind(expr.name, before)
        return t.optional_of(result) if expr.macro == "optMap" else result


def map_assign(overload: Overload, kinds: list[Type], bindings: t.Bindings) -> list[bool]:
    return [t.assign(param, kind, bindings) for param, kind in zip(overload.params, kinds, strict=True)]


_CHECKS: dict[type[Expr], Any] = {
    Literal: Checker.literal,
    Ident: Checker.ident,
    Select: Checker.select,
    Call: Checker.call,
    Logic: Checker.logic,
    Cond: Checker.cond,
    MakeList: Checker.make_list,
    MakeMap: Checker.make_map,
    MakeObject: Checker.make_object,
    Fold: Checker.fold,
    Bind: Checker.let,
}


def check(text: str, variables: Mapping[str, Type], *, patches: bool = False) -> tuple[Expr, Checker]:
    """Return the checked tree of an expression; raises CompileError."""
    try:
        tree = parse(text)
    except SyntaxIssue as issue:
        raise CompileError(describe(text, [issue])) from None
    checker = Checker(variables, patches=patches)
    checker.check(tree)
    if checker.issues:
        raise CompileError(describe(text, checker.issues))
    return tree, checker
