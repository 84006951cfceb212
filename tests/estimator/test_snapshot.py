"""The snapshot kept by increments is what counting everything anew gives, whatever happens in whatever order."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from karmada.estimator.answers import Answers
from karmada.estimator.kept import slim_node, slim_pod
from karmada.estimator.matching import Matcher
from karmada.estimator.resources import demand_of, on_node
from karmada.estimator.room import Room
from karmada.estimator.snapshot import Snapshot
from karmada.kube.objects.quantity import Quantity
from karmada.kube.objects.types import Obj
from tests.support.cases import cases
from tests.support.member_objects import CORDONED, node, pod

GPU = "nvidia.com/gpu"
NODES, PODS = ("n0", "n1", "n2"), ("p0", "p1", "p2", "p3")
TAINT: Obj = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
CLAIMS: tuple[Obj | None, ...] = (
    None,
    {"nodeSelector": {"disk": "ssd"}},
    {"tolerations": [{"key": "gpu", "operator": "Exists"}]},
    {"tolerations": [{"operator": "Exists"}], "nodeSelector": {"disk": "hdd"}},
    {"hardNodeAffinity": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "Exists"}]}]}},
)
REQUESTS: tuple[Obj, ...] = ({}, {"cpu": "500m"}, {"cpu": "100m", "memory": "1Gi"}, {GPU: "1"}, {"pods": "1"})


class Fed:
    """A snapshot, and the objects that it was given."""

    def __init__(self) -> None:
        self.snapshot = Snapshot()
        self.nodes: dict[str, Obj] = {}
        self.pods: dict[str, Obj] = {}
        self.answers = Answers(self.snapshot)

    def set_node(self, name: str, new: Obj | None) -> None:
        self._set(self.nodes, name, new, slim_node, self.snapshot.node_changed)

    def set_pod(self, name: str, new: Obj | None) -> None:
        self._set(self.pods, name, new, slim_pod, self.snapshot.pod_changed)

    def relist(self, nodes: dict[str, Obj], pods: dict[str, Obj]) -> None:
        """What an informer delivers after a list: everything that is there, then what is gone."""
        for now, before, put in ((nodes, self.nodes, self.set_node), (pods, self.pods, self.set_pod)):
            for name, obj in now.items():
                put(name, obj)
            for name in before.keys() - now.keys():
                put(name, None)

    @staticmethod
    def _set(held: dict[str, Obj], name: str, new: Obj | None, slim: Any, changed: Any) -> None:
        old = held.pop(name, None)
        if new is not None:
            held[name] = new
        if old is not None or new is not None:
            changed(None if old is None else slim(old), None if new is None else slim(new))


# counting anew, straight from the whole objects


def left_on(node: Obj, pods: list[Obj]) -> Room:
    """What the pods leave of a node."""
    here = [p for p in pods if p["spec"].get("nodeName") == node["metadata"]["name"] and _counts(p)]
    left: dict[str, int] = {}
    for name, text in node["status"]["allocatable"].items():
        used = sum((_requested(p, name) for p in here), Quantity(0))
        rest = Quantity.parse(text) - used
        left[name] = max(rest.milli() if name == "cpu" else rest.value(), 0)
    count = max(left.pop("pods", 0) - len(here), 0)
    return Room(np.array([count]), {name: np.array([has]) for name, has in left.items()})


def _counts(pod: Obj) -> bool:
    return pod["status"]["phase"] not in ("Succeeded", "Failed")


def _requested(pod: Obj, name: str) -> Quantity:
    return (
        Quantity.parse(pod["spec"]["containers"][0]["resources"]["requests"].get(name, "0"))
        if name != "pods"
        else Quantity(0)
    )


def selected(node: Obj, claim: Obj | None) -> bool:
    taints = list(node["spec"].get("taints") or ()) + ([CORDONED] if node["spec"].get("unschedulable") else [])
    matcher = Matcher(claim)
    hard = [taint for taint in taints if taint["effect"] != "PreferNoSchedule"]
    return matcher.selects(node["metadata"]["name"], node["metadata"]["labels"]) and matcher.tolerates(hard)


def recount(fed: Fed, claim: Obj | None, request: Obj) -> int:
    demand = on_node(demand_of({"resourceRequest": request}))
    pods = list(fed.pods.values())
    return sum(left_on(one, pods).replicas(demand) for one in fed.nodes.values() if selected(one, claim))


amounts = st.fixed_dictionaries(
    {},
    optional={"cpu": st.sampled_from(["1", "2500m", "4"]), "memory": st.sampled_from(["1Gi", "4G"]), GPU: st.just("2")},
)
nodes = st.builds(
    lambda has, pods, labels, taints, cordoned: (has, pods, labels, taints, cordoned),
    amounts,
    st.sampled_from(["0", "2", "110"]),
    st.sampled_from([{}, {"disk": "ssd"}, {"disk": "hdd"}]),
    st.sampled_from([(), (TAINT,), (TAINT | {"effect": "PreferNoSchedule"},), (TAINT | {"effect": "NoExecute"},)]),
    st.booleans(),
)
pods = st.tuples(st.sampled_from(["", *NODES]), st.sampled_from(["Running", "Pending", "Succeeded"]), amounts)


def _node(name: str, drawn: Any) -> Obj:
    has, count, labels, taints, cordoned = drawn
    return node(name, labels=labels, taints=taints, cordoned=cordoned, pods=count, **has)


def _pod(name: str, drawn: Any) -> Obj:
    where, phase, requests = drawn
    return pod(name, where, phase, **requests)


steps = st.one_of(
    st.tuples(st.just("node"), st.sampled_from(NODES), st.none() | nodes),
    st.tuples(st.just("pod"), st.sampled_from(PODS), st.none() | pods),
    st.tuples(
        st.just("relist"),
        st.dictionaries(st.sampled_from(NODES), nodes, max_size=3),
        st.dictionaries(st.sampled_from(PODS), pods, max_size=4),
    ),
    st.tuples(st.just("estimate"), st.sampled_from(CLAIMS), st.sampled_from(REQUESTS)),
)


@given(st.lists(steps, max_size=25))
@settings(max_examples=150)
def test_every_history_ends_in_what_a_recount_gives(history: list[Any]) -> None:
    fed = Fed()
    for what, subject, value in history:
        if what == "node":
            fed.set_node(subject, None if value is None else _node(subject, value))
        elif what == "pod":
            fed.set_pod(subject, None if value is None else _pod(subject, value))
        elif what == "relist":
            fed.relist(
                {name: _node(name, drawn) for name, drawn in subject.items()},
                {name: _pod(name, drawn) for name, drawn in value.items()},
            )
        else:
            fed.answers.replicas(subject, on_node(demand_of({"resourceRequest": value})))
    assert fed.snapshot.nodes == len(fed.nodes)
    for claim in CLAIMS:
        for request in REQUESTS:
            demand = on_node(demand_of({"resourceRequest": request}))
            expected = recount(fed, claim, request)
            assert fed.answers.replicas(claim, demand) == expected
            assert Answers(fed.snapshot).replicas(claim, demand) == expected


def test_pods_without_a_node_count_nowhere() -> None:
    fed = Fed()
    fed.set_node("n0", node("n0", cpu="4", pods="10"))
    fed.set_pod("p0", pod("p0", cpu="1"))
    assert fed.answers.replicas(None, {"cpu": 1000}) == 4


def test_a_node_with_more_used_than_it_has_takes_nothing() -> None:
    fed = Fed()
    fed.set_node("n0", node("n0", cpu="1", pods="10"))
    fed.set_pod("p0", pod("p0", "n0", cpu="3"))
    assert fed.answers.replicas(None, {"cpu": 1000}) == 0


def test_more_nodes_than_rows_make_more_rows() -> None:
    fed = Fed()
    for number in range(200):
        fed.set_node(f"n{number}", node(f"n{number}", cpu="2", pods="10"))
        if number == 50:
            assert fed.answers.replicas(None, {"cpu": 1000}) == 102
    assert fed.answers.replicas(None, {"cpu": 1000}) == 400


def test_rows_are_used_again() -> None:
    fed = Fed()
    for round_ in range(100):
        fed.set_node(f"n{round_}", node(f"n{round_}", cpu="2", pods="10"))
        fed.set_node(f"n{round_}", None)
    assert len(fed.snapshot.present) == 64
    assert not fed.snapshot.room.pods.any()
    assert not any(values.any() for values in fed.snapshot.room.left.values())


def test_a_heartbeat_changes_nothing() -> None:
    fed = Fed()
    fed.set_node("n0", node("n0", labels={"disk": "ssd"}, taints=(TAINT,), cpu="2", pods="10"))
    version = fed.snapshot.version
    fed.set_node("n0", node("n0", labels={"disk": "ssd"}, taints=(TAINT,), cpu="2", pods="10"))
    assert fed.snapshot.version == version


@cases(
    (None, ["n0"]),
    ({"tolerations": [{"operator": "Exists"}]}, ["n0", "n1", "n2", "n3"]),
    ({"tolerations": [{"key": "gpu", "value": "yes"}]}, ["n0", "n1"]),
    ({"tolerations": [{"key": "gpu", "value": "no"}]}, ["n0"]),
    ({"tolerations": [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]}, ["n0", "n2"]),
    ({"nodeSelector": {"disk": "ssd"}}, ["n0"]),
    ({"nodeSelector": {"disk": "ssd", "zone": "a"}}, []),
    ({"hardNodeAffinity": {"nodeSelectorTerms": []}}, []),
    ({"hardNodeAffinity": {"nodeSelectorTerms": [{}]}}, []),
    (
        {"hardNodeAffinity": {"nodeSelectorTerms": [
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n0", "n1"]}]}]}},
        ["n0"],
    ),
    (
        {"hardNodeAffinity": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["hdd"]}]},
            {"matchExpressions": [{"key": "disk", "operator": "NotIn", "values": ["hdd"]}]}]}},
        ["n0"],
    ),
)  # fmt: skip
def test_which_nodes_a_claim_selects(claim: Obj | None, expected: list[str]) -> None:
    fed = Fed()
    fed.set_node("n0", node("n0", labels={"disk": "ssd"}, pods="10"))
    fed.set_node("n1", node("n1", labels={"disk": "ssd"}, taints=(TAINT,), pods="10"))
    fed.set_node("n2", node("n2", cordoned=True, pods="10"))
    fed.set_node("n3", node("n3", taints=(TAINT | {"effect": "NoExecute", "value": "other"},), pods="10"))
    rows = fed.answers.selected(claim)
    assert [fed.snapshot.facts(row)[0] for row in rows.tolist()] == expected


def test_what_is_read_is_not_what_others_write_to() -> None:
    fed = Fed()
    fed.set_node("n0", node("n0", cpu="4", pods="10"))
    room = fed.snapshot.room.copy()
    assert room.place({"cpu": 1000}, 9, np.array([0])) == 4
    assert fed.answers.replicas(None, {"cpu": 1000}) == 4
