"""What a replica needs, from the spec of its Pod."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karmada.interpreter.operations import InterpreterError
from karmada.interpreter.requirements import pod_requirements, resource_request
from karmada.kube.objects.quantity import Quantity
from karmada.kube.objects.types import Obj
from tests.support.cases import cases


def needs(**requests: str) -> Obj:
    return {"resources": {"requests": {name.replace("_", "-"): value for name, value in requests.items()}}}


def wants(name: str, value: str) -> Obj:
    return {"resources": {"requests": {name: value}}}


def test_limits_stand_in_for_absent_requests() -> None:
    pod = {
        "nodeSelector": {"foo": "foo1"},
        "containers": [
            {"resources": {"limits": {"cpu": "100m", "memory": "100M"}}},
            {"resources": {"limits": {"cpu": "1.2", "memory": "1.2G"}}},
        ],
    }
    assert pod_requirements(pod) == {
        "nodeClaim": {"nodeSelector": {"foo": "foo1"}},
        "resourceRequest": {"cpu": "1300m", "memory": "1300000000"},
    }


@cases(
    ({}, {}),
    ({"containers": [{}, {"resources": {}}]}, {}),
    ({"containers": [needs(cpu="0", memory="0")]}, {}),
    ({"containers": [needs(cpu="1"), needs(cpu="500m")]}, {"cpu": "1500m"}),
    ({"containers": [needs(cpu="1"), needs(cpu="1")]}, {"cpu": "2"}),
    ({"containers": [needs(cpu="100u"), needs(cpu="100u")]}, {"cpu": "2m"}),
    ({"containers": [needs(memory="0.5"), needs(memory="1")]}, {"memory": "2"}),
    ({"containers": [needs(memory="1Gi"), needs(memory="1024Mi")]}, {"memory": "2Gi"}),
    ({"containers": [needs(ephemeral_storage="3k")]}, {"ephemeral-storage": "3000"}),
    ({"containers": [needs(ephemeral_storage="2Ki")]}, {"ephemeral-storage": "2Ki"}),
    ({"containers": [needs(hugepages_2Mi="4Mi")]}, {"hugepages-2Mi": "4Mi"}),
    ({"containers": [needs(pods="1"), needs(pods="1")]}, {"pods": "2"}),
    ({"containers": [wants("nvidia.com/gpu", "1000")]}, {"nvidia.com/gpu": "1k"}),
    ({"containers": [wants("attachable-volumes-aws", "3")]}, {"attachable-volumes-aws": "3"}),
    ({"containers": [wants("x.kubernetes.io/a", "3")]}, {"x.kubernetes.io/a": "3"}),
    ({"containers": [wants("storage", "3")]}, {}),
    ({"containers": [wants("requests.a.io/b", "3")]}, {}),
    ({"containers": [wants("a.io/b_", "3")]}, {}),
    (
        {"containers": [{"resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2", "memory": "1Mi"}}}]},
        {"cpu": "1", "memory": "1Mi"},
    ),
    ({"containers": [needs(cpu="1")], "initContainers": [needs(cpu="3"), needs(cpu="2")]}, {"cpu": "3"}),
    (
        {"containers": [needs(cpu="3")], "initContainers": [needs(cpu="1"), needs(memory="1Ki")]},
        {"cpu": "3", "memory": "1Ki"},
    ),
    (
        {"initContainers": [{"restartPolicy": "Always", **needs(cpu="1")}], "containers": [needs(cpu="1")]},
        {"cpu": "1"},
    ),
    ({"initContainers": [{"resources": {"limits": {"cpu": "1"}}}]}, {"cpu": "1"}),
    (
        {"containers": [needs(cpu="1")], "overhead": {"cpu": "250m", "memory": "1Mi"}},
        {"cpu": "1250m", "memory": "1Mi"},
    ),
    ({"initContainers": [needs(cpu="2")], "containers": [needs(cpu="1")], "overhead": {"cpu": "1"}}, {"cpu": "3"}),
    ({"containers": [{"resources": {"requests": {"cpu": 2}}}]}, {"cpu": "2"}),
)  # fmt: skip
def test_resources_are_added_up(pod: Obj, request_: dict[str, str]) -> None:
    assert resource_request(pod) == request_


TERMS = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}


@cases(
    ({"nodeSelector": {"a": "b"}}, {"nodeSelector": {"a": "b"}}),
    ({"tolerations": [{"key": "a"}]}, {"tolerations": [{"key": "a"}]}),
    (
        {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": TERMS}}},
        {"hardNodeAffinity": TERMS},
    ),
)
def test_nodes_are_claimed(pod: Obj, claim: Obj) -> None:
    assert pod_requirements(pod) == {"nodeClaim": claim}


@cases(
    {},
    {"nodeSelector": {}, "tolerations": []},
    {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}},
    {"affinity": {"podAffinity": {}}},
    {"affinity": None, "nodeSelector": None},
    {"priorityClassName": "high"},
)
def test_a_pod_that_requests_nothing_has_no_requirements(pod: Obj) -> None:
    assert pod_requirements(pod, priority_class=True) is None


def test_the_priority_class_is_named_only_when_requested() -> None:
    pod = {"priorityClassName": "high", "nodeSelector": {"a": "b"}}
    claim = {"nodeClaim": {"nodeSelector": {"a": "b"}}}
    assert pod_requirements(pod) == claim
    assert pod_requirements(pod, priority_class=True) == {**claim, "priorityClassName": "high"}


@cases("much", True, [], "")
def test_an_amount_that_is_none_is_an_error(value: Any) -> None:
    with pytest.raises(InterpreterError, match="cpu"):
        resource_request({"containers": [{"resources": {"requests": {"cpu": value}}}]})


milli = st.integers(0, 10**6)
containers = st.lists(st.fixed_dictionaries({"cpu": milli, "memory": milli}), max_size=5)


def pod_of(regular: list[dict[str, int]], init: list[dict[str, int]]) -> Obj:
    def made(amounts: dict[str, int]) -> Obj:
        return needs(cpu=f"{amounts['cpu']}m", memory=str(amounts["memory"]))

    return {"containers": [made(c) for c in regular], "initContainers": [made(c) for c in init]}


@given(containers, containers)
def test_a_pod_needs_the_sum_but_at_least_the_largest_init_container(
    regular: list[dict[str, int]], init: list[dict[str, int]]
) -> None:
    request = resource_request(pod_of(regular, init))
    for name in ("cpu", "memory"):
        needed = max(sum(c[name] for c in regular), *(c[name] for c in init), 0)
        found = Quantity.parse(request.get(name, "0"))
        assert (found.milli() if name == "cpu" else found.value()) == needed
        assert (name in request) is (needed > 0)


@given(containers, containers)
def test_the_order_of_containers_does_not_matter(regular: list[dict[str, int]], init: list[dict[str, int]]) -> None:
    assert resource_request(pod_of(regular, init)) == resource_request(pod_of(regular[::-1], init[::-1]))
