from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karmada.estimator.resources import counts_on_node, demand_of, is_extended
from karmada.estimator.simulation import Component, Node, Simulation, nodes_of, replicas_on

GI = 2**30


def nodes(*rows: tuple[int, int, int, int]) -> list[Node]:
    """(how many, cpu, memory in Gi, gpus)"""
    return nodes_of(
        (count, {"cpu": cpu * 1000, "memory": memory * GI, "nvidia.com/gpu": gpus}) for count, cpu, memory, gpus in rows
    )


def component(replicas: int, cpu: int, memory: int = 0, gpus: int = 0) -> Component:
    demand = {"cpu": cpu * 1000, "memory": memory * GI, "nvidia.com/gpu": gpus}
    return Component(replicas, {name: need for name, need in demand.items() if need})


@pytest.mark.parametrize(
    ("rows", "components", "expected"),
    [
        ([(2, 1, 2, 0), (6, 3, 10, 0), (3, 4, 12, 0)], [component(1, 1, 2), component(3, 3, 10)], 3),
        ([(4, 1, 2, 0), (3, 2, 4, 1), (2, 4, 8, 2)], [component(2, 2, 4, 1)], 3),
        ([(1, 2, 0, 0), (1, 4, 0, 0)], [component(1, 1), component(1, 2)], 2),
        ([(1, 2, 0, 0)], [component(0, 9)], 100),
        ([], [component(1, 1)], 0),
    ],
)
def test_sets_are_placed_first_fit(rows: Any, components: Any, expected: Any) -> None:
    assert Simulation(nodes(*rows), components).sets(100) == expected


def test_no_more_sets_than_requested_are_placed() -> None:
    assert Simulation(nodes((1, 50, 50, 0)), [component(1, 1)]).sets(7) == 7


def test_pods_are_bounded_too() -> None:
    assert Simulation([Node({"cpu": 10**6}, 5)], [Component(2, {})]).sets(100) == 2


def test_a_component_goes_only_where_it_may() -> None:
    suits = frozenset({1})
    simulation = Simulation(nodes((3, 2, 2, 0)), [Component(1, {"cpu": 1000}, suits)])
    assert simulation.sets(100) == 2


def plainly(rows: list[Node], components: list[Component], most: int) -> int:
    done = 0
    while done < most:
        for one in components:
            remaining = one.replicas
            for node in rows:
                count = min(node.fits(one.demand), remaining)
                node.place(one.demand, count)
                remaining -= count
            if remaining:
                return done
        done += 1
    return done


@given(
    st.lists(st.tuples(st.integers(1, 2), st.integers(0, 30), st.integers(0, 30), st.integers(0, 4)), max_size=5),
    st.lists(
        st.builds(component, st.integers(0, 3), st.integers(0, 3), st.integers(0, 3), st.integers(0, 1)),
        min_size=1,
        max_size=3,
    ),
)
@settings(max_examples=300)
def test_skipping_full_nodes_changes_nothing(rows: Any, components: Any) -> None:
    quick, plain = nodes(*rows), nodes(*rows)
    assert Simulation(quick, components).sets(50) == plainly(plain, components, 50)
    assert [(node.left, node.pods) for node in quick] == [(node.left, node.pods) for node in plain]


def test_replicas_are_summed_over_nodes() -> None:
    assert replicas_on(nodes((2, 3, 8, 0), (1, 1, 8, 0)), {"cpu": 1500}) == 4


@pytest.mark.parametrize(
    ("name", "counts"),
    [
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
    ],
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
