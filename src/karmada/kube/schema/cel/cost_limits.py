"""The limits on what the rules of a schema may cost at worst: of each expression, and of all of them together.

A rule below lists and maps counts as often as they have entries. A message is made once, for the first rule that fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from karmada.kube.objects.errors import FieldError, forbidden_field
from karmada.kube.schema.cel.estimate import Estimator
from karmada.kube.schema.cel.program import CompileError, Program
from karmada.kube.schema.cel.sizes import SchemaSizes
from karmada.kube.schema.node import Node

EXPRESSION_LIMIT = 10_000_000
SCHEMA_LIMIT = 100_000_000
_NOTABLE = SCHEMA_LIMIT // 100
_NAMED = 4
"""So many of the most expensive expressions are named."""
_ADVICE = "try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared"  # noqa: E501


def _excess(what: str, cost: int, limit: int) -> str:
    factor = cost / limit
    shown = "more than 100x" if factor > 100 else f"{factor:.6f}x" if factor < 1.5 else f"{factor:.1f}x"
    return f"{what} exceeds budget by factor of {shown} ({_ADVICE})"


def times_below(node: Node, times: int | None) -> int | None:
    """Return how often a place below this one can be in an object; None without limit."""
    if node.items is not None:
        each = node.checks.max_items
    elif node.values is not None:
        each = node.checks.max_properties
    else:
        return times
    return None if times is None or each is None else times * max(each, 0)


@dataclass(slots=True)
class CostLimits:
    """Estimates the expressions of one schema and adds them up."""

    sizes: SchemaSizes = field(default_factory=SchemaSizes)
    total: int = 0
    notable: list[tuple[int, str]] = field(default_factory=list)

    def rule(self, program: Program, node: Node, times: int | None, path: str) -> Iterator[FieldError]:
        often = self.sizes.occurrences(node) if times is None else times
        yield from self._count("estimated rule cost", self.estimate(program, node) * often, path)

    def message(self, program: Program, node: Node, path: str) -> Iterator[FieldError]:
        yield from self._count("estimated messageExpression cost", self.estimate(program, node), path)

    def estimate(self, program: Program, node: Node) -> int:
        """Raise CompileError when the expression is nested too deeply."""
        assert program.tree is not None
        try:
            return Estimator(node, self.sizes).cost(program.tree)
        except RecursionError:
            raise CompileError("expression is nested too deeply") from None

    def _count(self, what: str, cost: int, path: str) -> Iterator[FieldError]:
        self.total += cost
        if cost >= _NOTABLE:
            self.notable.append((cost, path))
        if cost > EXPRESSION_LIMIT:
            yield forbidden_field(path, _excess(what, cost, EXPRESSION_LIMIT))

    def schema(self, path: str) -> Iterator[FieldError]:
        """Once all expressions are counted."""
        if self.total <= SCHEMA_LIMIT:
            return
        for _, at in sorted(self.notable, key=lambda entry: -entry[0])[:_NAMED]:
            message = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
            yield forbidden_field(at, message)
        what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        yield forbidden_field(path, _excess(what, self.total, SCHEMA_LIMIT))
