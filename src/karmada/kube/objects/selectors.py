"""Label and field selectors: parse, match, print.

A label selector is a list of requirements that all must hold. The equalities, by far the most common, are checked
first and without a call per requirement; the rest become one small function each when the selector is made.
Parse errors read as Kubernetes words them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from karmada.kube.objects import errors, names

Labels = Mapping[str, str]

_NO_LABELS: dict[str, str] = {}


class LabelRequirement(NamedTuple):
    """`op` is one of = == != in notin exists ! gt lt; `values` are sorted."""

    key: str
    op: str
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        before, after = _PRINTED[self.op]
        if self.op in ("in", "notin"):
            return f"{self.key} {self.op} ({','.join(self.values)})"
        return f"{before}{self.key}{after}{''.join(self.values)}"


_PRINTED = {
    "=": ("", "="), "==": ("", "=="), "!=": ("", "!="), "gt": ("", ">"), "lt": ("", "<"),
    "in": ("", ""), "notin": ("", ""), "exists": ("", ""), "!": ("!", ""),
}  # fmt: skip


class LabelSelector:
    """Requirements that all must hold; with none, everything matches, unless the selector is `NOTHING`."""

    __slots__ = ("_equal", "_nothing", "_others", "requirements")

    def __init__(self, requirements: Sequence[LabelRequirement] = (), *, nothing: bool = False) -> None:
        self.requirements = tuple(sorted(requirements, key=lambda requirement: requirement.key))
        self._nothing = nothing
        equal: list[tuple[str, str]] = []
        others: list[Callable[[Labels], bool]] = []
        for requirement in self.requirements:
            if requirement.op in _EQUALITIES or (requirement.op == "in" and len(requirement.values) == 1):
                equal.append((requirement.key, requirement.values[0]))
            else:
                others.append(_MATCHERS[requirement.op](requirement.key, requirement.values))
        self._equal = tuple(equal)
        self._others = tuple(others)

    def matches(self, labels: Labels | None) -> bool:
        if self._nothing:
            return False
        have = _NO_LABELS if labels is None else labels
        for key, value in self._equal:
            if have.get(key) != value:
                return False
        for test in self._others:  # noqa: SIM110 (a loop is twice as fast as all() here)
            if not test(have):
                return False
        return True

    @property
    def everything(self) -> bool:
        return not self.requirements and not self._nothing

    @property
    def nothing(self) -> bool:
        return self._nothing

    @property
    def equalities(self) -> tuple[tuple[str, str], ...]:
        """Key and value pairs that every match has: what an index can look up."""
        return self._equal

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))

    def __repr__(self) -> str:
        return f"LabelSelector({str(self)!r})" if not self._nothing else "LabelSelector(nothing)"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LabelSelector):
            return NotImplemented
        return self.requirements == other.requirements and self._nothing == other._nothing

    def __hash__(self) -> int:
        return hash((self.requirements, self._nothing))


def _absent_or_other(key: str, values: tuple[str, ...]) -> Callable[[Labels], bool]:
    if len(values) == 1:
        value = values[0]
        return lambda labels: labels.get(key) != value
    forbidden = frozenset(values)
    return lambda labels: labels.get(key) not in forbidden


def _one_of(key: str, values: tuple[str, ...]) -> Callable[[Labels], bool]:
    allowed = frozenset(values)
    return lambda labels: labels.get(key) in allowed


def _greater(key: str, values: tuple[str, ...]) -> Callable[[Labels], bool]:
    bound = int(values[0])
    return lambda labels: (number := _int64(labels.get(key))) is not None and number > bound


def _less(key: str, values: tuple[str, ...]) -> Callable[[Labels], bool]:
    bound = int(values[0])
    return lambda labels: (number := _int64(labels.get(key))) is not None and number < bound


_EQUALITIES = ("=", "==")
_MATCHERS: dict[str, Callable[[str, tuple[str, ...]], Callable[[Labels], bool]]] = {
    "!=": _absent_or_other,
    "in": _one_of,
    "notin": _absent_or_other,
    "exists": lambda key, _: lambda labels: key in labels,
    "!": lambda key, _: lambda labels: key not in labels,
    "gt": _greater,
    "lt": _less,
}

_INTEGER = re.compile("[+-]?[0-9]{1,30}").fullmatch


def _int64(text: str | None) -> int | None:
    if text is None or not _INTEGER(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


EVERYTHING = LabelSelector()
NOTHING = LabelSelector(nothing=True)


# --- the text form ---------------------------------------------------------------------------------------------------

MOST_REQUIREMENTS = 64
"""Requirements of one selector, and characters of its text: each of them costs time for every object."""
LONGEST_TEXT = 8 * 1024

_TOKEN = re.compile(r"[ \t\r\n]*(?:(?P<mark>==|!=|[=!(),<>])|(?P<word>[^ \t\r\n=!(),<>]+)|$)")
_END = ("end", "")
_BINARY = {"=": "=", "==": "==", "!=": "!=", ">": "gt", "<": "lt"}
_Token = tuple[str, str]


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    for match in _TOKEN.finditer(text):
        if match["mark"]:
            found.append((match["mark"], match["mark"]))
        elif match["word"]:
            found.append(("word", match["word"]))
    found.append(_END)
    return found


class _Parser:
    def __init__(self, text: str) -> None:
        self.tokens = _tokens(text)
        self.at = 0

    def peek(self) -> _Token:
        return self.tokens[self.at]

    def take(self) -> _Token:
        token = self.tokens[self.at]
        if token is not _END:
            self.at += 1
        return token

    def selector(self) -> LabelSelector:
        requirements: list[LabelRequirement] = []
        kind, literal = self.peek()
        if kind not in ("word", "!", "end"):
            raise ValueError(f"found '{literal}', expected: !, identifier, or 'end of string'")
        while kind != "end":
            try:
                requirements.append(self.requirement())
            except ValueError as error:
                raise ValueError(f"unable to parse requirement: {error}") from None
            _check_number(len(requirements))
            kind, literal = self.take()
            if kind == ",":
                kind, literal = self.peek()
                if kind not in ("word", "!"):
                    raise ValueError(f"found '{literal}', expected: identifier after ','")
            elif kind != "end":
                raise ValueError(f"found '{literal}', expected: ',' or 'end of string'")
        return LabelSelector(requirements)

    def requirement(self) -> LabelRequirement:
        kind, literal = self.take()
        absent = kind == "!"
        if absent:
            kind, literal = self.take()
        if kind != "word":
            raise ValueError(f"found '{literal}', expected: identifier")
        if wrong := names.qualified_name(literal):
            raise ValueError(str(errors.invalid("<nil>", literal, "; ".join(wrong))))
        if absent:
            return LabelRequirement(literal, "!")
        if self.peek()[0] in ("end", ","):
            return LabelRequirement(literal, "exists")
        op = self.operator()
        values = self.value_set() if op in ("in", "notin") else {self.value()}
        return _checked(literal, op, values)

    def operator(self) -> str:
        kind, literal = self.take()
        if kind in _BINARY:
            return _BINARY[kind]
        if kind == "word" and literal in ("in", "notin"):
            return literal
        raise ValueError(f"found '{literal}', expected: in, notin, =, ==, !=, gt, lt")

    def value(self) -> str:
        if self.peek()[0] in ("end", ","):
            return ""
        kind, literal = self.take()
        if kind != "word":
            raise ValueError(f"found '{literal}', expected: identifier")
        return literal

    def value_set(self) -> set[str]:
        """Read "(a,b)"; an empty place between commas is the empty string, and so is nothing at all."""
        kind, literal = self.take()
        if kind != "(":
            raise ValueError(f"found '{literal}' expected: '('")
        kind, literal = self.peek()
        if kind == ")":
            self.take()
            return {""}
        if kind not in ("word", ","):
            raise ValueError(f"found '{literal}', expected: ',', ')' or identifier")
        values: set[str] = set()
        while True:
            values.add(self.set_member())
            kind, literal = self.take()
            if kind == ")":
                return values
            if kind != ",":
                raise ValueError(f"found '{literal}', expected: ',' or ')'")

    def set_member(self) -> str:
        kind, literal = self.peek()
        if kind in (",", ")"):
            return ""
        if kind != "word":
            raise ValueError(f"found '{literal}', expected: ',', or identifier")
        self.take()
        return literal


def _checked(key: str, op: str, given: set[str]) -> LabelRequirement:
    values = tuple(sorted(given))
    found: list[errors.FieldError] = []
    if op in ("in", "notin") and not values:
        found.append(errors.invalid("values", [], "for 'in', 'notin' operators, values set can't be empty"))
    if op in ("gt", "lt") and _int64(values[0]) is None:
        detail = "for 'Gt', 'Lt' operators, the value must be an integer"
        found.append(errors.invalid("values[0]", values[0], detail))
    for index, value in enumerate(values):
        if wrong := names.label_value(value):
            found.append(errors.invalid(f"values[{index}][{key}]", value, "; ".join(wrong)))
    if found:
        raise ValueError(str(found[0]) if len(found) == 1 else f"[{', '.join(map(str, found))}]")
    return LabelRequirement(key, op, values)


def _check_number(requirements: int) -> None:
    if requirements > MOST_REQUIREMENTS:
        raise ValueError(f"the selector has too many requirements: at most {MOST_REQUIREMENTS} are allowed")


def _check_length(text: str) -> None:
    if len(text) > LONGEST_TEXT:
        raise ValueError(f"the selector is too long: {len(text)} characters, at most {LONGEST_TEXT} are allowed")


@lru_cache(maxsize=1024)
def parse_labels(text: str) -> LabelSelector:
    """Return the selector of a labelSelector parameter; an empty text selects everything. Raises ValueError."""
    _check_length(text)
    return _Parser(text).selector() if text else EVERYTHING


# --- the object form -------------------------------------------------------------------------------------------------

_OBJECT_OPERATORS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}


def labels_from(selector: Mapping[str, Any] | None) -> LabelSelector:
    """From a metav1.LabelSelector: none selects nothing, an empty one everything. Raises ValueError."""
    if selector is None:
        return NOTHING
    pairs: Mapping[str, str] = selector.get("matchLabels") or _NO_LABELS
    requirements = [_from_object(key, "=", [value]) for key, value in pairs.items()]
    for expression in selector.get("matchExpressions") or ():
        operator = expression.get("operator", "")
        op = _OBJECT_OPERATORS.get(operator)
        if op is None:
            raise ValueError(f'"{operator}" is not a valid label selector operator')
        requirements.append(_from_object(expression.get("key", ""), op, expression.get("values") or []))
    return LabelSelector(requirements)


def _from_object(key: str, op: str, values: Sequence[str]) -> LabelRequirement:
    if wrong := names.qualified_name(key):
        raise ValueError(str(errors.invalid("key", key, "; ".join(wrong))))
    if op in ("exists", "!") and values:
        detail = "values set must be empty for exists and does not exist"
        raise ValueError(str(errors.invalid("values", list(values), detail)))
    return _checked(key, op, set(values))


def labels_from_map(labels: Labels | None) -> LabelSelector:
    """From a plain map (a Service's or ReplicationController's selector); an empty map selects nothing."""
    return LabelSelector([LabelRequirement(key, "=", (value,)) for key, value in labels.items()]) if labels else NOTHING


# --- field selectors -------------------------------------------------------------------------------------------------


class FieldRequirement(NamedTuple):
    path: str
    op: str
    value: str

    def __str__(self) -> str:
        return f"{self.path}{self.op}{_escape(self.value)}"


class FieldSelector:
    """Comparisons of fields, which the caller reads by path, with texts."""

    __slots__ = ("requirements",)

    def __init__(self, requirements: Sequence[FieldRequirement] = ()) -> None:
        self.requirements = tuple(requirements)

    def matches(self, get: Callable[[str], str]) -> bool:
        return all((get(path) == value) is (op == "=") for path, op, value in self.requirements)

    def exact(self, path: str) -> str | None:
        """Return the value that the field must have, if the selector names one."""
        for requirement in self.requirements:
            if requirement.path == path and requirement.op == "=":
                return requirement.value
        return None

    @property
    def everything(self) -> bool:
        return not self.requirements

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))

    def __repr__(self) -> str:
        return f"FieldSelector({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return self.requirements == other.requirements if isinstance(other, FieldSelector) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.requirements)


_TERM = re.compile(r"(?:[^\\,]|\\.|\\$)*", re.DOTALL)
_OPERATOR = re.compile(r"(?P<path>(?:[^\\=!]|\\.|!(?!=))*)(?P<op>==|!=|=)", re.DOTALL)
_ESCAPED = {"\\": "\\\\", ",": "\\,", "=": "\\="}
_ESCAPES = re.compile(r"[\\,=]")


def _escape(value: str) -> str:
    return _ESCAPES.sub(lambda match: _ESCAPED[match[0]], value)


def _unescape(value: str) -> str:
    if not _ESCAPES.search(value):
        return value
    result: list[str] = []
    characters = iter(value)
    for character in characters:
        if character == "\\":
            escaped = next(characters, "")
            if escaped not in _ESCAPED:
                raise ValueError(f"invalid field selector: invalid escape sequence: \\{escaped}")
            result.append(escaped)
        elif character in _ESCAPED:
            raise ValueError(f"invalid field selector: unescaped character in value: {ord(character)}")
        else:
            result.append(character)
    return "".join(result)


def _terms(text: str) -> list[str]:
    """Return the parts between commas that are not escaped."""
    found, at = [], 0
    while at <= len(text):
        match = _TERM.match(text, at)
        assert match is not None
        found.append(match[0])
        at = match.end() + 1
    return found


@lru_cache(maxsize=1024)
def parse_fields(text: str) -> FieldSelector:
    """Return the selector of a fieldSelector parameter, its parts in Kubernetes' order. Raises ValueError."""
    _check_length(text)
    requirements: list[FieldRequirement] = []
    for term in sorted(_terms(text)):
        if not term:
            continue
        _check_number(len(requirements) + 1)
        match = _OPERATOR.match(term)
        if match is None:
            raise ValueError(f"invalid selector: '{text}'; can't understand '{term}'")
        op = "!=" if match["op"] == "!=" else "="
        requirements.append(FieldRequirement(match["path"], op, _unescape(term[match.end() :])))
    return FieldSelector(requirements)
