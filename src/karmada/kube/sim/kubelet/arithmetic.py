"""Whole numbers of shell scripts: what $(( )) and expr compute, and test compares."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

_TOKEN = re.compile(r"\s*(?:(\d+)|\$?([A-Za-z_][A-Za-z0-9_]*)|(<=|>=|==|!=|&&|\|\||[-+*/%()<>!]))")
_NUMBER = re.compile(r"\s*[-+]?[0-9]{1,19}\s*")
_LEVELS: tuple[tuple[str, ...], ...] = (
    ("||",), ("&&",), ("==", "!="), ("<", "<=", ">", ">="), ("+", "-"), ("*", "/", "%"),
)  # fmt: skip
_DEEPEST = 50


class NoValue(Exception):
    """The text is no expression, or has no value."""


def number(text: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise NoValue(f"bad number '{text[:100]}'")
    return int(text)


def evaluate(text: str, lookup: Callable[[str], str]) -> int:
    """Return the value of an expression of $(( )); a variable that holds nothing counts as 0."""
    tokens, at = [], 0
    text = text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise NoValue("arithmetic syntax error")
        digits, name, operator = match.groups()
        tokens.append(str(number(lookup(name) or "0")) if name else digits or operator)
        at = match.end()
    return compute(tokens)


def compute(tokens: Sequence[str]) -> int:
    """Return the value of an expression that is already in pieces, as those of expr are."""
    reader = _Reader(tokens)
    value = reader.level(0)
    if reader.at != len(tokens):
        raise NoValue("syntax error")
    return value


class _Reader:
    def __init__(self, tokens: Sequence[str]) -> None:
        self.tokens, self.at, self._depth = tokens, 0, 0

    def _take(self) -> str:
        if self.at >= len(self.tokens):
            raise NoValue("syntax error")
        self.at += 1
        return self.tokens[self.at - 1]

    def level(self, depth: int) -> int:
        if depth == len(_LEVELS):
            return self._single()
        value = self.level(depth + 1)
        while self.at < len(self.tokens) and self.tokens[self.at] in _LEVELS[depth]:
            operator = self._take()
            value = _applied(operator, value, self.level(depth + 1))
        return value

    def _single(self) -> int:
        token = self._take()
        self._depth += 1
        if self._depth > _DEEPEST:
            raise NoValue("expression too deep")
        try:
            if token == "(":
                value = self.level(0)
                if self._take() != ")":
                    raise NoValue("syntax error")
                return value
            if token in ("-", "+", "!"):
                value = self._single()
                return -value if token == "-" else int(not value) if token == "!" else value
            return number(token)
        finally:
            self._depth -= 1


def _applied(operator: str, left: int, right: int) -> int:
    if operator in ("/", "%"):
        if right == 0:
            raise NoValue("division by zero")
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        return quotient if operator == "/" else left - right * quotient
    return _wrapped(_OPERATIONS[operator](left, right))


def _wrapped(value: int) -> int:
    """As 64 bits hold it."""
    return (value + 2**63) % 2**64 - 2**63


_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "||": lambda a, b: int(bool(a or b)),
    "&&": lambda a, b: int(bool(a and b)),
    "==": lambda a, b: int(a == b),
    "!=": lambda a, b: int(a != b),
    "<": lambda a, b: int(a < b),
    "<=": lambda a, b: int(a <= b),
    ">": lambda a, b: int(a > b),
    ">=": lambda a, b: int(a >= b),
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
}
