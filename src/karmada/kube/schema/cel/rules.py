"""x-kubernetes-validations: the rules of a schema, applied when an object is written (`rule_check` has the CRD's side).

`self` is the value at the rule's place. A rule that uses `oldSelf` is about a change: it runs on updates only, and
only where the old value of the same place can be found (through properties, map keys and the items of map-like lists,
not through other lists), unless it declares oldSelf optional. Rules that look at `self` alone are skipped where nothing
changed. All rules of an object share one budget of steps.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from karmada.kube.objects.errors import (
    FieldError,
    FieldErrors,
    duplicate,
    forbidden_field,
    invalid,
    required,
    short_path,
)
from karmada.kube.objects.types import Obj
from karmada.kube.schema.cel import types as t
from karmada.kube.schema.cel.declarations import Convert, converter, declare
from karmada.kube.schema.cel.program import CALL_BUDGET, BudgetExceeded, CelError, Program
from karmada.kube.schema.cel.values import NONE, NoOverload, Opt
from karmada.kube.schema.node import Node
from karmada.kube.schema.validation import MISSING, list_index, list_key, same

OBJECT_BUDGET = CALL_BUDGET
"""For all rules of an object together: they run on the event loop, which nothing may hold up for longer."""
RULE_BUDGET = OBJECT_BUDGET * 4 // 5
MAX_MESSAGE = 5 * 1024
_OMITTED = object()


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    text: str
    message: str
    reason: str
    field_path: str
    program: Program
    message_program: Program | None
    optional_old: bool

    @property
    def transition(self) -> bool:
        return "oldSelf" in self.program.uses

    @property
    def shown(self) -> str:
        return self.message or self.text


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """The compiled rules of one place of a schema."""

    rules: tuple[Rule, ...]
    convert: Convert | None


_PATH_PART = re.compile(r"\.([a-zA-Z_][a-zA-Z0-9_-]*)|\['([^']+)'\]")


def parse_field_path(text: str, node: Node) -> str:
    """Return a rule's fieldPath as what follows the path of the rule's place; raises ValueError."""
    if not text or _PATH_PART.match(text) is None:
        raise ValueError("fieldPath must start with a '.' or a \"['\"")
    shown, position, place = "", 0, node
    while position < len(text):
        match = _PATH_PART.match(text, position)
        if match is None:
            raise ValueError(f"fieldPath is not a JSON path: unexpected characters at {position}")
        name = match[1] or match[2]
        if name in place.properties:
            place, shown = place.properties[name], f"{shown}.{name}"
        elif place.values is not None:
            place, shown = place.values, f"{shown}[{name}]"
        else:
            raise ValueError(f"does not refer to a valid field: {name}")
        position = match.end()
    return shown


def rule_variables(kind: t.Type, optional_old: bool) -> dict[str, t.Type]:
    return {"self": kind, "oldSelf": t.optional_of(kind) if optional_old else kind}


def compile_rule(raw: Obj, node: Node, kind: t.Type) -> Rule:
    """Compile a rule; raise CompileError or ValueError."""
    optional_old = bool(raw.get("optionalOldSelf"))
    variables = rule_variables(kind, optional_old)
    expression = (raw.get("messageExpression") or "").strip()
    return Rule(
        text=raw["rule"].strip(),
        message=(raw.get("message") or "").strip(),
        reason=raw.get("reason") or "",
        field_path=parse_field_path(raw["fieldPath"], node) if raw.get("fieldPath") else "",
        program=Program(raw["rule"], variables),
        message_program=Program(expression, variables) if expression else None,
        optional_old=optional_old,
    )


def _place(node: Node, root: bool) -> Place:
    place: Place | None = node.checks.compiled
    if place is None:
        kind = declare(node, root) or t.DYN
        place = Place(tuple(compile_rule(raw, node, kind) for raw in node.checks.rules), converter(node))
        node.checks.compiled = place
    return place


def apply_rules(node: Node, obj: Obj, old: Obj | None = None) -> list[FieldError]:
    """Return the rules that an object breaks."""
    run = _Run()
    with suppress(_Stop):
        run.visit(node, obj, MISSING if old is None else old, "", root=True)
    return run.errors


class _Stop(Exception):
    """The budget is used up."""


class _Run:
    def __init__(self) -> None:
        self.errors = FieldErrors()
        self.left = OBJECT_BUDGET

    def visit(self, node: Node, value: Any, old: Any, path: str, root: bool = False) -> None:
        checks = node.checks
        if checks is None or not checks.has_rules or value is None:
            return
        if checks.rules:
            self.apply(node, value, old, path, root)
        path = short_path(path)
        if isinstance(value, dict):
            before = old if isinstance(old, dict) else {}
            for key, item in value.items():
                child = node.properties.get(key, node.values)
                if child is not None:
                    self.visit(child, item, before.get(key, MISSING), f"{path}.{key}" if path else key)
        elif type(value) is list and node.items is not None:
            index = list_index(node, old) if type(old) is list else {}
            for position, item in enumerate(value):
                known = index.get(list_key(node, item), MISSING) if index else MISSING
                self.visit(node.items, item, known, f"{path}[{position}]")

    def apply(self, node: Node, value: Any, old: Any, path: str, root: bool) -> None:
        place = _place(node, root)
        unchanged = old is not MISSING and same(value, old)
        try:
            this = value if place.convert is None else place.convert(value)
            that = old if place.convert is None or old is MISSING else place.convert(old)
        except CelError as error:
            self.errors.append(invalid(path or "<nil>", _shown(node, value), str(error)))
            return
        for rule in place.rules:
            bindings: dict[str, Any] = {"self": this}
            if rule.optional_old:
                bindings["oldSelf"] = NONE if that is MISSING else Opt(that)
            elif rule.transition:
                if that is MISSING:
                    continue
                bindings["oldSelf"] = that
            elif unchanged:
                continue
            self.check(rule, bindings, node, value, path)

    def check(self, rule: Rule, bindings: dict[str, Any], node: Node, value: Any, path: str) -> None:
        at = (path + rule.field_path).removeprefix(".") or "<nil>"
        shown = _shown(node, value)
        try:
            if self.evaluate(rule.program, bindings) is True:
                return
        except BudgetExceeded:
            if self.left <= 0:
                why = "validation failed due to running out of cost budget, no further validation rules will be run"
            else:
                why = f"no further validation rules will be run due to call cost exceeds limit for rule: {rule.shown}"
            self.errors.append(invalid(path or "<nil>", shown, why))
            raise _Stop from None
        except NoOverload as error:
            why = "call arguments did not match a supported operator, function or macro signature for rule"
            self.errors.append(invalid(path or "<nil>", shown, f"'{error}': {why}: {rule.shown}"))
            return
        except CelError as error:
            self.errors.append(invalid(path or "<nil>", shown, f"{error} evaluating rule: {rule.shown}"))
            return
        detail = self.message(rule, bindings) or rule.message or f"failed rule: {rule.text}"
        whole = isinstance(value, dict | list)
        self.errors.append(_failure(rule.reason, at, _OMITTED if whole else shown, detail))

    def evaluate(self, program: Program, bindings: dict[str, Any]) -> Any:
        allowance = min(RULE_BUDGET, self.left)
        try:
            result, steps = program.measure(bindings, allowance)
        except BudgetExceeded:
            self.left -= allowance
            raise
        self.left -= steps + 1
        return result

    def message(self, rule: Rule, bindings: dict[str, Any]) -> str:
        """Return the computed message; a message that cannot be computed or is unfit falls back to the fixed one."""
        if rule.message_program is None:
            return ""
        try:
            text = self.evaluate(rule.message_program, bindings)
        except (CelError, BudgetExceeded):
            return ""
        if not isinstance(text, str) or "\n" in text or len(text) > MAX_MESSAGE:
            return ""
        return text.strip()


def _shown(node: Node, value: Any) -> Any:
    """Whole objects and lists are named by their type."""
    return node.type or "object" if isinstance(value, dict | list) else value


def _failure(reason: str, path: str, shown: Any, detail: str) -> FieldError:
    """Return the error of a rule that does not hold; whole objects and lists are not shown."""
    if reason == "FieldValueForbidden":
        return forbidden_field(path, detail)
    if reason == "FieldValueRequired":
        return required(path, detail)
    if reason == "FieldValueDuplicate":
        return duplicate(path, shown) if shown is not _OMITTED else FieldError(path, reason, "Duplicate value")
    if shown is _OMITTED:
        return FieldError(path, "FieldValueInvalid", f"Invalid value: {detail}")
    return invalid(path, shown, detail)
