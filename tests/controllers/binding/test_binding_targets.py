"""Where a binding's template goes."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from karmada.controllers.binding.completions import shares
from karmada.controllers.binding.targets import (
    allowed,
    is_divided,
    is_suspended,
    is_workload,
    preserved_labels,
    purged,
    targets,
)
from karmada.kube.objects.names import fnv32a
from tests.support.cases import cases

STATE = {"preservedLabelState": {"x": "1"}}


def clusters(**replicas: int) -> list[dict[str, Any]]:
    return [{"name": name, "replicas": count} for name, count in replicas.items()]


def task(cluster: str, mode: str | None = None, **more: Any) -> dict[str, Any]:
    return {"fromCluster": cluster, "purgeMode": mode, **more}


def test_targets_are_the_schedulers_choice_and_then_what_others_need() -> None:
    spec = {
        "clusters": clusters(b=2),
        "requiredBy": [{"clusters": clusters(b=9, a=1)}, {"clusters": [{"name": "c"}, {"name": "a", "replicas": 5}]}],
    }
    assert list(targets(spec).items()) == [("b", 2), ("a", 1), ("c", 0)]
    assert targets({}) == {}


def test_works_stay_in_clusters_that_are_left_in_good_time() -> None:
    modes = {"a": "Directly", "b": "Immediately", "c": "Gracefully", "d": "Graciously", "e": "Never", "f": None}
    spec = {"clusters": clusters(z=1), "gracefulEvictionTasks": [task(name, mode) for name, mode in modes.items()]}
    assert allowed(spec) == {"z", "c", "d", "e", "f"}
    assert purged(spec) == {"a", "b"}


@cases(
    ({}, False),
    ({"replicas": 0}, False),
    ({"replicas": 1}, True),
    ({"replicas": 0, "replicaRequirements": {}}, True),
    ({"components": [{"name": "a"}]}, True),
    ({"components": []}, False),
)
def test_a_workload_has_replicas_or_could_have(spec: dict[str, Any], expected: bool) -> None:
    assert is_workload(spec) is expected


@cases(
    (None, False),
    ({}, False),
    ({"replicaScheduling": {}}, True),
    ({"replicaScheduling": {"replicaSchedulingType": "Divided"}}, True),
    ({"replicaScheduling": {"replicaSchedulingType": "Duplicated"}}, False),
)
def test_replicas_are_divided_when_the_placement_says_anything_of_them(placement: Any, expected: bool) -> None:
    assert is_divided({"placement": placement}) is expected


@cases(
    (None, False),
    ({}, False),
    ({"dispatching": False}, False),
    ({"dispatching": True}, True),
    ({"dispatchingOnClusters": {"clusterNames": ["a"]}}, True),
    ({"dispatching": False, "dispatchingOnClusters": {"clusterNames": ["b"]}}, False),
    ({"scheduling": True}, False),
)
def test_dispatching_is_suspended_for_all_clusters_or_for_some(suspension: Any, expected: bool) -> None:
    assert is_suspended({"suspension": suspension}, "a") is expected


@cases(
    ({"clusters": clusters(b=1), "gracefulEvictionTasks": [task("a", "Directly", **STATE)]}, {"x": "1"}),
    ({"clusters": clusters(b=1), "gracefulEvictionTasks": [task("a", "Gracefully", **STATE)]}, {}),
    ({"clusters": clusters(b=1, c=1), "gracefulEvictionTasks": [task("a", "Directly", **STATE)]}, {}),
    (
        {
            "clusters": clusters(b=1),
            "gracefulEvictionTasks": [
                task("a", "Directly", preservedLabelState={"x": "1"}, clustersBeforeFailover=["a", "b"])
            ],
        },
        {},
    ),
    (
        {
            "clusters": clusters(b=1),
            "gracefulEvictionTasks": [
                task("a", "Directly", preservedLabelState={"x": "1"}),
                task("c", "Immediately", preservedLabelState={"y": "2"}, clustersBeforeFailover=["c"]),
            ],
        },
        {"y": "2"},
    ),
    ({"clusters": clusters(b=1)}, {}),
)  # fmt: skip
def test_state_goes_with_a_workload_that_moves_to_one_new_cluster(spec: Any, expected: dict[str, str]) -> None:
    assert preserved_labels(spec) == expected


@given(
    completions=st.integers(0, 500),
    replicas=st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 50), max_size=8),
    uid=st.text(max_size=3),
)
def test_all_completions_are_given_out(completions: int, replicas: dict[str, int], uid: str) -> None:
    found = shares(completions, replicas, uid)
    if not any(replicas.values()):
        assert found == {}
    else:
        assert sum(found.values()) == completions
        assert found.keys() == replicas.keys()
        assert all(found[name] == 0 for name, count in replicas.items() if count == 0)


def test_the_uid_chooses_who_comes_first_in_a_tie() -> None:
    assert shares(5, {"a": 1, "b": 1}) == {"a": 3, "b": 2}
    even, odd = (next(uid for uid in map(str, range(99)) if fnv32a(uid) % 2 == rest) for rest in (0, 1))
    assert shares(5, {"a": 1, "b": 1}, even) == {"a": 3, "b": 2}
    assert shares(5, {"a": 1, "b": 1}, odd) == {"a": 2, "b": 3}
