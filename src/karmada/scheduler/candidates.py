"""Which clusters pass all filters.

The answers of filters that look at clusters one by one are kept in the fleet's memo, as numbers: 0 passes, others stand
for reasons. What all of them together say is an array too, so a binding whose placement and kind have been seen costs a
few array operations: the clusters it is in already are let through where filters spare them, and those that the filters
of the binding itself refuse are taken out. Reasons are put together only on request.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from karmada.estimator.amounts import Bools, Ints
from karmada.scheduler.filters.protocol import BindingFilter, ClusterFilter, Filter, Refusal
from karmada.scheduler.fleet import Facet, Fleet
from karmada.scheduler.meter import FILTER, NO_METRICS, SUCCESS, UNSCHEDULABLE, Meter
from karmada.scheduler.request import Request

_SELECTION = (Facet.FACTS, Facet.APIS, Facet.SELECTION)
_PASS, _FAIL_BUT_SPARED, _FAIL = 0, 1, 2
Answers = list[tuple[Filter, Callable[[int, str], str]]]
"""For each filter, in order, why it refuses a cluster by slot and name."""


@dataclass(slots=True)
class FilterSet:
    """The filters in their order, and the reasons they have given so far."""

    filters: Sequence[Filter]
    by_cluster: tuple[ClusterFilter, ...] = ()
    by_binding: tuple[BindingFilter, ...] = ()
    texts: list[str] = field(default_factory=lambda: [""])
    numbers: dict[str, int] = field(default_factory=lambda: {"": 0})
    token: object = field(default_factory=object)
    """Makes keys in the memo this set's own."""
    facet: Facet = Facet.SELECTION

    def __post_init__(self) -> None:
        self.by_cluster = tuple(f for f in self.filters if isinstance(f, ClusterFilter))
        self.by_binding = tuple(f for f in self.filters if isinstance(f, BindingFilter))
        if any(one.facet not in _SELECTION for one in self.by_cluster):
            self.facet = Facet.ANY

    def number(self, text: str) -> int:
        found = self.numbers.get(text)
        if found is None:
            found = self.numbers[text] = len(self.texts)
            self.texts.append(text)
        return found

    # what the filters say of each cluster

    def answers(self, one: ClusterFilter, request: Request, fleet: Fleet, meter: Meter = NO_METRICS) -> Ints:
        """Return for each slot the number of the reason why this filter refuses it."""

        def compute(fleet: Fleet, rows: Ints) -> list[int]:
            began = meter.now()
            numbers = [self.number(one.check(request, fleet.cluster(row))) for row in rows.tolist()]
            meter.took(FILTER, meter.now() - began, _outcome(any(numbers)), one.name)
            return numbers

        return fleet.arrays.array((self.token, one.name, one.key(request)), one.facet, fleet, compute)

    def _together(self, request: Request, fleet: Fleet, meter: Meter) -> Ints:
        """Return for each slot whether it passes, passes if the resource is there already, or fails."""

        def compute(fleet: Fleet, rows: Ints) -> Ints:
            worst = np.zeros(len(rows), np.int64)
            for one in self.by_cluster:
                failed = self.answers(one, request, fleet, meter)[rows] > 0
                np.maximum(worst, failed * (_FAIL_BUT_SPARED if one.spares_targets else _FAIL), out=worst)
            worst[fleet.deleting[rows]] = _FAIL
            return worst

        keys: Hashable = tuple([one.key(request) for one in self.by_cluster])
        return fleet.arrays.array((self.token, keys), self.facet, fleet, compute)

    def _refusals(self, request: Request, meter: Meter) -> list[tuple[BindingFilter, Refusal]]:
        found: list[tuple[BindingFilter, Refusal]] = []
        for one in self.by_binding:
            began = meter.now()
            refusal = one.refusal(request)
            meter.took(FILTER, meter.now() - began, _outcome(refusal is not None), one.name)
            if refusal is not None:
                found.append((one, refusal))
        return found

    def candidates(self, request: Request, fleet: Fleet, meter: Meter = NO_METRICS) -> Candidates:
        together = self._together(request, fleet, meter)
        refusals = self._refusals(request, meter)
        if not refusals and not np.count_nonzero(together):
            return Candidates(self, request, fleet, fleet.by_name, refusals)
        passed: Bools = together == _PASS
        here = [fleet.slots[name] for name in request.previous if name in fleet.slots] if request.previous else []
        if here:
            passed[here] = together[here] != _FAIL
        for one, refusal in refusals:
            _refuse(passed, refusal, fleet, set(here) if one.spares_targets else frozenset())
        return Candidates(self, request, fleet, fleet.by_name[passed[fleet.by_name]], refusals)


def _outcome(refuses: bool) -> str:
    return UNSCHEDULABLE if refuses else SUCCESS


def _refuse(passed: Bools, refusal: Refusal, fleet: Fleet, spared: set[int] | frozenset[int]) -> None:
    named = {slot for name in refusal.names if (slot := fleet.slots.get(name)) is not None}
    if not refusal.others:
        passed[list(named - spared)] = False
        return
    kept = list(named | spared)
    before = passed[kept]
    passed[:] = False
    passed[kept] = before


@dataclass(slots=True)
class Candidates:
    """The clusters that passed, and how to find out why others did not."""

    filters: FilterSet
    request: Request
    fleet: Fleet
    slots: Ints
    """The rows of the clusters that passed, in the order of names."""
    refusals: list[tuple[BindingFilter, Refusal]]

    def reasons(self) -> Iterator[tuple[str, str, str]]:
        """Yield name, filter and reason for each cluster that did not pass, unless it is being deleted."""
        found = self._answers()
        for slot, name, here in self._refused():
            for one, answer in found:
                reason = "" if here and one.spares_targets else answer(slot, name)
                if reason:
                    yield name, one.name, reason
                    break

    def obstacles(self) -> Iterator[tuple[str, list[str]]]:
        """Yield the name of each cluster that did not pass, with all filters that refuse it."""
        found = self._answers()
        for slot, name, here in self._refused():
            yield name, [one.name for one, answer in found if not (here and one.spares_targets) and answer(slot, name)]

    def _refused(self) -> Iterator[tuple[int, str, bool]]:
        """Yield slot, name, and whether the resource is there already, of each cluster that is refused."""
        fleet, previous = self.fleet, self.request.previous
        others = {*self.slots.tolist(), *np.flatnonzero(fleet.deleting).tolist()}
        for slot in fleet.by_name.tolist():
            if slot not in others:
                name = fleet.names[slot]
                yield slot, name, name in previous

    def _answers(self) -> Answers:
        """Return each filter, in order, with a function of slot and name that says why it refuses a cluster."""
        refusals = {one.name: refusal for one, refusal in self.refusals}
        found: Answers = []
        for one in self.filters.filters:
            if isinstance(one, ClusterFilter):
                found.append((one, self._by_number(one)))
            elif one.name in refusals:
                found.append((one, partial(_by_refusal, refusals[one.name])))
        return found

    def _by_number(self, one: ClusterFilter) -> Callable[[int, str], str]:
        numbers: list[int] = self.filters.answers(one, self.request, self.fleet).tolist()
        return lambda slot, _name: self.filters.texts[numbers[slot]]


def _by_refusal(refusal: Refusal, _slot: int, name: str) -> str:
    return refusal.reason if refusal.refuses(name) else ""
