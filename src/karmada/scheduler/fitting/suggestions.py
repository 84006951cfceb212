"""Suggestions that would make a resource fit: for each sort of change the smallest, the cheapest sorts first.

Where no single change helps, two together are tried. A suggestion is only made if the scheduler's algorithm, given the
changed situation, schedules the resource. The number of trials is bounded, so the list may be incomplete in large
fleets, and says so; what it holds is always true.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, zip_longest

from karmada.kube.objects.types import Obj
from karmada.scheduler.decision import Decision
from karmada.scheduler.fitting.changes import Change, Sort, in_words
from karmada.scheduler.fitting.judge import Judge, OutOfTrials, exceeded, fits
from karmada.scheduler.fitting.knobs import Knob, Option, Sizes, changes_of
from karmada.scheduler.fitting.options import options
from karmada.scheduler.fitting.search import Fits, smallest
from karmada.scheduler.fitting.situation import Situation

OF_A_SORT = 2
"""As many suggestions of one sort are enough."""
PAIRS = 2
OF_EACH = 3
"""Options of one sort of which pairs are made."""
HALVINGS = 6
"""How often half of a change is tried where the whole does not fit."""
SHOWN = 6


@dataclass(frozen=True, slots=True)
class Suggestion:
    sorts: tuple[Sort, ...]
    knobs: tuple[Knob, ...]
    sizes: Sizes

    @property
    def changes(self) -> tuple[Change, ...]:
        return changes_of(self.knobs, self.sizes)

    @property
    def text(self) -> str:
        """Completes "it would fit if", or "it would go to member3 if"."""
        return in_words(self.changes)

    @property
    def data(self) -> list[Obj]:
        """Return a record for each change."""
        return [{"sort": change.sort.name.lower(), **change.data} for change in self.changes]

    def apply(self, situation: Situation) -> Situation:
        return applied(self.changes, situation)

    def smaller(self) -> Iterator[tuple[Change, ...]]:
        """Yield the changes with one step less of one of them: none of these fits."""
        for place, size in enumerate(self.sizes):
            if size:
                yield changes_of(self.knobs, (*self.sizes[:place], size - 1, *self.sizes[place + 1 :]))

    @property
    def effort(self) -> tuple[tuple[Sort, ...], float]:
        """Cheap sorts first; of one sort, what is less of what could be needed."""
        shares = (size / knob.limit for knob, size in zip(self.knobs, self.sizes, strict=True))
        return tuple(sorted({change.sort for change in self.changes})), sum(shares)


@dataclass(slots=True)
class Advice:
    into: str = ""
    """The cluster that it is to go to; empty if any will do."""
    suggestions: list[Suggestion] = field(default_factory=list)
    complete: bool = True
    """False if the search ended before everything was tried."""
    quota: str = ""
    """The message of a quota that refuses the result."""
    clusters: int = 0
    """How many there are to choose from."""

    @property
    def shown(self) -> list[Suggestion]:
        """Return a few suggestions for people: the best of every sort, then the second best."""
        by_sort: dict[tuple[Sort, ...], list[Suggestion]] = {}
        for one in self.suggestions:
            by_sort.setdefault(one.effort[0], []).append(one)
        in_turns = [one for row in zip_longest(*by_sort.values()) for one in row if one is not None]
        return sorted(in_turns[:SHOWN], key=lambda one: one.effort)

    @property
    def message(self) -> str:
        """Return the message besides the suggestions; "" if there is none."""
        if not self.clusters:
            return "no cluster is joined that it could go to"
        if not self.suggestions:
            in_time = "" if self.complete else "in the time for it, "
            return f"{in_time}no change was found that would make it {self.goal}, nor two together"
        return (
            f"no single change was found that would make it {self.goal}" if len(self.suggestions[0].sorts) > 1 else ""
        )

    @property
    def goal(self) -> str:
        return f"go to {self.into}" if self.into else "fit"

    @property
    def data(self) -> Obj:
        then = f"goes to {self.into}" if self.into else "fits"
        suggestions = [{"text": f"{then} if {one.text}", "changes": one.data} for one in self.suggestions]
        return {"cluster": self.into, "suggestions": suggestions, "message": self.message, "complete": self.complete}


def applied(changes: Sequence[Change], situation: Situation) -> Situation:
    for change in changes:
        situation = change.apply(situation)
    return situation


def suggest(situation: Situation, judge: Judge, decision: Decision | None = None) -> Advice | None:
    """Return what would make it fit; None if it does. `decision`: how the situation was decided, if that is known."""
    decision = decision or judge.decide(situation)
    if fits(situation, decision):
        return None
    quota = exceeded(situation, decision.targets) if decision.failure is None else ""
    advice = Advice(situation.into, quota=quota, clusters=situation.fleet.count - len(situation.fleet.leaving))

    def tried(changes: Sequence[Change]) -> bool:
        return judge.fits(applied(changes, situation))

    worth_trying = options(situation, decision, judge)
    try:
        for search in (_likely, _unlikely, _pairs):
            for one in search(worth_trying, tried):
                advice.suggestions.append(one)
            if advice.suggestions:
                break
    except OutOfTrials:
        advice.complete = False
    advice.suggestions.sort(key=lambda one: one.effort)
    return advice


def _likely(worth_trying: Sequence[Option], tried: Fits) -> Iterator[Suggestion]:
    return _singles([option for option in worth_trying if option.alone], tried)


def _unlikely(worth_trying: Sequence[Option], tried: Fits) -> Iterator[Suggestion]:
    """Try changes for one obstacle of several: one may happen to remove another, too."""
    return _singles([option for option in worth_trying if not option.alone], tried)


def _singles(worth_trying: Sequence[Option], tried: Fits) -> Iterator[Suggestion]:
    found: list[tuple[Sort, str]] = []
    for option in worth_trying:
        enough = sum(sort is option.sort for sort, _ in found) >= OF_A_SORT
        if enough or (option.about and (option.sort, option.about) in found):
            continue
        sizes = smallest(option.knobs, tried, halvings=HALVINGS)
        if sizes is not None:
            found.append((option.sort, option.about))
            yield Suggestion((option.sort,), option.knobs, sizes)


def _pairs(worth_trying: Sequence[Option], tried: Fits) -> Iterator[Suggestion]:
    """Try two options together, those about one cluster first: it may have two obstacles."""
    pairs = sorted(combinations(_few_of_each(worth_trying), 2), key=_promise)
    found = 0
    for one, other in pairs:
        sizes = smallest((*one.knobs, *other.knobs), tried)
        if sizes is not None:
            yield _of_needed([one, other], sizes)
            found += 1
            if found == PAIRS:
                return


def _of_needed(pair: Sequence[Option], sizes: Sizes) -> Suggestion:
    """Return the suggestion without an option that turned out not to be needed."""
    first = len(pair[0].knobs)
    parts = [(option, part) for option, part in zip(pair, (sizes[:first], sizes[first:]), strict=True) if any(part)]
    return Suggestion(
        tuple(option.sort for option, _ in parts),
        tuple(knob for option, _ in parts for knob in option.knobs),
        tuple(size for _, part in parts for size in part),
    )


def _few_of_each(worth_trying: Sequence[Option]) -> list[Option]:
    counts: dict[tuple[Sort, bool], int] = {}
    few: list[Option] = []
    for option in worth_trying:
        key = (option.sort, option.alone)
        counts[key] = counts.get(key, 0) + 1
        if counts[key] <= OF_EACH:
            few.append(option)
    return few


def _promise(pair: tuple[Option, Option]) -> tuple[bool, int]:
    one, other = pair
    return not (one.about and one.about == other.about), one.sort + other.sort
