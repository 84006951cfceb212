"""Expressions: what they mean, what is refused when they are compiled, and what fails when they run."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karmada.kube.schema.cel import BudgetExceeded, CelError, CompileError, compile_expression
from karmada.kube.schema.cel.program import Program
from karmada.kube.schema.cel.types import INT, STRING, list_of
from karmada.kube.schema.cel.values import Duration, MapList, Opt, SetList, Timestamp
from tests.support.cases import cases

SELF: dict[str, Any] = {
    "n": 3,
    "ratio": 2.5,
    "name": "hello",
    "on": True,
    "none": None,
    "list": [1, 2, 3],
    "labels": {"a": "1", "b": "2"},
    "ports": [{"name": "http", "port": 80}, {"name": "https", "port": 443}],
}


def run(text: str, **more: Any) -> Any:
    bindings = {"self": SELF, **more}
    value = compile_expression(text, set(bindings)).evaluate(bindings)
    if isinstance(value, Opt):
        return ("some", value.get()) if value.present else "none"
    return str(value) if isinstance(value, Timestamp | Duration) else value


@cases(
    # literals
    ("0x1F", 31),
    ("-5", -5),
    ("1e3", 1000.0),
    (".5", 0.5),
    ("5u", 5),
    ("'a\\n\\x41\\u00e9'", "a\nAé"),
    ("r'\\n'", "\\n"),
    ('"""x"y"""', 'x"y'),
    ("b'\\xff'", b"\xff"),
    ("// note\n1", 1),
    ("'\\101'", "A"),
    # arithmetic
    ("7 / 2", 3),
    ("-7 / 2", -3),
    ("-7 % 3", -1),
    ("7 % -3", 1),
    ("1.0 / 0.0", float("inf")),
    ("2 + 3 * 4", 14),
    ("(2 + 3) * 4", 20),
    ("-(1 + 2)", -3),
    ("!!true", True),
    ("5u - 3u", 2),
    ("10 - 2 - 3", 5),
    # comparison and logic
    ("1 < 2 && 2 < 3", True),
    ("1 < 1.5", True),
    ("2u > 1", True),
    ("'a' < 'b'", True),
    ("dyn(1) == 1.0", True),
    ("dyn(true) == 1", False),
    ("[1, 2] == [1, 2]", True),
    ("{'a': [1]} == {'a': [1]}", True),
    ("null == null", True),
    ("self.none == null", True),
    ("self.n != null", True),
    ("true || 1 / 0 == 1", True),
    ("1 / 0 == 1 || true", True),
    ("false && 1 / 0 == 1", False),
    ("1 / 0 == 1 && false", False),
    ("true ? 1 : 2", 1),
    ("false ? 1 : true ? 2 : 3", 2),
    ("1 in [1, 2]", True),
    ("'a' in self.labels", True),
    ("4 in self.list", False),
    # fields, indexes, has
    ("self.n", 3),
    ("self['name']", "hello"),
    ("self.list[1]", 2),
    ("self.ports[1].port", 443),
    ("has(self.n)", True),
    ("has(self.gone)", False),
    ("{'a': 1}.a", 1),
    ("[1, 2].size()", 2),
    ("size('héé')", 3),
    ("self.labels.size()", 2),
    # macros
    ("self.ports.all(p, p.port > 0)", True),
    ("self.ports.exists(p, p.name == 'http')", True),
    ("self.list.exists_one(x, x > 2)", True),
    ("self.list.existsOne(x, x > 1)", False),
    ("self.list.map(x, x * 2)", [2, 4, 6]),
    ("self.list.map(x, x > 1, x * 2)", [4, 6]),
    ("self.list.filter(x, x != 2)", [1, 3]),
    ("self.labels.all(k, k != '')", True),
    ("self.labels.map(k, self.labels[k])", ["1", "2"]),
    ("[[1], [2]].all(x, x.exists(y, y > 0))", True),
    ("[1, 0].exists(x, 1 / x == 1)", True),
    ("[0, 2].all(x, 1 / x == 1)", False),
    ("self.list.all(i, v, v == i + 1)", True),
    ("self.labels.exists(k, v, k == 'b' && v == '2')", True),
    ("self.list.transformList(i, v, i * v)", [0, 2, 6]),
    ("self.list.transformList(i, v, i > 0, v)", [2, 3]),
    ("self.labels.transformMap(k, v, v + k)", {"a": "1a", "b": "2b"}),
    ("self.labels.transformMap(k, v, k == 'a', int(v))", {"a": 1}),
    ("self.labels.transformMapEntry(k, v, {v: k})", {"1": "a", "2": "b"}),
    ("[5, 6].transformMap(i, v, v)", {0: 5, 1: 6}),
    ("cel.bind(x, self.n, x + x)", 6),
    ("[1].all(self, self == 1)", True),
    ("cel.bind(x, 1, cel.bind(x, x + 1, x)) + 1", 3),
    # conversions
    ("int('42')", 42),
    ("int(2.9)", 2),
    ("int(-2.9)", -2),
    ("uint(3)", 3),
    ("double('1.5')", 1.5),
    ("string(1.0)", "1"),
    ("string(true)", "true"),
    ("string(b'ab')", "ab"),
    ("bytes('é')", b"\xc3\xa9"),
    ("bool('true')", True),
    ("type(1) == int", True),
    ("type('a') == string", True),
    ("type(self.list) == list", True),
    ("int(timestamp('1970-01-01T00:01:00Z'))", 60),
    # time
    ("string(timestamp('2020-01-02T03:04:05.5Z'))", "2020-01-02T03:04:05.5Z"),
    ("string(duration('90s'))", "90s"),
    ("timestamp('2020-01-01T00:00:00Z') + duration('1h')", "2020-01-01T01:00:00Z"),
    ("timestamp('2020-01-01T02:00:00+02:00') == timestamp('2020-01-01T00:00:00Z')", True),
    ("timestamp('2020-03-01T00:00:00Z') - timestamp('2020-02-28T00:00:00Z')", "172800s"),
    ("timestamp('2021-12-31T23:59:58Z').getFullYear()", 2021),
    ("timestamp('2021-12-31T23:59:58Z').getMonth()", 11),
    ("timestamp('2021-12-31T23:59:58Z').getDayOfWeek()", 5),
    ("timestamp('2021-12-31T23:59:58Z').getDate()", 31),
    ("timestamp('2021-12-31T23:59:58Z').getHours('+02:00')", 1),
    ("duration('3h').getMinutes()", 180),
    ("timestamp('2021-12-31T23:59:58.25Z').getMilliseconds()", 250),
    ("duration('1.5s').getMilliseconds()", 500),
    # optionals
    ("self.?n.orValue(0)", 3),
    ("self.?gone.orValue(7)", 7),
    ("self.?gone.?deep.hasValue()", False),
    ("self.list[?9].orValue(0)", 0),
    ("self.list[?0].value()", 1),
    ("self.labels[?'a']", ("some", "1")),
    ("self.?n.optMap(x, x + 1)", ("some", 4)),
    ("self.?gone.optMap(x, x + 1)", "none"),
    ("self.?n.optFlatMap(x, optional.of(x * 2)).value()", 6),
    ("optional.none().or(optional.of(1)).value()", 1),
    ("optional.ofNonZeroValue('').hasValue()", False),
    ("[?self.?gone, ?self.?n]", [3]),
    ("{?'a': self.?gone, 'b': 1}", {"b": 1}),
    ("has(self.?gone.deep)", False),
    ("optional.of(1) == optional.of(1)", True),
)
def test_an_expression_gives(text: str, expected: Any) -> None:
    value = run(text)
    assert value == expected
    assert isinstance(value, bool) is isinstance(expected, bool)


@cases(
    ("'a,b,c'.split(',')", ["a", "b", "c"]),
    ("'a,b,c'.split(',', 2)", ["a", "b,c"]),
    ("'abc'.split('')", ["a", "b", "c"]),
    ("['a', 'b'].join('-')", "a-b"),
    ("['a', 'b'].join()", "ab"),
    ("'AbC'.lowerAscii()", "abc"),
    ("'abcé'.upperAscii()", "ABCé"),
    ("'hello'.replace('l', 'L')", "heLLo"),
    ("'hello'.replace('l', 'L', 1)", "heLlo"),
    ("'hello'.substring(1, 3)", "el"),
    ("'hello'.substring(2)", "llo"),
    ("'  x '.trim()", "x"),
    ("'hello'.indexOf('l')", 2),
    ("'hello'.indexOf('l', 3)", 3),
    ("'hello'.lastIndexOf('l')", 3),
    ("'hello'.charAt(4)", "o"),
    ("'hello'.charAt(5)", ""),
    ("strings.quote('a\"b')", '"a\\"b"'),
    ("'hello'.contains('ell')", True),
    ("'hello'.startsWith('he')", True),
    ("'hello'.endsWith('lo')", True),
    ("'hello'.matches('^h.*o$')", True),
    ("matches('hello', 'l{2}')", True),
    ("'abc'.reverse()", "cba"),
    ("'%s %d %.2f %x %X %o %b %%'.format(['a', 5, 1.5, 255, 255, 8, 5])", "a 5 1.50 ff FF 10 101 %"),
    ("'%s'.format([[1, 2]])", "[1, 2]"),
    ("'%s'.format([{'a': 1}])", "{a: 1}"),
    ("'%e'.format([1234.5])", "1.234500e+03"),
    ("'%s %s'.format([true, null])", "true null"),
    ("'v1.2'.find('[0-9]+')", "1"),
    ("'none'.find('[0-9]+')", ""),
    ("'a1b22'.findAll('[0-9]+')", ["1", "22"]),
    ("'a1b22c3'.findAll('[0-9]+', 2)", ["1", "22"]),
    ("[1, 2, 3].sum()", 6),
    ("[1.5, 2.5].sum()", 4.0),
    ("[3, 1, 2].min()", 1),
    ("['b', 'a'].max()", "b"),
    ("[1, 2, 2].isSorted()", True),
    ("[2, 1].isSorted()", False),
    ("[1, 2, 1].indexOf(1)", 0),
    ("[1, 2, 1].lastIndexOf(1)", 2),
    ("['a'].indexOf('z')", -1),
    ("[].sum() == 0", True),
    ("sets.contains([1, 2], [2])", True),
    ("sets.equivalent([1, 2, 2], [2, 1])", True),
    ("sets.intersects([1], [2])", False),
    ("url('https://u@example.com:8443/a%20b?x=1&x=2').getHost()", "example.com:8443"),
    ("url('https://[::1]:80/p').getHostname()", "::1"),
    ("url('https://example.com/a b'.replace(' ', '%20')).getEscapedPath()", "/a%20b"),
    ("url('https://example.com/?x=1&x=2').getQuery()", {"x": ["1", "2"]}),
    ("url('/only/path').getHost()", ""),
    ("url('http://h:81').getPort()", "81"),
    ("url('http://h').getScheme()", "http"),
    ("isURL('not a url')", False),
    ("ip('127.0.0.1').family()", 4),
    ("ip('::1').isLoopback()", True),
    ("isIP('1.2.3.4.5')", False),
    ("isIP('::ffff:1.2.3.4')", False),
    ("ip.isCanonical('::1')", True),
    ("ip.isCanonical('0:0::1')", False),
    ("string(ip('10.0.0.1'))", "10.0.0.1"),
    ("ip('8.8.8.8').isGlobalUnicast()", True),
    ("ip('169.254.0.1').isLinkLocalUnicast()", True),
    ("ip('ff02::1').isLinkLocalMulticast()", True),
    ("cidr('10.0.0.0/8').containsIP('10.1.2.3')", True),
    ("cidr('10.0.0.0/8').containsIP(ip('11.0.0.1'))", False),
    ("cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')", True),
    ("cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8')", True),
    ("cidr('10.0.0.0/8').prefixLength()", 8),
    ("string(cidr('10.0.0.0/8').ip())", "10.0.0.0"),
    ("isCIDR('10.0.0.0/33')", False),
    ("quantity('1Gi').isGreaterThan(quantity('1G'))", True),
    ("quantity('500m').add(quantity('0.5')) == quantity('1')", True),
    ("quantity('2').sub(1).asInteger()", 1),
    ("quantity('1.5').isInteger()", False),
    ("quantity('-1').sign()", -1),
    ("quantity('50k').asApproximateFloat()", 50000.0),
    ("isQuantity('1x')", False),
    ("quantity('1').compareTo(quantity('1000m'))", 0),
    ("semver('1.2.3').isLessThan(semver('1.10.0'))", True),
    ("semver('1.0.0-rc.1').compareTo(semver('1.0.0'))", -1),
    ("semver('v1.2', true).patch()", 0),
    ("isSemver('v1.2.3')", False),
    ("isSemver('01.2', true)", True),
    ("semver('1.2.3').major()", 1),
    ("format.dns1123Label().validate('ok').hasValue()", False),
    ("format.dns1123Label().validate('No').hasValue()", True),
    ("format.named('uuid').value().validate('x').value()", ["does not match the UUID format"]),
    ("format.named('nothing').hasValue()", False),
    ("!format.date().validate('2020-02-30').hasValue()", False),
    ("format.dns1123LabelPrefix().validate('a-').hasValue()", False),
)
def test_a_library_function_gives(text: str, expected: Any) -> None:
    value = run(text)
    assert value == expected
    assert isinstance(value, bool) is isinstance(expected, bool)


@cases(
    ("self.gone", "no such key: gone"),
    ("self.list[7]", "index out of bounds: 7"),
    ("1 / 0", "division by zero"),
    ("1 % 0", "modulus by zero"),
    ("9223372036854775807 + 1", "integer overflow"),
    ("-9223372036854775808 / -1", "integer overflow"),
    ("0u - 1u", "unsigned integer overflow"),
    ("self.name + self.n", "no such overload"),
    ("self.n ? 1 : 2", "no such overload"),
    ("self.name.port", "no such overload"),
    ("int('x')", 'type conversion error from "x" to int'),
    ("'abc'.substring(5)", "index out of range: 5"),
    ("[1, 2].all(x, 1 / (x - 1) > 0)", "division by zero"),
    ("optional.none().value()", "optional.none() dereference"),
    ("{'a': 1, 'a': 2}", "Failed with repeated key: a"),
    ("'x'.matches('(')", "error parsing regexp"),
    ("[].min() == 1", "min called on empty list"),
    ("timestamp('yesterday')", "invalid timestamp"),
    ("duration('5 minutes')", "time: unknown unit"),
    ("quantity('x')", "quantities must match"),
    ("'%d'.format(['a'])", "error during formatting"),
    ("self.list.all(x, x)", "no such overload"),
)
def test_evaluation_fails_with(text: str, message: str) -> None:
    with pytest.raises(CelError) as caught:
        run(text)
    assert message in str(caught.value)


@cases(
    ("self.", "Syntax error"),
    ("1 +", "Syntax error"),
    ("(1", "Syntax error: missing ')' at '<EOF>'"),
    ("'open", "token recognition error"),
    ("a.b", "undeclared reference to 'a'"),
    ("nope(1)", "undeclared reference to 'nope'"),
    ("'x'.nope()", "undeclared reference to 'nope'"),
    ("1 + 'a'", "found no matching overload for '_+_' applied to '(int, string)'"),
    ("1 == 'a'", "found no matching overload for '_==_' applied to '(int, string)'"),
    ("!1", "found no matching overload for '!_'"),
    ("true && 1", "found no matching overload for '_&&_' applied to '(bool, int)'"),
    ("true ? 1 : 'a'", "found no matching overload for '_?_:_'"),
    ("'a'.size('b')", "found no matching overload for 'size' applied to 'string.(string)'"),
    ("[1, 'a']", "expected type 'int' but found 'string'"),
    ("'x'.y", "type 'string' does not support field selection"),
    ("1.all(x, x)", "cannot be range of a comprehension"),
    ("[1].all(x, x)", "expected type 'bool' but found 'int'"),
    ("has(self)", "invalid argument to has() macro"),
    ("[1].all(x.y, true)", "argument must be a simple name"),
    ("Foo{a: 1}", "undeclared reference to 'Foo' (in container '')"),
    ("if", "reserved identifier: if"),
    ("99999999999999999999", "invalid int literal"),
    ("'\\q'", "unable to unescape string"),
    ("[1].all(x, true) && x", "undeclared reference to 'x'"),
)
def test_compilation_refuses(text: str, message: str) -> None:
    with pytest.raises(CompileError) as caught:
        compile_expression(text, {"self"})
    assert message in str(caught.value)


def test_a_fault_is_shown_with_its_place() -> None:
    with pytest.raises(CompileError) as caught:
        compile_expression("1 == 1 &&\n  nope", {"self"})
    assert (
        str(caught.value) == "ERROR: <input>:2:3: undeclared reference to 'nope' (in container '')\n |   nope\n | ..^"
    )


def test_all_faults_are_reported_at_once() -> None:
    with pytest.raises(CompileError) as caught:
        compile_expression("one + two", set())
    assert str(caught.value).count("ERROR:") == 2


def test_nested_loops_stop_when_the_budget_is_used_up() -> None:
    program = compile_expression("l.all(a, l.all(b, l.all(c, l.all(d, a + b + c + d >= 0))))", {"l"})
    with pytest.raises(BudgetExceeded):
        program.evaluate({"l": list(range(100))}, budget=10_000)


def test_growing_text_uses_up_the_budget() -> None:
    program = compile_expression("cel.bind(a, x + x, cel.bind(b, a + a, cel.bind(c, b + b, c + c)))", {"x"})
    with pytest.raises(BudgetExceeded):
        program.evaluate({"x": "y" * 100_000}, budget=1_000)


def test_an_error_does_not_hide_an_exceeded_budget() -> None:
    program = compile_expression("l.all(a, l.all(b, true)) || true", {"l"})
    with pytest.raises(BudgetExceeded):
        program.evaluate({"l": list(range(100))}, budget=50)


def test_deep_nesting_is_refused_instead_of_overflowing_the_stack() -> None:
    with pytest.raises(CompileError, match="nested too deeply"):
        compile_expression("(" * 5000 + "1" + ")" * 5000, set())


def test_a_program_reports_which_variables_it_uses() -> None:
    program = compile_expression("self.list.all(oldSelf, oldSelf > 0)", {"self", "oldSelf"})
    assert program.uses == {"self"}


def test_a_variable_that_is_not_bound_is_an_error_only_when_it_is_used() -> None:
    assert compile_expression("a == 1", {"a", "b"}).evaluate({"a": 1}) is True
    with pytest.raises(CelError, match=r"no such attribute\(s\): b"):
        compile_expression("b == 1", {"a", "b"}).evaluate({"a": 1})


def test_sets_and_map_like_lists_compare_without_order_and_unite_by_key() -> None:
    a, b = SetList([1, 2]), SetList([2, 1])
    assert run("a == b", a=a, b=b) is True
    assert run("a + b", a=SetList([1, 2]), b=[2, 3]) == [1, 2, 3]
    first = MapList([{"k": "x", "v": 1}, {"k": "y", "v": 2}], ("k",))
    second = MapList([{"k": "y", "v": 2}, {"k": "x", "v": 1}], ("k",))
    assert run("a == b", a=first, b=second) is True
    assert run("a + b", a=first, b=[{"k": "y", "v": 3}]) == [{"k": "x", "v": 1}, {"k": "y", "v": 3}]
    assert run("a == b", a=[1, 2], b=[2, 1]) is False


def test_types_are_checked_through_lists() -> None:
    variables = {"names": list_of(STRING), "n": INT}
    assert Program("names.all(x, x.size() < n)", variables).evaluate({"names": ["a"], "n": 2}) is True
    with pytest.raises(CompileError, match="applied to '\\(string, int\\)'"):
        Program("names.all(x, x < n)", variables)


@given(st.integers(-(2**62), 2**62), st.integers(-(2**31), 2**31).filter(bool))
def test_quotient_and_remainder_belong_together(a: int, b: int) -> None:
    assert run("a / b * b + a % b == a", a=a, b=b) is True


_json = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(_json, _json)
def test_equality_is_reflexive_and_symmetric_and_never_fails(a: Any, b: Any) -> None:
    assert run("a == a", a=a) is True
    assert run("a == b", a=a, b=b) is run("b == a", a=a, b=b)
    assert run("a != b", a=a, b=b) is not run("a == b", a=a, b=b)


@given(st.text(max_size=20))
def test_a_quoted_text_reads_back(text: str) -> None:
    quoted = run("strings.quote(x)", x=text)
    if not any(ord(char) < 32 and char not in "\a\b\f\n\r\t\v" for char in text) and "\x85" not in text:
        assert run(quoted) == text


@given(st.text(max_size=40))
def test_any_text_either_compiles_or_is_refused(text: str) -> None:
    try:
        message = compile_expression(text, {"self"}) and "ERROR: <input>:"
    except CompileError as error:
        message = str(error)
    assert message.startswith("ERROR: <input>:")
