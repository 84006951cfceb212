"""How values are shown: the filters of the templates. Plain functions of values and the time."""

from __future__ import annotations

from typing import Any, Final

from karmada.dashboard.secret_values import without_secret_values
from karmada.kube.objects.times import parse_time
from karmada.kube.schema.yamlio import dump_yaml

_BINARY: Final = ((2**50, "Pi"), (2**40, "Ti"), (2**30, "Gi"), (2**20, "Mi"), (2**10, "Ki"))


def duration(seconds: float) -> str:
    """Return a duration as short as kubectl shows ages: 45s, 3m, 2h15m, 4d."""
    seconds = max(0, int(seconds))
    if seconds < 120:
        return f"{seconds}s"
    if seconds < 7200:
        return f"{seconds // 60}m"
    hours, minutes = divmod(seconds // 60, 60)
    if hours < 8:
        return f"{hours}h{minutes}m" if minutes else f"{hours}h"
    return f"{hours}h" if hours < 48 else f"{hours // 24}d"


def age(timestamp: str | None, now: float) -> str:
    """Return how long ago; "unknown" without a timestamp that can be read."""
    if not timestamp:
        return "unknown"
    try:
        return duration(now - parse_time(timestamp))
    except ValueError:
        return "unknown"


def cores(value: float) -> str:
    """Return an amount of CPU: 250m, 1.5, 64, 1,200."""
    if 0 < abs(value) < 1:
        return f"{round(value * 1000)}m"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:,.1f}".removesuffix(".0")


def size(value: float) -> str:
    """Return a number of bytes: 512Mi, 15.3Gi."""
    for factor, unit in _BINARY:
        if abs(value) >= factor:
            return f"{value / factor:.1f}".removesuffix(".0") + unit
    return f"{value:.0f}"


def number(value: float) -> str:
    return f"{value:,.0f}"


def percent(part: float, whole: float) -> int:
    """Return 0 to 100, and never 0 or 100 for what is not."""
    if whole <= 0 or part <= 0:
        return 0
    if part >= whole:
        return 100
    return min(99, max(1, round(100 * part / whole)))


def as_yaml(value: Any) -> str:
    """Return an object as kubectl prints it, without what nobody reads (managedFields) and what a Secret holds."""
    if isinstance(value, dict) and "managedFields" in (value.get("metadata") or {}):
        metadata = {key: inner for key, inner in value["metadata"].items() if key != "managedFields"}
        value = {**value, "metadata": metadata}
    return dump_yaml(without_secret_values(value)).decode()
