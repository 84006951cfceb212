"""An expression, compiled once and evaluated many times."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from karmada.kube.schema.cel import extensions, kubernetes, standard  # noqa: F401  (they fill the table of functions)
from karmada.kube.schema.cel.checker import CompileError, check
from karmada.kube.schema.cel.compiler import compile_tree
from karmada.kube.schema.cel.types import DYN, Type
from karmada.kube.schema.cel.values import BudgetExceeded, CelError

CALL_BUDGET = 250_000
"""Steps that one evaluation may take: about what Kubernetes' cost limit allows, a quarter of a second at worst."""
MAX_LENGTH = 100 * 1024


class Program:
    """`type` is the static type of the result, `uses` the variables that the expression refers to."""

    __slots__ = ("_run", "_size", "_slots", "text", "tree", "type", "uses")

    def __init__(
        self, text: str, variables: Mapping[str, Type], *, patches: bool = False, keep_tree: bool = False
    ) -> None:
        if len(text) > MAX_LENGTH:
            raise CompileError(f"expression is longer than {MAX_LENGTH} characters")
        try:
            tree, checker = check(text, variables, patches=patches)
            self._run = compile_tree(tree)
        except RecursionError:
            raise CompileError("expression is nested too deeply") from None
        self.text = text
        self.tree = tree if keep_tree else None
        """The checked tree, for those who look at an expression before it runs."""
        self.type = tree.type
        self.uses = frozenset(checker.used)
        self._size = checker.size
        self._slots = [(name, checker.outer[name]) for name in self.uses]

    def evaluate(self, bindings: Mapping[str, Any], budget: int = CALL_BUDGET) -> Any:
        return self.measure(bindings, budget)[0]

    def measure(self, bindings: Mapping[str, Any], budget: int = CALL_BUDGET) -> tuple[Any, int]:
        """Return the result and the steps it took; raise CelError, or BudgetExceeded."""
        frame: list[Any] = [None] * self._size
        frame[0] = budget
        for name, slot in self._slots:
            if name not in bindings:
                raise CelError(f"no such attribute(s): {name}")
            frame[slot] = bindings[name]
        try:
            result = self._run(frame)
        except RecursionError:
            raise CelError("expression is nested too deeply") from None
        return result, budget - frame[0]


def compile_expression(text: str, variables: set[str]) -> Program:
    """Return an expression over variables of unknown type; raises CompileError."""
    return Program(text, dict.fromkeys(variables, DYN))


__all__ = ["CALL_BUDGET", "BudgetExceeded", "CelError", "CompileError", "Program", "compile_expression"]
