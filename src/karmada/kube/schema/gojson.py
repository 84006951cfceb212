"""JSON as Go's parser reads and refuses it, for the bodies that orjson refuses.

Go is more lenient with text: broken UTF-8 and lone surrogates become U+FFFD. What it refuses, it refuses with the
offending character and the state of its scanner, which clients and people see; Python's parser stops at the same
places, so its complaints are translated.
"""

from __future__ import annotations

import json
import re
from typing import Any

_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]')
_LITERALS = ("true", "false", "null")
_GO_CONTEXT = {
    "Expecting property name enclosed in double quotes": "looking for beginning of object key string",
    "Illegal trailing comma before end of object": "looking for beginning of object key string",
    "Illegal trailing comma before end of array": "looking for beginning of value",
    "Expecting ':' delimiter": "after object key",
    "Extra data": "after top-level value",
    "Invalid control character at": "in string literal",
    "Invalid \\escape": "in string escape code",
    "Invalid \\uXXXX escape": "in \\u hexadecimal character escape",
}
_END = "unexpected end of JSON input"
_NUMERIC = "in numeric literal"
_SPACE = " \t\r\n"


def parse_like_go(body: bytes) -> Any:
    """Return the JSON value of a body; raises ValueError with Kubernetes' text."""
    try:
        return unmarshal(body)
    except ValueError as error:
        raise ValueError(f"couldn't get version/kind; json parse error: {error}") from None


def unmarshal(body: bytes) -> Any:
    """Return the JSON value; raises ValueError with Go's text."""
    text = body.decode("utf-8", "replace")
    try:
        return _mend(json.loads(text, parse_constant=_refuse))
    except _Constant as constant:
        name = str(constant)
        reason = _invalid(name, 0, "looking for beginning of value") if name[0] != "-" else _invalid(name, 1, _NUMERIC)
    except json.JSONDecodeError as error:
        reason = _go_text(error)
    except RecursionError:
        reason = "exceeded max depth"
    raise ValueError(reason)


class _Constant(Exception):
    """NaN and Infinity, which Python would accept."""


def _refuse(name: str) -> Any:
    raise _Constant(name)


def _mend(value: Any) -> Any:
    """Return a copy with every lone surrogate replaced."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_mend(item) for item in value]
    if isinstance(value, dict):
        return {_mend(key): _mend(item) for key, item in value.items()}
    return value


def _go_text(error: json.JSONDecodeError) -> str:
    text, at, message = error.doc, error.pos, error.msg.removesuffix(": ")
    if message == "Invalid \\escape":
        at += 1
    elif message != "Invalid control character at":
        at += len(text[at:]) - len(text[at:].lstrip(_SPACE))
    if message.startswith("Unterminated string") or at >= len(text):
        return _END
    if message == "Expecting value":
        return _bad_value(text, at)
    if message == "Expecting ',' delimiter":
        return _invalid(text, at, f"after {_container_at(text, at)}")
    return _invalid(text, at, _GO_CONTEXT.get(message, "looking for beginning of value"))


def _invalid(text: str, at: int, context: str) -> str:
    return f"invalid character {_quote(text[at])} {context}"


def _bad_value(text: str, at: int) -> str:
    for literal in _LITERALS:
        matched = _common(text[at:], literal)
        if matched:
            expected = _quote(literal[matched])
            end = at + matched
            return _END if end == len(text) else _invalid(text, end, f"in literal {literal} (expecting {expected})")
    return _invalid(text, at, "looking for beginning of value")


def _container_at(text: str, at: int) -> str:
    stack: list[str] = []
    for token in _BRACKETS.findall(text[:at]):
        if token in "[{":
            stack.append(token)
        elif token in "]}":
            stack.pop()
    return "array element" if stack and stack[-1] == "[" else "object key:value pair"


def _common(text: str, literal: str) -> int:
    length = 0
    while length < min(len(text), len(literal)) and text[length] == literal[length]:
        length += 1
    return length


def _quote(char: str) -> str:
    if char == "'":
        return r"'\''"
    if char == '"':
        return "'\"'"
    return f"'{json.dumps(char, ensure_ascii=False)[1:-1]}'"
