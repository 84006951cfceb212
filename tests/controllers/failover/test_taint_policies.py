"""Taints that clusters get by their conditions, and remedies that are published by theirs."""

from __future__ import annotations

from pathlib import Path

import pytest

from karmada.api.cluster import Cluster
from karmada.api.policy import ClusterTaintPolicy
from karmada.api.remedy import Remedy
from karmada.controllers.failover.remedies import actions_by
from karmada.controllers.failover.taint_policies import holds, taints_by
from karmada.kube.objects.types import Obj
from tests.controllers.failover.failing import KEY, Failing, failing
from tests.support.cases import cases

NOW = 1_700_000_000.0


def conditions(**statuses: str) -> list[Obj]:
    return [{"type": kind, "status": status} for kind, status in statuses.items()]


def match(kind: str, operator: str, *values: str) -> Obj:
    return {"conditionType": kind, "operator": operator, "statusValues": list(values)}


BOTH = [match("Ready", "In", "False", "Unknown"), match("NetworkReady", "NotIn", "True")]


@cases(
    (conditions(Ready="Unknown", NetworkReady="False"), BOTH, True),
    (conditions(Ready="True", NetworkReady="False"), BOTH, False),
    (conditions(Ready="False"), [match("Ready", "NotIn", "True", "Unknown")], True),
    ([], [match("Ready", "NotIn", "True")], False),
    (conditions(Ready="False"), [], False),
    (conditions(Ready="False"), None, False),
    (conditions(Ready="False"), [match("Ready", "Is", "False")], False),
)
def test_all_conditions_of_a_list_must_hold(found: list[Obj], matches: list[Obj] | None, expected: bool) -> None:
    assert holds(matches, found) is expected


def taint_policy(name: str, *taints: Obj, add: Obj | None = None, remove: Obj | None = None, **spec: object) -> Obj:
    lists = {"addOnConditions": [add] if add else [], "removeOnConditions": [remove] if remove else []}
    return {"metadata": {"name": name}, "spec": {"taints": list(taints), **lists, **spec}}


A = {"key": "a", "effect": "NoExecute", "value": "new"}
DOWN = match("Ready", "In", "False")


@pytest.mark.parametrize(
    ("policies", "before", "after"),
    [
        pytest.param([taint_policy("p", A, add=DOWN)], [], [("a", "new")], id="added"),
        pytest.param(
            [taint_policy("p", A, add=DOWN)],
            [{"key": "a", "effect": "NoExecute", "value": "old"}],
            [("a", "old")],
            id="what is there stays as it is",
        ),
        pytest.param([taint_policy("p", A, remove=DOWN)], [A], [], id="removed"),
        pytest.param([taint_policy("p", A, add=DOWN, remove=DOWN)], [], [], id="removal comes last"),
        pytest.param(
            [taint_policy("p", A, add=DOWN), taint_policy("q", A, remove=DOWN)], [], [], id="one after the other"
        ),
        pytest.param(
            [taint_policy("p", A, add=DOWN, targetClusters={"clusterNames": ["m2"]})], [], [], id="another cluster"
        ),
    ],
)
def test_policies_apply_one_after_the_other(
    policies: list[Obj], before: list[Obj], after: list[tuple[str, str]]
) -> None:
    cluster = {
        "metadata": {"name": "m1"},
        "spec": {"taints": before},
        "status": {"conditions": conditions(Ready="False")},
    }
    assert [(taint["key"], taint["value"]) for taint in taints_by(policies, cluster, NOW)] == after


async def test_a_policy_taints_what_it_selects_and_its_deletion_removes_nothing(fleet: Failing) -> None:
    await fleet.ready("m1", "False")
    await fleet.taint_policy(targetClusters={"clusterNames": ["m1"]})
    await fleet.ready("m2", "Unknown")
    assert (KEY, "NoExecute") in await fleet.taints("m1")
    assert (KEY, "NoExecute") not in await fleet.taints("m2")
    expected = "Update Cluster(m1) with taints(cluster now has taints(["
    assert any(
        reason == "TaintClusterSucceed" and text.startswith(expected) and text.endswith(") succeed")
        for _, reason, text in await fleet.plane.events("m1")
    )
    await fleet.client.delete(ClusterTaintPolicy.gvr, "dead")
    await fleet.plane.wait(10)
    assert (KEY, "NoExecute") in await fleet.taints("m1")
    await fleet.ready("m1")
    assert await fleet.taints("m1") == [(KEY, "NoExecute")]


async def test_without_the_gate_a_policy_taints_nothing(tmp_path: Path) -> None:
    async with failing(tmp_path, "m1", gates="Failover=false") as fleet:
        await fleet.taint_policy()
        await fleet.ready("m1", "False")
        assert await fleet.taints("m1") == [(KEY, "NoSchedule")]


def remedy(*actions: str, decisions: list[Obj] | None = None, names: list[str] | None = None) -> Obj:
    spec: Obj = {"actions": list(actions)}
    if decisions is not None:
        spec["decisionMatches"] = [{"clusterConditionMatch": decision} for decision in decisions]
    if names is not None:
        spec["clusterAffinity"] = {"clusterNames": names}
    return {"metadata": {"name": "r"}, "spec": spec}


def when(operator: str, status: str) -> Obj:
    return {"conditionType": "X", "operator": operator, "conditionStatus": status}


@cases(
    ([remedy("TrafficControl")], conditions(X="True"), ["TrafficControl"]),
    ([remedy("TrafficControl")], [], ["TrafficControl"]),
    ([remedy("TrafficControl", decisions=[when("Equal", "False")])], conditions(X="False"), ["TrafficControl"]),
    ([remedy("TrafficControl", decisions=[when("Equal", "False")])], conditions(X="True"), []),
    ([remedy("TrafficControl", decisions=[when("Equal", "False")])], conditions(Y="False"), []),
    ([remedy("TrafficControl", decisions=[when("NotEqual", "True")])], conditions(Y="False"), []),
    ([remedy("A", decisions=[when("Equal", "True"), when("Equal", "False")])], conditions(X="False"), ["A"]),
    ([remedy("A", decisions=[])], conditions(X="False"), []),
    ([remedy("A", names=[])], conditions(X="False"), []),
    ([remedy("A", names=["m2"])], conditions(X="False"), []),
    ([remedy("B", "A"), remedy("A", names=["m1"])], [], ["A", "B"]),
)
def test_actions_of_all_matching_remedies_are_united(remedies: list[Obj], found: list[Obj], actions: list[str]) -> None:
    assert actions_by(remedies, {"metadata": {"name": "m1"}, "status": {"conditions": found}}) == actions


async def test_actions_are_published_in_the_status_of_the_cluster(fleet: Failing) -> None:
    head = {"apiVersion": Remedy.gvk.api_version, "kind": "Remedy", "metadata": {"name": "cut"}}
    spec = remedy("TrafficControl", decisions=[when("Equal", "False")], names=["m1"])["spec"]

    async def actions(name: str) -> list[str]:
        await fleet.plane.wait(0.1)
        return (await fleet.client.get(Cluster.gvr, name, ""))["status"].get("remedyActions") or []

    await fleet.client.create(Remedy.gvr, {**head, "spec": spec})
    assert await actions("m1") == []
    await fleet.conditions("m1", Ready="True", X="False")
    await fleet.conditions("m2", Ready="True", X="False")
    assert (await actions("m1"), await actions("m2")) == (["TrafficControl"], [])
    await fleet.client.patch(Remedy.gvr, "cut", "", {"spec": {"clusterAffinity": None}})
    assert await actions("m2") == ["TrafficControl"]
    await fleet.client.delete(Remedy.gvr, "cut")
    assert (await actions("m1"), await actions("m2")) == ([], [])
