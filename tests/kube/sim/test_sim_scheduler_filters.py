from __future__ import annotations

from collections import Counter
from typing import Any

from karmada.kube.objects.types import Obj
from karmada.kube.sim.scheduler.algorithm import Choice, Diagnosis
from tests.kube.sim.scheduling_objects import (
    HOSTNAME,
    PREFERRED,
    ZONE,
    View,
    anti_affinity,
    node,
    node_affinity,
    pod,
    pod_affinity,
    spread,
    term,
)
from tests.support.cases import cases

GPU = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}


def refusal(view: View, wanted: Obj) -> str:
    outcome = view.decide(wanted)
    assert isinstance(outcome, Diagnosis), f"went to {outcome.node.name}"
    return outcome.message


@cases(
    (node("n"), pod("p", cpu="5"), "Insufficient cpu"),
    (node("n"), pod("p", memory="17Gi"), "Insufficient memory"),
    (node("n"), pod("p", resources={"ephemeral-storage": "1Ti"}), "Insufficient ephemeral-storage"),
    (node("n"), pod("p", resources={"nvidia.com/gpu": "1"}), "Insufficient nvidia.com/gpu"),
    (node("n", pods="0"), pod("p"), "Too many pods"),
    (node("n", taints=[GPU]), pod("p"), "node(s) had untolerated taint(s)"),
    (node("n", unschedulable=True), pod("p"), "node(s) were unschedulable"),
    (node("n"), pod("p", nodeSelector={"disk": "ssd"}), "node(s) didn't match Pod's node affinity/selector"),
    (
        node("n"),
        pod("p", affinity=pod_affinity(term(ZONE, app="db"))),
        "node(s) didn't match pod affinity rules",
    ),
    (
        node("n"),
        pod("p", topologySpreadConstraints=[spread(ZONE, app="web")]),
        "node(s) didn't match pod topology spread constraints (missing required label)",
    ),
)
def test_why_a_pod_is_refused_is_reported(there: Obj, wanted: Obj, reason: str) -> None:
    assert refusal(View([there]), wanted) == f"0/1 nodes are available: 1 {reason}."


def test_a_pod_on_a_cluster_without_nodes_reports_that() -> None:
    assert refusal(View([]), pod("p")) == "no nodes available to schedule pods"


def test_reasons_are_counted_and_sorted_as_texts() -> None:
    view = View([node("a", taints=[GPU]), node("b", cpu="1"), node("c", cpu="1", memory="1Gi"), *_twelve("x")])
    message = refusal(view, pod("p", cpu="2", memory="2Gi", nodeSelector={"a": "b"}, tolerations=[]))
    assert message == (
        "0/15 nodes are available: 1 node(s) had untolerated taint(s), "
        "14 node(s) didn't match Pod's node affinity/selector."
    )
    message = refusal(View([node("b", cpu="1"), node("c", cpu="1", memory="1Gi")]), pod("p", cpu="2", memory="2Gi"))
    assert message == "0/2 nodes are available: 1 Insufficient memory, 2 Insufficient cpu."


def _twelve(prefix: str) -> list[Obj]:
    return [node(f"{prefix}{number}") for number in range(12)]


def test_up_to_1_34_the_taint_is_named() -> None:
    message = refusal(View([node("n", taints=[GPU])], minor=34), pod("p"))
    assert message == "0/1 nodes are available: 1 node(s) had untolerated taint {gpu: yes}."


def test_the_first_filter_that_refuses_a_node_is_the_one_that_counts() -> None:
    full = node("n", cpu="1", taints=[GPU], unschedulable=True)
    assert "were unschedulable" in refusal(View([full]), pod("p", cpu="2", nodeSelector={"a": "b"}))


@cases(
    {"key": "gpu", "operator": "Exists"},
    {"key": "gpu", "value": "yes"},
    {"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"},
    {"operator": "Exists"},
)
def test_a_tolerated_taint_keeps_nobody_out(toleration: Obj) -> None:
    assert View([node("n", taints=[GPU])]).place(pod("p", tolerations=[toleration])) == "n"


@cases(
    {"key": "gpu", "value": "no"},
    {"key": "gpu", "operator": "Exists", "effect": "NoExecute"},
    {"key": "cpu", "operator": "Exists"},
    {"value": "yes"},
)
def test_a_toleration_of_something_else_does_not_help(toleration: Obj) -> None:
    assert "untolerated" in View([node("n", taints=[GPU])]).place(pod("p", tolerations=[toleration]))


def test_daemon_pods_go_to_cordoned_nodes() -> None:
    toleration = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}
    assert View([node("n", unschedulable=True)]).place(pod("p", tolerations=[toleration])) == "n"


def _expression(key: str, operator: str, *values: str) -> Obj:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@cases(
    ([_expression("disk", "In", "ssd", "nvme")], True),
    ([_expression("disk", "NotIn", "ssd")], False),
    ([_expression("disk", "NotIn", "hdd")], True),
    ([_expression("other", "NotIn", "hdd")], True),
    ([_expression("disk", "Exists")], True),
    ([_expression("disk", "DoesNotExist")], False),
    ([_expression("cores", "Gt", "7")], True),
    ([_expression("cores", "Gt", "8")], False),
    ([_expression("cores", "Lt", "9")], True),
    ([_expression("disk", "Gt", "1")], False),
    ([_expression("disk", "In", "hdd"), _expression("cores", "Exists")], True),
    ([{}], False),
    ([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}], True),
    ([{"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n"]}]}], False),
    ([_expression(HOSTNAME, "In", "n")], True),
    ([_expression(HOSTNAME, "In", "m")], False),
)
def test_node_affinity_selects_by_labels_and_names(terms: list[Obj], goes: bool) -> None:
    view = View([node("n", labels={"disk": "ssd", "cores": "8"})])
    assert (view.place(pod("p", affinity=node_affinity(*terms))) == "n") is goes


def _pinned(*names: str) -> dict[str, Any]:
    fields = [{"key": "metadata.name", "operator": "In", "values": list(names)}]
    return {"affinity": node_affinity({"matchFields": fields})}


def test_a_pod_pinned_to_one_node_of_thousands_reports_that_node() -> None:
    view = View([node(f"n{number}") for number in range(2000)])
    assert view.place(pod("p", **_pinned("n1234"))) == "n1234"
    assert refusal(view, pod("q", cpu="9", **_pinned("n1"))) == (
        "0/2000 nodes are available: 1 Insufficient cpu, 1999 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    )


def test_before_1_30_the_other_nodes_just_do_not_match() -> None:
    view = View([node("a"), node("b")], minor=29)
    assert refusal(view, pod("q", cpu="9", **_pinned("a"))) == (
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector."
    )


@cases(
    ({"hostPort": 80}, {"hostPort": 80}, True),
    ({"hostPort": 80}, {"hostPort": 81}, False),
    ({"hostPort": 80, "protocol": "UDP"}, {"hostPort": 80, "protocol": "TCP"}, False),
    ({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80, "hostIP": "10.0.0.2"}, False),
    ({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80}, True),
    ({"containerPort": 80}, {"containerPort": 80}, False),
)
def test_host_ports_are_given_out_once_per_node(taken: Obj, wanted: Obj, clash: bool) -> None:
    view = View([node("n")])
    first = view.run(pod("a", ports=[taken]), "n")
    outcome = view.place(pod("b", ports=[wanted]))
    assert ("didn't have free ports for the requested pod ports" in outcome) is clash
    view.state.unassign(first)
    assert view.place(pod("c", ports=[{"hostPort": 99}])) == "n"


def test_ports_are_checked_before_resources() -> None:
    view = View([node("n", cpu="1")])
    view.run(pod("a", ports=[{"hostPort": 80}]), "n")
    assert "free ports" in refusal(view, pod("b", cpu="2", ports=[{"hostPort": 80}]))


def test_pods_that_keep_apart_get_a_node_each() -> None:
    view = View([node(f"n{number}") for number in range(3)])
    web: dict[str, Any] = {"labels": {"app": "web"}, "affinity": anti_affinity(term(app="web"))}
    assert {view.place(pod(f"p{number}", **web)) for number in range(3)} == {"n0", "n1", "n2"}
    assert refusal(view, pod("p4", **web)) == (
        "0/3 nodes are available: 3 node(s) didn't match pod anti-affinity rules."
    )


def test_those_who_run_already_may_keep_others_away() -> None:
    view = View([node("a", labels={ZONE: "z1"}), node("b", labels={ZONE: "z1"}), node("c", labels={ZONE: "z2"})])
    lonely = view.run(pod("lonely", affinity=anti_affinity(term(ZONE, app="web"))), "a")
    assert view.place(pod("p", labels={"app": "web"})) == "c"
    view.state.remove_node("c")
    assert refusal(view, pod("q", labels={"app": "web"})) == (
        "0/2 nodes are available: 2 node(s) didn't satisfy existing pods anti-affinity rules."
    )
    assert view.place(pod("other", labels={"app": "db"})) in "ab"
    view.state.unassign(lonely)
    assert view.place(pod("r", labels={"app": "web"})) in "ab"


def test_a_pod_that_wants_company_goes_where_it_is_and_the_first_may_start_anywhere() -> None:
    view = View([node("a", labels={ZONE: "z1"}), node("b", labels={ZONE: "z2"}), node("c", labels={ZONE: "z2"})])
    together: dict[str, Any] = {"labels": {"app": "db"}, "affinity": pod_affinity(term(ZONE, app="db"))}
    zones = {"a": "z1", "b": "z2", "c": "z2"}
    first = view.place(pod("p0", **together))
    assert {zones[view.place(pod(f"p{number}", **together))] for number in range(1, 6)} == {zones[first]}
    assert "didn't match pod affinity rules" in refusal(view, pod("x", affinity=pod_affinity(term(ZONE, app="web"))))


def test_affinity_stays_within_the_namespace_unless_it_says_otherwise() -> None:
    view = View([node("a"), node("b")])
    view.run(pod("db", labels={"app": "db"}, namespace="other"), "a")
    assert "affinity" in view.place(pod("p", affinity=pod_affinity(term(app="db"))))
    named = {**term(app="db"), "namespaces": ["other"]}
    assert view.place(pod("q", affinity=pod_affinity(named))) == "a"
    everywhere = {**term(app="db"), "namespaceSelector": {}}
    assert view.place(pod("r", affinity=pod_affinity(everywhere))) == "a"


def test_no_zone_gets_more_than_its_share() -> None:
    zones = {"a": "z1", "b": "z1", "c": "z1", "d": "z2"}
    view = View([node(name, labels={ZONE: zone}) for name, zone in zones.items()])
    web: dict[str, Any] = {"labels": {"app": "web"}, "topologySpreadConstraints": [spread(ZONE, app="web")]}
    placed = Counter(zones[view.place(pod(f"p{number}", **web))] for number in range(8))
    assert placed == {"z1": 4, "z2": 4}


def test_a_spread_that_cannot_be_kept_leaves_the_pod_waiting() -> None:
    view = View([node("a", labels={ZONE: "z1"}), node("b", labels={ZONE: "z2"}, cpu="1")])
    web: dict[str, Any] = {"labels": {"app": "web"}, "cpu": "1", "topologySpreadConstraints": [spread(ZONE, app="web")]}
    assert {view.place(pod("p0", **web)), view.place(pod("p1", **web))} == {"a", "b"}
    assert view.place(pod("p2", **web)) == "a"
    assert refusal(view, pod("p3", **web)) == (
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match pod topology spread constraints."
    )


def test_pods_being_deleted_do_not_count_for_the_spread() -> None:
    view = View([node("a"), node("b", unschedulable=True)])
    web: dict[str, Any] = {"labels": {"app": "web"}, "topologySpreadConstraints": [spread(HOSTNAME, app="web")]}
    leaving = view.info(pod("p0", **web), "a")
    leaving.deleting = True
    view.state.assign(leaving)
    assert view.place(pod("p1", **web)) == "a"
    assert "topology spread" in view.place(pod("p2", **web))


def test_nodes_the_pod_cannot_use_are_no_domains_to_spread_over() -> None:
    view = View([node("a", labels={"disk": "ssd"}), node("b")])
    web: dict[str, Any] = {
        "labels": {"app": "web"},
        "nodeSelector": {"disk": "ssd"},
        "topologySpreadConstraints": [spread(HOSTNAME, app="web")],
    }
    assert [view.place(pod(f"p{number}", **web)) for number in range(3)] == ["a", "a", "a"]


def test_too_few_domains_count_as_an_empty_one() -> None:
    view = View([node("a", labels={ZONE: "z1"})])
    rule = {**spread(ZONE, app="web"), "minDomains": 2}
    web: dict[str, Any] = {"labels": {"app": "web"}, "topologySpreadConstraints": [rule]}
    assert view.place(pod("p0", **web)) == "a"
    assert "topology spread" in view.place(pod("p1", **web))


def test_an_owners_new_revision_spreads_by_itself() -> None:
    view = View([node("a"), node("b")])
    rule = {**spread(HOSTNAME, app="web"), "matchLabelKeys": ["hash"]}
    for number, where in enumerate(("a", "a", "a")):
        view.run(pod(f"old{number}", labels={"app": "web", "hash": "1"}), where)
    new: dict[str, Any] = {"labels": {"app": "web", "hash": "2"}, "topologySpreadConstraints": [rule]}
    assert {view.place(pod("new0", **new)), view.place(pod("new1", **new))} == {"a", "b"}


# --- scores


def test_siblings_are_spread_over_empty_nodes() -> None:
    view = View([node(f"n{number}") for number in range(5)])
    assert len({view.place(pod(f"p{number}", cpu="100m", owner="rs")) for number in range(5)}) == 5


def test_the_emptier_node_is_preferred() -> None:
    view = View([node("a"), node("b")])
    view.run(pod("big", cpu="3", memory="12Gi"), "a")
    assert view.place(pod("p", cpu="100m")) == "b"


def test_pods_that_request_nothing_are_spread_as_well() -> None:
    view = View([node("a"), node("b")])
    assert Counter(view.place(pod(f"p{number}")) for number in range(10)) == {"a": 5, "b": 5}


def test_soft_taints_and_preferences_only_weigh() -> None:
    soft = {"key": "slow", "effect": "PreferNoSchedule"}
    view = View([node("a", taints=[soft]), node("b")])
    assert [view.place(pod(f"p{number}", cpu="100m")) for number in range(3)] == ["b", "b", "b"]
    view = View([node("a", labels={"disk": "ssd"}), node("b")])
    wish = {"weight": 10, "preference": _expression("disk", "In", "ssd")}
    liking: dict[str, Any] = {"affinity": {"nodeAffinity": {PREFERRED: [wish]}}}
    assert [view.place(pod(f"p{number}", cpu="100m", **liking)) for number in range(3)] == ["a", "a", "a"]
    view.state.remove_node("a")
    assert view.place(pod("q", **liking)) == "b"


def test_preferred_company_draws_and_repels() -> None:
    view = View([node("a"), node("b")])
    view.run(pod("db", labels={"app": "db"}), "a")
    wish = [{"weight": 100, "podAffinityTerm": term(app="db")}]
    assert view.place(pod("p", affinity={"podAffinity": {PREFERRED: wish}})) == "a"
    assert view.place(pod("q", affinity={"podAntiAffinity": {PREFERRED: wish}})) == "b"


def test_a_wished_spread_gives_way_when_it_must() -> None:
    view = View([node("a"), node("b")])
    web: dict[str, Any] = {
        "labels": {"app": "web"},
        "topologySpreadConstraints": [spread(HOSTNAME, when="ScheduleAnyway", app="web")],
    }
    assert {view.place(pod("p0", **web)), view.place(pod("p1", **web))} == {"a", "b"}
    view.state.remove_node("b")
    assert view.place(pod("p2", **web)) == "a"


def test_the_same_seed_makes_the_same_choices() -> None:
    def choices() -> list[str]:
        view = View([node(f"n{number}") for number in range(20)], seed=7)
        return [view.place(pod(f"p{number}", cpu="10m")) for number in range(50)]

    assert choices() == choices()


def test_room_kept_for_a_preempting_pod_is_not_given_to_lesser_ones() -> None:
    view = View([node("n", cpu="2")])
    vip = view.info(pod("vip", cpu="2", priority=100))
    view.state.nominate(vip, "n")
    assert "Insufficient cpu" in view.place(pod("p", cpu="1"))
    assert isinstance(view.algorithm.decide(vip), Choice)
    assert view.place(pod("higher", cpu="1", priority=200)) == "n"
    view.state.release(vip)
    assert view.place(pod("q", cpu="1")) == "n"


def test_a_refusal_is_remembered_until_something_improves() -> None:
    view = View([node("n", cpu="1")])
    first = view.decide(pod("p", cpu="2"))
    assert view.decide(pod("q", cpu="2")) is first
    view.state.set_node(node("m", cpu="2"))
    assert view.place(pod("r", cpu="2")) == "m"


def test_init_containers_sidecars_and_overhead_count() -> None:
    view = View([node("n", cpu="2")])
    greedy: Obj = {"name": "i", "image": "x", "resources": {"requests": {"cpu": "3"}}}
    assert "Insufficient cpu" in view.place(pod("p", cpu="1", initContainers=[greedy]))
    sidecar = {"name": "s", "image": "x", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1500m"}}}
    assert "Insufficient cpu" in view.place(pod("q", cpu="1", initContainers=[sidecar]))
    assert "Insufficient cpu" in view.place(pod("r", cpu="1", overhead={"cpu": "1500m"}))
    assert view.place(pod("s", cpu="2")) == "n"
