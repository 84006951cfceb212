from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from karmada.kube.objects.types import Obj
from karmada.kube.sim.controllers.slices import Group, Plan, endpoints_of, group_up, plan
from tests.support.cases import cases

HTTP = [{"name": "http", "protocol": "TCP", "port": 80}]
HTTPS = [{"name": "https", "protocol": "TCP", "port": 443}]


def endpoint(number: int, ready: bool = True) -> Obj:
    address = f"10.0.{number // 250}.{number % 250}"
    return {"addresses": [address], "conditions": {"ready": ready}, "targetRef": {"uid": str(number)}}


def slice_of(name: str, numbers: list[int], ports: list[Obj] | None = None, family: str = "IPv4") -> Obj:
    found = [endpoint(number) for number in numbers]
    return {"metadata": {"name": name}, "addressType": family, "ports": ports or HTTP, "endpoints": found}


def group(numbers: list[int], ports: list[Obj] | None = None) -> Group:
    return Group("IPv4", ports or HTTP, [endpoint(number) for number in numbers])


def written(result: Plan) -> list[str]:
    return [c.slice["metadata"]["name"] if c.slice else "(new)" for c in result.contents if c.changes]


@cases(
    ([], [group([1, 2])], ["(new)"], []),
    ([slice_of("a", [1, 2])], [group([1, 2])], [], []),
    ([slice_of("a", [1, 2])], [group([2])], ["a"], []),
    ([slice_of("a", [1]), slice_of("b", [2])], [group([1])], [], ["b"]),
    ([slice_of("a", [1, 2, 3]), slice_of("b", [4])], [group([1, 2, 3, 4, 5])], ["b"], []),
    ([slice_of("a", [1, 2, 3]), slice_of("b", [4])], [group([1, 2, 4, 5])], ["a"], []),
    ([slice_of("a", [1, 2, 3])], [group([1, 2, 3, 4])], ["(new)"], []),
    ([slice_of("a", [1])], [group([1], HTTPS)], ["a"], []),
    ([slice_of("a", [1])], [group([1], HTTPS), group([2])], ["(new)", "a"], []),
    ([slice_of("a", [1])], [], [], ["a"]),
)
def test_a_plan_writes_as_few_slices_as_it_can(
    existing: list[Obj], groups: list[Group], writes: list[str], surplus: list[str]
) -> None:
    result = plan(existing, groups, most=3)
    assert written(result) == writes
    assert [obj["metadata"]["name"] for obj in result.surplus] == surplus


def test_a_service_without_endpoints_keeps_one_empty_slice_and_its_name() -> None:
    result = plan([slice_of("a", [1]), slice_of("b", [2])], [], ["IPv4"])
    [content] = result.contents
    assert content.slice is not None
    assert (content.slice["metadata"]["name"], content.ports, content.endpoints) == ("a", [], [])
    again = plan([], [], ["IPv4", "IPv6"])
    assert [(c.slice, c.address_type) for c in again.contents] == [(None, "IPv4"), (None, "IPv6")]


def test_slices_of_another_family_are_never_used() -> None:
    result = plan([slice_of("six", [], family="IPv6")], [group([1])])
    assert written(result) == ["(new)"]
    assert [obj["metadata"]["name"] for obj in result.surplus] == ["six"]


def test_endpoints_are_grouped_by_family_and_ports() -> None:
    entries = [("IPv4", HTTP, endpoint(1)), ("IPv4", HTTPS, endpoint(2)), ("IPv4", list(HTTP), endpoint(3))]
    assert [len(found.endpoints) for found in group_up(entries)] == [2, 1]


numbers = st.lists(st.integers(0, 40), unique=True, max_size=25)


@given(st.lists(numbers, max_size=4), numbers, numbers)
def test_every_endpoint_is_in_exactly_one_slice_and_a_second_plan_changes_nothing(
    before: list[list[int]], http: list[int], https: list[int]
) -> None:
    existing = [slice_of(f"s{place}", found) for place, found in enumerate(before)]
    groups = [found for found in (group(http), group(https, HTTPS)) if found.endpoints]
    result = plan(existing, groups, ["IPv4"], most=5)
    for ports, wanted in ((HTTP, http), (HTTPS, https)):
        held = Counter(e["targetRef"]["uid"] for c in result.contents if c.ports == ports for e in c.endpoints)
        assert held == Counter(str(number) for number in wanted)
    assert all(len(content.endpoints) <= 5 for content in result.contents)
    assert result.contents
    stored = [
        {"metadata": {"name": f"t{n}"}, "addressType": "IPv4", "ports": c.ports, "endpoints": c.endpoints}
        for n, c in enumerate(result.contents)
    ]
    again = plan(stored, groups, ["IPv4"], most=5)
    assert written(again) == []
    assert again.surplus == []


def test_a_full_slice_stays_as_it_is_when_endpoints_join() -> None:
    full = slice_of("a", list(range(100)))
    result = plan([full], [group(list(range(101)))])
    assert [len(c.endpoints) for c in result.contents] == [100, 1]
    assert endpoints_of(full) == result.contents[0].endpoints
