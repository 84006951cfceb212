from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from karmada.estimator.resources import counts_on_node, demand_of, is_extended
from karmada.estimator.room import Room
from karmada.estimator.simulation import Component, complete_sets, place_one_set
from tests.support.cases import cases

GI = 2**30
GPU = "nvidia.com/gpu"
Rows = list[tuple[int, int, int, int]]
"""(how many, cpu, memory in Gi, gpus)"""


def room(*rows: tuple[int, int, int, int]) -> Room:
    return Room.of_grades(
        (count, {"cpu": cpu * 1000, "memory": memory * GI, GPU: gpus}) for count, cpu, memory, gpus in rows
    )


def component(replicas: int, cpu: int, memory: int = 0, gpus: int = 0, at: list[int] | None = None) -> Component:
    demand = {"cpu": cpu * 1000, "memory": memory * GI, GPU: gpus}
    rows = None if at is None else np.array(at, np.int64)
    return Component(replicas, {name: need for name, need in demand.items() if need}, rows)


@cases(
    ([(2, 1, 2, 0), (6, 3, 10, 0), (3, 4, 12, 0)], [component(1, 1, 2), component(3, 3, 10)], 3),
    ([(4, 1, 2, 0), (3, 2, 4, 1), (2, 4, 8, 2)], [component(2, 2, 4, 1)], 3),
    ([(1, 2, 0, 0), (1, 4, 0, 0)], [component(1, 1), component(1, 2)], 2),
    ([(1, 2, 0, 0)], [component(0, 9)], 100),
    ([], [component(1, 1)], 0),
    ([(1, 50, 50, 0)], [component(1, 1), component(0, 9)], 50),
    ([(3, 2, 2, 0)], [component(1, 1, at=[1])], 2),
    ([(3, 2, 2, 0)], [component(1, 1, at=[1]), component(2, 1, at=[0, 2])], 2),
    ([(9, 9, 9, 0)], [component(1, 1, gpus=1), component(1, 1)], 0),
)
def test_sets_are_placed_first_fit(rows: Rows, components: list[Component], expected: int) -> None:
    assert complete_sets(room(*rows), components, 100) == expected


@cases([component(1, 1)], [component(1, 1), component(1, 1)])
def test_no_more_sets_than_requested_are_placed(components: list[Component]) -> None:
    assert complete_sets(room((1, 50, 50, 0)), components, 7) == 7


def test_pods_are_bounded_too() -> None:
    few = Room(np.array([5]), {"cpu": np.array([10**6])})
    assert complete_sets(few, [Component(2, {})], 100) == 2
    assert complete_sets(few, [Component(2, {}), Component(1, {"cpu": 1})], 100) == 1


def test_what_fits_of_an_incomplete_set_stays_placed() -> None:
    two = room((2, 2, 9, 0))
    place_one_set(two, [component(1, 1), component(9, 1), component(1, 0, 9)])
    assert two.left["cpu"].tolist() == [0, 0]
    assert two.left["memory"].tolist() == [9 * GI, 9 * GI]
    assert two.pods.tolist() == [108, 108]


def test_placing_goes_on_where_the_first_nodes_are_full() -> None:
    many = room((300, 0, 9, 0), (300, 1, 9, 0))
    assert many.place({"cpu": 1000}, 299, np.arange(600)) == 299
    assert many.left["cpu"].tolist() == [0] * 599 + [1000]


# one replica after the other


def plainly(room: Room, components: list[Component], most: int) -> int:
    done = 0
    while done < most:
        for one in components:
            for _ in range(one.replicas):
                if not _placed(room, one):
                    return done
        done += 1
    return done


def _placed(room: Room, one: Component) -> bool:
    for row in range(len(room.pods)) if one.rows is None else one.rows.tolist():
        if room.pods[row] and all(
            name in room.left and room.left[name][row] >= need for name, need in one.demand.items()
        ):
            room.pods[row] -= 1
            for name, need in one.demand.items():
                room.left[name][row] -= need
            return True
    return False


rows_of_nodes = st.lists(
    st.tuples(st.integers(1, 2), st.integers(0, 12), st.integers(0, 12), st.integers(0, 3)), max_size=5
)
places = st.none() | st.lists(st.integers(0, 2), unique=True).map(sorted)
drawn_components = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3), st.integers(0, 1), places),
    min_size=1,
    max_size=3,
)


def _components(rows: Rows, drawn: list[Any]) -> list[Component]:
    size = sum(count for count, *_ in rows)
    return [
        component(replicas, cpu, memory, gpus, None if at is None else [row for row in at if row < size])
        for replicas, cpu, memory, gpus, at in drawn
    ]


@given(rows_of_nodes, drawn_components)
@settings(max_examples=200)
def test_placing_many_sets_in_one_step_changes_nothing(rows: Rows, drawn: list[Any]) -> None:
    components = _components(rows, drawn)
    assert complete_sets(room(*rows), components, 40) == plainly(room(*rows), components, 40)


@given(rows_of_nodes, drawn_components)
@settings(max_examples=100)
def test_a_set_takes_what_its_replicas_take_one_by_one(rows: Rows, drawn: list[Any]) -> None:
    components = _components(rows, drawn)
    at_once, one_by_one = room(*rows), room(*rows)
    place_one_set(at_once, components)
    plainly(one_by_one, components, 1)
    assert at_once.pods.tolist() == one_by_one.pods.tolist()
    assert all((at_once.left[name] == one_by_one.left[name]).all() for name in at_once.left)


def test_replicas_fit_on_all_nodes_together() -> None:
    assert room((2, 3, 8, 0), (1, 1, 8, 0)).replicas({"cpu": 1500}) == 4


@cases(
    ("cpu", True),
    ("memory", True),
    ("ephemeral-storage", True),
    ("nvidia.com/gpu", True),
    ("hugepages-2Mi", True),
    ("attachable-volumes-csi", True),
    ("x.kubernetes.io/y", True),
    ("pods", False),
    ("storage", False),
    ("gpu", False),
    ("requests.nvidia.com/gpu", False),
    ("requests.kubernetes.io/bar", True),
)
def test_some_resources_count_on_a_node(name: str, counts: Any) -> None:
    assert counts_on_node(name) is counts


def test_extended_resources_have_a_domain_of_their_own() -> None:
    assert is_extended("nvidia.com/gpu")
    assert not is_extended("kubernetes.io/gpu")
    assert not is_extended("gpu")
    assert not is_extended("bad domain/gpu")


def test_a_demand_is_read_in_the_units_that_count() -> None:
    request = {"cpu": "250m", "memory": "1500m", "x/y": "0", "broken": "?"}
    assert demand_of({"resourceRequest": request}) == {"cpu": 250, "memory": 2}
    assert demand_of(None) == demand_of({}) == {}
