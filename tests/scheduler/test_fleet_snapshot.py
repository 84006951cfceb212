from __future__ import annotations

from typing import Any

from karmada.scheduler.fleet import Facet, Fleet
from tests.support.scheduling_cases import cluster, pods


def changed(fleet: Fleet, since: int, facet: Facet) -> list[str]:
    return [fleet.names[slot] for slot in fleet.changed_since(since, facet).tolist()]


def test_clusters_keep_their_slots_and_slots_are_used_again() -> None:
    fleet = Fleet.of([cluster("b"), cluster("a")])
    slots = dict(fleet.slots)
    later = fleet.updated({"a": None, "c": cluster("c"), "d": cluster("d")}).updated({"e": cluster("e")})
    assert later.slots["b"] == slots["b"]
    assert later.slots["e"] == slots["a"]
    assert later.size == 4
    assert later.count == 4
    assert [later.names[slot] for slot in later.by_name.tolist()] == ["b", "c", "d", "e"]
    assert [later.cluster(slot)["metadata"]["name"] for slot in later.by_name.tolist()] == ["b", "c", "d", "e"]
    assert [later.rank[later.slots[name]] for name in "bcde"] == [0, 1, 2, 3]


def test_a_fleet_does_not_change() -> None:
    fleet = Fleet.of([cluster("a", summary=pods(5))])
    assert fleet.capacity.pods.tolist() == [5]
    later = fleet.updated({"a": cluster("a", summary=pods(7), deleting=True)})
    assert later.capacity.pods.tolist() == [7]
    assert fleet.capacity.pods.tolist() == [5]
    assert not fleet.deleting[0]
    assert later.deleting[0]
    assert fleet.updated({"a": None}).count == 0
    assert fleet.count == 1


def test_only_what_changed_is_called_changed() -> None:
    fleet = Fleet.of([cluster("a", summary=pods(1)), cluster("b", summary=pods(1))])
    usage = fleet.updated({"a": cluster("a", summary=pods(2))})
    assert changed(usage, fleet.version, Facet.CAPACITY) == ["a"]
    assert changed(usage, fleet.version, Facet.ANY) == ["a"]
    assert changed(usage, fleet.version, Facet.FACTS) == []
    assert changed(usage, fleet.version, Facet.SELECTION) == []
    label = usage.updated({"b": cluster("b", summary=pods(1), labels={"x": "y"})})
    assert changed(label, usage.version, Facet.FACTS) == ["b"]
    assert changed(label, usage.version, Facet.SELECTION) == ["b"]
    assert changed(label, usage.version, Facet.CAPACITY) == []
    kinds = label.updated({"b": cluster("b", summary=pods(1), labels={"x": "y"}, kinds=[])})
    assert changed(kinds, label.version, Facet.APIS) == ["b"]
    assert changed(kinds, label.version, Facet.FACTS) == []
    assert changed(kinds, fleet.version, Facet.ANY) == ["a", "b"]


def test_the_same_object_again_is_no_change() -> None:
    one = cluster("a")
    fleet = Fleet.of([one])
    assert changed(fleet.updated({"a": one}), fleet.version, Facet.ANY) == []


def test_room_is_read_only_where_it_changed() -> None:
    fleet = Fleet.of([cluster(f"m{n}", summary=pods(n)) for n in range(5)])
    room = fleet.capacity
    same = fleet.updated({"m1": cluster("m1", summary=pods(1), labels={"x": "y"})})
    assert same.capacity is room
    other = same.updated({"m1": None, "m2": cluster("m2", summary={"allocatable": {"pods": "9", "x/y": "3"}})})
    assert other.capacity.left["x/y"][other.slots["m2"]] == 3
    assert other.capacity.pods[other.slots["m4"]] == 4
    again = other.updated({"m9": cluster("m9", summary=pods(1))})
    assert again.slots["m9"] == same.slots["m1"]
    assert again.capacity.pods[again.slots["m9"]] == 1


def test_arrays_of_the_memo_are_computed_again_only_where_needed() -> None:
    fleet = Fleet.of([cluster("a"), cluster("b"), cluster("c")])
    computed: list[list[str]] = []

    def compute(now: Fleet, rows: Any) -> Any:
        computed.append([now.names[row] for row in rows.tolist()])
        return [len(now.cluster(row)["metadata"]["labels"]) for row in rows.tolist()]

    first = fleet.arrays.array("key", Facet.FACTS, fleet, compute)
    later = fleet.updated({"b": cluster("b", labels={"x": "1"})})
    second = later.arrays.array("key", Facet.FACTS, later, compute)
    assert first.tolist() == [0, 0, 0]
    assert second.tolist() == [0, 1, 0]
    assert later.arrays.array("key", Facet.FACTS, later, compute) is second
    assert computed == [["a", "b", "c"], ["b"]]
    assert fleet.arrays.array("key", Facet.FACTS, fleet, compute).tolist() == [0, 0, 0]
    assert later.arrays.array("key", Facet.FACTS, later, compute) is second
