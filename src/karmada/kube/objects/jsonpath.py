"""JSONPath as Kubernetes uses it in printer columns, scale paths, selectable fields and custom columns.

A path is compiled once into steps; each step maps a value to the values it leads to, and what is absent or of another
type leads nowhere, so that `find` never fails. Paths of plain fields, the usual case, skip the steps and walk dicts.
Understood: .a.b  ['a.b']  [0]  [-1]  [1:3]  [0,2]  ['a','b']  [*]  .*  ..a  [?(@.a=="x")]  with \\. for a dot in a
name; `$`, the leading dot and surrounding braces may be left out.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

Step = Callable[[Any], Iterator[Any]]

_MISSING = object()


class Path:
    """A compiled path; `fields` are its names when it has nothing but plain fields, else None."""

    __slots__ = ("_steps", "fields", "text")

    def __init__(self, text: str, steps: tuple[Step, ...], fields: tuple[str, ...] | None) -> None:
        self.text = text
        self.fields = fields
        self._steps = steps

    def find(self, obj: Any) -> list[Any]:
        """All values the path leads to."""
        if self.fields is not None:
            value = _walk(obj, self.fields)
            return [] if value is _MISSING else [value]
        return list(_follow(self._steps, 0, obj))

    def first(self, obj: Any) -> Any:
        """The first value, None when there is none."""
        if self.fields is not None:
            value = _walk(obj, self.fields)
            return None if value is _MISSING else value
        return next(_follow(self._steps, 0, obj), None)

    def __repr__(self) -> str:
        return f"Path({self.text!r})"


def _walk(value: Any, fields: tuple[str, ...]) -> Any:
    for name in fields:
        if not isinstance(value, dict):
            return _MISSING
        value = value.get(name, _MISSING)
    return value


def _follow(steps: tuple[Step, ...], at: int, value: Any) -> Iterator[Any]:
    if at == len(steps):
        yield value
        return
    for found in steps[at](value):
        yield from _follow(steps, at + 1, found)


# --- steps -----------------------------------------------------------------------------------------------------------


def _field(name: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, dict) and name in value:
            yield value[name]

    return step


def _children(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _descend(value: Any) -> Iterator[Any]:
    yield value
    for child in _children(value):
        yield from _descend(child)


def _index(number: int) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list) and -len(value) <= number < len(value):
            yield value[number]

    return step


def _slice(bounds: slice) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list):
            yield from value[bounds]

    return step


def _union(steps: list[Step]) -> Step:
    def step(value: Any) -> Iterator[Any]:
        for one in steps:
            yield from one(value)

    return step


_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt,
}  # fmt: skip


def _sort_of(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    return "number" if isinstance(value, (int, float)) else type(value).__name__


def _filter(left: Path, compare: str, right: Path | None, constant: Any) -> Step:
    """Keeps the items of a list for which the comparison holds; without a comparison, those that have the path."""
    test = _COMPARISONS.get(compare)

    def step(value: Any) -> Iterator[Any]:
        if not isinstance(value, list):
            return
        for item in value:
            found = left.find(item)
            if not found:
                continue
            if test is None:
                yield item
                continue
            wanted = constant if right is None else right.first(item)
            if _sort_of(found[0]) == _sort_of(wanted):
                if test(found[0], wanted):
                    yield item
            elif compare == "!=":
                yield item

    return step


# --- the text --------------------------------------------------------------------------------------------------------

_NAME = re.compile(r"(?:[^\\.\[\]{}$@\s]|\\.)+")
_QUOTED = re.compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"")
_SLICE = re.compile(r"\s*(-?[0-9]+)?\s*:\s*(-?[0-9]+)?\s*(?::\s*(-?[0-9]+)?\s*)?")
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
_OPERATION = re.compile(r"==|!=|<=|>=|<|>")
_UNESCAPE = re.compile(r"\\(.)")


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.steps: list[Step] = []
        self.fields: list[str] | None = []

    def fail(self, why: str) -> ValueError:
        return ValueError(f"invalid JSONPath {self.text!r}: {why}")

    def path(self) -> Path:
        text = self.text
        if text[:1] in ("$", "@"):
            self.at = 1
        elif text and text[0] not in ".[":
            self.name()
        while self.at < len(text):
            self.step()
        return Path(text, tuple(self.steps), None if self.fields is None else tuple(self.fields))

    def step(self) -> None:
        text = self.text
        if text.startswith("..", self.at):
            self.at += 2
            self.add(_descend)
            if text[self.at : self.at + 1] != "[":
                self.name()
        elif text[self.at] == ".":
            self.at += 1
            if self.at < len(text) and text[self.at] == "[":
                return
            if self.text != ".":
                self.name()
        elif text[self.at] == "[":
            self.bracket()
        else:
            raise self.fail(f"unexpected {text[self.at]!r}")

    def add(self, step: Step, field: str | None = None) -> None:
        self.steps.append(step)
        if field is None:
            self.fields = None
        elif self.fields is not None:
            self.fields.append(field)

    def name(self) -> None:
        match = _NAME.match(self.text, self.at)
        if match is None:
            raise self.fail("a field name is missing")
        self.at = match.end()
        if match[0] == "*":
            self.add(_children)
        else:
            name = _UNESCAPE.sub(r"\1", match[0])
            self.add(_field(name), name)

    def bracket(self) -> None:
        inner = self.inside_brackets()
        if inner == "*":
            self.add(_children)
        elif inner.startswith("?"):
            self.add(self.filter(inner[1:].strip()))
        elif quoted := _QUOTED.fullmatch(inner):
            name = _unquote(quoted)
            self.add(_field(name), name)
        elif bounds := _SLICE.fullmatch(inner):
            numbers = [int(number) if number else None for number in bounds.groups()]
            if numbers[2] == 0:
                raise self.fail("the step of a slice cannot be 0")
            self.add(_slice(slice(*numbers)))
        else:
            members = [self.member(part.strip()) for part in _split(inner)]
            self.add(members[0] if len(members) == 1 else _union(members))

    def inside_brackets(self) -> str:
        """The text up to the closing bracket; moves behind it."""
        depth, at = 0, self.at
        while at < len(self.text):
            character = self.text[at]
            quoted = _QUOTED.match(self.text, at) if character in "'\"" else None
            if quoted:
                at = quoted.end()
                continue
            depth += (character == "[") - (character == "]")
            at += 1
            if depth == 0:
                inner = self.text[self.at + 1 : at - 1].strip()
                self.at = at
                return inner
        raise self.fail("unterminated bracket")

    def member(self, part: str) -> Step:
        if _NUMBER.fullmatch(part) and "." not in part:
            return _index(int(part))
        if quoted := _QUOTED.fullmatch(part):
            return _field(_unquote(quoted))
        raise self.fail(f"invalid array index {part!r}")

    def filter(self, text: str) -> Step:
        if not (text.startswith("(") and text.endswith(")")):
            raise self.fail("a filter needs parentheses")
        left, compare, right = _comparison(text[1:-1])
        if not left.startswith("@"):
            raise self.fail("a filter must begin with @")
        if not compare:
            return _filter(_compile(left), "", None, None)
        if right.startswith("@"):
            return _filter(_compile(left), compare, _compile(right), None)
        return _filter(_compile(left), compare, None, self.constant(right))

    def constant(self, text: str) -> Any:
        if quoted := _QUOTED.fullmatch(text):
            return _unquote(quoted)
        if _NUMBER.fullmatch(text):
            return float(text) if "." in text else int(text)
        if text in ("true", "false"):
            return text == "true"
        raise self.fail(f"unrecognized value {text!r} in a filter")


def _unquote(match: re.Match[str]) -> str:
    return _UNESCAPE.sub(r"\1", match[1] if match[1] is not None else match[2])


def _outside_quotes(text: str) -> Iterator[int]:
    at = 0
    while at < len(text):
        quoted = _QUOTED.match(text, at) if text[at] in "'\"" else None
        if quoted:
            at = quoted.end()
        else:
            yield at
            at += 1


def _split(text: str) -> list[str]:
    """At commas outside quotes."""
    commas = [at for at in _outside_quotes(text) if text[at] == ","]
    return [text[start + 1 : end] for start, end in zip([-1, *commas], [*commas, len(text)], strict=True)]


def _comparison(text: str) -> tuple[str, str, str]:
    for at in _outside_quotes(text):
        match = _OPERATION.match(text, at)
        if match:
            return text[:at].strip(), match[0], text[match.end() :].strip()
    return text.strip(), "", ""


def _compile(text: str) -> Path:
    return _Parser(text).path()


@lru_cache(maxsize=2048)
def compile_path(text: str) -> Path:
    """Raises ValueError on bad syntax."""
    inner = text.strip()
    if inner.startswith("{") and inner.endswith("}"):
        inner = inner[1:-1].strip()
    return _compile(inner)
