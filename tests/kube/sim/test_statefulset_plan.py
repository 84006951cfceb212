from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karmada.kube.objects.types import Obj
from karmada.kube.sim.controllers.revisions import revision_of
from karmada.kube.sim.controllers.statefulset_identity import ordinal_of
from karmada.kube.sim.controllers.statefulset_plan import Plan, layout, plan, takes_newest
from tests.support.cases import cases

NEW, OLD = "web-new", "web-old"
NOW = 1_700_000_000.0
READY = [{"type": "Ready", "status": "True", "lastTransitionTime": "2023-11-14T22:13:20Z"}]


def stateful_set(replicas: int = 3, *, kind: str = "RollingUpdate", start: int = 0, **more: Any) -> Obj:
    rolling = {key: more.pop(key) for key in ("partition", "maxUnavailable") if key in more}
    strategy: Obj = {"type": kind, **({"rollingUpdate": rolling} if kind == "RollingUpdate" else {})}
    return {
        "metadata": {"name": "web"},
        "spec": {"replicas": replicas, "ordinals": {"start": start}, "updateStrategy": strategy, **more},
    }


def pod(ordinal: int, state: str = "well", revision: str = NEW) -> Obj:
    metadata: Obj = {"name": f"web-{ordinal}", "labels": {"controller-revision-hash": revision}}
    if state == "leaving":
        metadata["deletionTimestamp"] = "2023-11-14T22:13:20Z"
    phase = {"pending": "Pending", "failed": "Failed", "succeeded": "Succeeded"}.get(state, "Running")
    conditions = READY if state in ("well", "leaving") else []
    return {"metadata": metadata, "status": {"phase": phase, "conditions": conditions}}


def is_well(one: Obj) -> bool:
    return one["status"]["conditions"] == READY and "deletionTimestamp" not in one["metadata"]


def steps(workload: Obj, *pods: Obj) -> dict[str, list[Any]]:
    """The plan's parts that are not empty, pods by ordinal."""
    todo = plan(workload, layout(workload, pods), NEW, NOW)

    def ordinals(chosen: list[Obj]) -> list[int | None]:
        return [ordinal_of(workload, p["metadata"]["name"]) for p in chosen]

    parts: dict[str, list[Any]] = {"create": todo.create}
    parts |= {"replace": ordinals(todo.replace), "remove": ordinals(todo.remove), "update": ordinals(todo.update)}
    return {part: found for part, found in parts.items() if found}


PARALLEL: dict[str, Any] = {"podManagementPolicy": "Parallel"}


@pytest.mark.parametrize(
    ("workload", "pods", "expected"),
    [
        pytest.param(stateful_set(), [], {"create": [0]}, id="in order the first comes first"),
        pytest.param(stateful_set(), [pod(0, "pending")], {}, id="the next waits for the one before"),
        pytest.param(stateful_set(), [pod(0), pod(2)], {"create": [1]}, id="a gap is filled"),
        pytest.param(stateful_set(), [pod(0, "leaving"), pod(1)], {}, id="a leaving pod is waited for"),
        pytest.param(stateful_set(start=5), [pod(5)], {"create": [6]}, id="ordinals begin at the start"),
        pytest.param(stateful_set(1, start=5), [pod(0), pod(5)], {"remove": [0]}, id="below the start is surplus"),
        pytest.param(stateful_set(**PARALLEL), [pod(1, "pending")], {"create": [0, 2]}, id="in parallel all at once"),
        pytest.param(stateful_set(1), [pod(0), pod(1), pod(2)], {"remove": [2]}, id="the highest goes first"),
        pytest.param(stateful_set(1), [pod(0), pod(1), pod(2, "leaving")], {}, id="and is waited for"),
        pytest.param(stateful_set(1), [pod(0, "pending"), pod(1)], {}, id="nobody goes while one that stays is unwell"),
        pytest.param(stateful_set(1), [pod(0), pod(1), pod(2, "pending")], {"remove": [2]}, id="unwell surplus goes"),
        pytest.param(
            stateful_set(0), [pod(0, "pending"), pod(1, "pending")], {}, id="not while surplus below is unwell"
        ),
        pytest.param(
            stateful_set(0, **PARALLEL), [pod(0), pod(1, "pending")], {"remove": [1, 0]}, id="in parallel surplus goes"
        ),
        pytest.param(stateful_set(2), [pod(0, "failed"), pod(1)], {"replace": [0]}, id="a failed pod is replaced"),
        pytest.param(stateful_set(2), [pod(0), pod(1, "succeeded")], {"replace": [1]}, id="a finished one, too"),
        pytest.param(
            stateful_set(), [pod(0, revision=OLD), pod(1, revision=OLD), pod(2)], {"update": [1]}, id="update downwards"
        ),
        pytest.param(
            stateful_set(), [pod(0, revision=OLD), pod(1, revision=OLD), pod(2, "pending")], {}, id="one after another"
        ),
        pytest.param(
            stateful_set(partition=2), [pod(0, revision=OLD), pod(1, revision=OLD), pod(2)], {}, id="down to partition"
        ),
        pytest.param(stateful_set(1, partition=4), [pod(0, revision=OLD)], {}, id="a partition above all updates none"),
        pytest.param(stateful_set(1, kind="OnDelete"), [pod(0, revision=OLD)], {}, id="OnDelete never updates"),
        pytest.param(
            stateful_set(maxUnavailable=2),
            [pod(i, revision=OLD) for i in range(3)],
            {"update": [2, 1]},
            id="two at once",
        ),
        pytest.param(
            stateful_set(4, maxUnavailable="30%"),
            [pod(i, revision=OLD) for i in range(4)],
            {"update": [3, 2]},
            id="a share is rounded up",
        ),
        pytest.param(
            stateful_set(maxUnavailable=2, **PARALLEL),
            [pod(0, revision=OLD), pod(1, revision=OLD), pod(2, "pending")],
            {"update": [1]},
            id="what is unavailable counts",
        ),
        pytest.param(
            stateful_set(2, minReadySeconds=10), [pod(0), pod(1, revision=OLD)], {}, id="ready for too short a time"
        ),
    ],
)
def test_the_next_steps_follow_from_the_pods(workload: Obj, pods: list[Obj], expected: dict[str, list[Any]]) -> None:
    assert steps(workload, *pods) == expected


@cases(
    (stateful_set(partition=2), 1, False),
    (stateful_set(partition=2), 2, True),
    (stateful_set(partition=2, start=3), 4, False),
    (stateful_set(partition=2, start=3), 5, True),
    (stateful_set(kind="OnDelete"), 0, True),
    (stateful_set(), 0, True),
)
def test_below_the_partition_new_pods_are_made_as_before(workload: Obj, ordinal: int, newest: bool) -> None:
    assert takes_newest(workload, ordinal) is newest


@cases(("web-0", 0), ("web-12", 12), ("web-01", None), ("web-x", None), ("webx-1", None), ("web", None))
def test_only_names_with_an_ordinal_are_pods_of_a_set(name: str, ordinal: int | None) -> None:
    assert ordinal_of(stateful_set(), name) == ordinal


@dataclass
class World:
    """Pods of a set by ordinal, with a kubelet that does one thing at a time."""

    workload: Obj
    pods: dict[int, Obj]

    def decide(self) -> Plan:
        return plan(self.workload, layout(self.workload, self.pods.values()), NEW, NOW)

    def carry_out(self, todo: Plan) -> None:
        for gone in todo.replace + todo.remove + todo.update:
            ordinal = ordinal_of(self.workload, gone["metadata"]["name"])
            assert ordinal is not None
            self.pods[ordinal] = pod(ordinal, "leaving", revision_of(gone))
        for ordinal in todo.create:
            assert ordinal not in self.pods
            self.pods[ordinal] = pod(ordinal, "pending", NEW if takes_newest(self.workload, ordinal) else OLD)

    def one_moves(self) -> bool:
        for ordinal, one in sorted(self.pods.items()):
            if "deletionTimestamp" in one["metadata"]:
                del self.pods[ordinal]
                return True
            if one["status"]["phase"] == "Pending":
                self.pods[ordinal] = pod(ordinal, "well", revision_of(one))
                return True
        return False


states = st.sampled_from(["well", "pending", "failed", "leaving"])
worlds = st.builds(
    lambda replicas, policy, partition, limit, pods: World(
        stateful_set(
            replicas, podManagementPolicy=policy, partition=partition, **({"maxUnavailable": limit} if limit else {})
        ),
        {ordinal: pod(ordinal, state, revision) for ordinal, (state, revision) in pods.items()},
    ),
    st.integers(0, 5),
    st.sampled_from(["OrderedReady", "Parallel"]),
    st.integers(0, 6),
    st.sampled_from([None, 1, 2, "50%"]),
    st.dictionaries(st.integers(0, 7), st.tuples(states, st.sampled_from([NEW, OLD]))),
)


@given(worlds)
def test_from_any_state_a_set_comes_to_rest_as_requested(world: World) -> None:
    spec = world.workload["spec"]
    rolling = spec["updateStrategy"]["rollingUpdate"]
    for _ in range(200):
        todo = world.decide()
        count = len(todo.create) + len(todo.replace) + len(todo.remove) + len(todo.update)
        if spec["podManagementPolicy"] == "OrderedReady" and "maxUnavailable" not in rolling:
            assert count <= 1
        world.carry_out(todo)
        if not world.one_moves() and not count:
            break
    assert sorted(world.pods) == list(range(spec["replicas"]))
    for ordinal, one in world.pods.items():
        assert is_well(one)
        if ordinal >= rolling["partition"]:
            assert revision_of(one) == NEW


@given(worlds.filter(lambda world: world.workload["spec"]["replicas"] > 0), st.sampled_from([1, 2, 3]))
def test_an_update_takes_no_more_pods_away_than_allowed(world: World, limit: int) -> None:
    world.workload["spec"]["updateStrategy"]["rollingUpdate"] = {"partition": 0, "maxUnavailable": limit}
    todo = world.decide()
    view = layout(world.workload, world.pods.values())
    unwell = sum(one is None or not is_well(one) for one in view.replicas)
    taken = sum(is_well(one) for one in todo.update)
    assert taken == 0 or unwell + taken <= limit
