"""Functions on strings, lists and sets that Kubernetes adds to the language."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import cmp_to_key
from typing import Any

import re2

from karmada.kube.schema.cel import types as t
from karmada.kube.schema.cel.costs import both_lists, finding, formatting, joining, matching, replacing, splitting
from karmada.kube.schema.cel.patterns import regex
from karmada.kube.schema.cel.registry import Cost, define, runtime_type
from karmada.kube.schema.cel.standard import show_double
from karmada.kube.schema.cel.values import (
    CelError,
    Duration,
    Members,
    NoOverload,
    Timestamp,
    Uint,
    checked_duration,
    checked_int,
    checked_uint,
    equal,
)

_LIST_A, _LIST_S = t.list_of(t.A), t.list_of(t.STRING)


def _slice(text: str, start: int, end: int | None = None) -> str:
    stop = len(text) if end is None else end
    if start < 0 or start > len(text):
        raise CelError(f"index out of range: {start}")
    if stop < 0 or stop > len(text):
        raise CelError(f"index out of range: {stop}")
    if start > stop:
        raise CelError(f"invalid substring range. start: {start}, end: {stop}")
    return text[start:stop]


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise CelError(f"index out of range: {index}")
    return text[index : index + 1]


def _index_of(text: str, part: str, start: int = 0) -> int:
    if start and not 0 <= start < len(text):
        raise CelError(f"index out of range: {start}")
    return text.find(part, start)


def _last_index_of(text: str, part: str, end: int | None = None) -> int:
    if end is None:
        end = len(text)
    elif not 0 <= end < len(text):
        raise CelError(f"index out of range: {end}")
    searched = text[: end + len(part)]
    found = searched[::-1].find(part[::-1])  # rfind of hostile texts takes the product of their lengths
    return -1 if found < 0 else len(searched) - found - len(part)


def _split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if separator == "":
        parts = list(text)
        return parts if limit < 0 or limit >= len(parts) else [*parts[: limit - 1], "".join(parts[limit - 1 :])]
    return text.split(separator, limit - 1 if limit > 0 else -1)


def _replace(text: str, old: str, new: str, limit: int = -1) -> str:
    return text.replace(old, new, limit)


def _join(items: list[Any], separator: str = "") -> str:
    if not all(isinstance(item, str) for item in items):
        raise NoOverload
    return separator.join(items)


_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
_QUOTES = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
_QUOTES |= {"\\": "\\\\", '"': '\\"'}


def _quote(text: str) -> str:
    return '"' + "".join(_QUOTES.get(char, char) for char in text) + '"'


def _strings() -> None:
    s, i = t.STRING, t.INT
    costs: dict[str, Cost] = {
        "replace": replacing,
        "split": splitting,
        "join": joining,
        "format": formatting,
        "find": finding,
        "findAll": finding,
    }
    rows: list[tuple[str, tuple[t.Type, ...], t.Type, Callable[..., Any]]] = [
        ("contains", (s, s), t.BOOL, lambda text, part: part in text),
        ("startsWith", (s, s), t.BOOL, str.startswith),
        ("endsWith", (s, s), t.BOOL, str.endswith),
        ("charAt", (s, i), s, _char_at),
        ("indexOf", (s, s), i, _index_of),
        ("indexOf", (s, s, i), i, _index_of),
        ("lastIndexOf", (s, s), i, _last_index_of),
        ("lastIndexOf", (s, s, i), i, _last_index_of),
        ("lowerAscii", (s,), s, lambda text: text.translate(_LOWER)),
        ("upperAscii", (s,), s, lambda text: text.translate(_UPPER)),
        ("replace", (s, s, s), s, _replace),
        ("replace", (s, s, s, i), s, _replace),
        ("reverse", (s,), s, lambda text: text[::-1]),
        ("split", (s, s), _LIST_S, _split),
        ("split", (s, s, i), _LIST_S, _split),
        ("substring", (s, i), s, _slice),
        ("substring", (s, i, i), s, _slice),
        ("trim", (s,), s, str.strip),
        ("join", (_LIST_S,), s, _join),
        ("join", (_LIST_S, s), s, _join),
        ("format", (s, t.list_of(t.DYN)), s, format_text),
        ("find", (s, s), s, _find),
        ("findAll", (s, s), _LIST_S, _find_all),
        ("findAll", (s, s, i), _LIST_S, _find_all),
    ]
    for name, params, result, fn in rows:
        define(name, params, result, fn, member=True, cost=costs.get(name))
    define("strings.quote", (s,), s, _quote)
    define("matches", (s, s), t.BOOL, _matches, both=True, cost=matching)


def _matches(text: str, pattern: str) -> bool:
    return regex(pattern).search(text) is not None


def _find(text: str, pattern: str) -> str:
    match = regex(pattern).search(text)
    return "" if match is None else str(match.group(0))


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    found: list[str] = []
    for match in regex(pattern).finditer(text):
        if 0 <= limit <= len(found):
            break
        found.append(match.group(0))
    return found


def format_text(template: str, args: list[Any]) -> str:
    """Go-like formatting: %s %d %f %e %b %o %x %X, with %.3f precision and %% for a percent sign."""
    parts: list[str] = []
    position, used = 0, 0
    for match in _VERBS.finditer(template):
        parts.append(template[position : match.start()])
        position = match.end()
        precision, verb = match.groups()
        if verb == "%":
            parts.append("%")
            continue
        if verb not in _FORMATTERS:
            raise CelError(f'could not parse formatting clause: unrecognized formatting clause "{verb}"')
        if used >= len(args):
            raise CelError(f"index {used} out of range")
        parts.append(_FORMATTERS[verb](args[used], 6 if precision is None else int(precision)))
        used += 1
    parts.append(template[position:])
    return "".join(parts)


_VERBS = re2.compile(r"%(?:\.(\d+))?([a-zA-Z%])")


def show(value: Any) -> str:
    """Return what %s and string conversion inside lists print."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    if isinstance(value, float):
        return show_double(value)
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, list):
        return "[" + ", ".join(map(show, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{show(k)}: {show(value[k])}" for k in sorted(value, key=show)) + "}"
    if isinstance(value, int | Timestamp | Duration | t.Type):
        return str(value)
    raise _clause(value, "s")


def _clause(value: Any, verb: str) -> CelError:
    return CelError(f"error during formatting: %{verb} can not be applied to {runtime_type(value)}")


def _decimal(value: Any, _: int) -> str:
    if isinstance(value, bool) or not isinstance(value, int):
        if isinstance(value, float) and not math.isfinite(value):
            return show_double(value)
        raise _clause(value, "d")
    return str(int(value))


def _fixed(value: Any, precision: int) -> str:
    return f"{_number(value, 'f'):.{precision}f}"


def _exponent(value: Any, precision: int) -> str:
    return f"{_number(value, 'e'):.{precision}e}"


def _number(value: Any, verb: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _clause(value, verb)
    return float(value)


def _binary(value: Any, _: int) -> str:
    if not isinstance(value, int):
        raise _clause(value, "b")
    return f"{int(value):b}"


def _octal(value: Any, _: int) -> str:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _clause(value, "o")
    return f"{int(value):o}"


def _hex(value: Any, _: int) -> str:
    if isinstance(value, str):
        return value.encode().hex()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, bool) or not isinstance(value, int):
        raise _clause(value, "x")
    return f"{int(value):x}"


_FORMATTERS: dict[str, Callable[[Any, int], str]] = {
    "s": lambda value, _: show(value),
    "d": _decimal,
    "f": _fixed,
    "e": _exponent,
    "b": _binary,
    "o": _octal,
    "x": _hex,
    "X": lambda value, _: _hex(value, 0).upper(),
}


def _ordered(value: Any) -> Any:
    if isinstance(value, list | dict) or value is None:
        raise NoOverload
    return value


def _compare(a: Any, b: Any) -> int:
    try:
        return int(_ordered(a) > _ordered(b)) - int(a < b)
    except TypeError:
        raise NoOverload from None


_ORDER = cmp_to_key(_compare)


def _is_sorted(items: list[Any]) -> bool:
    return all(_compare(a, b) <= 0 for a, b in itertools.pairwise(items))


def _least(items: list[Any]) -> Any:
    if not items:
        raise CelError("min called on empty list")
    return min(items, key=_ORDER)


def _greatest(items: list[Any]) -> Any:
    if not items:
        raise CelError("max called on empty list")
    return max(items, key=_ORDER)


def _sum(items: list[Any]) -> Any:
    if not items:
        return 0
    first = items[0]
    if isinstance(first, Duration):
        return checked_duration(sum(item.nanos for item in items))
    if isinstance(first, bool) or not all(type(item) is type(first) for item in items):
        raise NoOverload
    if isinstance(first, Uint):
        return checked_uint(sum(int(item) for item in items))
    return sum(items) if isinstance(first, float) else checked_int(sum(items))


def _position(items: list[Any], value: Any) -> int:
    return next((i for i, item in enumerate(items) if equal(item, value)), -1)


def _last_position(items: list[Any], value: Any) -> int:
    return next((i for i in range(len(items) - 1, -1, -1) if equal(items[i], value)), -1)


def _lists() -> None:
    comparable = (t.INT, t.UINT, t.DOUBLE, t.BOOL, t.STRING, t.BYTES, t.TIMESTAMP, t.DURATION)
    for kind in comparable:
        items = t.list_of(kind)
        define("isSorted", (items,), t.BOOL, _is_sorted, member=True, sized=True)
        define("min", (items,), kind, _least, member=True, sized=True)
        define("max", (items,), kind, _greatest, member=True, sized=True)
    for kind in (t.INT, t.UINT, t.DOUBLE, t.DURATION):
        define("sum", (t.list_of(kind),), kind, _sum, member=True, sized=True)
    define("indexOf", (_LIST_A, t.A), t.INT, _position, member=True, sized=True)
    define("lastIndexOf", (_LIST_A, t.A), t.INT, _last_position, member=True, sized=True)


def _sets() -> None:
    def superset(a: list[Any], b: list[Any]) -> bool:
        members = Members(a)
        return all(item in members for item in b)

    def equivalent(a: list[Any], b: list[Any]) -> bool:
        return superset(a, b) and superset(b, a)

    def intersects(a: list[Any], b: list[Any]) -> bool:
        members = Members(b)
        return any(item in members for item in a)

    for name, fn in (("contains", superset), ("equivalent", equivalent), ("intersects", intersects)):
        define(f"sets.{name}", (_LIST_A, _LIST_A), t.BOOL, fn, cost=both_lists)


_strings()
_lists()
_sets()
