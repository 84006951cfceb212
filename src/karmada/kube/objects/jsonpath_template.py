"""kubectl's JSONPath templates: text with actions in braces, `{range .items[*]}{.metadata.name}{"\\n"}{end}`.

A template is parsed into parts: literal text, an action (the steps of a path), and a range with the parts it repeats.
`$` and `@` both mean the current value. Paths themselves are parsed and followed by karmada.kube.objects.jsonpath.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from karmada.kube.objects.go_json import compact_json, to_json
from karmada.kube.objects.go_values import go_scalar
from karmada.kube.objects.jsonpath import (
    IDENTIFIER,
    JSONPathError,
    Parser,
    Step,
    Values,
    failing,
    follow,
    same,
    unquote,
)


def go_text(value: Any) -> str:
    """As Go prints it; lists and maps as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict | list):
        return compact_json(value)
    if value is None:
        return "<nil>"
    return go_scalar(value)


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

    def render(self, obj: Any, *, allow_missing: bool = True, text: Callable[[Any], str] = go_text) -> str:
        """`text` writes one value."""
        return "".join(
            piece if isinstance(piece, str) else " ".join(text(value) for value in piece)
            for piece in _results(self.parts, obj, allow_missing)
        )

    def as_json(self, obj: Any, *, allow_missing: bool = True) -> str:
        """Return every action as a list of its own."""
        pieces = _results(self.parts, obj, allow_missing)
        return "".join(to_json([piece] if isinstance(piece, str) else piece) for piece in pieces)

    def find(self, obj: Any) -> Values:
        """Return all values it leads to, what is missing left out."""
        return [value for piece in _results(self.parts, obj, True) if not isinstance(piece, str) for value in piece]


def _results(parts: list[Part], obj: Any, allow_missing: bool) -> Iterator[str | Values]:
    for part in parts:
        if part.text:
            yield part.text
            continue
        values = follow(part.steps, [obj], allow_missing)
        if part.body is None:
            yield values
            continue
        for value in values:
            yield from _results(part.body, value, allow_missing)


class _TemplateParser(Parser):
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
            word = IDENTIFIER.match(self.text, self.at)
            if word is not None and word[0] == "range":
                self.at = word.end()
                part.body = []
            elif word is not None and word[0] == "end":
                self.at = word.end()
                if len(open_ranges) == 1:
                    part.steps.append(failing("not in range, nothing to end"))
                else:
                    open_ranges.pop()
            elif self.text[self.at] in "\"'":
                self.add(open_ranges, part)
                open_ranges[-1].append(Part(unquote(self.quoted())))
                part = Part()
            else:
                part.steps += self.step()
        if empty:
            part.steps.append(same)
        self.add(open_ranges, part)

    @staticmethod
    def add(open_ranges: list[list[Part]], part: Part) -> None:
        if part.steps or part.body is not None:
            open_ranges[-1].append(part)
        if part.body is not None:
            open_ranges.append(part.body)


def parse(text: str) -> Template:
    """JSONPathError when it makes no sense."""
    return Template(text, _TemplateParser(text).template())


_RELAXED = re.compile(r"\{\.?([^{}]+)\}|\.?([^{}]+)")


def relaxed(path: str) -> str:
    """Return a path as columns and sorting accept it, with or without braces and dot, as a template."""
    if not path:
        return path
    match = _RELAXED.fullmatch(path)
    if match is None:
        raise JSONPathError(
            "unexpected path string, expected a 'name1.name2' or '.name1.name2' or '{name1.name2}' or '{.name1.name2}'"
        )
    inner = match[1] or match[2]
    return f"{{{inner}}}" if inner[0] in "[$@" else f"{{.{inner}}}"
