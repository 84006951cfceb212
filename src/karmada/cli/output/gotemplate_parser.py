"""Parsing Go's text/template: literal pieces and actions, actions into a tree of nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from karmada.cli.output.gotemplate_functions import FUNCTIONS
from karmada.kube.objects.jsonpath import unescape

NAME = "output"
"""Name that kubectl gives its templates."""
_TRIM = " \t\r\n"
_TOKEN = re.compile(
    r"""(?xs)
    (?P<space>\s+)
  | (?P<string>"(?:[^"\\\n]|\\.)*")
  | (?P<raw>`[^`]*`)
  | (?P<char>'(?:[^'\\\n]|\\.[^']*)')
  | (?P<number>[-+]?(?:0[xXbBoO][0-9a-fA-F_]+|(?:[0-9][0-9_]*\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)(?!\w))
  | (?P<field>\.[^\W\d]\w*)
  | (?P<variable>\$\w*)
  | (?P<word>[^\W\d]\w*)
  | (?P<declare>:=)
  | (?P<mark>[=|(),.])
    """
)
_KEYWORDS = frozenset(
    ("if", "else", "end", "range", "with", "define", "block", "template", "break", "continue", "nil", "true", "false")
)


class TemplateError(ValueError):
    """Go's text."""


class Token(NamedTuple):
    kind: str
    text: str
    at: int


# nodes


@dataclass(slots=True)
class Operand:
    """A value with the fields behind it; `source` is how it was written, for messages."""

    kind: str
    """dot, nil, constant, variable, function, pipe"""
    value: Any
    fields: list[str]
    at: int
    source: str


@dataclass(slots=True)
class Command:
    operands: list[Operand]
    at: int
    source: str


@dataclass(slots=True)
class Pipe:
    commands: list[Command]
    variables: list[str] = field(default_factory=list)
    declares: bool = True


@dataclass(slots=True)
class Node:
    kind: str
    """text, action, if, range, with, template, break, continue"""
    at: int
    text: str = ""
    pipe: Pipe | None = None
    body: list[Node] = field(default_factory=list)
    otherwise: list[Node] = field(default_factory=list)


def line_of(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


# parsing


class Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.named: dict[str, list[Node]] = {}
        self.pieces = list(self.cut())
        self.place = 0
        self.tokens: list[Token] = []
        self.next = 0
        self.variables = ["$"]
        self.ranges = 0

    def fail(self, why: str, at: int) -> TemplateError:
        return TemplateError(f"template: {NAME}:{line_of(self.text, at)}: {why}")

    # literal text and actions

    def cut(self) -> Iterator[tuple[str, int, int]]:
        """("text" or "action", start, end), trimmed."""
        text, at, trim = self.text, 0, False
        while at <= len(text):
            start = text.find("{{", at)
            end = len(text) if start < 0 else start
            left = at
            if trim:
                while left < end and text[left] in _TRIM:
                    left += 1
            right = end
            trims = start >= 0 and text.startswith("{{-", start) and text[start + 3 : start + 4] in tuple(_TRIM)
            if trims:
                while right > left and text[right - 1] in _TRIM:
                    right -= 1
            if right > left:
                yield "text", left, right
            if start < 0:
                return
            inner = start + (3 if trims else 2)
            close = self.end_of_action(inner)
            trim = text[close - 1 : close] == "-" and text[close - 2 : close - 1] in tuple(_TRIM)
            yield "action", inner, close - 1 if trim else close
            at = close + 2

    def end_of_action(self, at: int) -> int:
        text = self.text
        if text[at:].lstrip(_TRIM).startswith("/*"):
            close = text.find("*/", at)
            if close < 0:
                raise self.fail("unclosed comment", at)
            end = text.find("}}", close)
            if end < 0 or text[close + 2 : end].strip(_TRIM) not in ("", "-"):
                raise self.fail("comment ends before closing delimiter", at)
            return end
        start = at
        while at < len(text):
            if text.startswith("}}", at):
                return at
            if text[at] in "\"`'":
                match = _TOKEN.match(text, at)
                if match is None or match.lastgroup not in ("string", "raw", "char"):
                    raise self.fail(
                        "unterminated "
                        + {'"': "quoted string", "`": "raw quoted string"}.get(text[at], "character constant"),
                        at,
                    )
                at = match.end()
            else:
                at += 1
        raise self.fail("unclosed action", start)

    # structure

    def template(self) -> dict[str, list[Node]]:
        nodes, ended_by = self.nodes()
        if ended_by is not None:
            raise self.fail(f"unexpected {{{{{ended_by.text}}}}}", ended_by.at)
        self.named[NAME] = nodes
        return self.named

    def nodes(self) -> tuple[list[Node], Token | None]:
        """Up to the `end` or `else` that closes them, which is what comes second."""
        found: list[Node] = []
        while self.place < len(self.pieces):
            kind, start, end = self.pieces[self.place]
            self.place += 1
            if kind == "text":
                found.append(Node("text", start, self.text[start:end]))
                continue
            if self.text[start:end].lstrip(_TRIM).startswith("/*"):
                continue
            self.tokens, self.next = list(self.tokenize(start, end)), 0
            if not self.tokens:
                raise self.fail("missing value for command", start)
            word = self.tokens[0]
            if word.kind == "word" and word.text in ("end", "else"):
                self.next = 1
                return found, word
            node = self.node(word)
            if node is not None:
                found.append(node)
        return found, None

    def node(self, word: Token) -> Node | None:
        keyword = word.text if word.kind == "word" and word.text in _KEYWORDS else ""
        if keyword in ("if", "with", "range"):
            self.next = 1
            return self.branch(keyword, word.at)
        if keyword in ("define", "block"):
            self.next = 1
            return self.definition(keyword, word.at)
        if keyword == "template":
            self.next = 1
            name = self.name_of_template("template clause")
            return Node("template", self.tokens[1].at, name, self.pipe("template clause") if self.peek() else None)
        if keyword in ("break", "continue"):
            if not self.ranges:
                raise self.fail(f"{{{{{keyword}}}}} outside {{{{range}}}}", word.at)
            return Node(keyword, word.at)
        return Node("action", word.at, pipe=self.pipe("command"))

    def branch(self, keyword: str, at: int) -> Node:
        scope = len(self.variables)
        node = Node(keyword, at, pipe=self.pipe(keyword, ranging=keyword == "range"))
        self.ranges += keyword == "range"
        node.body, ended_by = self.nodes()
        self.ranges -= keyword == "range"
        if ended_by is None:
            raise self.fail("unexpected EOF", len(self.text))
        if ended_by.text == "else":
            follower = self.peek()
            if follower is not None and follower.text in ("if", "with") and keyword in ("if", "with"):
                self.next += 1
                node.otherwise = [self.branch(follower.text, follower.at)]
                del self.variables[scope:]
                return node
            node.otherwise, ended_by = self.nodes()
            if ended_by is None or ended_by.text != "end":
                at = ended_by.at if ended_by else len(self.text)
                raise self.fail("expected end; found {{else}}" if ended_by else "unexpected EOF", at)
        del self.variables[scope:]
        return node

    def name_of_template(self, where: str) -> str:
        token = self.take()
        if token is None or token.kind not in ("string", "raw"):
            raise self.fail(f"unexpected {_shown(token)} in {where}", token.at if token else len(self.text))
        return str(_constant(token))

    def definition(self, keyword: str, at: int) -> Node | None:
        name = self.name_of_template(f"{keyword} clause")
        pipe = self.pipe("block clause") if keyword == "block" else None
        outer, self.variables = self.variables, ["$"]
        body, ended_by = self.nodes()
        self.variables = outer
        if ended_by is None or ended_by.text != "end":
            raise self.fail(f"unexpected EOF in {keyword} clause", len(self.text))
        self.named[name] = body
        return Node("template", at, name, pipe) if keyword == "block" else None

    # pipelines

    def tokenize(self, start: int, end: int) -> Iterator[Token]:
        at = start
        while at < end:
            match = _TOKEN.match(self.text, at, end)
            if match is None or match.lastgroup is None:
                raise self.fail(f"unexpected {_quoted(self.text[at])} in command", at)
            if match.lastgroup != "space":
                yield Token(match.lastgroup, match[0], at)
            at = match.end()

    def peek(self) -> Token | None:
        return self.tokens[self.next] if self.next < len(self.tokens) else None

    def take(self) -> Token | None:
        token = self.peek()
        self.next += 1
        return token

    def pipe(self, where: str, *, ranging: bool = False, closing: str = "") -> Pipe:
        pipe = Pipe([])
        self.declarations(pipe, ranging)
        while True:
            command = self.command(where, closing)
            pipe.commands.append(command)
            token = self.take()
            if token is None or (closing and token.text == closing):
                if closing and token is None:
                    raise self.fail("unclosed left paren", len(self.text))
                break
        for command in pipe.commands[1:]:
            first = command.operands[0]
            if first.kind in ("dot", "nil", "constant") and not first.fields:
                raise self.fail(
                    f"non executable command in pipeline stage {pipe.commands.index(command) + 1}", first.at
                )
        return pipe

    def declarations(self, pipe: Pipe, ranging: bool) -> None:
        """`$x := `, `$x = `, and for a range also `$i, $x := `."""
        names, at = [], self.next
        while at < len(self.tokens) and self.tokens[at].kind == "variable":
            names.append(self.tokens[at].text)
            at += 1
            if at < len(self.tokens) and self.tokens[at].text == "," and ranging and len(names) < 2:
                at += 1
                continue
            break
        if not names or at >= len(self.tokens) or self.tokens[at].text not in (":=", "="):
            return
        pipe.variables, pipe.declares = names, self.tokens[at].text == ":="
        if not pipe.declares:
            for token in self.tokens[self.next : at]:
                self.known(token)
        else:
            self.variables += names
        self.next = at + 1

    def known(self, token: Token) -> None:
        if token.kind == "variable" and token.text not in self.variables:
            raise self.fail(f"undefined variable {_quoted(token.text)}", token.at)

    def command(self, where: str, closing: str) -> Command:
        operands: list[Operand] = []
        while (token := self.peek()) is not None and token.text != "|" and not (closing and token.text == closing):
            operands.append(self.operand(where))
        if not operands:
            following = self.peek()
            at = following.at if following else self.tokens[-1].at
            raise self.fail(f"missing value for {where if where != 'command' else 'command'}", at)
        at = operands[0].at
        return Command(operands, at, " ".join(operand.source for operand in operands))

    def operand(self, where: str) -> Operand:
        token = self.take()
        assert token is not None  # the caller has looked
        fields: list[str] = []
        at, source = token.at, token.text
        kind, value = self.first(token, where)
        if kind == "pipe":
            source = f"({value[1]})"
            value = value[0]
        elif token.kind == "field":
            fields.append(token.text[1:])
        end = self.end_of(self.next - 1)
        count = 0
        while (following := self.peek()) is not None and following.kind == "field" and following.at == end:
            if kind in ("nil", "constant"):
                raise self.fail(f"unexpected . after term {_quoted(source)}", following.at)
            at = following.at if count == 0 and kind in ("dot", "variable") else at
            fields.append(following.text[1:])
            source += following.text
            end = following.at + len(following.text)
            self.next += 1
            count += 1
        return Operand(kind, value, fields, at, source)

    def end_of(self, place: int) -> int:
        token = self.tokens[place]
        return token.at + len(token.text)

    def first(self, token: Token, where: str) -> tuple[str, Any]:
        if token.kind in ("string", "raw", "char", "number"):
            try:
                return "constant", _constant(token)
            except ValueError:
                raise self.fail(f"bad number syntax: {_quoted(token.text)}", token.at) from None
        if token.kind == "variable":
            self.known(token)
            return "variable", token.text
        if token.kind == "field" or token.text == ".":
            return "dot", None
        if token.text == "(":
            inner = self.next
            pipe = self.pipe("parenthesized pipeline", closing=")")
            return "pipe", (pipe, self.text[self.tokens[inner].at : self.tokens[self.next - 1].at].strip())
        if token.kind == "word":
            if token.text == "nil":
                return "nil", None
            if token.text in ("true", "false"):
                return "constant", token.text == "true"
            if token.text in FUNCTIONS:
                return "function", token.text
            if token.text in _KEYWORDS:
                raise self.fail(f"unexpected <{token.text}> in {where}", token.at)
            raise self.fail(f"function {_quoted(token.text)} not defined", token.at)
        raise self.fail(f"unexpected {_quoted(token.text)} in operand", token.at)


def _quoted(text: str) -> str:
    return f'"{text}"'


def _shown(token: Token | None) -> str:
    return "{{end}}" if token is None else _quoted(token.text)


def _constant(token: Token) -> Any:
    if token.kind == "string":
        return unescape(token.text[1:-1])
    if token.kind == "raw":
        return token.text[1:-1]
    if token.kind == "char":
        return ord(unescape(token.text[1:-1]))
    text = token.text.replace("_", "")
    try:
        return int(text, 0)
    except ValueError:
        digits = text.lstrip("+-")
        return int(text, 8) if digits.isdecimal() and digits[0] == "0" else float(text)
