"""Numbers that may also be given as a share of a whole: 2, or "25%"."""

from __future__ import annotations


def amount(value: int | str | None, whole: int, *, up: bool) -> int:
    """Return how many of `whole` are meant; parts of one count as one when rounding `up`, as none otherwise."""
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    hundredths = whole * int(value.rstrip("%"))
    return -(-hundredths // 100) if up else hundredths // 100
