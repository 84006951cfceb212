from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karmada.scheduler.groups import Group, choose
from karmada.scheduler.spread import score_divided, score_duplicated
from tests.scheduler.reference import choose_groups
from tests.support.cases import cases

VECTORS = [
    ("R1,1,80 R3,1,80 R2,1,60 R5,2,60 R4,5,50 R6,3,50", 1, 3, 10, "R5 R4 R6"),
    ("R1,1,80 R2,4,40 R3,1,30 R4,3,30 R5,3,20 R6,5,10", 2, 6, 5, "R1 R2"),
    ("R1,1,60 R2,1,50 R3,1,40 R4,3,30 R5,3,20 R6,3,10", 1, 3, 6, "R1 R4 R5"),
    ("R1,1,60 R2,2,50 R3,3,40 R4,4,30", 1, 2, 5, "R1 R4"),
    ("R4,1,60 R3,3,50 R1,3,40 R2,4,30", 1, 2, 5, "R3 R1"),
    ("R1,2,6100 R2,1,5000 R3,1,4000", 1, 2, 2, "R1"),
    ("R1,2,6100 R2,1,5000 R3,1,4000", 2, 2, 2, "R1 R2"),
    ("R1,1,10 R2,1,10", 1, 2, 5, None),
    ("R1,1,10", 2, 3, 0, None),
]


def read(text: str) -> list[Group]:
    return [Group(name, int(value), int(weight)) for name, value, weight in (part.split(",") for part in text.split())]


def names(chosen: list[Group] | None) -> list[str] | None:
    return None if chosen is None else [group.name for group in chosen]


@pytest.mark.parametrize(("groups", "least", "most", "target", "expected"), VECTORS)
def test_the_heaviest_groups_with_enough_clusters_are_chosen(
    groups: Any, least: int, most: int, target: int, expected: Any
) -> None:
    chosen = choose(read(groups), least, most, target)
    assert names(chosen) == (expected and expected.split())


@given(
    st.lists(st.tuples(st.integers(1, 5), st.sampled_from([0, 1, 2, 3, 50, 1000])), min_size=1, max_size=8),
    st.integers(1, 5),
    st.integers(1, 9),
    st.integers(0, 14),
)
@settings(max_examples=1500)
def test_it_is_the_best_of_all_ways(values: Any, least: int, most: int, target: int) -> None:
    groups = [Group(f"r{number}", *pair) for number, pair in enumerate(values)]
    if len(groups) < least:
        return
    chosen = choose(groups, least, most, target)
    assert names(chosen) == choose_groups(list(groups), least, most, target)


def test_hundreds_of_groups_take_no_time() -> None:
    groups = [Group(f"r{n:03d}", 1 + n % 4, n * 7 % 50) for n in range(300)]
    chosen = choose(groups, 5, 40, 60)
    assert chosen is not None
    assert sum(group.value for group in chosen) >= 60


@cases(
    (50, [(60, 100), (70, 100), (40, 100), (30, 100), (10, 100)], 2100),
    (50, [(60, 0)] * 4, 4000),
    (50, [(10, 100)], 0),
)
def test_groups_for_duplication_score_by_clusters_that_take_all(replicas: int, members: Any, expected: Any) -> None:
    assert score_duplicated(replicas, members) == expected


@cases(
    ([(10, 100), (10, 100), (10, 100), (10, 100), (5, 100)], 45100),
    ([(40, 0), (30, 0), (10, 0), (10, 0)], 50000),
    ([(40, 100), (40, 100), (10, 100), (10, 100), (5, 100)], 50100),
    ([(100, 0), (100, 0), (10, 0), (10, 0)], 50000),
)
def test_groups_for_division_score_by_the_share_they_can_take(members: Any, expected: Any) -> None:
    assert score_divided(50, 2, members) == expected
