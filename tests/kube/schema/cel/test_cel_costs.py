"""No function of an expression escapes the budget: each costs the size of what it is given and of what it makes."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from karmada.kube.schema.cel import BudgetExceeded, Program, compile_expression
from karmada.kube.schema.cel import types as t
from karmada.kube.schema.cel.program import CALL_BUDGET
from karmada.kube.schema.cel.values import SetList, Uint
from tests.support.cases import cases
from tests.support.counting import counted_calls

LONG = "a" * 1_000_000
MANY = list(range(100_000))
OBJECTS = [{"n": number} for number in range(2_000)]


def steps(text: str, **bindings: Any) -> int:
    return compile_expression(text, set(bindings)).measure(bindings)[1]


@cases(
    ("x.replace('', y).size() > 0", {"x": LONG[:100_000], "y": LONG[:10_000]}),
    ("x.replace('a', y).size() > 0", {"x": LONG[:100_000], "y": LONG[:10_000]}),
    ("l.join(y).size() > 0", {"l": ["a"] * 10_000, "y": LONG[:100_000]}),
    ("'%.999999999f'.format([1.5]).size() > 0", {}),
    (f"'%.{'9' * 5000}f'.format([1.5]).size() > 0", {}),
    ("'%.300000e'.format([1.5]).size() > 0", {}),
    ("sets.contains(a, b)", {"a": OBJECTS, "b": OBJECTS[::-1]}),
    ("sets.equivalent(a, b)", {"a": OBJECTS, "b": OBJECTS[::-1]}),
    ("sets.intersects(a, b)", {"a": OBJECTS, "b": [{"m": 1}] * 2_000}),
    ("a == b", {"a": SetList(OBJECTS), "b": SetList(OBJECTS[::-1])}),
    ("(a + b).size() > 0", {"a": SetList(OBJECTS), "b": SetList(OBJECTS[::-1])}),
    ("l.all(x, s.matches(p))", {"l": MANY, "s": LONG, "p": "(a?){50}(b|aa){50}"}),
    ("l.all(x, 'a'.matches('a|b' + string(x)))", {"l": MANY}),
    ("l.all(x, s != t)", {"l": MANY, "s": LONG, "t": LONG[:-1] + "b"}),
    ("l.all(x, s < t)", {"l": MANY, "s": LONG, "t": LONG[:-1] + "b"}),
    ("l.all(x, s.split('').size() > 0)", {"l": MANY, "s": LONG}),
    ("l.all(x, !isQuantity(s))", {"l": MANY, "s": LONG}),
    ("l.all(x, !isIP(s))", {"l": MANY, "s": LONG}),
    ("l.all(x, url(s).getEscapedPath() != '')", {"l": MANY, "s": "https://h/" + LONG}),
)
def test_what_takes_long_exceeds_the_budget(text: str, bindings: dict[str, Any]) -> None:
    with pytest.raises(BudgetExceeded):
        compile_expression(text, set(bindings)).evaluate(bindings)


@cases(
    ("sets.contains(a, b)", {"a": MANY, "b": MANY[::-1]}),
    ("sets.equivalent(a, b)", {"a": MANY[:60_000], "b": MANY[:60_000]}),
    ("!sets.intersects(a, b)", {"a": MANY, "b": ["x"] * 100_000}),
    ("a == b", {"a": SetList(MANY), "b": SetList(MANY[::-1])}),
    ("(a + b).size() == 50000", {"a": SetList(MANY[:50_000]), "b": SetList(MANY[:50_000])}),
    ("s.lastIndexOf(p) == -1", {"s": LONG, "p": "b" + LONG[:500_000]}),
)
def test_scalars_are_looked_up_however_many_there_are(text: str, bindings: dict[str, Any]) -> None:
    program = compile_expression(text, set(bindings))
    result, taken = program.measure(bindings)
    assert result is True
    assert taken <= CALL_BUDGET


@cases(
    ([1, 2.0, "a"], [1.0, 2, "a"], True),
    ([1], [True], False),
    ([True], [1], False),
    ([Uint(1)], [1, 1.0], True),
    ([1], [Uint(1)], True),
    ([[1]], [[1.0]], True),
    ([b"a"], ["a"], False),
    ([float("nan")], [float("nan")], False),
)
def test_looking_up_means_what_comparing_means(items: list[Any], wanted: list[Any], found: bool) -> None:
    program = compile_expression("sets.contains(items, wanted)", {"items", "wanted"})
    assert program.evaluate({"items": items, "wanted": wanted}) is found


@cases(
    ("'abcabc'.lastIndexOf('bc')", 4),
    ("'abcabc'.lastIndexOf('bc', 3)", 1),
    ("'abcabc'.lastIndexOf('bc', 4)", 4),
    ("'abc'.lastIndexOf('')", 3),
    ("'abc'.lastIndexOf('', 1)", 1),
    ("'abc'.lastIndexOf('x')", -1),
)
def test_the_last_place_of_a_text_is_found_from_the_end(text: str, expected: int) -> None:
    assert compile_expression(text, set()).evaluate({}) == expected


def test_a_pattern_costs_its_compilation_once() -> None:
    text = "'x'.matches('^never-seen-before-[a-z]{3}$')"
    assert steps(text) > steps(text)


@cases(
    "a + b != a",
    "a.matches('^[a-z]+[0-9-]*$')",
    "b.contains(a) || b.split('-').size() > 0",
    "quantity('1Gi').isLessThan(quantity('2Gi'))",
    "'%s-%d'.format([a, 1]) != b",
    "url('https://a.b/c?d=e').getHost() == 'a.b'",
    "timestamp('2020-01-01T00:00:00Z') < timestamp('2021-01-01T00:00:00Z')",
    "timestamp('2020-01-01T00:00:00Z').getHours('Europe/Berlin') >= 0",
    "cidr('10.0.0.0/8').containsIP('10.1.2.3')",
    "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')",
    "semver('1.2.3').isLessThan(semver('1.2.4'))",
    "duration('5m') < duration('1h')",
    "ip.isCanonical('10.1.2.3')",
    "!format.dns1123Label().validate('abc').hasValue()",
)
def test_the_budget_of_a_call_bounds_what_it_does_whatever_it_calls(body: str) -> None:
    """Addresses, times and versions once took up to 7 s."""
    program = Program(f"self.all(a, self.all(b, {body}))", {"self": t.list_of(t.STRING)})
    names = [f"name-{number}" for number in range(600)]
    with counted_calls() as calls, contextlib.suppress(BudgetExceeded):
        program.evaluate({"self": names})
    assert calls.count < 8_000_000
