from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karmada.kube.objects.names import fnv32a
from karmada.scheduler.webster import apportion, dispense, in_bulk, one_by_one
from tests.scheduler.reference import webster
from tests.support.cases import cases

VECTORS = [
    (9, [1, 2], [3, 6], [3, 6]),
    (9, [1, 3], [2, 7], [2, 7]),
    (3, [1, 1], [2, 1], [1, 2]),
    (10, [1, 1, 1], [4, 3, 3], [3, 3, 4]),
    (1, [1, 1, 1], [1, 0, 0], [0, 0, 1]),
    (12, [3, 2, 1], [6, 4, 2], None),
    (13, [3, 2, 1], [7, 4, 2], None),
    (14, [3, 2, 1], [7, 5, 2], None),
    (7, [2, 1, 1, 1], [3, 2, 1, 1], None),
    (8, [2, 1, 1, 1], [3, 2, 2, 1], None),
    (9, [2, 1, 1, 1], [3, 2, 2, 2], None),
    (5, [20, 30, 50], [1, 2, 2], None),
    (7, [20, 30, 50], [1, 2, 4], None),
    (2, [5, 1, 1], [2, 0, 0], None),
    (3, [5, 1, 1], [2, 1, 0], None),
    (4, [5, 1, 1], [2, 1, 1], None),
    (10, [1, 99], [0, 10], None),
    (50, [1, 99], [1, 49], None),
    (12, [6, 12, 18], [2, 4, 6], None),
]


@pytest.mark.parametrize(("seats", "weights", "ascending", "descending"), VECTORS)
@pytest.mark.parametrize("method", [apportion, one_by_one, in_bulk])
def test_seats_go_to_the_largest_quotient(
    method: Any, seats: int, weights: Any, ascending: Any, descending: Any
) -> None:
    assert method(seats, weights) == ascending
    if descending is not None:
        assert method(seats, weights[::-1])[::-1] == descending


@cases(
    ("a", 0xE40C292C),
    ("b", 0xE70C2DE5),
    ("uid-1", 0x50C45A43),
    ("uid-2", 0x51C45BD6),
    ("93162d3c-ee8e-4995-9034-05f4d5d2c2b9", 0x5B072292),
    ("d1b7e1ce-3b2f-4c6e-8a49-0d1a9d5b8b10", 0xC7F33367),
    ("foobar", 0xBF9CF968),
)
def test_ties_are_broken_by_a_hash_of_the_uid(uid: str, value: Any) -> None:
    assert fnv32a(uid) == value


def test_no_weight_at_all_gives_nobody_a_seat() -> None:
    assert dispense(5, {"a": 0, "b": 0}) == {}
    assert dispense(5, {}) == {}


def test_names_come_in_order_and_without_seats_too() -> None:
    assert list(dispense(1, {"c": 1, "a": 1, "b": 5}).items()) == [("a", 0), ("b", 1), ("c", 0)]


weights_of = st.one_of(
    st.lists(st.integers(0, 5), min_size=1, max_size=60),
    st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=60),
    st.lists(st.sampled_from([0, 1, 3, 9, 1000, 10**6]), min_size=1, max_size=200),
)


@given(weights_of, st.integers(0, 400))
@settings(max_examples=400)
def test_in_bulk_is_exactly_one_by_one(weights: Any, seats: int) -> None:
    if not any(weights):
        return
    assert in_bulk(seats, weights) == one_by_one(seats, weights)


@given(st.dictionaries(st.text("abc", min_size=1, max_size=4), st.integers(0, 50)), st.integers(0, 60), st.booleans())
def test_it_is_what_giving_out_seat_by_seat_would_be(weights: Any, seats: int, odd: bool) -> None:
    expected = webster(seats, weights, "uid-1" if odd else "uid-2")
    assert dispense(seats, weights, descending=odd) == expected


@given(weights_of, st.integers(0, 2000), st.booleans())
def test_all_seats_are_given_and_nobody_without_a_weight_gets_one(weights: Any, seats: int, descending: Any) -> None:
    given_out = apportion(seats, weights, descending=descending)
    if not any(weights):
        assert given_out == []
        return
    assert sum(given_out) == seats
    assert all(got == 0 for got, weight in zip(given_out, weights, strict=True) if weight == 0)


@given(st.lists(st.integers(0, 40), min_size=1, max_size=80), st.data())
def test_nobody_gets_more_than_its_weight_while_there_is_room_for_all(weights: Any, data: Any) -> None:
    seats = data.draw(st.integers(0, sum(weights)))
    given_out = apportion(seats, weights)
    assert all(got <= weight for got, weight in zip(given_out, weights, strict=False))


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=80), st.integers(0, 300), st.booleans())
def test_one_seat_more_takes_nothing_from_anybody(weights: Any, seats: int, descending: Any) -> None:
    fewer = apportion(seats, weights, descending=descending)
    more = apportion(seats + 1, weights, descending=descending)
    assert sum(after - before for before, after in zip(fewer, more, strict=True)) == 1
    assert all(after >= before for before, after in zip(fewer, more, strict=True))


@given(st.lists(st.integers(1, 1000), min_size=2, max_size=60), st.integers(0, 300))
def test_a_greater_weight_never_gets_less(weights: Any, seats: int) -> None:
    pairs = sorted(zip(weights, apportion(seats, weights), strict=True))
    for (lighter, fewer), (heavier, more) in pairwise(pairs):
        assert lighter == heavier or fewer <= more


def test_huge_numbers_of_seats_take_no_time() -> None:
    given_out = apportion(2_000_000_000, [1, 2, 3] * 300)
    assert sum(given_out) == 2_000_000_000
    assert max(given_out) - 3 * min(given_out) <= 3
