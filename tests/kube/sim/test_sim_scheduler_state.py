from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from karmada.kube.objects.selectors import parse_labels
from karmada.kube.sim.scheduler.affinity import anti_affinity_of
from karmada.kube.sim.scheduler.pods import PodInfo
from karmada.kube.sim.scheduler.resources import IDLE, plus
from karmada.kube.sim.scheduler.tallies import PodSelection, TallyKey
from tests.kube.sim.scheduling_objects import View, anti_affinity, node, pod, term

NAMES = ("a", "b", "c", "d")
WEB = TallyKey((PodSelection(parse_labels("app=web"), frozenset(("default",))),))

steps = st.lists(
    st.one_of(
        st.tuples(st.just("run"), st.sampled_from(NAMES), st.sampled_from(("100m", "250m", "")), st.booleans()),
        st.tuples(st.just("end"), st.integers(0, 30), st.just(""), st.just(False)),
        st.tuples(st.just("node"), st.sampled_from(NAMES), st.sampled_from(("4", "8")), st.booleans()),
        st.tuples(st.just("lose"), st.sampled_from(NAMES), st.just(""), st.just(False)),
        st.tuples(st.just("nominate"), st.sampled_from(NAMES), st.just(""), st.just(False)),
    ),
    max_size=40,
)


@settings(max_examples=150)
@given(steps)
def test_whatever_comes_and_goes_the_groups_and_counts_are_those_of_the_pods_that_are_there(
    history: list[tuple[str, str | int, str, bool]],
) -> None:
    view = View([])
    state = view.state
    state.tallies.of(WEB)
    running: list[PodInfo] = []
    nodes: set[str] = set()
    nominated: list[PodInfo] = []
    for number, (what, which, amount, flag) in enumerate(history):
        if what == "run":
            rule: dict[str, Any] = {"affinity": anti_affinity(term(app="db"))} if flag else {}
            labels = {"app": "web" if flag else "db"}
            wanted = pod(f"p{number}", cpu=amount, labels=labels, owner="rs", resources={"x/y": "2"}, **rule)
            running.append(view.run({**wanted}, str(which)))
        elif what == "end" and running:
            state.unassign(running.pop(int(which) % len(running)))
        elif what == "node":
            state.set_node(node(str(which), cpu=amount, unschedulable=flag))
            nodes.add(str(which))
        elif what == "lose":
            state.remove_node(str(which))
            nodes.discard(str(which))
        elif what == "nominate":
            if nominated:
                state.release(nominated.pop())
            else:
                nominated.append(view.info(pod("vip")))
                state.nominate(nominated[0], str(which))
    assert {each.name for each in state.nodes} == nodes
    assert state.nodes.count == len(nodes)
    _groups_are_right(view, running, nodes)
    assert Counter(info.node for info in running if info.labels["app"] == "web") == state.tallies.of(WEB).nodes
    assert Counter(info.node for info in running) == state.siblings("rs")
    apart = Counter((t, info.node) for info in running for t in anti_affinity_of(info))
    assert apart == {(t, name): n for t, counts in state.keeping_away.items() for name, n in counts.items()}


def _groups_are_right(view: View, running: list[PodInfo], nodes: set[str]) -> None:
    grouped = [each for group in view.state.nodes.groups for each in group.nodes]
    assert sorted(each.name for each in grouped) == sorted(nodes)
    for group in view.state.nodes.groups:
        assert group.nodes
        for position, each in enumerate(group.nodes):
            assert (each.group, each.position, each.kind, each.usage) == (group, position, group.kind, group.usage)
            expected = IDLE
            for info in running:
                if info.node == each.name:
                    expected = plus(expected, info.needs.request)
            assert each.usage == expected


def test_a_thousand_nodes_alike_are_one_group() -> None:
    view = View([node(f"n{number}", labels={"pool": "x"}) for number in range(1000)])
    assert len(view.state.nodes.groups) == 1
    view.place(pod("p", cpu="1"))
    assert sorted(len(group.nodes) for group in view.state.nodes.groups) == [1, 999]


def test_pods_of_one_workload_share_their_needs() -> None:
    view = View([])
    volumes = [{"name": "kube-api-access-abcde", "projected": {}}]
    one = view.info(pod("a", cpu="1", labels={"x": "1"}))
    other = view.info(pod("b", cpu="1", labels={"x": "2"}, volumes=volumes))
    assert one.needs is other.needs
    assert view.info(pod("c", cpu="2")).needs is not one.needs
