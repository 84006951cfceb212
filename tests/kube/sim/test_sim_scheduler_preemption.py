from __future__ import annotations

from karmada.kube.objects.selectors import parse_labels
from karmada.kube.sim.scheduler.messages import NO_VICTIMS
from karmada.kube.sim.scheduler.preemption import Budget, Victims, best, find_victims
from tests.kube.sim.scheduling_objects import View, anti_affinity, node, pod, term
from tests.support.cases import cases


def _victims(view: View, wanted: dict[str, object], on: str, *budgets: Budget) -> Victims:
    info = view.info(wanted)
    found = find_victims(view.state, view.algorithm.refuses, info, view.node(on), budgets)
    assert isinstance(found, Victims), found
    return found


def _names(victims: Victims) -> list[str]:
    return [victim.key.name for victim in victims.pods]


def test_only_as_many_pods_go_as_must_and_the_least_important_first() -> None:
    view = View([node("n", cpu="4")])
    view.run(pod("low", cpu="1", priority=1), "n")
    view.run(pod("middle", cpu="1", priority=5), "n")
    view.run(pod("small", cpu="100m", priority=0), "n")
    view.run(pod("high", cpu="1", priority=50), "n")
    assert _names(_victims(view, pod("vip", cpu="1500m", priority=10), "n")) == ["low"]
    assert _names(_victims(view, pod("vip", cpu="2500m", priority=10), "n")) == ["middle", "low"]


def test_trying_out_leaves_everything_as_it_was() -> None:
    view = View([node("n", cpu="4")])
    pods = [view.run(pod(f"p{number}", cpu="1", priority=1), "n") for number in range(4)]
    before = view.node("n").usage
    _victims(view, pod("vip", cpu="2", priority=10), "n")
    refused = find_victims(
        view.state, view.algorithm.refuses, view.info(pod("huge", cpu="5", priority=10)), view.node("n"), ()
    )
    assert not isinstance(refused, Victims)
    assert view.node("n").usage == before
    assert set(view.node("n").pods) == {info.key for info in pods}


def test_pods_of_the_same_priority_are_no_victims() -> None:
    view = View([node("n", cpu="1")])
    view.run(pod("p", cpu="1", priority=10), "n")
    info = view.info(pod("vip", cpu="1", priority=10))
    assert find_victims(view.state, view.algorithm.refuses, info, view.node("n"), ()) is NO_VICTIMS


def test_a_budget_protects_its_pods_as_long_as_others_can_go() -> None:
    view = View([node("n", cpu="2")])
    view.run(pod("guarded", cpu="1", priority=0, labels={"app": "db"}), "n")
    view.run(pod("free", cpu="1", priority=5, labels={"app": "web"}), "n")
    budget = Budget("default", parse_labels("app=db"), 0, frozenset())
    assert _names(_victims(view, pod("vip", cpu="1", priority=10), "n", budget)) == ["free"]
    both = _victims(view, pod("vip", cpu="2", priority=10), "n", budget)
    assert (_names(both), both.violations) == (["free", "guarded"], 1)


def test_anti_affinity_can_be_a_reason_to_preempt() -> None:
    view = View([node("n")])
    view.run(pod("web", labels={"app": "web"}, priority=0), "n")
    view.run(pod("other", labels={"app": "other"}, priority=0), "n")
    wanted = pod("vip", priority=10, affinity=anti_affinity(term(app="web")))
    assert _names(_victims(view, wanted, "n")) == ["web"]


@cases(
    ([(0, "2")], [(5, "2")], "a"),
    ([(5, "1"), (5, "1")], [(5, "2")], "b"),
    ([(1, "1"), (0, "1")], [(1, "1"), (1, "1")], "a"),
)
def test_the_node_where_it_hurts_least_is_chosen(
    a: list[tuple[int, str]], b: list[tuple[int, str]], chosen: str
) -> None:
    view = View([node("a", cpu="2"), node("b", cpu="2")])
    for name, pods in (("a", a), ("b", b)):
        for number, (priority, cpu) in enumerate(pods):
            view.run(pod(f"{name}{number}", cpu=cpu, priority=priority), name)
    info = view.info(pod("vip", cpu="2", priority=10))
    hopeful = view.algorithm.hopeful_nodes(info)
    assert sorted(each.name for each in hopeful) == ["a", "b"]
    victims, _ = best(view.state, view.algorithm.refuses, info, hopeful, ())
    assert victims is not None
    assert victims.node.name == chosen


def test_why_preemption_does_not_help_is_reported_per_node() -> None:
    tainted = node("t", taints=[{"key": "k", "effect": "NoSchedule"}])
    view = View([node("a", cpu="2"), node("b", cpu="2"), tainted])
    view.run(pod("equal", cpu="2", priority=10), "a")
    view.run(pod("big", cpu="1500m", priority=10), "b")
    view.run(pod("small", cpu="100m", priority=0), "b")
    info = view.info(pod("vip", cpu="1", priority=10))
    victims, why = best(view.state, view.algorithm.refuses, info, view.algorithm.hopeful_nodes(info), ())
    assert victims is None
    assert why == (
        "0/3 nodes are available: 1 Insufficient cpu, 1 No preemption victims found for incoming pod, "
        "1 Preemption is not helpful for scheduling."
    )
