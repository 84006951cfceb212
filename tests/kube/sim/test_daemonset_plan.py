from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key
from karmada.kube.sim.controllers.daemonset_plan import OnNode, Plan, Rules, by_node, keep, rollout, rules_of, status_of
from karmada.kube.sim.controllers.daemonset_pods import pinned, target_node, tolerations
from karmada.kube.sim.controllers.daemonset_replacements import Replacements
from karmada.kube.sim.controllers.nodefit import Fit
from tests.support.cases import cases

RUN, STAY, NO = Fit(True, True), Fit(False, True), Fit(False, False)
READY = [{"type": "Ready", "status": "True", "lastTransitionTime": "2023-11-14T22:13:20Z"}]
NOW = 1_700_000_000.0


def pod(name: str, *, hash_: str = "new", state: str = "well", node: str = "n") -> Obj:
    metadata: Obj = {"name": name, "labels": {"controller-revision-hash": hash_}}
    if state == "leaving":
        metadata["deletionTimestamp"] = "2023-11-14T22:13:20Z"
    phase = {"pending": "Pending", "failed": "Failed"}.get(state, "Running")
    status = {"phase": phase, "conditions": READY if state == "well" else []}
    return {"metadata": metadata, "spec": {"nodeName": node}, "status": status}


def old(name: str, **more: Any) -> Obj:
    return pod(name, hash_="old", **more)


def rules(unavailable: int = 1, surge: int = 0) -> Rules:
    return Rules("new", 0, unavailable, surge, NOW)


def names(plan: Plan) -> dict[str, list[str]]:
    parts = {"create": plan.create, "delete": [p["metadata"]["name"] for p in plan.delete]}
    parts["finished"] = [p["metadata"]["name"] for p in plan.finished]
    return {part: found for part, found in parts.items() if found}


SURGE = rules(0, 1)


@pytest.mark.parametrize(
    ("fit", "pods", "given_rules", "expected"),
    [
        pytest.param(RUN, [], rules(), {"create": ["n"]}, id="an empty node gets a pod"),
        pytest.param(STAY, [], rules(), {}, id="not one that keeps pods out"),
        pytest.param(RUN, [pod("a")], rules(), {}, id="one is enough"),
        pytest.param(RUN, [pod("a"), pod("b")], rules(), {"delete": ["b"]}, id="the younger goes"),
        pytest.param(STAY, [pod("a")], rules(), {}, id="a pod may stay where none may start"),
        pytest.param(NO, [pod("a"), pod("b", state="leaving")], rules(), {"delete": ["a"]}, id="but not everywhere"),
        pytest.param(RUN, [pod("a", state="leaving")], rules(), {}, id="a leaving pod is waited for"),
        pytest.param(RUN, [pod("a", state="failed")], rules(), {"finished": ["a"]}, id="a failed one ends first"),
        pytest.param(RUN, [pod("a", state="leaving")], SURGE, {"create": ["n"]}, id="with surge nobody waits"),
        pytest.param(RUN, [pod("a", state="failed")], SURGE, {"finished": ["a"]}, id="except for a failed pod"),
        pytest.param(RUN, [old("a"), pod("b", state="pending")], SURGE, {}, id="old serves while new starts"),
        pytest.param(RUN, [old("a"), pod("b")], SURGE, {"delete": ["a"]}, id="old goes when new serves"),
        pytest.param(
            RUN,
            [old("a", state="pending"), pod("b", state="pending")],
            SURGE,
            {"delete": ["a"]},
            id="or serves no more",
        ),
        pytest.param(
            RUN,
            [old("a"), old("b"), pod("c", state="pending"), pod("d")],
            SURGE,
            {"delete": ["d", "b"]},
            id="no more than one of each",
        ),
    ],
)
def test_every_node_has_what_it_should(
    fit: Fit, pods: list[Obj], given_rules: Rules, expected: dict[str, list[str]]
) -> None:
    assert names(keep([OnNode("n", fit, pods)], given_rules)) == expected


@pytest.mark.parametrize(
    ("nodes", "given_rules", "expected"),
    [
        pytest.param([[old("a")], [old("b")]], rules(), {"delete": ["a"]}, id="one at a time"),
        pytest.param([[old("a")], [old("b")], [old("c")]], rules(2), {"delete": ["a", "b"]}, id="or two"),
        pytest.param([[pod("a", state="pending")], [old("b")]], rules(), {}, id="not while a new one starts"),
        pytest.param([[], [old("b")]], rules(), {}, id="not while one is missing"),
        pytest.param([[old("a", state="leaving")], [old("b")]], rules(), {}, id="not while one leaves"),
        pytest.param(
            [[pod("a", state="pending")], [old("b", state="pending")]], rules(), {"delete": ["b"]}, id="useless ones go"
        ),
        pytest.param([[pod("a")], [pod("b")]], rules(), {}, id="nothing when all are new"),
        pytest.param([[old("a")], [old("b")]], SURGE, {"create": ["0"]}, id="surge makes a new one first"),
        pytest.param([[old("a"), pod("x", state="pending")], [old("b")]], SURGE, {}, id="one surge at a time"),
        pytest.param(
            [[old("a", state="pending")], [old("b")]], SURGE, {"create": ["0", "1"]}, id="useless ones are free"
        ),
    ],
)
def test_an_update_goes_on_within_its_bounds(
    nodes: list[list[Obj]], given_rules: Rules, expected: dict[str, list[str]]
) -> None:
    views = [OnNode(str(number), RUN, pods) for number, pods in enumerate(nodes)]
    assert names(rollout(views, given_rules)) == expected


def test_an_update_does_not_touch_nodes_that_should_not_run_the_pod() -> None:
    assert not rollout([OnNode("n", STAY, [old("a")])], rules())


node_pods = st.lists(
    st.tuples(st.sampled_from(["new", "old"]), st.sampled_from(["well", "pending", "leaving"])), min_size=0, max_size=2
)


@given(st.lists(node_pods, max_size=8), st.integers(1, 4))
def test_an_update_makes_no_more_nodes_unavailable_than_allowed(nodes: list[list[tuple[str, str]]], limit: int) -> None:
    views = [
        OnNode(str(i), RUN, [pod(f"{i}-{k}", hash_=h, state=s) for k, (h, s) in enumerate(pods)])
        for i, pods in enumerate(nodes)
    ]
    plan = rollout(views, rules(limit))
    gone = {p["metadata"]["name"] for p in plan.delete}
    serving = {p["metadata"]["name"] for view in views for p in view.pods if p["status"]["conditions"]}
    lost = len(gone & serving)
    without = sum(not any(p["metadata"]["name"] in serving for p in view.pods) for view in views)
    assert lost == 0 or without + lost <= limit


def daemon_set(strategy: Obj) -> Obj:
    return {"metadata": {"name": "d", "generation": 4}, "spec": {"updateStrategy": strategy}}


@cases(
    ({"maxUnavailable": 1, "maxSurge": 0}, 1, 0),
    ({"maxUnavailable": "34%", "maxSurge": 0}, 4, 0),
    ({"maxUnavailable": 0, "maxSurge": "11%"}, 0, 2),
    ({"maxUnavailable": "0%", "maxSurge": 0}, 1, 0),
    ({}, 1, 0),
)
def test_bounds_may_be_shares_of_the_nodes_rounded_up(rolling: Obj, unavailable: int, surge: int) -> None:
    found = rules_of(daemon_set({"type": "RollingUpdate", "rollingUpdate": rolling}), "new", 10, NOW)
    assert (found.max_unavailable, found.max_surge) == (unavailable, surge)


def test_the_status_counts_the_oldest_pod_of_each_node() -> None:
    nodes = [
        OnNode("1", RUN, [pod("a")]),
        OnNode("2", RUN, [old("b"), pod("c", state="pending")]),
        OnNode("3", RUN, [pod("d", state="pending")]),
        OnNode("4", RUN, []),
        OnNode("5", STAY, [pod("e")]),
        OnNode("6", NO, []),
    ]
    assert status_of(daemon_set({}), nodes, rules(), 0) == {
        "desiredNumberScheduled": 4,
        "currentNumberScheduled": 3,
        "numberMisscheduled": 1,
        "numberReady": 2,
        "numberAvailable": 2,
        "numberUnavailable": 2,
        "updatedNumberScheduled": 2,
        "observedGeneration": 4,
    }


def test_pods_are_grouped_by_the_node_they_are_on_or_made_for() -> None:
    waiting = {"metadata": {"name": "w"}, "spec": {"affinity": pinned(None, "n")}, "status": {}}
    late = {**pod("z"), "metadata": {**pod("z")["metadata"], "creationTimestamp": "2024-01-01T00:00:00Z"}}
    ended = pod("x", state="failed")
    ended["metadata"]["deletionTimestamp"] = "2023-11-14T22:13:20Z"
    found = by_node([waiting, late, ended, pod("a"), pod("m", node="other")])
    assert {node: [p["metadata"]["name"] for p in pods] for node, pods in found.items()} == {
        "n": ["a", "z", "w"],
        "other": ["m"],
    }


def test_a_pinned_affinity_keeps_preferences_and_drops_other_requirements() -> None:
    preferred = [{"weight": 1, "preference": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}]
    given_one = {
        "podAffinity": {"x": 1},
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": preferred,
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": []}]},
        },
    }
    made = pinned(given_one, "n7")
    fields = [{"key": "metadata.name", "operator": "In", "values": ["n7"]}]
    assert made["podAffinity"] == {"x": 1}
    assert made["nodeAffinity"] == {
        "preferredDuringSchedulingIgnoredDuringExecution": preferred,
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": fields}]},
    }
    assert target_node({"spec": {"affinity": made}}) == "n7"
    assert target_node({"spec": {"affinity": given_one}}) == ""


def test_daemons_tolerate_what_ails_nodes() -> None:
    own = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
    found = [(t["key"].removeprefix("node.kubernetes.io/"), t["effect"]) for t in tolerations({"tolerations": [own]})]
    assert found == [
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    ]
    on_host = tolerations({"hostNetwork": True})
    assert on_host[-1] == {
        "key": "node.kubernetes.io/network-unavailable",
        "operator": "Exists",
        "effect": "NoSchedule",
    }


def test_failures_on_a_node_are_answered_more_and_more_slowly() -> None:
    backoff, key = Replacements(), Key("ns", "d")
    assert backoff.wait(key, "n", NOW) == 0
    waits = []
    now = NOW
    for _ in range(12):
        backoff.replaced(key, "n", now)
        waits.append(backoff.wait(key, "n", now))
        now += waits[-1]
        assert backoff.wait(key, "n", now) == 0
    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900]
    assert backoff.wait(key, "other", now) == 0
    backoff.replaced(key, "n", now + 1801)
    assert backoff.wait(key, "n", now + 1801) == 1
    backoff.forget(key)
    assert backoff.wait(key, "n", now) == 0
