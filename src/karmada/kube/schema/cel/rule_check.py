"""x-kubernetes-validations when a CRD is written: what is wrong with its rules, and what is too expensive.

A place's expressions are looked at only if the attributes of its rules and of those below are right, and their errors
come after those of all attributes, as a kube-apiserver reports them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from karmada.kube.objects.errors import FieldError, FieldErrors, invalid, not_supported, required, short_path
from karmada.kube.objects.types import Obj
from karmada.kube.schema.cel import types as t
from karmada.kube.schema.cel.cost_limits import CostLimits, times_below
from karmada.kube.schema.cel.declarations import declare
from karmada.kube.schema.cel.program import CompileError, Program
from karmada.kube.schema.cel.rules import parse_field_path, rule_variables
from karmada.kube.schema.node import Node
from karmada.kube.schema.structural import VALIDATIONS

REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")


def rule_errors(node: Node, path: str) -> list[FieldError]:
    """Return what is wrong with the rules of a compiled schema whose openAPIV3Schema is at `path`."""
    check = _Check()
    check.visit(node, _Position(path, root=True, times=1))
    check.expressions.extend(check.limits.schema(path))
    return [*check.attributes, *check.expressions]


@dataclass(frozen=True, slots=True)
class _Position:
    path: str
    blind: str = ""
    """The path of the list above whose items cannot be correlated with the old ones, when there is one."""
    times: int | None = None
    """How often the place can be in an object, where limits say so."""
    root: bool = False


@dataclass(slots=True)
class _Check:
    attributes: FieldErrors = field(default_factory=FieldErrors)
    expressions: FieldErrors = field(default_factory=FieldErrors)
    limits: CostLimits = field(default_factory=CostLimits)

    def visit(self, node: Node, at: _Position) -> None:
        if node.checks is None or not node.checks.has_rules:
            return
        before = len(self.attributes)
        for child, position in _children(node, at):
            self.visit(child, position)
        if not node.checks.rules:
            return
        rules = [(raw, f"{short_path(at.path)}.{VALIDATIONS}[{i}]") for i, raw in enumerate(node.checks.rules)]
        for raw, path in rules:
            self.attributes.extend(_attribute_errors(raw, node, path))
        if len(self.attributes) > before:
            return
        kind = declare(node, at.root) or t.DYN
        for raw, path in rules:
            self.expressions.extend(self.rule(raw, node, kind, path, at))

    def rule(self, raw: Obj, node: Node, kind: t.Type, path: str, at: _Position) -> Iterator[FieldError]:
        variables = rule_variables(kind, bool(raw.get("optionalOldSelf")))
        try:
            program = Program(raw["rule"], variables, keep_tree=True)
            if program.type.name not in ("bool", "dyn"):
                yield invalid(f"{path}.rule", raw, "cel expression must evaluate to a bool")
            else:
                yield from self.limits.rule(program, node, at.times, f"{path}.rule")
        except CompileError as error:
            yield invalid(f"{path}.rule", raw, f"compilation failed: {error}")
            return
        expression = (raw.get("messageExpression") or "").strip()
        if expression:
            yield from self.message(raw, expression, variables, node, f"{path}.messageExpression")
        yield from _old_self_errors(raw, program, path, at.blind)

    def message(
        self, raw: Obj, expression: str, variables: dict[str, t.Type], node: Node, path: str
    ) -> Iterator[FieldError]:
        try:
            program = Program(expression, variables, keep_tree=True)
            if program.type.name not in ("string", "dyn"):
                yield invalid(path, raw, "messageExpression must evaluate to a string")
            else:
                yield from self.limits.message(program, node, path)
        except CompileError as error:
            yield invalid(path, raw, f"messageExpression compilation failed: {error}")


def _children(node: Node, at: _Position) -> Iterator[tuple[Node, _Position]]:
    path, times = short_path(at.path), times_below(node, at.times)
    for name, child in node.properties.items():
        yield child, _Position(f"{path}.properties[{name}]", at.blind, times)
    if node.values is not None:
        yield node.values, _Position(f"{path}.additionalProperties", at.blind, times)
    if node.items is not None:
        blind = at.blind or ("" if node.list_type == "map" else path)
        yield node.items, _Position(f"{path}.items", blind, times)


def _old_self_errors(raw: Obj, program: Program, path: str, blind: str) -> Iterator[FieldError]:
    uses_old = "oldSelf" in program.uses
    if uses_old and blind and not raw.get("optionalOldSelf"):
        message = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {blind}"
        yield invalid(f"{path}.rule", raw["rule"], message)
    if raw.get("optionalOldSelf") is not None and not uses_old:
        message = "may not be set if oldSelf is not used in rule"
        yield invalid(f"{path}.optionalOldSelf", raw["optionalOldSelf"], message)


def _attribute_errors(raw: Obj, node: Node, path: str) -> Iterator[FieldError]:
    text = (raw.get("rule") or "").strip()
    if not text:
        yield required(f"{path}.rule", "rule is not specified")
        return
    message = raw.get("message")
    if message and not message.strip():
        yield invalid(f"{path}.message", message, "message must be non-empty if specified")
    elif message and "\n" in message.strip():
        yield invalid(f"{path}.message", message, "message must not contain line breaks")
    elif "\n" in text and not message:
        yield required(f"{path}.message", "message must be specified if rule contains line breaks")
    if raw.get("reason") and raw["reason"] not in REASONS:
        yield not_supported(f"{path}.reason", raw["reason"], REASONS)
    field_path = raw.get("fieldPath")
    if field_path:
        try:
            parse_field_path(field_path, node)
        except ValueError as error:
            yield invalid(f"{path}.fieldPath", field_path, f"fieldPath must be a valid path: {error}")
