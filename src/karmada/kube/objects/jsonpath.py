"""JSONPath as Kubernetes uses it in printer columns, scale paths, selectable fields and kubectl's templates.

One dialect, that of client-go: a path is parsed into steps, and each step maps values to the values it leads to. What
cannot be followed (an index out of bounds, a comparison of different types) is an error with client-go's text; a
missing field is one only where the caller wants it. `Path`, for the server, finds nothing in such cases, and paths of
plain fields, the usual case, walk dicts without steps. Templates around paths are in karmada.cli.output.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from karmada.kube.objects.go_values import go_type, go_value

Values = list[Any]
Step = Callable[[Values, bool], Values]
"""From values to values; whether missing fields are fine."""

_FIELD = re.compile(r"(?:\\.|[^\\\s.,\[\]$@{}])*")
IDENTIFIER = re.compile(r"\w+")
_NUMBER = re.compile(r"[-+]?[0-9]+(\.[0-9]+)?(?![\w.])")
_QUOTED = re.compile(r"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'")
_SLICE = re.compile(r"(-?[0-9]*)(:-?[0-9]*)?(:-?[0-9]*)?")
_OPERATION = re.compile(r"==|!=|<=|>=|<|>")
_UNESCAPE = re.compile(r"\\(.)")
_ESCAPE = re.compile(r"\\(?:([abfnrtv\\'\"])|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3}))")
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt,
}  # fmt: skip


class JSONPathError(ValueError):
    """The text is client-go's."""


def follow(steps: list[Step], values: Values, allow_missing: bool) -> Values:
    for step in steps:
        values = step(values, allow_missing)
    return values


# steps


class Field:
    """The step to a member of an object."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, values: Values, allow_missing: bool) -> Values:
        found = [value[self.name] for value in values if isinstance(value, dict) and self.name in value]
        if not found and not allow_missing:
            raise JSONPathError(f"{self.name} is not found")
        return found


def _children(value: Any) -> Values:
    if isinstance(value, dict):
        return [value[key] for key in sorted(value)]
    return value if isinstance(value, list) else []


def _wildcard(values: Values, _: bool) -> Values:
    return [child for value in values for child in _children(value)]


def _recursive(values: Values, _: bool) -> Values:
    found: Values = []

    def visit(value: Any) -> None:
        if isinstance(value, dict | list):
            found.append(value)
        for child in _children(value):
            visit(child)

    for value in values:
        visit(value)
    return found


def _slice_step(start: int | None, end: int | None, step_by: int, single: bool) -> Step:
    def step(values: Values, _: bool) -> Values:
        found: Values = []
        for value in values:
            if value is None:
                continue
            if not isinstance(value, list):
                raise JSONPathError(f"{go_type(value)} is not array or slice")
            found += _cut(value, start, end, step_by, single)
        return found

    return step


def _cut(value: list[Any], start: int | None, end: int | None, step_by: int, single: bool) -> list[Any]:
    length = len(value)
    first = (start or 0) + (length if (start or 0) < 0 else 0)
    if single:
        last = first + 1
    elif end is None:
        last = length
    else:
        last = end + length if end < 0 else end
    if first == last:
        return []
    for bound, index in ((first < 0 or first >= length, first), (last < 0 or last > length, last - 1)):
        if bound:
            raise JSONPathError(f"array index out of bounds: index {index}, length {length}")
    if first > last:
        raise JSONPathError(f"starting index {first} is greater than ending index {last}")
    return value[first:last:step_by]


def same(values: Values, _: bool) -> Values:
    return values


def _union(alternatives: list[list[Step]]) -> Step:
    def step(values: Values, allow_missing: bool) -> Values:
        return [found for steps in alternatives for found in follow(steps, values, allow_missing)]

    return step


def _constant(constant: Any) -> Step:
    return lambda values, _: [constant for _ in values]


def failing(message: str) -> Step:
    def step(_values: Values, _allow_missing: bool) -> Values:
        raise JSONPathError(message)

    return step


def _filter(left: list[Step], compare: str, right: list[Step]) -> Step:
    def passes(item: Any, allow_missing: bool) -> bool:
        if not compare:
            return bool(follow(left, [item], True))
        lefts, rights = follow(left, [item], allow_missing), follow(right, [item], allow_missing)
        if len(lefts) > 1 or len(rights) > 1:
            raise JSONPathError("can only compare one element at a time")
        return bool(lefts and rights) and _holds(lefts[0], compare, rights[0])

    def step(values: Values, allow_missing: bool) -> Values:
        found: Values = []
        for value in values:
            if value is None:
                continue
            if not isinstance(value, list):
                raise JSONPathError(f"{go_value(value)} is not array or slice and cannot be filtered")
            found += [item for item in value if passes(item, allow_missing)]
        return found

    return step


def _sort_of(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    return "number" if isinstance(value, int | float) else type(value).__name__


def _holds(left: Any, compare: str, right: Any) -> bool:
    if isinstance(left, dict | list) or isinstance(right, dict | list):
        raise JSONPathError("invalid type for comparison")
    if _sort_of(left) != _sort_of(right):
        raise JSONPathError("incompatible types for comparison")
    return _COMPARE[compare](left, right)


# the text


class Parser:
    """Reads the steps of a path; `at` is the position in the text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def quoted(self) -> str:
        match = _QUOTED.match(self.text, self.at)
        if match is None:
            raise JSONPathError("unterminated quoted string")
        self.at = match.end()
        return match[0]

    def step(self) -> list[Step]:
        text, at = self.text, self.at
        if text.startswith("..", at):
            self.at += 2
            return [_recursive, *([] if text[self.at : self.at + 1] in ("[", "") else self.name())]
        if text[at] == ".":
            self.at += 1
            return self.name()
        if text[at] == "[":
            return self.bracket()
        if text[at] in "$@":
            self.at += 1
            return []
        if number := _NUMBER.match(text, at):
            self.at = number.end()
            return [_constant(float(number[0]) if number[1] else int(number[0]))]
        if word := IDENTIFIER.match(text, at):
            self.at = word.end()
            if word[0] in ("true", "false"):
                return [_constant(word[0] == "true")]
            return [failing(f"unrecognized identifier {word[0]}")]
        raise _unrecognized(text[at])

    def name(self) -> list[Step]:
        match = _FIELD.match(self.text, self.at)
        assert match is not None  # it may be empty
        self.at = match.end()
        if not match[0]:
            return []
        return [_wildcard if match[0] == "*" else Field(_UNESCAPE.sub(r"\1", match[0]))]

    def bracket(self) -> list[Step]:
        inner = self.inside()
        if inner.startswith("?(") and inner.endswith(")"):
            return [self.filter(inner[2:-1])]
        parts = _split(inner)
        if len(parts) > 1:
            return [_union([Parser(f"[{part.strip()}]").steps() for part in parts])]
        if inner == "*":
            inner = ":"
        if len(inner) > 1 and inner[0] == inner[-1] and inner[0] in "'\"" and inner[0] not in inner[1:-1]:
            return Parser(f".{inner[1:-1]}").steps()
        match = _SLICE.fullmatch(inner)
        if match is None:
            raise JSONPathError(f"invalid array index {inner}")
        start, end, by = match.groups()
        step_by = int(by[1:]) if by and len(by) > 1 else 1
        if step_by <= 0:
            raise JSONPathError("step must be > 0")
        last = int(end[1:]) if end and len(end) > 1 else None
        return [_slice_step(int(start) if start not in ("", "-") else None, last, step_by, single=end is None)]

    def inside(self) -> str:
        """Return the text up to the closing bracket; moves behind it."""
        depth, start = 0, self.at
        while self.at < len(self.text):
            character = self.text[self.at]
            if character in "'\"":
                self.quoted()
                continue
            depth += (character == "[") - (character == "]")
            self.at += 1
            if depth == 0:
                return self.text[start + 1 : self.at - 1].strip()
        raise JSONPathError("unterminated array")

    def filter(self, text: str) -> Step:
        for at in _outside_quotes(text):
            match = _OPERATION.match(text, at)
            if match:
                return _filter(_operand(text[:at]), match[0], _operand(text[match.end() :]))
        for at in _outside_quotes(text):
            if text[at] == "~":
                raise _unrecognized(text[at])
        return _filter(_operand(text), "", [])

    def steps(self) -> list[Step]:
        """Return everything as the steps of one action."""
        steps: list[Step] = []
        while self.at < len(self.text):
            if self.text[self.at].isspace():
                self.at += 1
            else:
                steps += self.step()
        return steps


def _unrecognized(character: str) -> JSONPathError:
    return JSONPathError(f"unrecognized character in action: U+{ord(character):04X} {character!r}")


def _operand(text: str) -> list[Step]:
    text = text.strip()
    if text[:1] in ("'", '"'):
        parser = Parser(text)
        quoted = parser.quoted()
        if parser.at == len(text):
            return [_constant(unquote(quoted))]
    return Parser(text).steps()


def _outside_quotes(text: str) -> Iterator[int]:
    at = 0
    while at < len(text):
        quoted = _QUOTED.match(text, at)
        if quoted:
            at = quoted.end()
        else:
            yield at
            at += 1


def _split(text: str) -> list[str]:
    commas = [at for at in _outside_quotes(text) if text[at] == ","]
    return [text[start + 1 : end] for start, end in zip([-1, *commas], [*commas, len(text)], strict=True)]


def unquote(quoted: str) -> str:
    return unescape(quoted[1:-1])


def unescape(text: str) -> str:
    """Return the escapes of Go's strings."""

    def one(match: re.Match[str]) -> str:
        letter, *codes = match.groups()
        if letter:
            return _ESCAPES.get(letter, letter)
        octal = codes.pop()
        return chr(int(octal, 8)) if octal else chr(int(next(code for code in codes if code), 16))

    return _ESCAPE.sub(one, text)


# compiled paths

_MISSING = object()


class Path:
    """A compiled path; `fields` are its names when it has nothing but plain fields, else None."""

    __slots__ = ("_steps", "fields", "text")

    def __init__(self, text: str, steps: list[Step]) -> None:
        self.text = text
        names = [step.name for step in steps if isinstance(step, Field)]
        self.fields = tuple(names) if len(names) == len(steps) else None
        self._steps = steps

    def find(self, obj: Any) -> Values:
        """Return all values the path leads to; none when it cannot be followed."""
        if self.fields is not None:
            value = self._walk(obj, self.fields)
            return [] if value is _MISSING else [value]
        try:
            return follow(self._steps, [obj], True)
        except JSONPathError:
            return []

    def first(self, obj: Any) -> Any:
        """Return the first value, None when there is none."""
        found = self.find(obj)
        return found[0] if found else None

    @staticmethod
    def _walk(value: Any, fields: tuple[str, ...]) -> Any:
        for name in fields:
            if not isinstance(value, dict):
                return _MISSING
            value = value.get(name, _MISSING)
        return value

    def __repr__(self) -> str:
        return f"Path({self.text!r})"


@lru_cache(maxsize=2048)
def compile_path(text: str) -> Path:
    """Return a path with or without braces, `$` and the leading dot; raises JSONPathError on bad syntax."""
    inner = text.strip()
    if inner.startswith("{") and inner.endswith("}"):
        inner = inner[1:-1].strip()
    return Path(text, Parser(inner if inner[:1] in ("", ".", "[", "$", "@") else f".{inner}").steps())
