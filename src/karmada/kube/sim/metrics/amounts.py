"""Amounts of load: constant, relative to requests, or varying over time, and their syntax.

A demand is a set of words such as cpu=250m, total-cpu=4, requests=80%, http_requests=50. cpu and memory are what every
pod uses; a percentage means that part of what the pod requests, and requests=… says it of both. total-… is divided
among the ready pods it is meant for, so that more pods mean less for each. Any other word is a custom metric.
The same words are the keys of a setting, where an amount may also be a series of points in time.
All amounts are counted in nano units.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Mapping
from functools import lru_cache
from typing import TypeAlias

import msgspec

from karmada.kube.objects.quantity import Quantity
from karmada.kube.runtime.logging import get_logger

ANNOTATION = "sim.io/load"
RESOURCES = ("cpu", "memory")
NANO = 10**9
WINDOW_SECONDS = 15
_REQUESTS, _CONTAINER, _JITTER, _TOTAL = "requests", "container", "jitter", "total-"
_log = get_logger("load")


class Series(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Amounts at points in time (seconds after the setting was made), with straight lines between them, or steps."""

    points: tuple[tuple[float, str], ...]
    repeat: bool = False
    """After the last point the series starts again; otherwise its last amount stays."""
    steps: bool = False


Amount: TypeAlias = str | Series


class Demand(msgspec.Struct, frozen=True):
    """The load that one source sets, sorted: of each, and of all together."""

    each: dict[str, Amount] = {}
    together: dict[str, Amount] = {}
    container: str = ""
    """Where cpu and memory are used; empty: in all containers, in proportion to their requests."""
    jitter: float = 0.0
    """Amounts vary by up to this part, differently for every pod and every few seconds."""

    def has(self, measure: str) -> bool:
        return measure in self.each or measure in self.together

    def metrics(self) -> set[str]:
        return {name for name in (*self.each, *self.together) if name not in RESOURCES}


NOTHING = Demand()


def demand_of(words: Mapping[str, Amount]) -> Demand:
    """ValueError when a word or its amount is invalid."""
    each: dict[str, Amount] = {}
    together: dict[str, Amount] = {}
    container, jitter = "", 0.0
    for word, amount in words.items():
        if word == _CONTAINER and isinstance(amount, str):
            container = amount
        elif word == _JITTER and isinstance(amount, str):
            jitter = _fraction(amount)
        elif word == _REQUESTS:
            _check(word, amount, percent=True)
            each = dict.fromkeys(RESOURCES, amount) | each
        elif word.startswith(_TOTAL) and word != _TOTAL:
            _check(word, amount, percent=False)
            together[word.removeprefix(_TOTAL)] = amount
        else:
            _check(word, amount, percent=None if word in RESOURCES else False)
            each[word] = amount
    return Demand(each, together, container, jitter)


@lru_cache(maxsize=4096)
def annotated(text: str) -> Demand:
    """Return the load in an annotation; nothing, and a log line, when it cannot be parsed."""
    try:
        return demand_of(parse_words(text))
    except ValueError as error:
        _log.info("Cannot read a load annotation", annotation=text, err=str(error))
        return NOTHING


def parse_words(text: str) -> dict[str, str]:
    words = {}
    for part in text.split(","):
        word, equals, amount = part.partition("=")
        if not part.strip():
            continue
        if not equals or not word.strip() or not amount.strip():
            raise ValueError(f"{part.strip()!r} is not of the form name=amount")
        words[word.strip()] = amount.strip()
    return words


def _fraction(text: str) -> float:
    value = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    if not 0 <= value <= 1:
        raise ValueError(f"jitter must be between 0 and 1, not {text}")
    return value


def _check(word: str, amount: Amount, *, percent: bool | None) -> None:
    """`percent` True: must be a percentage; False: must be none; None: may be either."""
    if not word:
        raise ValueError("an amount without a name")
    texts = [text for _, text in amount.points] if isinstance(amount, Series) else [amount]
    if isinstance(amount, Series):
        moments = [moment for moment, _ in amount.points]
        if not moments or moments != sorted(moments) or moments[0] < 0:
            raise ValueError(f"{word}: needs points in ascending order, none before the start")
    for text in texts:
        if text.endswith("%") is not percent and percent is not None:
            raise ValueError(f"{word}: {text} is {'no' if percent else 'a'} percentage")
        if _nano(text, NANO) < 0:
            raise ValueError(f"{word}: {text} is below zero")


def _nano(text: str, whole: int) -> int:
    if text.endswith("%"):
        return round(float(text[:-1]) / 100 * whole)
    return Quantity.parse(text).nano


def nano_at(amount: Amount, elapsed: float, whole: int = 0) -> int:
    """Return the amount so many seconds after the start; percentages are parts of `whole`."""
    if isinstance(amount, str):
        return _nano(amount, whole)
    points = amount.points
    last = points[-1][0]
    if amount.repeat and last > 0:
        elapsed %= last
    after = bisect_right(points, elapsed, key=lambda point: point[0])
    if after == 0 or after == len(points):
        return _nano(points[min(after, len(points) - 1)][1], whole)
    (start, low), (end, high) = points[after - 1], points[after]
    if amount.steps:
        return _nano(low, whole)
    begin = _nano(low, whole)
    return begin + round((_nano(high, whole) - begin) * (elapsed - start) / (end - start))


def chance(*parts: object) -> float:
    """Return a number from 0 to 1 that is always the same for the same parts."""
    digest = hashlib.blake2b("\0".join(map(str, parts)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64
