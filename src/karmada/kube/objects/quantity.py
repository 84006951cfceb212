"""Resource quantities ("100m", "1.5Gi", "1e3"): parsed, added up and printed exactly.

Kubernetes keeps nothing finer than a nano unit, so a quantity is one Python int that counts nano units, plus the family
of suffixes it prints with. Arithmetic is therefore int arithmetic and never loses a digit. Parsing rounds away from
zero to the next nano unit (a small request stays above zero) and stops at the largest 64-bit integer.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache, total_ordering
from typing import Any


class Format(Enum):
    """The family of suffixes a quantity was written with and is printed with."""

    DECIMAL_SI = "DecimalSI"
    BINARY_SI = "BinarySI"
    DECIMAL_EXPONENT = "DecimalExponent"


_NANO = 10**9
_KIBI = 1024 * _NANO
_LIMIT = (2**63 - 1) * _NANO
_HUGE_POWER = 40
"""Ten to this power in nano units is beyond the limit whatever it multiplies."""

_DECIMAL_SUFFIXES = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_SUFFIXES = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_SUFFIX_OF_POWER = {power: suffix for suffix, power in _DECIMAL_SUFFIXES.items()}
_SUFFIX_OF_STEP = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")

_FORM = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)")
_EXPONENT = re.compile(r"[eE]([-+]?[0-9]{1,18})")

_BAD_FORM = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_BAD_NUMBER = "unable to parse numeric part of quantity"
_BAD_SUFFIX = "unable to parse quantity's suffix"
_MAX_LENGTH = 1000


@total_ordering
class Quantity:
    """An exact amount; immutable. Equality and order compare amounts only: 1000m equals 1."""

    __slots__ = ("_text", "format", "nano")

    nano: int
    """The amount in units of 10^-9."""
    format: Format

    def __init__(self, nano: int, format: Format = Format.DECIMAL_SI) -> None:  # noqa: A002
        self.nano = nano
        self.format = format
        self._text = ""

    @classmethod
    def parse(cls, value: str | int | float | Quantity) -> Quantity:
        """Parse a quantity; raise ValueError with Kubernetes' text."""
        if type(value) is str:
            return _parse(value)
        return _from_other(value)

    @classmethod
    def of(cls, units: int, format: Format = Format.DECIMAL_SI) -> Quantity:  # noqa: A002
        return cls(units * _NANO, format)

    @classmethod
    def of_milli(cls, milli: int, format: Format = Format.DECIMAL_SI) -> Quantity:  # noqa: A002
        return cls(milli * 1_000_000, format)

    def value(self) -> int:
        """Whole units, rounded away from zero."""
        return _divide_away(self.nano, _NANO)

    def milli(self) -> int:
        """Thousandths, rounded away from zero."""
        return _divide_away(self.nano, 1_000_000)

    def is_zero(self) -> bool:
        return self.nano == 0

    def __bool__(self) -> bool:
        return self.nano != 0

    def __add__(self, other: Quantity) -> Quantity:
        if not isinstance(other, Quantity):
            return NotImplemented
        return Quantity(self.nano + other.nano, self.format if self.nano else other.format)

    def __sub__(self, other: Quantity) -> Quantity:
        if not isinstance(other, Quantity):
            return NotImplemented
        return Quantity(self.nano - other.nano, self.format if self.nano else other.format)

    def __mul__(self, factor: int) -> Quantity:
        if not isinstance(factor, int):
            return NotImplemented
        return Quantity(self.nano * factor, self.format)

    __rmul__ = __mul__

    def __neg__(self) -> Quantity:
        return Quantity(-self.nano, self.format)

    def __abs__(self) -> Quantity:
        return Quantity(abs(self.nano), self.format)

    def __eq__(self, other: object) -> bool:
        return self.nano == other.nano if isinstance(other, Quantity) else NotImplemented

    def __lt__(self, other: Quantity) -> bool:
        return self.nano < other.nano if isinstance(other, Quantity) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.nano)

    def __str__(self) -> str:
        """Return the canonical form."""
        if not self._text:
            self._text = _canonical(self.nano, self.format)
        return self._text

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"


ZERO = Quantity(0)


def _divide_away(number: int, by: int) -> int:
    return -(-number // by) if number >= 0 else number // by


def _from_other(value: Any) -> Quantity:
    if isinstance(value, Quantity):
        return value
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise ValueError(_BAD_FORM)
    return _parse(str(value))


@lru_cache(maxsize=16384)
def _parse(text: str) -> Quantity:
    if text.isdecimal() and text.isascii() and len(text) < 19:
        return Quantity(int(text) * _NANO)
    match = _FORM.fullmatch(text.strip(" \t\r\n"))
    if match is None or not text or len(text) > _MAX_LENGTH:
        raise ValueError(_BAD_FORM)
    sign, whole, fraction, suffix = match.groups(default="")
    digits = whole + fraction
    base, power, kind = _suffix_of(suffix)
    if not digits:
        raise ValueError(_BAD_NUMBER)
    nano = _nano(int(digits), len(digits), len(fraction), base, power)
    if kind is Format.BINARY_SI and 0 < nano < _NANO:
        kind = Format.DECIMAL_SI
    return Quantity(-nano if sign == "-" else nano, kind)


def _suffix_of(suffix: str) -> tuple[int, int, Format]:
    """Return what a suffix multiplies by, as base and power, and its family."""
    power = _DECIMAL_SUFFIXES.get(suffix)
    if power is not None:
        return 10, power, Format.DECIMAL_SI
    power = _BINARY_SUFFIXES.get(suffix)
    if power is not None:
        return 2, power, Format.BINARY_SI
    match = _EXPONENT.fullmatch(suffix)
    if match is None:
        raise ValueError(_BAD_SUFFIX)
    return 10, int(match[1]), Format.DECIMAL_EXPONENT


def _nano(number: int, width: int, fraction_digits: int, base: int, power: int) -> int:
    """Return number / 10^fraction_digits * base^power in nano units, rounded up; number is not negative."""
    if number == 0:
        return 0
    if base == 2:
        return min(_divide_away((number << power) * _NANO, 10**fraction_digits), _LIMIT)
    shift = power + 9 - fraction_digits
    if shift > _HUGE_POWER:
        return _LIMIT
    if shift >= 0:
        factor: int = 10**shift
        return min(number * factor, _LIMIT)
    if -shift > width:
        return 1
    divisor: int = 10**-shift
    return min(_divide_away(number, divisor), _LIMIT)


def _canonical(nano: int, kind: Format) -> str:
    if nano == 0:
        return "0"
    sign, size = ("-", -nano) if nano < 0 else ("", nano)
    if kind is Format.BINARY_SI and size >= _KIBI and size % _NANO == 0:
        return sign + _binary(size // _NANO)
    mantissa, power = _decimal(size)
    if kind is Format.DECIMAL_EXPONENT:
        return f"{sign}{mantissa}e{power}" if power else f"{sign}{mantissa}"
    return f"{sign}{mantissa}{_SUFFIX_OF_POWER[power]}"


def _binary(units: int) -> str:
    step = 0
    while step < 6 and units & 1023 == 0:
        units >>= 10
        step += 1
    return f"{units}{_SUFFIX_OF_STEP[step]}"


def _decimal(nano: int) -> tuple[int, int]:
    """Mantissa and power of ten: the power is the largest multiple of three that leaves no fraction."""
    power = -9
    while power < 18 and nano % 1000 == 0:
        nano //= 1000
        power += 3
    return nano, power


def canonical(value: str | int | float) -> str:
    """Return the form Kubernetes stores and prints for what a user wrote."""
    return str(Quantity.parse(value))
