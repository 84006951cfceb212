"""The little of a shell's grammar that simulated containers understand: from a script to the commands to run.

Words with quotes and variables, commands joined by ; && || | and line ends, output sent to /dev/null or to the other
stream. No loops, no conditions, no substitutions: whoever writes one gets a syntax error, not a wrong answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

_OPERATORS = ("&&", "||", ">>", "2>&1", ">&2", "2>", "1>", ";", "|", "\n", ">", "<", "&", "(", ")")
_JOINTS = (";", "&&", "||", "|", "\n")
_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}|([A-Za-z_][A-Za-z0-9_]*|[?#@*0-9$]))")
_KEYWORDS = frozenset({"if", "for", "while", "until", "case", "function", "do", "done", "then", "fi", "esac", "{", "}"})

Lookup = Callable[[str], str]


MOST_TEXT = 1 << 20
"""Letters in one command."""


class ScriptError(Exception):
    """The script is beyond this shell."""


@dataclass(slots=True)
class Piece:
    text: str
    quoted: bool
    """Stands for itself: variables are not looked up, or were and are not to be split."""
    expand: bool


@dataclass(slots=True)
class Word:
    pieces: list[Piece] = field(default_factory=list)
    operator: bool = False

    @property
    def plain(self) -> str:
        """What was written, if nothing of it was quoted."""
        return "".join(piece.text for piece in self.pieces) if all(not p.quoted for p in self.pieces) else ""


@dataclass(slots=True)
class Simple:
    """One command, with where its output goes, and how it is joined to the one before."""

    joint: str
    words: list[Word]
    out: str = ""
    """"", "null" or "err"."""
    err: str = ""
    """"", "null" or "out"."""


def parse(script: str) -> list[Simple]:
    commands: list[Simple] = []
    current = Simple(";", [])
    words = list(_words(script))
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if not word.operator:
            current.words.append(word)
        elif word.plain in _JOINTS:
            _end(commands, current, word.plain)
            current = Simple(word.plain, [])
        else:
            at += _redirect(current, word.plain, words[at] if at < len(words) else None)
    if current.words:
        commands.append(current)
    elif current.joint in ("&&", "||", "|"):
        raise ScriptError("syntax error: unexpected end of file")
    for command in commands:
        if command.words[0].plain in _KEYWORDS:
            raise ScriptError(f'syntax error: unexpected "{command.words[0].plain}"')
    return commands


def _end(commands: list[Simple], current: Simple, joint: str) -> None:
    if current.words:
        commands.append(current)
    elif joint in ("&&", "||", "|") or (joint == ";" and current.joint != "\n"):
        raise ScriptError(f'syntax error: unexpected "{joint}"')


def _redirect(command: Simple, operator: str, target: Word | None) -> int:
    """How many words were used up."""
    if operator == "2>&1":
        command.err = "out"
        return 0
    if operator == ">&2":
        command.out = "err"
        return 0
    if operator not in (">", ">>", "1>", "2>"):
        raise ScriptError(f'syntax error: unexpected "{operator}"')
    if target is None or target.operator:
        raise ScriptError("syntax error: unexpected redirection")
    path = target.plain
    if path in ("/dev/stdout", "/dev/stderr", "/dev/null"):
        where = {"/dev/stdout": "out", "/dev/stderr": "err", "/dev/null": "null"}[path]
        if operator == "2>":
            command.err = "" if where == "err" else where
        else:
            command.out = "" if where == "out" else where
        return 1
    raise ScriptError(f"can't create {path}: Read-only file system")


def _words(script: str) -> Iterator[Word]:
    word = Word()
    at = 0
    while at < len(script):
        char = script[at]
        operator = next((op for op in _OPERATORS if script.startswith(op, at)), "")
        if operator and operator[0].isdigit() and word.pieces:
            operator = ""
        if char in " \t\r" or operator or (char == "#" and not word.pieces):
            if word.pieces:
                yield word
                word = Word()
            if operator:
                yield Word([Piece(operator, False, False)], operator=True)
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
    """One character, or what is inside quotes; returns where the next begins."""
    char = script[at]
    if char == "\\":
        if script[at + 1 : at + 2] != "\n":
            word.pieces.append(Piece(script[at + 1 : at + 2], True, False))
        return at + 2
    if char == "'":
        end = script.find("'", at + 1)
        if end < 0:
            raise ScriptError("syntax error: unterminated quoted string")
        word.pieces.append(Piece(script[at + 1 : end], True, False))
        return end + 1
    if char == '"':
        return _double_quoted(script, at + 1, word)
    if char == "`" or script.startswith("$(", at):
        raise ScriptError(f'syntax error: unexpected "{"(" if char == "$" else char}"')
    match = _VARIABLE.match(script, at) if char == "$" else None
    text = match[0] if match else char
    word.pieces.append(Piece(text, False, match is not None))
    return at + len(text)


def _double_quoted(script: str, at: int, word: Word) -> int:
    text = ""
    while at < len(script) and script[at] != '"':
        if script[at] == "\\" and script[at + 1 : at + 2] in ('"', "\\", "$", "`", "\n"):
            if text:
                word.pieces.append(Piece(text, True, True))
            word.pieces.append(Piece(script[at + 1].strip("\n"), True, False))
            text, at = "", at + 2
            continue
        if script.startswith("$(", at) or script[at] == "`":
            raise ScriptError('syntax error: unexpected "("')
        text += script[at]
        at += 1
    if at >= len(script):
        raise ScriptError("syntax error: unterminated quoted string")
    word.pieces.append(Piece(text, True, True))
    return at + 1


def expand(words: list[Word], lookup: Lookup) -> list[str]:
    """Words with their variables filled in; what an unquoted variable holds may become several words, or none.

    ScriptError when that makes more of them than a command line holds.
    """
    found: list[str] = []
    room = MOST_TEXT
    for word in words:
        texts = _expanded(word, lookup)
        room -= sum(len(text) + 1 for text in texts)
        if room < 0:
            raise ScriptError("argument list too long")
        found += texts
    return found


def _expanded(word: Word, lookup: Lookup) -> list[str]:
    texts = [""]
    something = False
    for piece in word.pieces:
        value = _filled(piece.text, lookup) if piece.expand else piece.text
        if piece.quoted or not piece.expand:
            texts[-1] += value
            something = something or piece.quoted or bool(value)
            continue
        first, *others = value.split() or [""]
        texts[-1] += first
        texts += others
        something = something or bool(first)
    return texts if something else []


def _filled(text: str, lookup: Lookup) -> str:
    def value(match: re.Match[str]) -> str:
        name, default, short = match.groups()
        return lookup(name or short) or default or ""

    return _VARIABLE.sub(value, text)
