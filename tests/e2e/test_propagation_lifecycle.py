"""What becomes of the copies in the members when a policy, a template, a namespace or a cluster goes or changes."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from karmada.api.cluster import Cluster
from karmada.kube.objects import meta
from karmada.kube.objects.gvrs import DEPLOYMENTS, NAMESPACES
from karmada.kube.objects.types import Obj
from tests.e2e.propagating import (
    BINDINGS,
    CONFIG_MAPS,
    MANAGED,
    SERVICES,
    WORKS,
    Propagation,
    config_map,
    deployment,
    image,
    policy,
    replicas,
    selector,
)
from tests.support.eventually import eventually_blocking
from tests.support.objects import kube_object

pytestmark = pytest.mark.e2e

POLICY_ID = "propagationpolicy.karmada.io/permanent-id"
SUSPENDED = ("False", "SuspendDispatching", "Work dispatching is in a suspended state.")


@pytest.fixture
def fleet(three_members: Propagation) -> Propagation:
    return three_members


@pytest.fixture
def settings(fleet: Propagation) -> Iterator[Obj]:
    """A ConfigMap in member1 and member2, by the policy `settings`."""
    template = config_map("settings", {"app": "web"}, level="info")
    fleet.apply(template, policy("settings", [selector(template)], ["member1", "member2"]))
    fleet.until_bound("ConfigMap", "settings", "member1", "member2")
    yield template
    fleet.ours("delete", "propagationpolicies", "--all")
    fleet.delete(template)
    for member in fleet.members.values():
        member.until_gone(CONFIG_MAPS, "settings")


def claimed(obj: Obj) -> bool:
    return POLICY_ID in meta.labels(obj) or "propagationpolicy.karmada.io/name" in meta.annotations(obj)


def applied(work: Obj) -> Obj:
    return meta.get_condition((work.get("status") or {}).get("conditions"), "Applied") or {}


# the policy


def test_without_their_policy_copies_stay(fleet: Propagation, settings: Obj) -> None:
    fleet.ours("delete", "propagationpolicy", "settings")
    fleet.here.until(CONFIG_MAPS, "settings", lambda found: not claimed(found))
    binding = fleet.here.until(BINDINGS, "settings-configmap", lambda found: not claimed(found))
    assert {target["name"] for target in binding["spec"]["clusters"]} == {"member1", "member2"}
    assert fleet.work("member1", "ConfigMap", "settings") is not None
    for name in ("member1", "member2"):
        assert fleet.members[name].get(CONFIG_MAPS, "settings") is not None
    fleet.apply(policy("other", [selector(settings)], ["member3"]))
    fleet.until_bound("ConfigMap", "settings", "member3")
    fleet.members["member1"].until_gone(CONFIG_MAPS, "settings")
    fleet.members["member2"].until_gone(CONFIG_MAPS, "settings")


def test_a_policy_that_selects_something_else_releases_its_templates(fleet: Propagation, settings: Obj) -> None:
    fleet.apply(policy("settings", [selector(config_map("another"))], ["member3"]))
    fleet.here.until(CONFIG_MAPS, "settings", lambda found: not claimed(found))
    fleet.here.until(BINDINGS, "settings-configmap", lambda found: not claimed(found))
    assert fleet.members["member1"].get(CONFIG_MAPS, "settings") is not None
    assert fleet.members["member3"].get(CONFIG_MAPS, "settings") is None
    fleet.apply(policy("settings", [selector(settings)], ["member3"]))
    fleet.until_bound("ConfigMap", "settings", "member3")
    fleet.members["member1"].until_gone(CONFIG_MAPS, "settings")


def test_a_cluster_that_no_longer_fits_is_left(fleet: Propagation, settings: Obj) -> None:
    by_label = {"clusterAffinity": {"labelSelector": {"matchLabels": {"colour": "red"}}}}
    fleet.ours("label", "cluster", "member1", "member3", "colour=red")
    fleet.apply(policy("settings", [selector(settings)], placement=by_label))
    fleet.until_bound("ConfigMap", "settings", "member1", "member3")
    fleet.members["member2"].until_gone(CONFIG_MAPS, "settings")
    fleet.ours("label", "cluster", "member2", "colour=red")
    fleet.until_bound("ConfigMap", "settings", "member1", "member2", "member3")
    fleet.ours("label", "cluster", "member1", "member2", "member3", "colour-")


# the template


def test_with_the_template_everything_goes(fleet: Propagation, settings: Obj) -> None:
    fleet.ours("delete", "configmap", "settings")
    for name in ("member1", "member2"):
        fleet.members[name].until_gone(CONFIG_MAPS, "settings")
    fleet.here.until_gone(BINDINGS, "settings-configmap")
    eventually_blocking(lambda: not [w for w in fleet.here.list(WORKS) if meta.name(w).startswith("settings-")])
    fleet.apply(settings)
    fleet.until_bound("ConfigMap", "settings", "member1", "member2")


def test_marks_taken_off_the_template_are_taken_off_the_copies(fleet: Propagation, settings: Obj) -> None:
    fleet.ours("label", "configmap", "settings", "app-", "stage=test")
    fleet.ours("annotate", "configmap", "settings", "note=here")

    def renewed(obj: Obj) -> bool:
        return "app" not in meta.labels(obj) and meta.annotations(obj).get("note") == "here"

    for found in fleet.until_everywhere(CONFIG_MAPS, "settings", renewed, "member1", "member2"):
        assert meta.labels(found)["stage"] == "test"
    fleet.ours("annotate", "configmap", "settings", "note-")
    fleet.until_everywhere(
        CONFIG_MAPS, "settings", lambda obj: "note" not in meta.annotations(obj), "member1", "member2"
    )


# namespaces


def test_a_namespace_takes_with_it_what_is_in_it(fleet: Propagation) -> None:
    fleet.ours("create", "namespace", "team")
    template = config_map("settings", a="1")
    fleet.apply(template, policy("settings", [selector(template)], ["member1"]), namespace="team")
    fleet.until_bound("ConfigMap", "settings", "member1", namespace="team")
    fleet.ours("label", "namespace", "team", "owner=us")
    for member in fleet.members.values():
        member.until(NAMESPACES, "team", lambda found: meta.labels(found).get("owner") == "us", namespace="")
    fleet.ours("delete", "namespace", "team")
    for member in fleet.members.values():
        member.until_gone(NAMESPACES, "team", "")
    left = [meta.key(work) for work in fleet.here.list(WORKS) if meta.name(work).startswith(("team-", "settings-"))]
    assert left == []


def test_a_namespace_that_is_marked_stays_at_home(fleet: Propagation) -> None:
    marked = {"namespace.karmada.io/skip-auto-propagation": "true"}
    fleet.apply(kube_object("v1", "Namespace", "private", labels=marked))
    fleet.ours("create", "namespace", "public")
    for member in fleet.members.values():
        member.until(NAMESPACES, "public", namespace="")
        assert member.get(NAMESPACES, "private", "") is None
    fleet.ours("delete", "namespace", "private", "public")


# clusters


def test_a_cluster_that_leaves_is_cleaned_up_and_one_that_joins_is_filled(fleet: Propagation) -> None:
    fleet.ours("create", "namespace", "shared")
    fleet.create("visitor")
    fleet.join_all("visitor")
    fleet.open([*fleet.members, "visitor"])
    visitor = fleet.members.pop("visitor")
    visitor.until(NAMESPACES, "shared", namespace="")
    template = config_map("guest", a="1")
    everywhere = policy("guest", [selector(template)], ["member1", "visitor"])
    fleet.apply(template, everywhere, namespace="shared")
    fleet.until_bound("ConfigMap", "guest", "member1", "visitor", namespace="shared")
    way = ("--cluster-kubeconfig", str(fleet.sims.kubeconfig), "--cluster-context", "visitor")
    fleet.ctl("unjoin", "visitor", *way)
    fleet.here.until_gone(Cluster.gvr, "visitor", "")
    assert visitor.get(CONFIG_MAPS, "guest", "shared") is None
    visitor.until_gone(NAMESPACES, "shared", "")
    fleet.until_bound("ConfigMap", "guest", "member1", namespace="shared")
    assert fleet.here.get(NAMESPACES, "karmada-es-visitor", "") is None
    fleet.sims.ctl("delete", "visitor")
    fleet.ours("delete", "namespace", "shared")


# drift


def test_drift_in_a_member_is_corrected(fleet: Propagation, settings: Obj) -> None:
    theirs, member = fleet.sims.ours("member1"), fleet.members["member1"]
    first = member.get(CONFIG_MAPS, "settings")
    assert first is not None
    theirs("patch", "configmap", "settings", "--type=merge", "-p", '{"data": {"level": "debug", "more": "x"}}')
    member.until(CONFIG_MAPS, "settings", lambda found: found["data"] == {"level": "info"})
    theirs("label", "configmap", "settings", "theirs=kept", "app=other", "--overwrite")
    member.until(CONFIG_MAPS, "settings", lambda found: meta.labels(found) == {**meta.labels(first), "theirs": "kept"})
    theirs("delete", "configmap", "settings")
    again = member.until(CONFIG_MAPS, "settings", lambda found: meta.uid(found) != meta.uid(first))
    assert again["data"] == {"level": "info"}
    work = fleet.until_work(
        "member1", "ConfigMap", "settings", lambda found: applied(found)["reason"] == "ReCreateSuccessful"
    )
    assert applied(work)["status"] == "True"


def test_whoever_takes_the_mark_off_in_a_member_keeps_the_object(fleet: Propagation) -> None:
    template = config_map("taken", a="1")
    sent = policy("taken", [selector(template)], ["member1"])
    fleet.apply(template, sent)
    fleet.until_bound("ConfigMap", "taken", "member1")
    theirs, member = fleet.sims.ours("member1"), fleet.members["member1"]
    theirs("label", "configmap", "taken", f"{MANAGED}-")
    theirs("patch", "configmap", "taken", "--type=merge", "-p", '{"data": {"a": "theirs"}}')
    fleet.until_work("member1", "ConfigMap", "taken", lambda found: applied(found).get("status") == "False")
    fleet.delete(template, sent)
    fleet.here.until_gone(BINDINGS, "taken-configmap")
    eventually_blocking(lambda: fleet.work("member1", "ConfigMap", "taken") is None)
    found = member.get(CONFIG_MAPS, "taken")
    assert found is not None
    assert found["data"] == {"a": "theirs"}
    theirs("delete", "configmap", "taken")


def test_replicas_that_a_member_decides_are_left_to_it(fleet: Propagation) -> None:
    template = deployment("scaled", 1, labels={"resourcetemplate.karmada.io/retain-replicas": "true"})
    sent = policy("scaled", [selector(template)], ["member1"])
    fleet.apply(template, sent)
    fleet.until_bound("Deployment", "scaled", "member1")
    fleet.sims.kubectl("member1")("scale", "deployment", "scaled", "--replicas=3")
    fleet.kubectl("set", "image", "deployment/scaled", "web=nginx:1.26")
    found = fleet.members["member1"].until(DEPLOYMENTS, "scaled", lambda found: image(found) == "nginx:1.26")
    assert replicas(found) == 3
    fleet.here.until(DEPLOYMENTS, "scaled", lambda found: found["status"].get("readyReplicas") == 3)
    fleet.delete(sent, template)


# conflicts


@pytest.mark.parametrize("by_policy", [True, False], ids=["policy", "template"])
def test_what_a_member_has_is_taken_over_if_that_is_requested(fleet: Propagation, by_policy: bool) -> None:
    fleet.sims.ours("member1")("create", "configmap", "mine", "--from-literal=own=yes")
    before = fleet.members["member1"].get(CONFIG_MAPS, "mine")
    assert before is not None
    template = config_map("mine", a="1")
    options = {"conflictResolution": "Overwrite"} if by_policy else {}
    if not by_policy:
        template["metadata"]["annotations"] = {"work.karmada.io/conflict-resolution": "overwrite"}
    sent = policy("mine", [selector(template)], ["member1"], **options)
    fleet.apply(template, sent)
    found = fleet.members["member1"].until(CONFIG_MAPS, "mine", lambda found: found.get("data") == {"a": "1"})
    assert meta.labels(found)[MANAGED] == "true"
    assert meta.uid(found) == meta.uid(before)
    fleet.until_bound("ConfigMap", "mine", "member1")
    fleet.delete(template, sent)
    fleet.members["member1"].until_gone(CONFIG_MAPS, "mine")


def test_a_conflict_ends_when_the_policy_says_so(fleet: Propagation) -> None:
    fleet.sims.ours("member1")("create", "configmap", "late", "--from-literal=own=yes")
    template = config_map("late", a="1")
    sent = policy("late", [selector(template)], ["member1"])
    fleet.apply(template, sent)
    fleet.until_work("member1", "ConfigMap", "late", lambda found: applied(found).get("reason") == "AppliedFailed")
    sent["spec"]["conflictResolution"] = "Overwrite"
    fleet.apply(sent)
    fleet.members["member1"].until(CONFIG_MAPS, "late", lambda found: found.get("data") == {"a": "1"})
    fleet.until_bound("ConfigMap", "late", "member1")
    fleet.delete(template, sent)
    fleet.members["member1"].until_gone(CONFIG_MAPS, "late")


# suspension


def test_nothing_is_sent_while_dispatching_is_suspended(fleet: Propagation) -> None:
    template = config_map("held", a="1")

    def sent(**suspension: object) -> Obj:
        more = {"suspension": suspension} if suspension else {}
        return policy("held", [selector(template)], ["member1", "member2"], **more)

    def held(work: Obj) -> bool:
        found = meta.get_condition((work.get("status") or {}).get("conditions"), "Dispatching") or {}
        return (found.get("status"), found.get("reason"), found.get("message")) == SUSPENDED

    fleet.apply(template, sent(dispatching=True))
    for name in ("member1", "member2"):
        fleet.until_work(name, "ConfigMap", "held", held)
        assert fleet.members[name].get(CONFIG_MAPS, "held") is None
    fleet.apply(sent(dispatchingOnClusters={"clusterNames": ["member2"]}))
    fleet.members["member1"].until(CONFIG_MAPS, "held")
    assert fleet.members["member2"].get(CONFIG_MAPS, "held") is None
    fleet.apply(sent())
    fleet.until_bound("ConfigMap", "held", "member1", "member2")
    fleet.apply(sent(dispatching=True))
    fleet.until_work("member1", "ConfigMap", "held", held)
    fleet.apply(config_map("held", a="2"))
    fleet.until_work(
        "member1", "ConfigMap", "held", lambda w: w["spec"]["workload"]["manifests"][0]["data"]["a"] == "2"
    )
    fleet.sims.ours("member2")("delete", "configmap", "held")
    found = fleet.members["member1"].get(CONFIG_MAPS, "held")
    assert found is not None
    assert found["data"] == {"a": "1"}
    fleet.apply(sent())
    fleet.until_everywhere(CONFIG_MAPS, "held", lambda found: found["data"] == {"a": "2"}, "member1", "member2")
    fleet.delete(template, sent())
    fleet.members["member2"].until_gone(CONFIG_MAPS, "held")


# preservation


def test_copies_that_are_preserved_outlive_their_template(fleet: Propagation) -> None:
    template = deployment("kept", 1)
    sent = policy("kept", [selector(template)], ["member1", "member2"], preserveResourcesOnDeletion=True)
    fleet.apply(template, sent)
    fleet.until_bound("Deployment", "kept", "member1", "member2")
    before = fleet.members["member1"].get(DEPLOYMENTS, "kept")
    assert before is not None
    moved = policy("kept", [selector(template)], ["member1"], preserveResourcesOnDeletion=True)
    fleet.apply(moved)
    fleet.until_bound("Deployment", "kept", "member1")
    fleet.ours("delete", "deployment", "kept")
    fleet.here.until_gone(BINDINGS, "kept-deployment")
    for found in fleet.until_everywhere(
        DEPLOYMENTS, "kept", lambda obj: MANAGED not in meta.labels(obj), "member1", "member2"
    ):
        assert meta.labels(found) == {"app": "kept"}
        assert [key for key in meta.annotations(found) if "karmada.io" in key] == [
            "work.karmada.io/conflict-resolution"
        ]
        assert found["spec"] == before["spec"]
    eventually_blocking(lambda: not [w for w in fleet.here.list(WORKS) if meta.name(w).startswith("kept-")])
    fleet.delete(moved)
    for name in ("member1", "member2"):
        fleet.sims.ours(name)("delete", "deployment", "kept")


# status


def test_addresses_of_load_balancers_are_gathered(fleet: Propagation) -> None:
    service = kube_object(
        "v1", "Service", "front", spec={"type": "LoadBalancer", "selector": {"app": "web"}, "ports": [{"port": 80}]}
    )
    sent = policy("front", [selector(service)], ["member1", "member2"])
    fleet.apply(service, sent)

    def addresses(obj: Obj) -> list[str]:
        return [entry["ip"] for entry in obj["status"]["loadBalancer"].get("ingress") or ()]

    own = [addresses(found) for found in fleet.until_everywhere(SERVICES, "front", addresses, "member1", "member2")]
    wanted = sorted({ip for ips in own for ip in ips})
    fleet.here.until(SERVICES, "front", lambda found: addresses(found) == wanted)
    fleet.delete(service, sent)
    fleet.members["member1"].until_gone(SERVICES, "front")


def test_a_rollout_can_be_waited_for_in_the_control_plane(fleet: Propagation) -> None:
    template = deployment("rolled", 2)
    sent = policy("rolled", [selector(template)], ["member1", "member2"])
    fleet.apply(template, sent)
    fleet.here.until(DEPLOYMENTS, "rolled", lambda found: (found.get("status") or {}).get("readyReplicas") == 4)
    fleet.kubectl("set", "image", "deployment/rolled", "web=nginx:1.26")
    output = fleet.kubectl("rollout", "status", "deployment/rolled", "--timeout=100s").lines
    assert output[-1] == 'deployment "rolled" successfully rolled out'
    for found in fleet.until_everywhere(DEPLOYMENTS, "rolled", bool, "member1", "member2"):
        assert image(found) == "nginx:1.26"
    status = fleet.kubectl("get", "deployment", "rolled", "-o", "json").json()["status"]
    assert {key: status[key] for key in ("replicas", "readyReplicas", "updatedReplicas")} == {
        "replicas": 4,
        "readyReplicas": 4,
        "updatedReplicas": 4,
    }
    fleet.delete(template, sent)
    fleet.members["member1"].until_gone(DEPLOYMENTS, "rolled")


# dependencies


def test_dependencies_come_and_go_with_the_workload(fleet: Propagation) -> None:
    template, sent = _reading("reader", "first"), None
    sent = policy("reader", [selector(template)], ["member1"], propagateDeps=True)
    fleet.apply(config_map("first", a="1"), config_map("second", b="1"), template, sent)
    member = fleet.members["member1"]
    member.until(CONFIG_MAPS, "first")
    fleet.apply(config_map("first", a="2"))
    member.until(CONFIG_MAPS, "first", lambda found: found["data"] == {"a": "2"})
    fleet.apply(_reading("reader", "second"))
    member.until(CONFIG_MAPS, "second")
    member.until_gone(CONFIG_MAPS, "first")
    fleet.apply({**sent, "spec": {**sent["spec"], "placement": {"clusterAffinity": {"clusterNames": ["member2"]}}}})
    fleet.members["member2"].until(CONFIG_MAPS, "second")
    member.until_gone(CONFIG_MAPS, "second")
    fleet.apply(_reading("reader", "third"))
    fleet.apply(config_map("third", c="1"))
    fleet.members["member2"].until(CONFIG_MAPS, "third")
    fleet.delete(template, sent)
    fleet.members["member2"].until_gone(CONFIG_MAPS, "third")
    fleet.members["member2"].until_gone(CONFIG_MAPS, "second")
    fleet.delete(config_map("first"), config_map("second"), config_map("third"))


def _reading(name: str, config: str) -> Obj:
    made = deployment(name, 1)
    made["spec"]["template"]["spec"]["volumes"] = [{"name": "v", "configMap": {"name": config}}]
    return made


def test_a_protected_template_is_not_deleted(fleet: Propagation, settings: Obj) -> None:
    protection = "resourcetemplate.karmada.io/deletion-protected"
    fleet.ours("label", "configmap", "settings", f"{protection}=Always")
    refused = fleet.kubectl("delete", "configmap", "settings", check=False)
    assert refused.code == 1
    assert f"make sure to remove the label: {protection}" in refused.err
    fleet.ours("label", "configmap", "settings", f"{protection}-")
    assert json.loads(fleet.kubectl("get", "configmap", "settings", "-o", "json").out)["data"] == {"level": "info"}
