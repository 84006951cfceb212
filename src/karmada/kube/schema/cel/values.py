"""The values an expression computes with, and what it means for two of them to be equal or ordered.

Objects stay what JSON decoding made of them: dict, list, str, int, float, bool, None. Only what JSON lacks has a class:
Uint, Timestamp and Duration (nanoseconds, as int), Opt (optional values) and the two list classes that carry the
Kubernetes list types, since `==` and `+` on a set or a map-like list ignore order.
Python says True == 1, so equality of unknown types goes through `equal`, never through `==`.
"""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from typing import Any, Final

from karmada.kube.objects.times import parse_duration_ns

INT_MIN, INT_MAX, UINT_MAX = -(2**63), 2**63 - 1, 2**64 - 1
NANOS = 1_000_000_000


class CelError(Exception):
    """An expression that could not be evaluated."""


class NoOverload(CelError):
    def __init__(self) -> None:
        super().__init__("no such overload")


class BudgetExceeded(Exception):
    """The evaluation took more steps than allowed; no CelError, so that && and || do not absorb it."""


class Uint(int):
    __slots__ = ()


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    nanos: int

    def at(self, zone: datetime.tzinfo = datetime.UTC) -> datetime.datetime:
        return _EPOCH.astimezone(zone) + datetime.timedelta(seconds=self.nanos // NANOS)

    def __str__(self) -> str:
        seconds, fraction = divmod(self.nanos, NANOS)
        text = (_EPOCH + datetime.timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S")
        return text + (f".{fraction:09d}".rstrip("0") if fraction else "") + "Z"


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    nanos: int

    def __str__(self) -> str:
        sign = "-" if self.nanos < 0 else ""
        seconds, fraction = divmod(abs(self.nanos), NANOS)
        return f"{sign}{seconds}" + (f".{fraction:09d}".rstrip("0") if fraction else "") + "s"


class Opt:
    """optional_type: a value or nothing."""

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        self._value = value

    @property
    def present(self) -> bool:
        return self._value is not _ABSENT

    def get(self) -> Any:
        if self._value is _ABSENT:
            raise CelError("optional.none() dereference")
        return self._value


class _Absent:
    pass


_ABSENT: Final = _Absent()
NONE: Final = Opt(_ABSENT)


class ObjectValue(dict[str, Any]):
    """An object that an expression made, with the name of the type that it was made as."""

    __slots__ = ("type_name",)

    def __init__(self, type_name: str) -> None:
        super().__init__()
        self.type_name = type_name


class SetList(list[Any]):
    """A list with x-kubernetes-list-type set."""

    __slots__ = ()


class MapList(list[Any]):
    """A list with x-kubernetes-list-type map."""

    __slots__ = ("keys",)

    def __init__(self, items: list[Any], keys: tuple[str, ...]) -> None:
        super().__init__(items)
        self.keys = keys

    def key_of(self, item: Any) -> tuple[Any, ...]:
        return tuple(item.get(key) for key in self.keys)


def equal(a: Any, b: Any) -> bool:
    """CEL's equality: numbers compare by value, other types are unequal when they differ."""
    kind, other = type(a), type(b)
    if kind is other and kind in _PLAIN:
        return bool(a == b)
    if isinstance(a, dict):
        return isinstance(b, dict) and len(a) == len(b) and all(k in b and equal(v, b[k]) for k, v in a.items())
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and _equal_lists(a, b)
    if kind is bool or other is bool or a is None or b is None:
        return a is b
    if isinstance(a, Opt):
        if not isinstance(b, Opt) or a.present != b.present:
            return False
        return not a.present or equal(a.get(), b.get())
    return bool(a == b)


_PLAIN = frozenset({str, int, bool, float, bytes, type(None)})
SCALARS = _PLAIN | {Uint}
"""The classes of values whose hashes are equal where the values are (but for bool)."""


def _equal_lists(a: list[Any], b: list[Any]) -> bool:
    if isinstance(a, MapList):
        index = {a.key_of(item): item for item in b if isinstance(item, dict)}
        return all(isinstance(i, dict) and a.key_of(i) in index and equal(i, index[a.key_of(i)]) for i in a)
    if isinstance(a, SetList):
        members = Members(b)
        return all(item in members for item in a)
    return all(equal(x, y) for x, y in zip(a, b, strict=True))


def contains(items: list[Any], value: Any) -> bool:
    return any(equal(item, value) for item in items)


class Members:
    """The items of a list, to be looked up by `equal`: scalars by their hash, only the others one by one."""

    __slots__ = ("_others", "_scalars")

    def __init__(self, items: list[Any]) -> None:
        self._scalars = {_scalar(item) for item in items if type(item) in SCALARS}
        self._others = [item for item in items if type(item) not in SCALARS]

    def __contains__(self, value: Any) -> bool:
        if type(value) in SCALARS and _scalar(value) in self._scalars:
            return bool(value == value)  # NaN is not even itself
        return contains(self._others, value)


def _scalar(value: Any) -> Any:
    return (bool, value) if type(value) is bool else value


def concat(a: list[Any], b: list[Any]) -> list[Any]:
    """`+` on lists: sets unite, map-like lists take the right item where keys meet, other lists append."""
    if isinstance(a, SetList):
        members = Members(a)
        return SetList([*a, *(item for item in b if item not in members)])
    if isinstance(a, MapList):
        merged = {a.key_of(item): item for item in a}
        merged.update((a.key_of(item), item) for item in b)
        return MapList(list(merged.values()), a.keys)
    return [*a, *b]


_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_TIMESTAMP = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9})\d*)?(?:([Zz])|([+-])(\d\d):(\d\d))"
)


def parse_timestamp(text: str) -> Timestamp:
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        raise CelError(f"invalid timestamp {text!r}")
    year, month, day, hour, minute, second, fraction, _, sign, off_hours, off_minutes = match.groups()
    try:
        moment = datetime.datetime(
            int(year), int(month), int(day), int(hour), int(minute), int(second), tzinfo=datetime.UTC
        )
    except ValueError as error:
        raise CelError(f"invalid timestamp {text!r}: {error}") from None
    span = moment - _EPOCH
    seconds = span.days * 86400 + span.seconds
    if sign:
        offset = int(off_hours) * 3600 + int(off_minutes) * 60
        seconds -= offset if sign == "+" else -offset
    return Timestamp(seconds * NANOS + int((fraction or "").ljust(9, "0")))


def parse_duration(text: str) -> Duration:
    try:
        return Duration(parse_duration_ns(text))
    except ValueError as error:
        raise CelError(str(error)) from None


def checked_int(value: int) -> int:
    if INT_MIN <= value <= INT_MAX:
        return value
    raise CelError("integer overflow")


def checked_uint(value: int) -> Uint:
    if 0 <= value <= UINT_MAX:
        return Uint(value)
    raise CelError("unsigned integer overflow")


def checked_duration(nanos: int) -> Duration:
    return Duration(checked_int(nanos))


_YEAR_1, _YEAR_9999 = -62_135_596_800 * NANOS, 253_402_300_800 * NANOS


def checked_timestamp(nanos: int) -> Timestamp:
    if _YEAR_1 <= nanos < _YEAR_9999:
        return Timestamp(nanos)
    raise CelError("timestamp overflow")
