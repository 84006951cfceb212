"""The search knows nothing of scheduling: here something fits when sums are large enough."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from karmada.scheduler.fitting.changes import Change, fewer_replicas
from karmada.scheduler.fitting.knobs import Knob
from karmada.scheduler.fitting.search import smallest


def knob(limit: int) -> Knob:
    return Knob(fewer_replicas, limit)


def size(change: Change) -> int:
    value: int = change.data["value"]
    return value


@given(st.integers(1, 10**6), st.integers(1, 10**6))
def test_of_one_knob_it_is_the_smallest_size(limit: int, needed: int) -> None:
    found = smallest([knob(limit)], lambda changes: size(changes[0]) >= needed)
    assert found == ((needed,) if needed <= limit else None)


def test_few_sizes_are_tried_one_by_one_as_a_larger_one_may_not_fit() -> None:
    assert smallest([knob(9)], lambda changes: size(changes[0]) in (3, 7)) == (3,)


def test_of_many_sizes_halves_are_tried_where_the_largest_does_not_fit() -> None:
    def fits(changes: Sequence[Change]) -> bool:
        return 7 <= size(changes[0]) <= 30

    assert smallest([knob(100)], fits) is None
    assert smallest([knob(100)], fits, halvings=2) == (7,)


@given(st.lists(st.integers(1, 500), min_size=2, max_size=3), st.integers(1, 1500))
def test_of_several_none_can_be_less(limits: list[int], needed: int) -> None:
    def fits(changes: Sequence[Change]) -> bool:
        return sum(map(size, changes)) >= needed

    found = smallest([knob(limit) for limit in limits], fits)
    assert (found is None) == (sum(limits) < needed)
    assert found is None or sum(found) == needed


def test_a_knob_that_is_not_needed_is_left_alone() -> None:
    assert smallest([knob(50), knob(1)], lambda changes: any(size(change) >= 20 for change in changes)) == (20, 0)
