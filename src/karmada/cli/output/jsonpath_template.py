"""kubectl's JSONPath templates: text with actions in braces, `{range .items[*]}{.metadata.name}{"\\n"}{end}`.

A template is parsed into parts: literal text, an action (steps that lead from the current values to others), and a
range with the parts it repeats. `$` and `@` both mean the current value. What a step says when it cannot go on is
kubectl's text; whether a missing field is such a case is up to the caller. Paths of printer columns and the like are
another matter (karmada.kube.objects.jsonpath): they never fail.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from karmada.cli.output.documents import compact_json, to_json

Values = list[Any]
Step = Callable[[Values, bool], Values]
"""From values to values; whether missing fields are fine."""

_FIELD = re.compile(r"(?:\\.|[^\\\s.,\[\]$@{}])*")
_IDENTIFIER = re.compile(r"\w+")
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
    """The text is kubectl's."""


@dataclass(slots=True)
class Part:
    """Literal `text`, or `steps`; with `body` a range over what the steps lead to."""

    text: str = ""
    steps: list[Step] = field(default_factory=list)
    body: list[Part] | None = None


@dataclass(frozen=True, slots=True)
class Template:
    text: str
    parts: list[Part]

    def render(self, obj: Any, *, allow_missing: bool = True) -> str:
        return "".join(
            piece if isinstance(piece, str) else " ".join(go_text(value) for value in piece)
            for piece in _results(self.parts, obj, allow_missing)
        )

    def as_json(self, obj: Any, *, allow_missing: bool = True) -> str:
        """Every action as a list of its own."""
        pieces = _results(self.parts, obj, allow_missing)
        return "".join(to_json([piece] if isinstance(piece, str) else piece) for piece in pieces)

    def find(self, obj: Any) -> Values:
        """All values it leads to, what is missing left out."""
        return [value for piece in _results(self.parts, obj, True) if not isinstance(piece, str) for value in piece]


def _results(parts: list[Part], obj: Any, allow_missing: bool) -> Iterator[str | Values]:
    for part in parts:
        if part.text:
            yield part.text
            continue
        values = _follow(part.steps, [obj], allow_missing)
        if part.body is None:
            yield values
            continue
        for value in values:
            yield from _results(part.body, value, allow_missing)


def _follow(steps: list[Step], values: Values, allow_missing: bool) -> Values:
    for step in steps:
        values = step(values, allow_missing)
    return values


# values as text


def go_text(value: Any) -> str:
    """As Go prints it; lists and maps as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict | list):
        return compact_json(value)
    if value is None:
        return "<nil>"
    return go_scalar(value)


def go_scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return _go_float(value) if isinstance(value, float) else str(value)


def _go_float(value: float) -> str:
    """The shortest text that means this number, with an exponent from a million on."""
    if value != value or value in (float("inf"), float("-inf")):
        return {"nan": "NaN", "inf": "+Inf", "-inf": "-Inf"}[str(value)]
    digits, _, exponent = f"{value:.16e}".partition("e")
    for precision in range(17):
        text = f"{value:.{precision}e}"
        if float(text) == value:
            digits, _, exponent = text.partition("e")
            break
    power = int(exponent)
    if power < -4 or power >= 6:
        return f"{digits}e{exponent[0]}{abs(power):02d}"
    return f"{value:.{max(0, len(digits.partition('.')[2]) - power)}f}"


def go_type(value: Any) -> str:
    if isinstance(value, dict):
        return "map[string]interface {}"
    if isinstance(value, list):
        return "[]interface {}"
    return {bool: "bool", int: "int64", float: "float64", str: "string"}.get(type(value), "<nil>")


# steps


def _field_step(name: str) -> Step:
    def step(values: Values, allow_missing: bool) -> Values:
        found = [value[name] for value in values if isinstance(value, dict) and name in value]
        if not found and not allow_missing:
            raise JSONPathError(f"{name} is not found")
        return found

    return step


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


def _same(values: Values, _: bool) -> Values:
    return values


def _union(alternatives: list[list[Step]]) -> Step:
    def step(values: Values, allow_missing: bool) -> Values:
        return [found for steps in alternatives for found in _follow(steps, values, allow_missing)]

    return step


def _constant(constant: Any) -> Step:
    return lambda values, _: [constant for _ in values]


def _failing(message: str) -> Step:
    def step(_values: Values, _allow_missing: bool) -> Values:
        raise JSONPathError(message)

    return step


def _filter(left: list[Step], compare: str, right: list[Step]) -> Step:
    def passes(item: Any, allow_missing: bool) -> bool:
        if not compare:
            return bool(_follow(left, [item], True))
        lefts, rights = _follow(left, [item], allow_missing), _follow(right, [item], allow_missing)
        if len(lefts) > 1 or len(rights) > 1:
            raise JSONPathError("can only compare one element at a time")
        return bool(lefts and rights) and _holds(lefts[0], compare, rights[0])

    def step(values: Values, allow_missing: bool) -> Values:
        found: Values = []
        for value in values:
            if value is None:
                continue
            if not isinstance(value, list):
                raise JSONPathError(f"{go_text(value)} is not array or slice and cannot be filtered")
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


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def template(self) -> list[Part]:
        root: list[Part] = []
        open_ranges = [root]
        while self.at < len(self.text):
            brace = self.text.find("{", self.at)
            if brace != self.at:
                end = len(self.text) if brace < 0 else brace
                open_ranges[-1].append(Part(self.text[self.at : end]))
                self.at = end
                continue
            self.at += 1
            self.action(open_ranges)
        return root

    def action(self, open_ranges: list[list[Part]]) -> None:
        """Up to the closing brace, which may hold `range …`, `end`, texts and paths."""
        part = Part()
        empty = True
        while True:
            while self.text[self.at : self.at + 1].isspace():
                self.at += 1
            if self.at >= len(self.text):
                raise JSONPathError("unclosed action")
            if self.text[self.at] == "}":
                self.at += 1
                break
            empty = empty and self.text[self.at] in "$@"
            word = _IDENTIFIER.match(self.text, self.at)
            if word is not None and word[0] == "range":
                self.at = word.end()
                part.body = []
            elif word is not None and word[0] == "end":
                self.at = word.end()
                if len(open_ranges) == 1:
                    part.steps.append(_failing("not in range, nothing to end"))
                else:
                    open_ranges.pop()
            elif self.text[self.at] in "\"'":
                self.add(open_ranges, part)
                open_ranges[-1].append(Part(_unquote(self.quoted())))
                part = Part()
            else:
                part.steps += self.step()
        if empty:
            part.steps.append(_same)
        self.add(open_ranges, part)

    @staticmethod
    def add(open_ranges: list[list[Part]], part: Part) -> None:
        if part.steps or part.body is not None:
            open_ranges[-1].append(part)
        if part.body is not None:
            open_ranges.append(part.body)

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
            return [self.bracket()]
        if text[at] in "$@":
            self.at += 1
            return []
        if number := _NUMBER.match(text, at):
            self.at = number.end()
            return [_constant(float(number[0]) if number[1] else int(number[0]))]
        if word := _IDENTIFIER.match(text, at):
            self.at = word.end()
            if word[0] in ("true", "false"):
                return [_constant(word[0] == "true")]
            return [_failing(f"unrecognized identifier {word[0]}")]
        raise _unrecognized(text[at])

    def name(self) -> list[Step]:
        match = _FIELD.match(self.text, self.at)
        assert match is not None  # it may be empty
        self.at = match.end()
        if not match[0]:
            return []
        return [_wildcard if match[0] == "*" else _field_step(_UNESCAPE.sub(r"\1", match[0]))]

    def bracket(self) -> Step:
        inner = self.inside()
        if inner.startswith("?(") and inner.endswith(")"):
            return self.filter(inner[2:-1])
        parts = _split(inner)
        if len(parts) > 1:
            return _union([_Parser(f"[{part.strip()}]").steps() for part in parts])
        if inner == "*":
            inner = ":"
        if len(inner) > 1 and inner[0] == inner[-1] and inner[0] in "'\"" and inner[0] not in inner[1:-1]:
            return _union([_Parser(f".{inner[1:-1]}").steps()])
        match = _SLICE.fullmatch(inner)
        if match is None:
            raise JSONPathError(f"invalid array index {inner}")
        start, end, by = match.groups()
        step_by = int(by[1:]) if by and len(by) > 1 else 1
        if step_by <= 0:
            raise JSONPathError("step must be > 0")
        last = int(end[1:]) if end and len(end) > 1 else None
        return _slice_step(int(start) if start not in ("", "-") else None, last, step_by, single=end is None)

    def inside(self) -> str:
        """The text up to the closing bracket; moves behind it."""
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
        """Everything as the steps of one action."""
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
        parser = _Parser(text)
        quoted = parser.quoted()
        if parser.at == len(text):
            return [_constant(_unquote(quoted))]
    return _Parser(text).steps()


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


def _unquote(quoted: str) -> str:
    return unescape(quoted[1:-1])


def unescape(text: str) -> str:
    """The escapes of Go's strings."""

    def one(match: re.Match[str]) -> str:
        letter, *codes = match.groups()
        if letter:
            return _ESCAPES.get(letter, letter)
        octal = codes.pop()
        return chr(int(octal, 8)) if octal else chr(int(next(code for code in codes if code), 16))

    return _ESCAPE.sub(one, text)


def parse(text: str) -> Template:
    """JSONPathError when it makes no sense."""
    return Template(text, _Parser(text).template())


_RELAXED = re.compile(r"\{\.?([^{}]+)\}|\.?([^{}]+)")


def relaxed(path: str) -> str:
    """A path as columns and sorting accept it, with or without braces and dot, as a template."""
    if not path:
        return path
    match = _RELAXED.fullmatch(path)
    if match is None:
        raise JSONPathError(
            "unexpected path string, expected a 'name1.name2' or '.name1.name2' or '{name1.name2}' or '{.name1.name2}'"
        )
    inner = match[1] or match[2]
    return f"{{{inner}}}" if inner[0] in "[$@" else f"{{.{inner}}}"
