from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karmada.scheduler.assignment import ByRoom, Move, divide_by_room, fewest, taking_part
from karmada.scheduler.decision import Failure, Reason
from karmada.scheduler.webster import dispense
from tests.support.cases import cases
from tests.support.scheduling_cases import (
    AGGREGATED,
    DUPLICATED,
    DYNAMIC,
    EVEN_UID,
    ODD_UID,
    WEIGHTED,
    cluster,
    deployment,
    placement,
    shown,
    static,
)
from tests.support.scheduling_cases import run as schedule


def named(*counts: int) -> dict[str, int]:
    return {f"m{number}": count for number, count in enumerate(counts, 1) if count}


def row(*counts: int) -> dict[str, int]:
    return {f"m{number}": count for number, count in enumerate(counts, 1)}


SHORT = "failed to assign replicas: failed to scale up: Clusters available replicas 3 are not enough to schedule."
CASES = [
    ("first, in proportion", DYNAMIC, 12, row(18, 12, 6), {}, "", row(6, 4, 2)),
    ("first, in one", AGGREGATED, 12, row(18, 12, 6), {}, "", {"m1": 12}),
    ("first, in two", AGGREGATED, 20, row(18, 12, 6), {}, "", {"m1": 12, "m2": 8}),
    ("first, in three", AGGREGATED, 12, row(6, 4, 4, 1), {}, "", row(5, 4, 3)),
    ("first, tie, even", DYNAMIC, 10, row(7, 7, 1), {}, EVEN_UID, row(5, 4, 1)),
    ("first, tie, odd", DYNAMIC, 10, row(7, 7, 1), {}, ODD_UID, row(4, 5, 1)),
    ("first, in two, even", AGGREGATED, 5, row(3, 3, 3), {}, EVEN_UID, row(3, 2)),
    ("first, in two, odd", AGGREGATED, 5, row(3, 3, 3), {}, ODD_UID, row(2, 3)),
    ("up", DYNAMIC, 24, row(10, 10, 10), row(2, 4, 6), "", row(6, 8, 10)),
    ("up, no room", DYNAMIC, 24, row(1, 1, 1), row(2, 4, 6), "", SHORT),
    ("up, in all", AGGREGATED, 24, row(4, 6, 8), row(4, 8), "", row(7, 12, 5)),
    ("up, where it is", AGGREGATED, 24, row(6, 6, 20), row(4, 8), "", row(10, 14)),
    ("up, where it is only", AGGREGATED, 6, row(10, 4, 3), {"m3": 3}, "", {"m3": 6}),
    ("up, and one more", AGGREGATED, 6, row(10, 4, 2), {"m3": 3}, "", {"m1": 2, "m3": 4}),
    ("lost one", AGGREGATED, 24, {"m1": 4, "m3": 8, "m4": 12}, row(4, 8), "", {"m1": 7, "m3": 7, "m4": 10}),
    ("lost one, in proportion", DYNAMIC, 6, {"m2": 10, "m3": 5}, row(4, 2), "", {"m2": 5, "m3": 1}),
    ("down", DYNAMIC, 6, row(0, 0, 0), row(2, 4, 6), "", row(1, 2, 3)),
    ("down to one", AGGREGATED, 6, row(0, 0), row(4, 8), "", {"m2": 6}),
    ("down to what one has", AGGREGATED, 8, row(0, 0), row(4, 8), "", {"m2": 8}),
    ("down, in both", AGGREGATED, 10, row(0, 0), row(4, 8), "", row(3, 7)),
    ("down by a few", DYNAMIC, 7, row(0, 0, 0), row(3, 4, 3), "", row(2, 3, 2)),
    ("down to a single one", DYNAMIC, 1, row(0, 0, 0), row(3, 4, 3), "", {"m2": 1}),
    ("as before", DYNAMIC, 6, row(0, 0), row(4, 2), "", row(4, 2)),
    ("as before, aggregated", AGGREGATED, 6, row(0, 0), row(4, 2), "", row(4, 2)),
]


@pytest.mark.parametrize(
    ("strategy", "replicas", "room", "previous", "uid", "expected"),
    [case[1:] for case in CASES],
    ids=[case[0] for case in CASES],
)
def test_replicas_are_divided_by_room(
    strategy: Any, replicas: int, room: Any, previous: Any, uid: str, expected: Any
) -> None:
    spec = deployment(replicas, placement(strategy), uid=uid, previous=previous, replicaRequirements={})
    assert shown(schedule(spec, [cluster(name) for name in room], room)) == expected


@cases((DYNAMIC, row(2, 4)), (AGGREGATED, {"m2": 6}))
def test_a_fresh_start_counts_what_is_placed_as_room(strategy: Any, expected: Any) -> None:
    spec = deployment(6, placement(strategy), previous=row(4, 2))
    assert shown(schedule(spec, [cluster("m1"), cluster("m2")], row(0, 10), fresh=True)) == expected


def test_a_fresh_start_without_room_says_so() -> None:
    spec = deployment(20, placement(DYNAMIC), previous=row(4, 2))
    assert shown(schedule(spec, [cluster("m1"), cluster("m2")], row(0, 10), fresh=True)) == (
        "failed to assign replicas: failed to do fresh scale: "
        "Clusters available replicas 16 are not enough to schedule."
    )


@pytest.mark.parametrize("strategy", [DYNAMIC, AGGREGATED, WEIGHTED, DUPLICATED, static(("m1", 1))])
@pytest.mark.parametrize("previous", [{}, row(4, 2)])
def test_without_replicas_nothing_is_targeted(strategy: Any, previous: Any) -> None:
    spec = deployment(0, placement(strategy), previous=previous, replicaRequirements={"resourceRequest": {"cpu": "1"}})
    assert shown(schedule(spec, [cluster("m1"), cluster("m2")])) == {}


@cases(
    (2, [("m1", 3)], 3, {"m1": 2}),
    (3, [("m1", 1), ("m2", 1), ("m1", 2)], 2, {"m1": 2, "m2": 1}),
    (4, [("nobody", 5)], 3, row(2, 1, 1)),
    (12, [("m1", 3), ("m2", 2), ("m3", 1)], 3, row(6, 4, 2)),
)
def test_given_weights_divide(replicas: int, rules: Any, clusters: Any, expected: Any) -> None:
    spec = deployment(replicas, placement(static(*rules)), uid=EVEN_UID)
    assert shown(schedule(spec, [cluster(f"m{n + 1}") for n in range(clusters)])) == expected


def test_without_preferences_all_weigh_alike() -> None:
    spec = deployment(5, placement(WEIGHTED), uid=ODD_UID)
    assert shown(schedule(spec, [cluster("m1"), cluster("m2")])) == row(2, 3)


def test_given_weights_look_neither_at_room_nor_at_what_was_before() -> None:
    spec = deployment(4, placement(static(("m1", 1), ("m2", 1))), previous=row(4))
    assert shown(schedule(spec, [cluster("m1"), cluster("m2")], row(0, 0))) == row(2, 2)


def test_a_strategy_that_does_not_exist_is_an_error() -> None:
    where = placement({"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Dynamic"})
    assert shown(schedule(deployment(2, where), [cluster("m1")])) == (
        "failed to assign replicas: unsupported replica scheduling strategy, replicaSchedulingType: Divided, "
        "replicaDivisionPreference: Dynamic, please try another scheduling strategy"
    )


# laws

rooms = st.dictionaries(st.sampled_from([f"m{n}" for n in range(12)]), st.integers(0, 20), max_size=12)
counts = st.dictionaries(st.sampled_from([f"m{n}" for n in range(12)]), st.integers(0, 9), max_size=8)


@given(rooms, counts, st.integers(0, 80), st.booleans(), st.booleans(), st.booleans())
@settings(max_examples=300)
def test_a_division_by_room_places_all_within_the_room_or_fails(
    room: Any, previous: Any, replicas: int, aggregated: bool, fresh: bool, descending: Any
) -> None:
    result = divide_by_room(replicas, room, previous, aggregated=aggregated, fresh=fresh, descending=descending)
    had = {name: count for name, count in previous.items() if name in room}
    if isinstance(result, Failure):
        assert result.reason is Reason.UNSCHEDULABLE
        assert replicas > sum(room.values()) + sum(had.values())
        return
    assert sum(result.shares.values()) == replicas
    assert set(result.shares) <= set(room)
    for name, count in result.shares.items():
        assert 0 <= count <= max(room[name] + had.get(name, 0), had.get(name, 0))


@given(rooms, counts, st.integers(0, 80), st.booleans())
@settings(max_examples=300)
def test_scaling_moves_no_replica_that_can_stay(room: Any, previous: Any, replicas: int, aggregated: bool) -> None:
    had = {name: count for name, count in previous.items() if name in room}
    result = divide_by_room(replicas, room, previous, aggregated=aggregated)
    if not isinstance(result, ByRoom):
        return
    if replicas >= sum(had.values()):
        assert all(result.shares.get(name, 0) >= count for name, count in had.items())
    else:
        assert all(result.shares[name] <= had[name] for name in result.shares)


@given(rooms, st.integers(0, 80))
def test_scaling_to_the_same_number_again_changes_nothing(room: Any, replicas: int) -> None:
    first = divide_by_room(replicas, room, {})
    if isinstance(first, ByRoom):
        again = divide_by_room(replicas, dict.fromkeys(room, 0), first.shares)
        assert isinstance(again, ByRoom)
        assert again.move is Move.KEPT
        assert again.shares == first.shares


@given(rooms, st.integers(1, 80))
def test_as_few_clusters_as_possible_are_taken(room: Any, target: int) -> None:
    if sum(room.values()) < target:
        return
    taken = fewest(target, room, first={})
    biggest = sorted(room.values(), reverse=True)
    assert sum(biggest[: len(taken) - 1]) < target <= sum(taken.values())


@given(st.dictionaries(st.text("abc", min_size=1, max_size=3), st.integers(0, 9), min_size=1), st.integers(0, 60))
def test_given_weights_place_all_and_leave_out_those_without(weights: Any, replicas: int) -> None:
    shares = dispense(replicas, taking_part(weights))
    assert sum(shares.values()) == replicas
    if any(weights.values()):
        assert all(weights[name] for name in shares)


@given(rooms, counts, st.integers(0, 80), st.booleans(), st.randoms())
def test_the_order_of_names_in_a_mapping_decides_nothing(
    room: Any, previous: Any, replicas: int, fresh: bool, random: Any
) -> None:
    names = list(room)
    random.shuffle(names)
    shuffled = divide_by_room(replicas, {name: room[name] for name in names}, previous, fresh=fresh)
    straight = divide_by_room(replicas, room, previous, fresh=fresh)
    if isinstance(straight, Failure):
        assert shuffled == straight
    else:
        assert isinstance(shuffled, ByRoom)
        assert shuffled.shares == straight.shares
