"""The words of a shell script: quotes, variables, substitutions and operators; and how words become arguments."""

from __future__ import annotations

import glob
import re
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

OPERATORS = (
    "&&", "||", ";;", ">>", "<<", "2>&1", "1>&2", ">&2", ">&1", "2>>", "1>>", "2>", "1>",
    ";", "|", "\n", ">", "<", "&", "(", ")",
)  # fmt: skip
_VARIABLE = re.compile(
    r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*|[?#@*0-9$])(?::?-([^}]*))?\}|([A-Za-z_][A-Za-z0-9_]*|[?#@*0-9$]))"
)
_PATTERN = re.compile(r"[*?]|\[[^\]]+\]")
_RUN = re.compile(r"[^ \t\r\n\\'\"$`;&|<>()]+")
_QUOTED_RUN = re.compile(r'[^"\\$`]+')
MOST_TEXT = 1 << 20
"""Letters in one command."""
LONGEST_SCRIPT = 1 << 16
DEEPEST = 20
"""Substitutions in substitutions, and compound commands in compound commands."""


class ScriptError(Exception):
    """The script is beyond this shell."""


class Incomplete(ScriptError):
    """The text that was read so far ends too early: more lines may make it a script."""

    def __init__(self) -> None:
        super().__init__("syntax error: unexpected end of file")


Kind = Literal["text", "variable", "command", "number"]


@dataclass(slots=True)
class Piece:
    text: str
    quoted: bool = False
    """Its value stays one word and is no pattern."""
    kind: Kind = "text"
    """The text itself, a variable's name, or the script or expression whose result takes its place."""
    default: str = ""
    """Word that replaces a variable that holds nothing."""


@dataclass(slots=True)
class Word:
    pieces: list[Piece] = field(default_factory=list)
    operator: bool = False

    @property
    def plain(self) -> str:
        """Return what was written, if it stands for itself."""
        if any(piece.quoted or piece.kind != "text" for piece in self.pieces):
            return ""
        return "".join(piece.text for piece in self.pieces)


class Values:
    """The values that the parts of a word that are not text stand for."""

    def __init__(
        self,
        variable: Callable[[str], str],
        command: Callable[[str], Awaitable[str]],
        expression: Callable[[str], str],
        matches: Callable[[str], list[str]],
    ) -> None:
        self.variable, self.command, self.expression, self.matches = variable, command, expression, matches
        self.code = 0
        """The exit code of the last script that was substituted."""

    async def of(self, piece: Piece) -> str:
        match piece.kind:
            case "variable":
                return self.variable(piece.text) or piece.default
            case "command":
                return await self.command(piece.text)
            case "number":
                return self.expression(piece.text)
        return piece.text


def split(script: str) -> Iterator[Word]:
    """Words and operators, in their order."""
    if len(script) > LONGEST_SCRIPT:
        raise ScriptError("script too long")
    word = Word()
    at = 0
    while at < len(script):
        char = script[at]
        operator = next((op for op in OPERATORS if script.startswith(op, at)), "")
        if operator and operator[0].isdigit() and word.pieces:
            operator = ""
        if char in " \t\r" or operator or (char == "#" and not word.pieces):
            if word.pieces:
                yield word
                word = Word()
            if operator:
                yield Word([Piece(operator)], operator=True)
            if char == "#":
                at = script.find("\n", at)
                at = len(script) if at < 0 else at
            else:
                at += len(operator) or 1
            continue
        at = _piece(script, at, word)
    if word.pieces:
        yield word


def _piece(script: str, at: int, word: Word) -> int:
    """Return some letters, a variable, a substitution, or what is inside quotes; returns where the next begins."""
    char = script[at]
    if char == "\\":
        if script[at + 1 : at + 2] != "\n":
            word.pieces.append(Piece(script[at + 1 : at + 2], quoted=True))
        return at + 2
    if char == "'":
        end = script.find("'", at + 1)
        if end < 0:
            raise ScriptError("syntax error: unterminated quoted string")
        word.pieces.append(Piece(script[at + 1 : end], quoted=True))
        return end + 1
    if char == '"':
        return _double_quoted(script, at + 1, word)
    if char in "$`":
        return _substituted(script, at, word, quoted=False)
    match = _RUN.match(script, at)
    text = match[0] if match else char
    word.pieces.append(Piece(text))
    return at + len(text)


def _double_quoted(script: str, at: int, word: Word) -> int:
    word.pieces.append(Piece("", quoted=True))
    while at < len(script) and script[at] != '"':
        if script[at] == "\\" and script[at + 1 : at + 2] in ('"', "\\", "$", "`", "\n"):
            word.pieces.append(Piece(script[at + 1].strip("\n"), quoted=True))
            at += 2
        elif script[at] in "$`":
            at = _substituted(script, at, word, quoted=True)
        else:
            match = _QUOTED_RUN.match(script, at)
            text = match[0] if match else script[at]
            word.pieces.append(Piece(text, quoted=True))
            at += len(text)
    if at >= len(script):
        raise ScriptError("syntax error: unterminated quoted string")
    return at + 1


def _substituted(script: str, at: int, word: Word, *, quoted: bool) -> int:
    """Return what begins with $ or is in backticks."""
    if script[at] == "`":
        end = script.find("`", at + 1)
        if end < 0:
            raise ScriptError("syntax error: EOF in backquote substitution")
        word.pieces.append(Piece(script[at + 1 : end], quoted, "command"))
        return end + 1
    if script.startswith("$(", at):
        end = _closing(script, at + 2)
        inner = script[at + 2 : end]
        if inner.startswith("(") and inner.endswith(")"):
            word.pieces.append(Piece(inner[1:-1], quoted, "number"))
        else:
            word.pieces.append(Piece(inner, quoted, "command"))
        return end + 1
    match = _VARIABLE.match(script, at)
    if match is None:
        if script.startswith("${", at):
            raise ScriptError("syntax error: bad substitution")
        word.pieces.append(Piece("$", quoted))
        return at + 1
    name, default, short = match.groups()
    word.pieces.append(Piece(name or short, quoted, "variable", default or ""))
    return match.end()


def _closing(script: str, at: int) -> int:
    """Return where the parenthesis before `at` is closed."""
    depth, quote = 1, ""
    while at < len(script):
        char = script[at]
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char == "\\":
            at += 1
        elif char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
            if not depth:
                return at
        at += 1
    raise ScriptError("syntax error: unterminated substitution")


async def expand(words: list[Word], values: Values) -> list[str]:
    """Words with their values; what is not quoted may become several words, or none, or the files that it matches.

    ScriptError when that makes more of them than a command line holds.
    """
    found: list[str] = []
    left = MOST_TEXT
    for word in words:
        texts = await _expanded(word, values)
        left -= sum(len(text) + 1 for text in texts)
        if left < 0:
            raise ScriptError("argument list too long")
        found += texts
    return found


async def joined(word: Word, values: Values) -> str:
    """As one word: the value of an assignment, the target of a redirection."""
    text = "".join([await values.of(piece) for piece in word.pieces])
    if len(text) > MOST_TEXT:
        raise ScriptError("argument list too long")
    return text


async def _expanded(word: Word, values: Values) -> list[str]:
    texts, patterns = [""], [""]
    something = False
    for piece in word.pieces:
        value = await values.of(piece)
        if piece.quoted or piece.kind == "text":
            texts[-1] += value
            patterns[-1] += glob.escape(value) if piece.quoted else value
            something = something or piece.quoted or bool(value)
            continue
        first, *others = value.split() or [""]
        texts[-1] += first
        patterns[-1] += first
        texts += others
        patterns += others
        something = something or bool(first)
    if not something:
        return []
    return [match for text, pattern in zip(texts, patterns, strict=True) for match in _matches(text, pattern, values)]


def _matches(text: str, pattern: str, values: Values) -> list[str]:
    if not _PATTERN.search(pattern.replace("[[]", "").replace("[*]", "").replace("[?]", "")):
        return [text]
    return values.matches(pattern) or [text]
