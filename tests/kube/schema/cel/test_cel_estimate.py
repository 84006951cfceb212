"""What rules are estimated to cost. The numbers are those that a kube-apiserver computes for the same schemas."""

from __future__ import annotations

from collections.abc import Callable

from karmada.kube.objects.types import Obj
from karmada.kube.schema.cel import types as t
from karmada.kube.schema.cel.cost_limits import CostLimits
from karmada.kube.schema.cel.declarations import declare
from karmada.kube.schema.cel.program import Program
from karmada.kube.schema.cel.rule_check import rule_errors
from karmada.kube.schema.cel.rules import rule_variables
from karmada.kube.schema.structural import compile_schema
from karmada.kube.schema.structural_rules import structural_errors
from tests.support.cases import cases

Make = Callable[[int | None], Obj]


def cost(place: Obj, rule: str, *, optional_old: bool = False) -> int:
    """Of a rule on a field of the root."""
    node = compile_schema({"type": "object", "properties": {"spec": place}}).properties["spec"]
    variables = rule_variables(declare(node) or t.DYN, optional_old)
    return CostLimits().estimate(Program(rule, variables, keep_tree=True), node)


def _with(schema: Obj, key: str, limit: int | None) -> Obj:
    return schema if limit is None else {**schema, key: limit}


def scalar(kind: str) -> Obj:
    if kind == "int-or-string":
        return {"x-kubernetes-int-or-string": True}
    if kind in ("date", "date-time", "duration", "byte"):
        return {"type": "string", "format": kind}
    return {"type": kind}


def array(kind: str) -> Make:
    return lambda limit: _with({"type": "array", "items": scalar(kind)}, "maxItems", limit)


def array_of(items: Obj) -> Make:
    return lambda limit: _with({"type": "array", "items": items}, "maxItems", limit)


def mapping(kind: str) -> Make:
    return mapping_of(scalar(kind))


def mapping_of(values: Obj) -> Make:
    return lambda limit: _with({"type": "object", "additionalProperties": values}, "maxProperties", limit)


def text(limit: int | None) -> Obj:
    return _with({"type": "string"}, "maxLength", limit)


def octets(limit: int | None) -> Obj:
    return _with({"type": "string", "format": "byte"}, "maxLength", limit)


def texts(limit: int | None) -> Obj:
    return array_of(text(limit))(limit)


def fields(**made: Make) -> Make:
    return lambda limit: {"type": "object", "properties": {name: make(limit) for name, make in made.items()}}


OBJECT = {
    "type": "object",
    "properties": {"required": {"type": "string"}, "optional": {"type": "string"}},
    "required": ["required"],
}


def text_by_name(limit: int | None) -> Obj:
    return mapping_of(text(limit))(limit)


@cases(
    (array("number"), "self.all(x, true)", 4718591, 10, 32),
    (array("string"), "self.all(x, true)", 3145727, 20, 62),
    (array("boolean"), "self.all(x, true)", 1887437, 5, 17),
    (array_of(array("number")(None)), "self.all(x, true)", 3145727, 100, 302),
    (array_of(OBJECT), "self.all(x, true)", 555128, 50, 152),
    (mapping("number"), "self.all(x, true)", 1348169, 10, 32),
    (mapping("string"), "self.all(x, true)", 1179647, 3, 11),
    (mapping("boolean"), "self.all(x, true)", 943718, 100, 302),
    (text, "self.contains('test')", 314574, 10, 5),
    (text, "self.startsWith('test')", 2, 15, 2),
    (text, "self.endsWith('test')", 2, 30, 2),
    (text, 'size(self + "hello") > size("hello")', 314578, 4, 7),
    (array("number"), "self[1] == 0.0", 2, 5000, 2),
    (array("string"), "self[1] == self[1]", 314577, 8, 314577),
    (text, 'self.matches("x")', 314574, 50, 22),
    (text, '"".matches("(((((((((())))))))))[0-9]")', 7, 10, 7),
    (text, 'self.matches("")', 1, 100, 1),
    (text_by_name, "self.all(x, x.contains(self[x]))", 2752507, 10, 72),
    (mapping("number"), 'self["x"] == 0.0', 2, 0, 2),
    (text, 'self == "x"', 2, 0, 1),
    (octets, 'self == b"x"', 2, 0, 1),
    (array("number"), "self.all(x, x == 0.0)", 6291454, 3 * 1024 * 2048, 25165826),
    (array_of(mapping_of(OBJECT)(None)), 'self.all(x, x["y"].required == "z")', 7340027, 10, 72),
    (array("int-or-string"), "self.all(x, true)", 4718591, 10, 32),
    (array("int-or-string"), "self[0] == 5", 3, 10, 3),
    (array("boolean"), "self[0] == false", 2, 25, 2),
    (array_of(OBJECT), "self[0] == null", 2, 422, 2),
    (array_of(array("number")(None)), "self[0][0] == -1.0", 3, 51, 3),
    (array_of(mapping("number")(None)), "self.all(x, x.y == 25.2)", 6291452, 12, 74),
    (array_of(mapping("number")(None)), "self[0].x > 2.0", 4, 3000, 4),
    (array("duration"), "self.all(x, true)", 2359295, 5, 17),
    (array("duration"), "self[0].getHours() == 2", 4, 525, 4),
    (array("date"), "self.all(x, true)", 725936, 15, 47),
    (array("date"), "self[2].getDayOfMonth() == 13", 4, 42, 4),
    (array("date-time"), "self.all(x, true)", 428963, 25, 77),
    (array("date-time"), "self[2].getMinutes() == 45", 4, 99, 4),
    (mapping("int-or-string"), "self.all(x, true)", 1348169, 15, 47),
    (mapping_of(OBJECT), "self.all(x, true)", 428963, 20, 62),
    (mapping_of(mapping("number")(None)), "self.all(x, true)", 1179647, 10, 32),
    (mapping_of(array("number")(None)), "self.all(x, true)", 1179647, 25, 77),
    (mapping("duration"), "self.all(x, true)", 1048577, 5, 17),
    (mapping("date"), "self.all(x, true)", 524288, 10, 32),
    (mapping("date-time"), "self.all(x, true)", 349526, 25, 77),
    (text, "self.find('[0-9]+') == ''", 629147, 10, 11),
    (texts, "self.join(' ') == 'aa bb'", 329853068905, 10, 43),
    (texts, "self.isSorted() == true", 329854432052, 10, 52),
    (
        fields(before=lambda _: text(2), after=lambda _: text(4), str=text),
        "self.str.replace(self.before, self.after) == 'does not matter'",
        629154,
        4,
        12,
    ),
    (fields(str=text, separator=text), "self.str.split(self.separator) == []", 629160, 10, 22),
    (text, "self.lowerAscii() == 'lower!'", 314575, 10, 6),
    (mapping("integer"), "oldSelf.size() == self.size()", 5, 10, 5),
    (mapping("date-time"), 'self["a"] == self["b"]', 8, 7, 8),
    (mapping("duration"), 'self["c"] == self["d"]', 8, 42, 8),
    (lambda limit: {**text(limit), "enum": ["A", "B", "LongValue"]}, "self.contains('A')", 2, 1000, 401),
)
def test_the_cost_follows_from_the_limits_of_the_schema(
    make: Make, rule: str, unlimited: int, limit: int, limited: int
) -> None:
    assert cost(make(None), rule) == unlimited
    assert cost(make(limit), rule) == limited


@cases(("self.all(x, self.all(y, true))", 352), ("self.all(x, self.all(y, self.all(z, true)))", 3552))
def test_loops_in_loops_multiply(rule: str, limited: int) -> None:
    assert cost(array("number")(10), rule) == limited
    assert cost(array("number")(None), rule) > 1_000_000 * limited


@cases(
    ("self.exists(x, x == 'a')", 1 + 1 + 20 * 6),
    ("self.exists_one(x, x == 'a')", 1 + 2 + 20 * 4),
    ("self.map(x, x).size() == 1", 1 + 10 + 1 + 20 * 13 + 1 + 1),
    ("self.filter(x, x == 'a').size() == 1", 1 + 10 + 1 + 20 * 15 + 1 + 1),
    ("self.all(i, x, i < 3)", 1 + 1 + 20 * 5),
    ("'a' in self", 1 + 20),
    ("sets.contains(self, ['a', 'b'])", 1 + 10 + 40 + 1),
    ("sets.equivalent(self, ['a', 'b'])", 1 + 10 + 80 + 1),
    ("size(self) > 1 ? self == oldSelf : true", 1 + 1 + 1 + 4),
    ("dyn(self) == self", 1 + 1 + 1 + 2),
    ("quantity(self[0]) == quantity('1')", 5),
    ("ip(self[0]).family() == 4", 1 + 1 + 1 + 1 + 1),
    ("cidr('10.0.0.0/8').containsIP(self[0])", 1 + 2 + 4 + 4),
    ("!format.dns1123Label().validate(self[0]).hasValue()", 1 + 2 + 128 + 1 + 1),
    ("url(self[0]).getHost() == 'x'", 2 + 4 + 1 + 1),
)
def test_each_function_and_macro_has_its_weight(rule: str, expected: int) -> None:
    assert cost(array_of(text(10))(20), rule) == expected


def test_an_optional_old_value_is_of_unknown_size_and_what_it_is_compared_with_bounds_the_cost() -> None:
    assert cost(text(10), "!oldSelf.hasValue() || oldSelf.value() == self", optional_old=True) == 10


QUADRATIC = "self.all(x, self.all(y, x != y))"


def crd_errors(place: Obj, rule: Obj) -> list[str]:
    schema = {"type": "object", "properties": {"spec": {**place, "x-kubernetes-validations": [rule]}}}
    assert structural_errors(schema, "s") == []
    return [str(error) for error in rule_errors(compile_schema(schema), "s")]


ADVICE = "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"  # noqa: E501
RULE = "s.properties[spec].x-kubernetes-validations[0].rule: Forbidden:"


@cases(
    (texts(64), QUADRATIC),
    (texts(100), "self.all(x, self.exists_one(y, x == y))"),
    (array("string")(None), "self.all(x, size(x) < 100)"),
    (text(None), "self.matches('^[a-z]+$')"),
    (array_of(fields(name=lambda _: text(63))(None))(16), "self.all(a, self.exists_one(b, a.name == b.name))"),
    (mapping("string")(None), "size(self) < 10"),
    (array("integer")(None), "self.sum() < 100"),
    ({**OBJECT, "type": "object"}, "self == oldSelf"),
)
def test_rules_with_enough_limits_are_accepted(place: Obj, rule: str) -> None:
    assert crd_errors(place, {"rule": rule}) == []


@cases(
    (texts(None), QUADRATIC, "more than 100x"),
    (array("number")(None), "self.all(x, x == 0.0) && self.all(x, x == 1.0)", "1.258291x"),
    (array("string")(None), "self.all(x, x.matches('^[a-z]+$'))", "more than 100x"),
    (texts(4096), "self.all(x, self.exists(y, x == y))", "more than 100x"),
    (texts(700), QUADRATIC, "14.0x"),
)
def test_a_rule_over_the_limit_is_refused_with_the_factor(place: Obj, rule: str, factor: str) -> None:
    errors = crd_errors(place, {"rule": rule})
    assert f"{RULE} estimated rule cost exceeds budget by factor of {factor} {ADVICE}" in errors


HOSTNAME = {"type": "string", "minLength": 1, "maxLength": 253}
LISTENERS = {
    "type": "array",
    "maxItems": 64,
    "items": {
        "type": "object",
        "required": ["name", "port", "protocol"],
        "properties": {
            "name": HOSTNAME,
            "hostname": HOSTNAME,
            "port": {"type": "integer"},
            "protocol": {"type": "string", "maxLength": 255},
        },
    },
}


@cases(
    "self.all(l, l.protocol in ['HTTP', 'TCP', 'UDP'] ? !has(l.hostname) || l.hostname != '*' : true)",
    "self.all(l1, self.exists_one(l2, l1.name == l2.name))",
    "self.all(l1, self.exists_one(l2, l1.port == l2.port && l1.protocol == l2.protocol && (has(l1.hostname) && "
    "has(l2.hostname) ? l1.hostname == l2.hostname : !has(l1.hostname) && !has(l2.hostname))))",
)
def test_rules_as_those_of_gateways_fit_because_their_lists_are_limited(rule: str) -> None:
    assert crd_errors(LISTENERS, {"rule": rule}) == []
    unlimited = {**LISTENERS, "maxItems": 100_000}
    assert any("estimated rule cost" in error for error in crd_errors(unlimited, {"rule": rule})) == ("l2" in rule)


def test_what_all_rules_together_cost_is_limited_too_and_the_four_most_expensive_are_named() -> None:
    rule = {"rule": "self.all(x, x.startsWith('a'))"}
    children = {f"f{i}": {**texts(None), "x-kubernetes-validations": [rule] * (4 + (i == 0))} for i in range(6)}
    schema = {"type": "object", "properties": children}
    errors = [str(error) for error in rule_errors(compile_schema(schema), "s")]
    contributed = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
    assert [error.endswith(contributed) for error in errors] == [True] * 4 + [False]
    what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
    assert errors[-1] == f"s: Forbidden: {what} exceeds budget by factor of 1.310719x {ADVICE}"


def test_a_rule_below_a_list_counts_once_for_each_item() -> None:
    item = {**text(1000), "x-kubernetes-validations": [{"rule": "self.contains(oldSelf) || self.contains('a')"}]}

    def errors(limit: int | None) -> list[str]:
        items = _with({"type": "array", "items": item}, "maxItems", limit)
        schema = {"type": "object", "properties": {"spec": items}}
        return [str(error) for error in rule_errors(compile_schema(schema), "s") if "cost" in str(error)]

    assert errors(10) == []
    assert "by factor of 3.2x" in errors(200)[0]
    assert "by factor of more than 100x" in errors(None)[0]


def test_a_message_that_costs_too_much_is_refused() -> None:
    expression = "self.map(x, self.map(y, x + y).join(',')).join(',')"
    errors = crd_errors(texts(None), {"rule": "size(self) < 10", "messageExpression": expression})
    path = "s.properties[spec].x-kubernetes-validations[0].messageExpression"
    assert errors[0].startswith(f"{path}: Forbidden: estimated messageExpression cost exceeds budget")


def test_rules_with_wrong_attributes_are_not_compiled() -> None:
    place = {"type": "integer", "x-kubernetes-validations": [{"rule": "self + "}, {"rule": ""}]}
    schema = {"type": "object", "properties": {"spec": place}}
    errors = [str(error) for error in rule_errors(compile_schema(schema), "s")]
    assert errors == [
        "s.properties[spec].x-kubernetes-validations[1].rule: Required value: rule is not specified",
    ]
