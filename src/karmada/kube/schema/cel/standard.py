"""The functions of the language itself: arithmetic, comparison, indexing, conversion, time.

Arithmetic overflows are errors, division truncates towards zero, and numbers of different kinds may be ordered (but
not added), as the language defines it.
"""

from __future__ import annotations

import datetime
import math
import zoneinfo
from collections.abc import Callable
from typing import Any

from karmada.kube.schema.cel import types as t
from karmada.kube.schema.cel.costs import both_lists, total
from karmada.kube.schema.cel.registry import define, runtime_type
from karmada.kube.schema.cel.values import (
    INT_MAX,
    INT_MIN,
    NANOS,
    NONE,
    CelError,
    Duration,
    NoOverload,
    Opt,
    SetList,
    Timestamp,
    Uint,
    checked_duration,
    checked_int,
    checked_timestamp,
    checked_uint,
    concat,
    contains,
    equal,
    parse_duration,
    parse_timestamp,
)

_LIST_A, _MAP_AB = t.list_of(t.A), t.map_of(t.A, t.B)


def _quotient(a: int, b: int) -> int:
    if b == 0:
        raise CelError("division by zero")
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _remainder(a: int, b: int) -> int:
    if b == 0:
        raise CelError("modulus by zero")
    return int(math.copysign(1, a)) * (abs(a) % abs(b))


def _divide(a: float, b: float) -> float:
    if b:
        return a / b
    if a == 0 or math.isnan(a):
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def _product(a: float, b: float) -> float:
    return a * b


def _concat_cost(a: list[Any], b: list[Any]) -> int:
    return both_lists(a, b) if isinstance(a, SetList) else total(a, b)


def _arithmetic() -> None:
    ints: dict[str, Callable[[int, int], int]] = {
        "_+_": lambda a, b: a + b,
        "_-_": lambda a, b: a - b,
        "_*_": lambda a, b: a * b,
        "_/_": _quotient,
        "_%_": _remainder,
    }
    for name, fn in ints.items():
        define(name, (t.INT, t.INT), t.INT, lambda a, b, fn=fn: checked_int(fn(a, b)))
        define(name, (t.UINT, t.UINT), t.UINT, lambda a, b, fn=fn: checked_uint(fn(int(a), int(b))))
    define("_+_", (t.DOUBLE, t.DOUBLE), t.DOUBLE, lambda a, b: a + b)
    define("_-_", (t.DOUBLE, t.DOUBLE), t.DOUBLE, lambda a, b: a - b)
    define("_*_", (t.DOUBLE, t.DOUBLE), t.DOUBLE, _product)
    define("_/_", (t.DOUBLE, t.DOUBLE), t.DOUBLE, _divide)
    define("-_", (t.INT,), t.INT, lambda a: checked_int(-a))
    define("-_", (t.DOUBLE,), t.DOUBLE, lambda a: -a)
    define("!_", (t.BOOL,), t.BOOL, lambda a: not a)
    for kind in (t.STRING, t.BYTES):
        define("_+_", (kind, kind), kind, lambda a, b: a + b)
    define("_+_", (_LIST_A, _LIST_A), _LIST_A, concat, cost=_concat_cost)
    time, span = t.TIMESTAMP, t.DURATION
    define("_+_", (span, span), span, lambda a, b: checked_duration(a.nanos + b.nanos))
    define("_+_", (time, span), time, lambda a, b: checked_timestamp(a.nanos + b.nanos))
    define("_+_", (span, time), time, lambda a, b: checked_timestamp(a.nanos + b.nanos))
    define("_-_", (span, span), span, lambda a, b: checked_duration(a.nanos - b.nanos))
    define("_-_", (time, span), time, lambda a, b: checked_timestamp(a.nanos - b.nanos))
    define("_-_", (time, time), span, lambda a, b: checked_duration(a.nanos - b.nanos))


def _comparison() -> None:
    define("_==_", (t.A, t.A), t.BOOL, equal, sized=True)
    define("_!=_", (t.A, t.A), t.BOOL, lambda a, b: not equal(a, b), sized=True)
    orders: dict[str, Callable[[Any, Any], bool]] = {
        "_<_": lambda a, b: a < b,
        "_<=_": lambda a, b: a <= b,
        "_>_": lambda a, b: a > b,
        "_>=_": lambda a, b: a >= b,
    }
    numbers = (t.INT, t.UINT, t.DOUBLE)
    pairs = [(a, b) for a in numbers for b in numbers]
    pairs += [(kind, kind) for kind in (t.BOOL, t.STRING, t.BYTES, t.TIMESTAMP, t.DURATION)]
    for name, fn in orders.items():
        for pair in pairs:
            define(name, pair, t.BOOL, fn)


def _index(items: list[Any], index: Any) -> Any:
    if isinstance(index, float) and index.is_integer():
        index = int(index)
    if not isinstance(index, int) or isinstance(index, bool):
        raise NoOverload
    if 0 <= index < len(items):
        return items[index]
    raise CelError(f"index out of bounds: {index}")


def _key(mapping: dict[Any, Any], key: Any) -> Any:
    try:
        return mapping[key]
    except KeyError:
        raise CelError(f"no such key: {key}") from None
    except TypeError:
        raise NoOverload from None


def _optional_index(items: list[Any], index: int) -> Opt:
    return Opt(items[index]) if 0 <= index < len(items) else NONE


def _optional_key(mapping: dict[Any, Any], key: Any) -> Opt:
    return Opt(mapping[key]) if key in mapping else NONE


def _through(fn: Callable[[Any, Any], Opt]) -> Callable[[Opt, Any], Opt]:
    return lambda operand, index: fn(operand.get(), index) if operand.present else NONE


def _containers() -> None:
    define("_[_]", (_LIST_A, t.INT), t.A, _index)
    define("_[_]", (_LIST_A, t.DOUBLE), t.A, _index)
    define("_[_]", (_MAP_AB, t.A), t.B, _key)
    result_a, result_b = t.optional_of(t.A), t.optional_of(t.B)
    define("_[?_]", (_LIST_A, t.INT), result_a, _optional_index)
    define("_[?_]", (_MAP_AB, t.A), result_b, _optional_key)
    for name in ("_[_]", "_[?_]"):
        define(name, (t.optional_of(_LIST_A), t.INT), result_a, _through(_optional_index))
        define(name, (t.optional_of(_MAP_AB), t.A), result_b, _through(_optional_key))
    define("@in", (t.A, _LIST_A), t.BOOL, lambda value, items: contains(items, value), sized=True)
    define("@in", (t.A, _MAP_AB), t.BOOL, lambda key, mapping: key in mapping)
    for kind in (t.STRING, t.BYTES, _LIST_A, _MAP_AB):
        define("size", (kind,), t.INT, len, both=True, sized=False)


def _double_to_int(value: float) -> int:
    if not math.isfinite(value) or not INT_MIN <= value < float(INT_MAX):
        raise CelError("integer overflow")
    return int(value)


def _text_to_int(text: str) -> int:
    try:
        if "_" in text or text != text.strip():
            raise ValueError(text)
        return checked_int(int(text))
    except ValueError:
        raise CelError(f'type conversion error from "{text}" to int') from None


def _text_to_double(text: str) -> float:
    try:
        if "_" in text or text != text.strip():
            raise ValueError(text)
        return float(text)
    except ValueError:
        raise CelError(f'type conversion error from "{text}" to double') from None


_BOOLS = {"1": True, "t": True, "T": True, "true": True, "TRUE": True, "True": True}
_BOOLS |= {"0": False, "f": False, "F": False, "false": False, "FALSE": False, "False": False}


def _text_to_bool(text: str) -> bool:
    if text not in _BOOLS:
        raise CelError(f'type conversion error from "{text}" to bool')
    return _BOOLS[text]


def show_double(value: float) -> str:
    """Return the shortest decimal that reads back, without a trailing .0, exponents as Go writes them."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if value == int(value) and abs(value) < 1e21:
        return str(int(value))
    return repr(value)


def _decode(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise CelError("invalid UTF-8 in bytes, cannot convert to string") from None


def _conversions() -> None:
    rows: list[tuple[str, t.Type, t.Type, Callable[[Any], Any]]] = [
        ("int", t.INT, t.INT, lambda v: v),
        ("int", t.UINT, t.INT, lambda v: checked_int(int(v))),
        ("int", t.DOUBLE, t.INT, _double_to_int),
        ("int", t.STRING, t.INT, _text_to_int),
        ("int", t.TIMESTAMP, t.INT, lambda v: v.nanos // NANOS),
        ("int", t.DURATION, t.INT, lambda v: v.nanos),
        ("uint", t.UINT, t.UINT, lambda v: v),
        ("uint", t.INT, t.UINT, checked_uint),
        ("uint", t.DOUBLE, t.UINT, lambda v: checked_uint(_double_to_int(v))),
        ("uint", t.STRING, t.UINT, lambda v: checked_uint(_text_to_int(v))),
        ("double", t.DOUBLE, t.DOUBLE, lambda v: v),
        ("double", t.INT, t.DOUBLE, float),
        ("double", t.UINT, t.DOUBLE, float),
        ("double", t.STRING, t.DOUBLE, _text_to_double),
        ("string", t.STRING, t.STRING, lambda v: v),
        ("string", t.BOOL, t.STRING, lambda v: "true" if v else "false"),
        ("string", t.INT, t.STRING, str),
        ("string", t.UINT, t.STRING, lambda v: str(int(v))),
        ("string", t.DOUBLE, t.STRING, show_double),
        ("string", t.BYTES, t.STRING, _decode),
        ("string", t.TIMESTAMP, t.STRING, str),
        ("string", t.DURATION, t.STRING, str),
        ("bytes", t.BYTES, t.BYTES, lambda v: v),
        ("bytes", t.STRING, t.BYTES, lambda v: v.encode()),
        ("bool", t.BOOL, t.BOOL, lambda v: v),
        ("bool", t.STRING, t.BOOL, _text_to_bool),
        ("timestamp", t.TIMESTAMP, t.TIMESTAMP, lambda v: v),
        ("timestamp", t.STRING, t.TIMESTAMP, parse_timestamp),
        ("timestamp", t.INT, t.TIMESTAMP, lambda v: checked_timestamp(v * NANOS)),
        ("duration", t.DURATION, t.DURATION, lambda v: v),
        ("duration", t.STRING, t.DURATION, parse_duration),
        ("duration", t.INT, t.DURATION, checked_duration),
        ("dyn", t.A, t.DYN, lambda v: v),
        ("type", t.A, t.TYPE, lambda v: t.Type(runtime_type(v)) if not isinstance(v, t.Type) else t.TYPE),
    ]
    for name, param, result, fn in rows:
        define(name, (param,), result, fn)


def _zone(name: str) -> datetime.tzinfo:
    if name[:1] in ("+", "-") or name[:1].isdigit():
        sign = -1 if name[0] == "-" else 1
        hours, _, minutes = name.lstrip("+-").partition(":")
        try:
            return datetime.timezone(sign * datetime.timedelta(hours=int(hours), minutes=int(minutes)))
        except ValueError:
            raise CelError(f"unknown time zone {name}") from None
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError):
        raise CelError(f"unknown time zone {name}") from None


def _time() -> None:
    parts: dict[str, Callable[[datetime.datetime], int]] = {
        "getFullYear": lambda d: d.year,
        "getMonth": lambda d: d.month - 1,
        "getDate": lambda d: d.day,
        "getDayOfMonth": lambda d: d.day - 1,
        "getDayOfWeek": lambda d: d.isoweekday() % 7,
        "getDayOfYear": lambda d: d.timetuple().tm_yday - 1,
        "getHours": lambda d: d.hour,
        "getMinutes": lambda d: d.minute,
        "getSeconds": lambda d: d.second,
    }

    def in_zone(fn: Callable[[datetime.datetime], int]) -> Callable[[Timestamp, str], int]:
        return lambda moment, zone: fn(moment.at(_zone(zone)))

    def utc(fn: Callable[[datetime.datetime], int]) -> Callable[[Timestamp], int]:
        return lambda moment: fn(moment.at())

    for name, fn in parts.items():
        define(name, (t.TIMESTAMP,), t.INT, utc(fn), member=True)
        define(name, (t.TIMESTAMP, t.STRING), t.INT, in_zone(fn), member=True)
    millis: Callable[..., int] = lambda moment, *_: moment.nanos % NANOS // 1_000_000
    define("getMilliseconds", (t.TIMESTAMP,), t.INT, millis, member=True)
    define("getMilliseconds", (t.TIMESTAMP, t.STRING), t.INT, millis, member=True)

    def whole(unit: int) -> Callable[[Duration], int]:
        return lambda span: _quotient(span.nanos, unit)

    for name, unit in (("getHours", 3600 * NANOS), ("getMinutes", 60 * NANOS), ("getSeconds", NANOS)):
        define(name, (t.DURATION,), t.INT, whole(unit), member=True)
    span_millis: Callable[[Duration], int] = lambda span: _quotient(span.nanos, 1_000_000) % 1000
    define("getMilliseconds", (t.DURATION,), t.INT, span_millis, member=True)


def _zero(value: Any) -> bool:
    if isinstance(value, Timestamp | Duration):
        return value.nanos == 0
    return value is None or (isinstance(value, str | bytes | list | dict | int | float | Uint) and not value)


def _either(first: Opt, second: Opt) -> Opt:
    return first if first.present else second


def _or_value(first: Opt, fallback: Any) -> Any:
    return first.get() if first.present else fallback


def _optionals() -> None:
    maybe = t.optional_of(t.A)
    define("optional.of", (t.A,), maybe, Opt)
    define("optional.ofNonZeroValue", (t.A,), maybe, lambda v: NONE if _zero(v) else Opt(v))
    define("optional.none", (), maybe, lambda: NONE)
    define("hasValue", (maybe,), t.BOOL, lambda o: o.present, member=True)
    define("value", (maybe,), t.A, lambda o: o.get(), member=True)
    define("or", (maybe, maybe), maybe, _either, member=True)
    define("orValue", (maybe, t.A), t.A, _or_value, member=True)


def install() -> None:
    _arithmetic()
    _comparison()
    _containers()
    _conversions()
    _time()
    _optionals()


install()
