"""Propagation as tutorials walk through it: kubectl against the control plane, kubectl against the members."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from karmada.kube.client.manifests import load_manifests
from karmada.kube.objects import meta
from karmada.kube.objects.gvrs import CRDS, DEPLOYMENTS
from karmada.kube.objects.types import Obj
from tests.e2e.propagating import (
    BINDINGS,
    CONFIG_MAPS,
    GUESTBOOKS,
    MEMBERS,
    SERVICES,
    Propagation,
    config_map,
    deployment,
    policy,
    replicas,
    selector,
)
from tests.support.cases import cases
from tests.support.eventually import eventually_blocking
from tests.support.objects import kube_object

pytestmark = pytest.mark.e2e

DATA = Path(__file__).parent / "data"
EMITTED = {
    ("Normal", "ApplyPolicySucceed", "resource-detector", "Apply policy(default/nginx-propagation) succeed"),
    (
        "Normal",
        "SyncWorkSucceed",
        "binding-controller",
        "Sync work of ResourceBinding(default/nginx-deployment) successful.",
    ),
    *(
        (
            "Normal",
            "SyncSucceed",
            "execution-controller",
            f"Successfully applied resource(default/nginx) to cluster {name}",
        )
        for name in ("member1", "member2")
    ),
    (
        "Normal",
        "AggregateStatusSucceed",
        "resource-binding-status-controller",
        "Update Resource with AggregatedStatus successfully.",
    ),
}


@pytest.fixture
def fleet(three_members: Propagation) -> Propagation:
    return three_members


@pytest.fixture
def nginx(fleet: Propagation) -> Iterator[Obj]:
    """A Deployment that goes nowhere yet; it is gone everywhere when the test is over."""
    template = deployment("nginx", replicas=2, image="nginx:1.7.9")
    fleet.kubectl_apply(template)
    yield template
    fleet.ours("delete", "propagationpolicies", "--all")
    fleet.delete(template)
    for member in fleet.members.values():
        member.until_gone(DEPLOYMENTS, "nginx")


def weights(**parts: int) -> Obj:
    listed = [{"targetCluster": {"clusterNames": [name]}, "weight": weight} for name, weight in parts.items()]
    return {
        "replicaSchedulingType": "Divided",
        "replicaDivisionPreference": "Weighted",
        "weightPreference": {"staticWeightList": listed},
    }


def pods(fleet: Propagation, cluster: str) -> list[str]:
    """The names of the running ones, as kubectl shows them."""
    output = fleet.sims.kubectl(cluster)("get", "pods", "-l", "app=nginx", "--no-headers").lines
    return [line.split()[0] for line in output if line.split()[1:3] == ["1/1", "Running"]]


def test_a_deployment_is_divided_between_two_members(fleet: Propagation, nginx: Obj) -> None:
    fleet.until_empty("member1")
    both = {"clusterAffinity": {"clusterNames": ["member1", "member2"]}}
    sent = policy(
        "nginx-propagation", [selector(nginx)], placement={**both, "replicaScheduling": weights(member1=1, member2=1)}
    )
    assert fleet.kubectl_apply(sent).out == "propagationpolicy.policy.karmada.io/nginx-propagation created\n"
    shown = fleet.kubectl("get", "propagationpolicy").lines
    assert shown[0].split() == ["NAME", "CONFLICT-RESOLUTION", "PRIORITY", "AGE"]
    assert shown[1].split()[:3] == ["nginx-propagation", "Abort", "0"]
    fleet.here.until(DEPLOYMENTS, "nginx", lambda found: (found.get("status") or {}).get("readyReplicas") == 2)
    assert [len(pods(fleet, name)) for name in MEMBERS] == [1, 1, 0]
    listed = fleet.kubectl("get", "deployment", "nginx").lines[1].split()
    assert listed[:4] == ["nginx", "2/2", "2", "2"]
    eventually_blocking(lambda: fleet.events("nginx") >= EMITTED)

    def described() -> bool:
        """With its own events: there may be some of another nginx, of a test before."""
        shown = fleet.kubectl("describe", "deployment", "nginx").out
        return all(reason in shown for _, reason, _, _ in EMITTED)

    eventually_blocking(described)
    bound = fleet.kubectl("get", "rb", "nginx-deployment").lines
    assert bound[0].split() == ["NAME", "SCHEDULED", "FULLYAPPLIED", "AGE"]
    assert bound[1].split()[:3] == ["nginx-deployment", "True", "True"]
    works = fleet.kubectl("-n", "karmada-es-member1", "get", "work", "nginx-687f7fb96f").lines
    assert works[0].split() == ["NAME", "WORKLOAD-KIND", "APPLIED", "AGE"]
    assert works[1].split()[:3] == ["nginx-687f7fb96f", "Deployment", "True"]


def test_kubectl_waits_for_a_deployment_to_be_available_in_all_its_clusters(fleet: Propagation, nginx: Obj) -> None:
    both = {"clusterAffinity": {"clusterNames": ["member1", "member2"]}}
    fleet.kubectl_apply(policy("waiting", [selector(nginx)], placement=both))
    waited = fleet.kubectl("wait", "--for=condition=Available", "--timeout=100s", "deployment/nginx")
    assert waited.out == "deployment.apps/nginx condition met\n"
    assert "successfully rolled out" in fleet.kubectl("rollout", "status", "--timeout=100s", "deployment/nginx").out


def test_applying_an_older_form_again_changes_nothing(fleet: Propagation, nginx: Obj) -> None:
    older = policy(
        "older",
        [{**selector(nginx), "namespace": "default"}],
        placement={
            "clusterAffinity": {"clusterNames": ["member1", "member2"]},
            "replicaScheduling": {
                "replicaSchedulingType": "Divided",
                "replicaDivisionPreference": "Dynamic",
                "dynamicWeight": "AvailableReplicas",
            },
            "spreadConstraints": [{"spreadByField": "region", "minGroups": 1}],
        },
        failover={"applicationMigrationPolicy": {"decisionConditions": {"tolerationSeconds": 60}}},
    )
    assert fleet.kubectl_apply(older).out == "propagationpolicy.policy.karmada.io/older created\n"
    assert fleet.kubectl_apply(older).out == "propagationpolicy.policy.karmada.io/older unchanged\n"


def test_a_policy_that_names_another_member_moves_the_deployment(fleet: Propagation) -> None:
    """The policy first, then the Deployment, made as one makes one in any cluster."""
    name = "propagation-web"
    web = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    fleet.kubectl_apply(policy(name, [web], ["member1"]))
    fleet.kubectl("create", "deployment", "web", "--image", "nginx")
    fleet.until_bound("Deployment", "web", "member1")
    fleet.members["member1"].until(DEPLOYMENTS, "web", lambda found: (found["status"] or {}).get("readyReplicas") == 1)
    assert fleet.members["member2"].get(DEPLOYMENTS, "web") is None
    assert fleet.kubectl_apply(policy(name, [web], ["member2"])).out.endswith(f"/{name} configured\n")
    fleet.until_bound("Deployment", "web", "member2")
    fleet.members["member2"].until(DEPLOYMENTS, "web")
    fleet.members["member1"].until_gone(DEPLOYMENTS, "web")
    fleet.kubectl("delete", "deployment/web", f"propagationpolicy/{name}")
    fleet.members["member2"].until_gone(DEPLOYMENTS, "web")


@cases(
    ({"labelSelector": {"matchLabels": {"tier": "a"}}}, ["member1", "member3"]),
    (
        {"labelSelector": {"matchExpressions": [{"key": "tier", "operator": "In", "values": ["a", "b"]}]}},
        ["member1", "member2", "member3"],
    ),
    ({"labelSelector": {"matchLabels": {"env": "production"}}, "exclude": ["member1"]}, ["member2"]),
    (
        {
            "fieldSelector": {
                "matchExpressions": [
                    {"key": "provider", "operator": "In", "values": ["p1", "p2"]},
                    {"key": "region", "operator": "In", "values": ["r1"]},
                    {"key": "zone", "operator": "In", "values": ["z2"]},
                ]
            }
        },
        ["member2"],
    ),
    (
        {"fieldSelector": {"matchExpressions": [{"key": "region", "operator": "NotIn", "values": ["r1"]}]}},
        ["member3"],
    ),
    ({"exclude": ["member3"]}, ["member1", "member2"]),
    ids=["labels", "label expressions", "labels and exclusion", "fields", "other fields", "exclusion"],
)
def test_members_are_chosen_by_labels_and_fields(
    affinity: dict[str, Any], chosen: list[str], fleet: Propagation, nginx: Obj
) -> None:
    fleet.kubectl_apply(policy("nginx-propagation", [selector(nginx)], placement={"clusterAffinity": affinity}))
    fleet.until_bound("Deployment", "nginx", *chosen)
    there = [name for name, member in fleet.members.items() if member.get(DEPLOYMENTS, "nginx") is not None]
    assert there == chosen
    assert [replicas(found) for found in fleet.until_everywhere(DEPLOYMENTS, "nginx", bool, *chosen)] == [2] * len(
        chosen
    )


def placed(binding: Obj) -> int:
    return sum(target.get("replicas") or 0 for target in binding["spec"].get("clusters") or ())


def is_scheduled(binding: Obj) -> Any:
    condition = meta.get_condition((binding.get("status") or {}).get("conditions"), "Scheduled")
    return condition and condition["status"]


def test_what_why_suggests_makes_a_deployment_fit(fleet: Propagation, nginx: Obj) -> None:
    """One more replica than fit into one cluster, and one cluster allowed."""
    container = nginx["spec"]["template"]["spec"]["containers"][0]
    container["resources"] = {"requests": {"cpu": "1"}}
    division = {**weights(), "weightPreference": {"dynamicWeight": "AvailableReplicas"}}
    constraint = {"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}
    where = {"replicaScheduling": division, "spreadConstraints": [constraint]}
    fleet.kubectl_apply(nginx, policy("nginx-propagation", [selector(nginx)], placement=where))
    fleet.here.until(BINDINGS, "nginx-deployment", lambda binding: placed(binding) == 2)
    decided = json.loads(fleet.ctl("why", "deployment/nginx", "--fresh", "-o", "json").out)["now"]
    room = max(cluster["room"] for cluster in decided["attempts"][0]["clusters"])

    fleet.kubectl("scale", "deployment/nginx", f"--replicas={room + 3}")
    fleet.here.until(BINDINGS, "nginx-deployment", lambda binding: is_scheduled(binding) == "False")
    suggestion = json.loads(fleet.ctl("why", "deployment/nginx", "-o", "json").out)["now"]["fit"]["suggestions"][0]
    assert suggestion["text"] == "fits if maxGroups of the spread constraint by cluster were 2"
    [change] = suggestion["changes"]
    assert change["field"] == "placement.spreadConstraints[0].maxGroups"

    patch = {"spec": {"placement": {"spreadConstraints": [{**constraint, "maxGroups": change["value"]}]}}}
    fleet.kubectl("patch", "propagationpolicy", "nginx-propagation", "--type=merge", "-p", json.dumps(patch))
    bound = fleet.here.until(BINDINGS, "nginx-deployment", lambda binding: placed(binding) == room + 3)
    assert len(bound["spec"]["clusters"]) == 2


def test_an_application_of_several_kinds_goes_together(fleet: Propagation, nginx: Obj) -> None:
    """By name, by name again, and by label; with weights, tolerations and a spread over regions."""
    service = kube_object(
        "v1", "Service", "nginx-svc", spec={"selector": {"app": "nginx"}, "ports": [{"port": 80, "targetPort": 80}]}
    )
    settings, others = config_map("settings", {"app": "nginx"}, level="warn"), config_map("others", level="info")
    by_label = {"apiVersion": "v1", "kind": "ConfigMap", "labelSelector": {"matchLabels": {"app": "nginx"}}}
    tolerated = {"key": "cluster.karmada.io/not-ready", "operator": "Exists", "effect": "NoSchedule"}
    placement = {
        "clusterAffinity": {"clusterNames": ["member1", "member2"]},
        "clusterTolerations": [tolerated],
        "replicaScheduling": weights(member1=2, member2=1),
        "spreadConstraints": [{"maxGroups": 2, "minGroups": 1, "spreadByField": "region"}],
    }
    sent = policy("nginx-propagation", [selector(nginx), selector(service), by_label], placement=placement)
    fleet.kubectl_apply({**nginx, "spec": {**nginx["spec"], "replicas": 6}}, service, settings, others, sent)
    fleet.until_bound("Deployment", "nginx", "member1", "member2")
    fleet.until_bound("Service", "nginx-svc", "member1", "member2")
    fleet.until_bound("ConfigMap", "settings", "member1", "member2")
    shares = [replicas(found) for found in fleet.until_everywhere(DEPLOYMENTS, "nginx", bool, "member1", "member2")]
    assert shares == [4, 2]
    addresses = [
        found["spec"]["clusterIP"]
        for found in fleet.until_everywhere(SERVICES, "nginx-svc", bool, "member1", "member2")
    ]
    here = fleet.here.get(SERVICES, "nginx-svc")
    assert here is not None
    assert all(addresses)
    assert here["spec"]["clusterIP"] not in addresses or len(set(addresses)) > 1
    assert fleet.binding("ConfigMap", "others") is None
    assert fleet.members["member1"].get(CONFIG_MAPS, "others") is None
    fleet.delete(service, settings, others)
    for name in ("member1", "member2"):
        fleet.members[name].until_gone(SERVICES, "nginx-svc")
        fleet.members[name].until_gone(CONFIG_MAPS, "settings")


def test_a_custom_resource_follows_its_definition(fleet: Propagation) -> None:
    crd, crd_policy, guestbook, guestbook_policy, size = load_manifests((DATA / "guestbook.yaml").read_bytes())
    fleet.kubectl_apply(crd, crd_policy)
    fleet.until_bound("CustomResourceDefinition", crd["metadata"]["name"], "member1", namespace="")
    there = fleet.members["member1"].until(CRDS, crd["metadata"]["name"], namespace="")
    assert "finalizers" not in there["metadata"]
    fleet.until_emitted(
        f"{crd['metadata']['name']}-customresourcedefinition",
        (
            "Normal",
            "ScheduleBindingSucceed",
            "default-scheduler",
            "Binding has been scheduled successfully. Result {member1:0}",
        ),
    )
    elsewhere = fleet.sims.kubectl("member2")("get", "crd", crd["metadata"]["name"], check=False)
    assert elsewhere.err.strip().endswith("not found")
    fleet.kubectl("wait", "--for=condition=Established", f"crd/{crd['metadata']['name']}")
    fleet.kubectl_apply(guestbook, guestbook_policy)
    member = fleet.members["member1"]
    assert member.until(GUESTBOOKS, "guestbook-sample")["spec"] == guestbook["spec"]
    shown = fleet.sims.kubectl("member1")("get", "guestbook").lines[1].split()
    assert shown[0] == "guestbook-sample"
    fleet.kubectl_apply(size)
    bigger = member.until(GUESTBOOKS, "guestbook-sample", lambda found: found["spec"]["size"] == 4)
    assert bigger["metadata"]["annotations"]["OverridePolicy"] == "test"
    assert bigger["spec"] == {**guestbook["spec"], "size": 4}
    fleet.delete(size)
    member.until(GUESTBOOKS, "guestbook-sample", lambda found: found["spec"]["size"] == 2)
    fleet.delete(guestbook, guestbook_policy)
    member.until_gone(GUESTBOOKS, "guestbook-sample")
    fleet.delete(crd, crd_policy)
    member.until_gone(CRDS, crd["metadata"]["name"], "")
