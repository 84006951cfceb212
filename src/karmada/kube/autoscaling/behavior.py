"""From the replicas that metrics recommend to those an autoscaler sets: stabilisation, rates, limits.

Without `behavior` the highest recommendation of a window, by default of five minutes, wins, and replicas at most double
(or become four) at a time. With it, both directions have a window of their own, and policies bound how much may change
per period; `History` remembers the recommendations and changes that this needs. Percentages are exact: up they round
up, down they round down.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from karmada.kube.objects.types import Obj

DOWN_WINDOW = 300.0
STEADY = ("ReadyForNewScale", "recommended size matches current size")
_LOWER = "recent recommendations were lower than current one, applying the lowest recent recommendation"
_HIGHER = "recent recommendations were higher than current one, applying the highest recent recommendation"
_WITHIN = ("DesiredWithinRange", "the desired count is within the acceptable range")
_TOO_FEW = ("TooFewReplicas", "the desired replica count is less than the minimum replica count")
_TOO_MANY = ("TooManyReplicas", "the desired replica count is more than the maximum replica count")
_UP_RATE = ("ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate")
_DOWN_RATE = ("ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate")

_Pick: TypeAlias = Callable[[list[int]], int]


class Moment(NamedTuple):
    """A recommendation of so many replicas, or a change by so many."""

    at: float
    replicas: int


@dataclass(slots=True)
class History:
    recommendations: list[Moment] = field(default_factory=list)
    added: list[Moment] = field(default_factory=list)
    removed: list[Moment] = field(default_factory=list)

    def begin(self, current: int, now: float) -> None:
        """Start with the present replicas as the only recommendation."""
        if not self.recommendations:
            self.recommendations.append(Moment(now, current))

    def scaled(self, before: int, after: int, behavior: Obj, now: float) -> None:
        for changes, rules in ((self.added, behavior.get("scaleUp")), (self.removed, behavior.get("scaleDown"))):
            longest = max((policy["periodSeconds"] for policy in (rules or {}).get("policies") or ()), default=0)
            changes[:] = _since(changes, now - longest)
        if after > before:
            self.added.append(Moment(now, after - before))
        elif after < before:
            self.removed.append(Moment(now, before - after))


class Bounds(NamedTuple):
    low: int
    high: int


class Decision(NamedTuple):
    """Replicas to set, whether stabilisation held them back (AbleToScale), and by which limit (ScalingLimited)."""

    replicas: int
    able: tuple[str, str]
    limit: tuple[str, str]

    @property
    def limited(self) -> bool:
        return self.limit is not _WITHIN


def _since(moments: Iterable[Moment], at: float) -> list[Moment]:
    return [moment for moment in moments if moment.at > at]


def decide(
    history: History,
    current: int,
    wanted: int,
    bounds: Bounds,
    behavior: Obj | None,
    now: float,
    down_window: float = DOWN_WINDOW,
) -> Decision:
    """Return the replicas to set for those that the metrics recommend; the recommendation is added to the history.

    `down_window` is in seconds, for autoscalers that do not set their own.
    """
    history.begin(current, now)
    if behavior is None:
        stable, able = _highest(history, wanted, now, down_window)
        replicas, limit = _doubling(current, stable, bounds)
        return Decision(replicas, able, limit)
    stable, able = _stabilised(history, current, wanted, behavior, now, down_window)
    replicas, limit = _by_policies(history, current, stable, bounds, behavior, now)
    return Decision(replicas, able, limit)


# --- without behavior


def _highest(history: History, wanted: int, now: float, window: float) -> tuple[int, tuple[str, str]]:
    """Return the recommendations of the window; one that is exactly as old as it still counts here."""
    recent = [moment for moment in history.recommendations if moment.at >= now - window]
    history.recommendations = [*recent, Moment(now, wanted)]
    stable = max(wanted, *(moment.replicas for moment in recent)) if recent else wanted
    return stable, STEADY if stable == wanted else ("ScaleDownStabilized", _HIGHER)


def _doubling(current: int, wanted: int, bounds: Bounds) -> tuple[int, tuple[str, str]]:
    rate = max(2 * current, 4)
    highest, why = (rate, _UP_RATE) if bounds.high > rate else (bounds.high, _TOO_MANY)
    if wanted < bounds.low:
        return bounds.low, _TOO_FEW
    if wanted > highest:
        return highest, why
    return wanted, _WITHIN


# --- with behavior


def _stabilised(
    history: History, current: int, wanted: int, behavior: Obj, now: float, down_window: float
) -> tuple[int, tuple[str, str]]:
    """Up only as far as all recent recommendations went, down only as far as none went beyond."""
    up = float((behavior.get("scaleUp") or {}).get("stabilizationWindowSeconds") or 0)
    down = (behavior.get("scaleDown") or {}).get("stabilizationWindowSeconds")
    down = down_window if down is None else float(down)
    known = history.recommendations
    lowest = min([wanted, *(moment.replicas for moment in _since(known, now - up))])
    highest = max([wanted, *(moment.replicas for moment in _since(known, now - down))])
    history.recommendations = [*_since(known, now - max(up, down)), Moment(now, wanted)]
    stable = min(max(current, lowest), highest)
    if stable == wanted:
        return stable, STEADY
    return stable, ("ScaleUpStabilized", _LOWER) if wanted >= current else ("ScaleDownStabilized", _HIGHER)


def _by_policies(
    history: History, current: int, wanted: int, bounds: Bounds, behavior: Obj, now: float
) -> tuple[int, tuple[str, str]]:
    if wanted > current:
        rate = max(current, up_limit(history, current, behavior.get("scaleUp") or {}, now))
        highest, why = (rate, _UP_RATE) if bounds.high > rate else (bounds.high, _TOO_MANY)
        return (highest, why) if wanted > highest else (wanted, _WITHIN)
    if wanted < current:
        rate = min(current, down_limit(history, current, behavior.get("scaleDown") or {}, now))
        lowest, why = (rate, _DOWN_RATE) if bounds.low < rate else (bounds.low, _TOO_FEW)
        return (lowest, why) if wanted < lowest else (wanted, _WITHIN)
    return wanted, _WITHIN


def _allowing(history: History, current: int, rules: Obj, now: float) -> Iterator[tuple[Obj, int]]:
    """Yield the policies that apply, each with the replicas at the start of its period."""
    if rules.get("selectPolicy") == "Disabled":
        return
    for policy in rules.get("policies") or ():
        begin = now - policy["periodSeconds"]
        added = sum(moment.replicas for moment in _since(history.added, begin))
        removed = sum(moment.replicas for moment in _since(history.removed, begin))
        yield policy, current - added + removed


def up_limit(history: History, current: int, rules: Obj, now: float) -> int:
    """Return the most replicas that policies allow now; selectPolicy Max takes the most generous, Min the strictest."""
    allowed = []
    for policy, start in _allowing(history, current, rules, now):
        change = policy["value"]
        allowed.append(start + change if policy["type"] == "Pods" else -(-start * (100 + change) // 100))
    return _choose(rules, allowed, current, generous=max, strict=min)


def down_limit(history: History, current: int, rules: Obj, now: float) -> int:
    """Return the fewest replicas that policies allow now."""
    allowed = []
    for policy, start in _allowing(history, current, rules, now):
        change = policy["value"]
        allowed.append(start - change if policy["type"] == "Pods" else start * (100 - change) // 100)
    return _choose(rules, allowed, current, generous=min, strict=max)


def _choose(rules: Obj, allowed: list[int], current: int, *, generous: _Pick, strict: _Pick) -> int:
    if not allowed:
        return current
    return strict(allowed) if rules.get("selectPolicy") == "Min" else generous(allowed)
