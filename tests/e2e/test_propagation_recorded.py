"""What users see of a propagated resource, down to every label, annotation, condition and event.

Written down from what Karmada 1.18 shows after the same manifests: names, marks and messages are what other tools and
people rely on. Ids stand as `<id>`, where they have to be the same id they are compared.
"""

from __future__ import annotations

import json
from typing import NamedTuple

import pytest

from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import DEPLOYMENTS, JOBS, NAMESPACES
from karmada.kube.objects.types import Obj
from tests.e2e.propagating import (
    BINDINGS,
    CONFIG_MAPS,
    MEMBERS,
    SECRETS,
    WORKS,
    Propagation,
    config_map,
    deployment,
    image,
    manifest,
    override,
    policy,
    replicas,
    rule,
    selector,
)
from tests.support.eventually import eventually_blocking
from tests.support.objects import kube_object

pytestmark = pytest.mark.e2e

POLICY_ID, BINDING_ID, WORK_ID = (
    f"{kind}.karmada.io/permanent-id" for kind in ("propagationpolicy", "resourcebinding", "work")
)
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
CONFLICT = "work.karmada.io/conflict-resolution"
DISPATCHING = "Dispatching=True Dispatching: Work is being dispatched to member clusters."
APPLIED = "Applied=True AppliedSuccessful: Manifest has been successfully applied"
SCHEDULED = "Scheduled=True Success: Binding has been scheduled successfully."
FULLY = "FullyApplied=True FullyAppliedSuccess: All works have been successfully applied"
NOT_FULLY = "FullyApplied=False FullyAppliedFailed: Failed to apply all works, see status.aggregatedStatus for details"
REFUSED = (
    "resource(kind=ConfigMap, default/{0}) already exists in the cluster member1 and the work.karmada.io/"
    "conflict-resolution strategy value is empty, Karmada will not manage this resource"
)


class Case(NamedTuple):
    """One template and its policy, and what has to come of them."""

    template: Obj
    gvr: GVR
    work: str
    """The name of its Works."""
    shares: dict[str, int]
    placement: Obj
    status: Obj | None = None
    """Of the template in the end."""
    statuses: dict[str, Obj] | None = None
    """Of the members' objects, as the binding gathers them."""
    spec: Obj | None = None
    """What the binding's spec has besides."""

    @property
    def kind(self) -> str:
        return str(self.template["kind"])

    @property
    def name(self) -> str:
        return str(self.template["metadata"]["name"])


def ready(count: int) -> Obj:
    return {"replicas": count, "readyReplicas": count, "availableReplicas": count, "updatedReplicas": count}


def named(*names: str) -> Obj:
    return {"clusterAffinity": {"clusterNames": list(names)}}


def weighted(**weights: int) -> Obj:
    listed = [{"targetCluster": {"clusterNames": [name]}, "weight": weight} for name, weight in weights.items()]
    return _divided({"staticWeightList": listed})


def _divided(preference: Obj) -> Obj:
    return {
        "replicaScheduling": {
            "replicaSchedulingType": "Divided",
            "replicaDivisionPreference": "Weighted",
            "weightPreference": preference,
        }
    }


def job(name: str) -> Obj:
    pod = {"restartPolicy": "Never", "containers": [{"name": "work", "image": "busybox", "command": ["sleep", "1"]}]}
    return kube_object("batch/v1", "Job", name, spec={"parallelism": 2, "completions": 4, "template": {"spec": pod}})


def requesting(name: str, count: int) -> Obj:
    made = deployment(name, count)
    made["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m", "memory": "64Mi"}}
    return made


CASES = {
    "everywhere all replicas": Case(
        deployment("a1", 2), DEPLOYMENTS, "a1-8b8bd5d77", {"member1": 2, "member2": 2}, named("member1", "member2"),
        ready(4), {"member1": ready(2), "member2": ready(2)},
    ),
    "by weights 3, 2 and 1": Case(
        deployment("a3", 6), DEPLOYMENTS, "a3-6bfd545c67", {"member1": 3, "member2": 2, "member3": 1},
        {**named("member1", "member2", "member3"), **weighted(member1=3, member2=2, member3=1)},
        ready(6), {"member1": ready(3), "member2": ready(2), "member3": ready(1)},
    ),
    "by what is free": Case(
        requesting("a7", 6), DEPLOYMENTS, "a7-69bc59495f", dict.fromkeys(MEMBERS, 2),
        {**named(*MEMBERS), **_divided({"dynamicWeight": "AvailableReplicas"})},
        ready(6), dict.fromkeys(MEMBERS, ready(2)),
        {"replicaRequirements": {"resourceRequest": {"cpu": "100m", "memory": "64Mi"}}},
    ),
    "without replicas": Case(
        config_map("d1", a="1"), CONFIG_MAPS, "d1-664c94bdc", {"member1": 0, "member2": 0}, named("member1", "member2"),
    ),
}  # fmt: skip


# what is there, written as one reads it


def conditions(obj: Obj) -> list[str]:
    found = (obj.get("status") or {}).get("conditions") or ()
    return [f"{each['type']}={each['status']} {each['reason']}: {each['message']}" for each in found]


def anonymous(marks: dict[str, str]) -> dict[str, str]:
    return {key: "<id>" if key.endswith("permanent-id") else value for key, value in marks.items()}


def labels(obj: Obj) -> dict[str, str]:
    return anonymous(obj["metadata"].get("labels") or {})


def annotations_of(obj: Obj, *left_out: str) -> dict[str, str]:
    """Without kubectl's own and the two that only count and identify."""
    out = {LAST_APPLIED, "resourcetemplate.karmada.io/generation", "deployment.kubernetes.io/revision", *left_out}
    return {key: value for key, value in (obj["metadata"].get("annotations") or {}).items() if key not in out}


def owner(obj: Obj) -> Obj:
    (found,) = obj["metadata"]["ownerReferences"]
    return {key: value for key, value in found.items() if key != "uid"}


def marks_of(case: Case, work: Obj) -> tuple[dict[str, str], dict[str, str]]:
    """Labels and annotations that a manifest has to have."""
    own = dict.fromkeys((POLICY_ID, BINDING_ID, WORK_ID), "<id>")
    wanted_labels = {**(case.template["metadata"].get("labels") or {}), "karmada.io/managed": "true", **own}
    notes = {
        "propagationpolicy.karmada.io/name": case.name,
        "propagationpolicy.karmada.io/namespace": "default",
        "resourcebinding.karmada.io/name": f"{case.name}-{case.kind.lower()}",
        "resourcebinding.karmada.io/namespace": "default",
        "work.karmada.io/conflict-resolution": "abort",
        "work.karmada.io/name": case.work,
        "work.karmada.io/namespace": work["metadata"]["namespace"],
    }
    prefix = "resourcetemplate.karmada.io/"
    counted = [f"{prefix}{word}" for word in ("managed-annotations", "managed-labels", "uid")]
    if manifest(work)["metadata"]["annotations"].get(f"{prefix}generation"):
        counted.append(f"{prefix}generation")
    notes[f"{prefix}managed-annotations"] = ",".join(sorted([*notes, *counted, LAST_APPLIED]))
    notes[f"{prefix}managed-labels"] = ",".join(sorted(wanted_labels))
    return wanted_labels, notes


def check_template(fleet: Propagation, case: Case) -> None:
    template = fleet.here.get(case.gvr, case.name)
    assert template is not None
    given = case.template["metadata"].get("labels") or {}
    assert labels(template) == {**given, POLICY_ID: "<id>"}
    claim = {"propagationpolicy.karmada.io/name": case.name, "propagationpolicy.karmada.io/namespace": "default"}
    assert annotations_of(template) == claim
    status = {key: value for key, value in (template.get("status") or {}).items() if key != "observedGeneration"}
    agreed = {found["type"]: found["status"] for found in status.pop("conditions", [])}
    assert agreed == ({"Available": "True", "Progressing": "True"} if case.kind == "Deployment" else {})
    assert status == (case.status or {})


def check_binding(fleet: Propagation, case: Case) -> None:
    binding = fleet.binding(case.kind, case.name)
    assert binding is not None
    assert labels(binding) == {POLICY_ID: "<id>", BINDING_ID: "<id>"}
    notes = annotations_of(binding)
    assert json.loads(notes.pop("policy.karmada.io/applied-placement")) == case.placement
    assert notes == {
        "propagationpolicy.karmada.io/name": case.name,
        "propagationpolicy.karmada.io/namespace": "default",
    }
    assert binding["metadata"]["finalizers"] == ["karmada.io/binding-controller"]
    reference = {"apiVersion": case.template["apiVersion"], "kind": case.kind, "name": case.name}
    assert owner(binding) == {**reference, "blockOwnerDeletion": True, "controller": True}
    spec = dict(binding["spec"])
    resource = spec.pop("resource")
    assert resource.pop("uid")
    assert resource.pop("resourceVersion")
    assert resource == {**reference, "namespace": "default"}
    assert {target["name"]: target.get("replicas", 0) for target in spec.pop("clusters")} == case.shares
    count = {"replicas": replicas(case.template)} if case.gvr == DEPLOYMENTS else {}
    fixed = {"conflictResolution": "Abort", "schedulerName": "default-scheduler", "placement": case.placement}
    assert spec == {**fixed, **count, **(case.spec or {})}
    assert conditions(binding) == [SCHEDULED, FULLY]
    items = binding["status"]["aggregatedStatus"]
    assert [item["clusterName"] for item in items] == sorted(case.shares)
    for item in items:
        (status := dict(item.get("status") or {})).pop("observedGeneration", None)
        status.pop("generation", None)
        status.pop("resourceTemplateGeneration", None)
        assert (item["applied"], item["health"]) == (True, "Healthy")
        assert status == (case.statuses or {}).get(item["clusterName"], {})


def check_copies(fleet: Propagation, case: Case) -> None:
    """Works and what became of them; the ids in them are those of the binding."""
    binding, template = fleet.binding(case.kind, case.name), fleet.here.get(case.gvr, case.name)
    assert binding is not None
    assert template is not None
    for cluster, member in fleet.members.items():
        work = fleet.here.get(WORKS, case.work, f"karmada-es-{cluster}")
        found = member.get(case.gvr, case.name)
        if cluster not in case.shares:
            assert (work, found) == (None, None)
            continue
        assert work is not None
        assert found is not None
        assert labels(work) == {BINDING_ID: "<id>", WORK_ID: "<id>"}
        assert work["metadata"]["finalizers"] == ["karmada.io/execution-controller"]
        assert "ownerReferences" not in work["metadata"]
        reference = {
            "resourcebinding.karmada.io/name": f"{case.name}-{case.kind.lower()}",
            "resourcebinding.karmada.io/namespace": "default",
        }
        assert annotations_of(work) == {**reference, CONFLICT: "abort"}
        assert conditions(work) == [DISPATCHING, APPLIED]
        assert (work["spec"]["suspendDispatching"], work["spec"]["preserveResourcesOnDeletion"]) == (False, False)
        (report,) = work["status"]["manifestStatuses"]
        group, _, version = case.template["apiVersion"].rpartition("/")
        identity = {"ordinal": 0, "version": version, "kind": case.kind, "resource": "", "namespace": "default"}
        assert report["identifier"] == {**identity, "name": case.name, **({"group": group} if group else {})}
        assert report["health"] == "Healthy"
        for copy in (manifest(work), found):
            wanted_labels, notes = marks_of(case, work)
            assert labels(copy) == wanted_labels
            uid = "resourcetemplate.karmada.io/uid"
            assert annotations_of(copy, uid) == notes
            assert copy["metadata"]["annotations"][uid] == template["metadata"]["uid"]
            assert copy["metadata"]["labels"][BINDING_ID] == binding["metadata"]["labels"][BINDING_ID]
            assert copy["metadata"]["labels"][WORK_ID] == work["metadata"]["labels"][WORK_ID]
            content = {key: value for key, value in copy.items() if key not in ("metadata", "status")}
            wanted = {key: value for key, value in template.items() if key not in ("metadata", "status")}
            if case.gvr == DEPLOYMENTS:
                wanted["spec"] = {**template["spec"], "replicas": case.shares[cluster]}
            assert content == wanted


def normal(reason: str, component: str, message: str) -> tuple[str, str, str, str]:
    return "Normal", reason, component, message


def check_events(fleet: Propagation, case: Case) -> None:
    binding = f"{case.name}-{case.kind.lower()}"
    applied = f"Successfully applied resource(default/{case.name}) to cluster"
    by_binding = "resource-binding-status-controller"
    both = {
        normal("SyncWorkSucceed", "binding-controller", f"Sync work of ResourceBinding(default/{binding}) successful.")
    }
    emitted = {
        normal("ApplyPolicySucceed", "resource-detector", f"Apply policy(default/{case.name}) succeed"),
        *(normal("SyncSucceed", "execution-controller", f"{applied} {name}") for name in case.shares),
    }
    if case.gvr == DEPLOYMENTS:
        emitted |= {
            normal("GetReplicasSucceed", "resource-detector", "Get replicas of resource template successfully."),
            normal("AggregateStatusSucceed", by_binding, "Update Resource with AggregatedStatus successfully."),
        }
    summed_up = f"Update ResourceBinding(default/{binding}) with AggregatedStatus successfully."
    of_binding = {normal("AggregateStatusSucceed", by_binding, summed_up)}
    start = "Binding has been scheduled successfully. Result: "

    def settled(name: str, wanted: set[tuple[str, str, str, str]]) -> bool:
        """Which cluster the scheduler names first is left to chance."""
        found = fleet.events(name)
        decisions = {each for each in found if each[1] == "ScheduleBindingSucceed"}
        assert found - decisions == wanted
        assert len(decisions) == 1
        ((_, _, component, message),) = decisions
        shares = {f"{cluster}:{count}" for cluster, count in case.shares.items()}
        assert component == "default-scheduler"
        assert set(message.removeprefix(start).strip("{}").split(", ")) == shares
        return True

    eventually_blocking(lambda: settled(case.name, emitted | both))
    eventually_blocking(lambda: settled(binding, of_binding | both))


def settled(case: Case, binding: Obj) -> bool:
    """The members have said their last word."""
    items = (binding.get("status") or {}).get("aggregatedStatus") or ()
    return all(
        (item.get("status") or {}).get("availableReplicas", 0) == case.shares[item["clusterName"]]
        and item["health"] == "Healthy"
        for item in items
    )


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_propagated_resource_looks_as_it_should(three_members: Propagation, case: Case) -> None:
    fleet = three_members
    sent = policy(case.name, [selector(case.template)], placement=case.placement)
    assert (
        fleet.kubectl_apply(case.template, sent).lines[1] == f"propagationpolicy.policy.karmada.io/{case.name} created"
    )
    fleet.until_bound(case.kind, case.name, *case.shares)
    fleet.here.until(BINDINGS, f"{case.name}-{case.kind.lower()}", lambda found: settled(case, found))
    if case.status:
        wanted = case.status
        fleet.here.until(case.gvr, case.name, lambda found: wanted.items() <= (found.get("status") or {}).items())
    check_template(fleet, case)
    check_binding(fleet, case)
    check_copies(fleet, case)
    check_events(fleet, case)
    fleet.delete(case.template, sent)
    for name in case.shares:
        fleet.members[name].until_gone(case.gvr, case.name)


def test_a_changed_template_reaches_its_members(three_members: Propagation) -> None:
    fleet, sent = three_members, policy("d2", [selector(config_map("d2"))], ["member1", "member2"])
    fleet.kubectl_apply(config_map("d2", a="1"), sent)
    fleet.until_bound("ConfigMap", "d2", "member1", "member2")
    before = [member.get(CONFIG_MAPS, "d2") for member in fleet.members.values()]
    assert fleet.kubectl_apply(config_map("d2", a="2", b="x")).out == "configmap/d2 configured\n"
    changed = {"a": "2", "b": "x"}
    after = fleet.until_everywhere(CONFIG_MAPS, "d2", lambda found: found["data"] == changed, "member1", "member2")
    assert before[2] is None
    for old, new in zip(before, after, strict=False):
        assert old is not None
        assert (labels(new), annotations_of(new)) == (labels(old), annotations_of(old))
        assert new["metadata"]["uid"] == old["metadata"]["uid"]
    fleet.delete(config_map("d2"), sent)


def test_what_a_member_has_of_its_own_is_not_taken_over(three_members: Propagation) -> None:
    fleet, sent = three_members, policy("f1", [selector(config_map("f1"))], ["member1", "member2"])
    member = fleet.sims.kubectl("member1")
    member("create", "configmap", "f1", "--from-literal=own=yes")
    fleet.kubectl_apply(config_map("f1", a="1"), sent)
    fleet.members["member2"].until(CONFIG_MAPS, "f1", lambda found: found["data"] == {"a": "1"})
    because = REFUSED.format("f1")
    binding = fleet.here.until(BINDINGS, "f1-configmap", lambda found: conditions(found) == [SCHEDULED, NOT_FULLY])
    refused, applied = binding["status"]["aggregatedStatus"]
    assert refused == {
        "clusterName": "member1",
        "appliedMessage": f"Failed to apply all manifests (0/1): {because}",
        "health": "Unknown",
    }
    assert applied == {"clusterName": "member2", "applied": True, "health": "Healthy"}
    work = fleet.until_work("member1", "ConfigMap", "f1")
    failed = f"Applied=False AppliedFailed: Failed to apply all manifests (0/1): {because}"
    assert conditions(work) == [DISPATCHING, failed]
    emitted = f"Failed to create or update resource(default/f1) in member cluster(member1): {because}"
    fleet.until_emitted("f1", ("Warning", "SyncFailed", "execution-controller", emitted))
    found = fleet.members["member1"].get(CONFIG_MAPS, "f1")
    assert found is not None
    assert (found["data"], found["metadata"].get("labels")) == ({"own": "yes"}, None)
    fleet.delete(config_map("f1"), sent)
    fleet.members["member2"].until_gone(CONFIG_MAPS, "f1")
    assert member("get", "configmap", "f1", "-o", "jsonpath={.data.own}").out == "yes"
    member("delete", "configmap", "f1")


def test_where_no_cluster_fits_it_is_said_why(three_members: Propagation) -> None:
    fleet, template = three_members, deployment("b7", 2)
    sent = policy("b7", [selector(template)], ["nowhere"])
    fleet.kubectl_apply(template, sent)
    why = "0/3 clusters are available: 3 cluster(s) did not match the placement cluster affinity constraint."
    said, binding = [f"Scheduled=False NoClusterFit: {why}"], "ResourceBinding(default/b7-deployment)"
    fleet.here.until(BINDINGS, "b7-deployment", lambda found: conditions(found) == said)
    for name in ("b7", "b7-deployment"):
        fleet.until_emitted(
            name,
            ("Warning", "ScheduleBindingFailed", "default-scheduler", why),
            normal("SyncWorkSucceed", "binding-controller", f"Sync work of {binding} successful."),
        )
    assert not any(work["metadata"]["name"].startswith("b7-") for work in fleet.here.list(WORKS))
    fleet.delete(template, sent)


def test_a_job_is_divided_and_its_ends_are_added_up(three_members: Propagation) -> None:
    fleet, template = three_members, job("d3")
    placement = {**named("member1", "member2"), **weighted(member1=1, member2=1)}
    sent = policy("d3", [selector(template)], placement=placement)
    fleet.kubectl_apply(template, sent)
    whole = {"succeeded": 4, "conditions": {"Complete", "SuccessCriteriaMet"}}

    def done(found: Obj) -> bool:
        status = found.get("status") or {}
        kinds = {each["type"] for each in status.get("conditions") or () if each["status"] == "True"}
        return {"succeeded": status.get("succeeded"), "conditions": kinds} == whole

    there = fleet.here.until(JOBS, "d3", done)
    own_marks = {"job-name", "controller-uid", "batch.kubernetes.io/job-name", "batch.kubernetes.io/controller-uid"}
    assert labels(there).keys() == {*own_marks, POLICY_ID}
    assert there["status"]["startTime"] <= there["status"]["completionTime"]
    for found in fleet.until_everywhere(JOBS, "d3", bool, "member1", "member2"):
        assert (found["spec"]["parallelism"], found["spec"]["completions"]) == (1, 2)
        assert found["status"]["succeeded"] == 2
        assert labels(found).keys() >= own_marks
        own = found["spec"]["selector"]["matchLabels"]["batch.kubernetes.io/controller-uid"]
        assert own == found["metadata"]["uid"] != there["metadata"]["uid"]
    fleet.delete(template, sent)
    fleet.members["member1"].until_gone(JOBS, "d3")


def test_dependencies_go_where_their_workload_goes(three_members: Propagation) -> None:
    fleet, template = three_members, deployment("d7", 1)
    settings = config_map("d7", k="v")
    secret = kube_object("v1", "Secret", "d7", stringData={"k": "v"})
    volumes = [{"name": "v", "configMap": {"name": "d7"}}, {"name": "s", "secret": {"secretName": "d7"}}]
    template["spec"]["template"]["spec"]["volumes"] = volumes
    sent = policy("d7", [selector(template)], ["member1", "member2"], propagateDeps=True)
    fleet.kubectl_apply(settings, secret, template, sent)
    fleet.until_bound("Deployment", "d7", "member1", "member2")
    for kind in ("ConfigMap", "Secret"):
        name = f"d7-{kind.lower()}"
        attached = fleet.here.until(BINDINGS, name, lambda found: conditions(found) == [FULLY])
        assert labels(attached).keys() == {"resourcebinding.karmada.io/depended-by-7dc55874fd", BINDING_ID}
        assert attached["metadata"]["finalizers"] == ["karmada.io/binding-controller"]
        assert owner(attached) == {
            "apiVersion": "v1", "kind": kind, "name": "d7", "blockOwnerDeletion": True, "controller": True,
        }  # fmt: skip
        spec = attached["spec"]
        assert spec.keys() - {"clusters"} == {
            "resource", "requiredBy", "conflictResolution", "preserveResourcesOnDeletion",
        }  # fmt: skip
        assert not spec.get("clusters")
        (needed,) = spec["requiredBy"]
        assert (needed["namespace"], needed["name"]) == ("default", "d7-deployment")
        assert {target["name"] for target in needed["clusters"]} == {"member1", "member2"}
    independent = fleet.binding("Deployment", "d7")
    assert independent is not None
    assert independent["metadata"]["annotations"]["resourcebinding.karmada.io/dependencies"] == (
        '[{"apiVersion":"v1","kind":"ConfigMap","namespace":"default","name":"d7"},'
        '{"apiVersion":"v1","kind":"Secret","namespace":"default","name":"d7"}]'
    )
    assert independent["metadata"]["finalizers"] == [
        "karmada.io/binding-controller",
        "karmada.io/binding-dependencies-distributor",
    ]
    for found in fleet.until_everywhere(SECRETS, "d7", bool, "member1", "member2"):
        assert found["data"] == {"k": "dg=="}
        assert labels(found) == {"karmada.io/managed": "true", BINDING_ID: "<id>", WORK_ID: "<id>"}
    fleet.delete(template, sent)
    for name in ("member1", "member2"):
        for gvr in (DEPLOYMENTS, CONFIG_MAPS, SECRETS):
            fleet.members[name].until_gone(gvr, "d7")
    assert fleet.here.get(CONFIG_MAPS, "d7") is not None
    fleet.delete(settings, secret)


def test_a_namespace_is_everywhere_at_once(three_members: Propagation) -> None:
    fleet = three_members
    fleet.kubectl("create", "namespace", "golden-ns")
    for name, member in fleet.members.items():
        found = member.until(NAMESPACES, "golden-ns", namespace="")
        assert labels(found) == {
            "karmada.io/managed": "true",
            "kubernetes.io/metadata.name": "golden-ns",
            WORK_ID: "<id>",
        }
        work = fleet.here.until(
            WORKS,
            "golden-ns-7768b947c8",
            lambda found: conditions(found) == [DISPATCHING, APPLIED],
            f"karmada-es-{name}",
        )
        assert owner(work) == {
            "apiVersion": "v1",
            "kind": "Namespace",
            "name": "golden-ns",
            "blockOwnerDeletion": True,
            "controller": True,
        }
        assert labels(work) == {WORK_ID: "<id>"}
        assert work["spec"].keys() == {"workload"}
    template = deployment("f5", 1)
    fleet.kubectl_apply(template, policy("f5", [selector(template)], ["member1"]), namespace="golden-ns")
    fleet.until_bound("Deployment", "f5", "member1", namespace="golden-ns")
    fleet.kubectl("delete", "namespace", "golden-ns")
    for member in fleet.members.values():
        member.until_gone(NAMESPACES, "golden-ns", "")


def test_images_are_overridden_by_cluster(three_members: Propagation) -> None:
    fleet, template = three_members, deployment("e1", 1)
    parts: list[list[Obj]] = [
        [
            {"component": "Registry", "operator": "add", "value": "test-repo"},
            {"component": "Tag", "operator": "replace", "value": "2.0"},
        ],
        [
            {"component": "Repository", "operator": "replace", "value": "mirror/nginx"},
            {"component": "Tag", "operator": "remove"},
        ],
    ]
    targets: list[Obj] = [{"clusterNames": ["member1"]}, {"labelSelector": {"matchLabels": {"tier": "b"}}}]
    rules = [rule(target, imageOverrider=part) for target, part in zip(targets, parts, strict=True)]
    changes, sent = (
        override("e1", [selector(template)], *rules),
        policy("e1", [selector(template)], ["member1", "member2"]),
    )
    fleet.kubectl_apply(changes, sent, template)
    fleet.until_bound("Deployment", "e1", "member1", "member2")
    images = [image(found) for found in fleet.until_everywhere(DEPLOYMENTS, "e1", bool, "member1", "member2")]
    assert images == ["test-repo/nginx:2.0", "mirror/nginx"]
    for cluster, part in zip(("member1", "member2"), parts, strict=True):
        noted = annotations_of(fleet.until_work(cluster, "Deployment", "e1"))["policy.karmada.io/applied-overrides"]
        assert noted == json.dumps(
            [{"policyName": "e1", "overriders": {"imageOverrider": part}}], separators=(",", ":")
        )
        message = f"Apply override policy(default/e1) for cluster({cluster}) succeed."
        fleet.until_emitted("e1", ("Normal", "ApplyOverridePolicySucceed", "override-manager", message))
    fleet.delete(changes, sent, template)
    fleet.members["member1"].until_gone(DEPLOYMENTS, "e1")
