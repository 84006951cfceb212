"""The summary kept by increments is what counting everything anew gives, whatever happens in whatever order."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from karmada.api.cluster import default_resource_models
from karmada.controllers.cluster_status.summary import Summary
from karmada.estimator.kept import slim_node, slim_pod
from karmada.estimator.requests import quantity_text
from karmada.kube.objects.quantity import Quantity
from karmada.kube.objects.types import Obj
from tests.support.cases import cases

NAMES = ("n0", "n1", "n2", "n3")
SMALL = [
    {"grade": 0, "ranges": [{"name": "cpu", "min": "0", "max": "2"}]},
    {"grade": 7, "ranges": [{"name": "cpu", "min": "2", "max": "9223372036854775807"}]},
]


def node(name: str, allocatable: dict[str, str], ready: bool = True) -> Obj:
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    return {
        "metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": "1", "labels": {"a": "b"}},
        "status": {"allocatable": allocatable, "conditions": conditions, "images": []},
    }


def pod(uid: str, where: str, phase: str = "Running", **requests: str) -> Obj:
    spec: Obj = {"containers": [{"name": "c", "resources": {"requests": requests}}]}
    if where:
        spec["nodeName"] = where
    meta = {"name": f"p{uid}", "namespace": "default", "uid": uid, "resourceVersion": "1"}
    return {"metadata": meta, "spec": spec, "status": {"phase": phase}}


# counting anew, straight from the whole objects


def recount(nodes: dict[str, Obj], pods: dict[str, Obj], models: list[Obj]) -> tuple[Obj, Obj]:
    ready = sum(n["status"]["conditions"][0]["status"] == "True" for n in nodes.values())
    allocatable: dict[str, Quantity] = {}
    for n in nodes.values():
        for name, value in n["status"]["allocatable"].items():
            allocatable[name] = allocatable.get(name, Quantity(0)) + Quantity.parse(value)
    waiting = [p for p in pods.values() if not p["spec"].get("nodeName")]
    placed = [
        p for p in pods.values() if p["spec"].get("nodeName") and p["status"]["phase"] not in ("Succeeded", "Failed")
    ]
    resources: dict[str, Any] = {
        "allocatable": {name: quantity_text(name, value.milli()) for name, value in sorted(allocatable.items())},
        "allocating": total(waiting),
        "allocated": total(placed),
    }
    if models:
        found = Counter(grade_of(n, placed, models) for n in nodes.values())
        resources["allocatableModelings"] = [
            {"grade": m["grade"], "count": found[index]} for index, m in enumerate(models)
        ]
    summary = {name: value for name, value in resources.items() if value}
    return {"totalNum": len(nodes), "readyNum": ready}, summary


def requested(pods: list[Obj]) -> Counter[str]:
    sums: Counter[str] = Counter()
    for p in pods:
        for name, value in p["spec"]["containers"][0]["resources"]["requests"].items():
            sums[name] += Quantity.parse(value).milli()
    return sums


def total(pods: list[Obj]) -> dict[str, str]:
    sums = requested(pods)
    sums["pods"] = len(pods) * 1000
    return {name: quantity_text(name, sums[name]) for name in sorted(sums) if sums[name]}


def grade_of(n: Obj, placed: list[Obj], models: list[Obj]) -> int:
    mine = [p for p in placed if p["spec"]["nodeName"] == n["metadata"]["name"]]
    have = {name: Quantity.parse(value).milli() for name, value in n["status"]["allocatable"].items()}
    if mine and have.get("pods", 0) - 1000 * len(mine) <= 0:
        return -1
    used = requested(mine)
    indexes = []
    for position, span in enumerate(models[0]["ranges"]):
        left = have[span["name"]] - used[span["name"]] if span["name"] in have else 0
        begins = [Quantity.parse(m["ranges"][position]["min"]).milli() for m in models]
        indexes.append(sum(1 for low in begins if low <= left) - 1)
    return min(indexes)


# random histories

cpus = st.sampled_from(["250m", "1", "1500m", "3"])
memories = st.sampled_from(["512Mi", "4Gi", "20Gi"])
nodes_made = st.builds(
    lambda name, cpu, memory, pods, ready, more: node(
        name, {"cpu": cpu, "memory": memory, "pods": pods, **more}, ready
    ),
    st.sampled_from(NAMES), cpus, memories, st.sampled_from(["1", "2", "110"]), st.booleans(),
    st.sampled_from([{}, {"nvidia.com/gpu": "2"}, {"hugepages-2Mi": "0"}]),
)  # fmt: skip
pods_made = st.builds(
    lambda number, where, phase, requests: pod(str(number), where, phase, **requests),
    st.integers(0, 7), st.sampled_from(["", *NAMES]), st.sampled_from(["Pending", "Running", "Succeeded", "Failed"]),
    st.fixed_dictionaries({"cpu": cpus}, optional={"memory": memories, "nvidia.com/gpu": st.just("1")}),
)  # fmt: skip
steps = st.one_of(
    st.tuples(st.just("node"), nodes_made),
    st.tuples(st.just("node gone"), st.sampled_from(NAMES)),
    st.tuples(st.just("pod"), pods_made),
    st.tuples(st.just("pod gone"), pods_made),
    st.tuples(st.just("models"), st.sampled_from([[], SMALL, default_resource_models()])),
)


@settings(max_examples=200)
@given(st.lists(steps, max_size=40))
def test_increments_give_what_a_recount_gives(history: list[tuple[str, Any]]) -> None:
    summary = Summary()
    nodes: dict[str, Obj] = {}
    pods: dict[str, Obj] = {}
    models: list[Obj] = []
    for what, value in history:
        if what == "node":
            name = value["metadata"]["name"]
            old = slim_node(nodes[name]) if name in nodes else None
            nodes[name] = value
            summary.node_changed(old, slim_node(value))
        elif what == "node gone" and value in nodes:
            summary.node_changed(slim_node(nodes.pop(value)), None)
        elif what == "pod":
            uid = value["metadata"]["uid"]
            old = slim_pod(pods[uid]) if uid in pods else None
            pods[uid] = value
            summary.pod_changed(old, slim_pod(value))
        elif what == "pod gone" and value["metadata"]["uid"] in pods:
            del pods[value["metadata"]["uid"]]
            summary.pod_changed(slim_pod(value), None)  # its last state, not delivered before
        elif what == "models":
            models = value
            summary.grade_by(models)
        counted, resources = recount(nodes, pods, models)
        assert summary.nodes() == counted
        assert summary.resources() == resources


def test_nothing_is_left_when_everything_is_gone() -> None:
    summary = Summary()
    summary.grade_by(SMALL)
    n, p = slim_node(node("n0", {"cpu": "4", "pods": "10"})), slim_pod(pod("1", "n0", cpu="1"))
    for order in itertools.permutations([(summary.node_changed, n), (summary.pod_changed, p)]):
        for change, obj in order:
            change(None, obj)
        assert summary.nodes() == {"totalNum": 1, "readyNum": 1}
        assert summary.resources()["allocatableModelings"] == [{"grade": 0, "count": 0}, {"grade": 7, "count": 1}]
        for change, obj in order:
            change(obj, None)
        assert summary.nodes() == {"totalNum": 0, "readyNum": 0}
        assert summary.resources() == {"allocatableModelings": [{"grade": 0, "count": 0}, {"grade": 7, "count": 0}]}
        assert not summary._nodes
        assert not summary._pods


def test_each_pod_is_counted_by_itself() -> None:
    summary = Summary()
    for uid in ("1", "2"):
        waiting = pod(uid, "", "Pending", cpu="1")
        waiting["spec"]["initContainers"] = [{"name": "i", "resources": {"requests": {"cpu": "3"}}}]
        summary.pod_changed(None, slim_pod(waiting))
    assert summary.resources() == {"allocating": {"cpu": "6", "pods": "2"}}


@cases(
    ("", "Pending", "allocating"),
    ("", "Failed", "allocating"),
    ("n0", "Pending", "allocated"),
    ("n0", "Running", "allocated"),
    ("n0", "Unknown", "allocated"),
    ("n0", "Succeeded", None),
    ("n0", "Failed", None),
)
def test_where_a_pod_counts(where: str, phase: str, field: str | None) -> None:
    summary = Summary()
    summary.pod_changed(None, slim_pod(pod("1", where, phase, cpu="1")))
    assert summary.resources() == ({field: {"cpu": "1", "pods": "1"}} if field else {})


def test_little_is_kept_of_a_pod() -> None:
    kept = slim_pod(pod("1", "n0", cpu="1"))
    assert kept == {
        "metadata": {"name": "p1", "namespace": "default", "uid": "1", "resourceVersion": "1"},
        "counted": ("n0", (("cpu", 1000),)),
    }
