"""What users see of a propagated resource, down to every label, annotation, condition and event.

Written down from what Karmada 1.18 shows after the same manifests: names, marks and messages are what other tools and
people rely on. Ids stand as `<id>`, where they have to be the same id they are compared.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest

from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.types import Obj
from programs import eventually
from propagating import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    JOBS,
    MEMBERS,
    NAMESPACES,
    SECRETS,
    WORKS,
    Propagation,
    config_map,
    deployment,
    image,
    manifest,
    policy,
    replicas,
    selector,
)

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
NOT_FULLY = (
    "FullyApplied=False FullyAppliedFailed: Failed to apply all works, see status.aggregatedStatus for details"
)
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
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"parallelism": 2, "completions": 4, "template": {"spec": pod}},
    }


def asking(name: str, count: int) -> Obj:
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
        asking("a7", 6), DEPLOYMENTS, "a7-84b8797fc5", dict.fromkeys(MEMBERS, 2),
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


def annotations(obj: Obj, *left_out: str) -> dict[str, str]:
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
    assert annotations(template) == claim
    status = {key: value for key, value in (template.get("status") or {}).items() if key != "observedGeneration"}
    assert status == (case.status or {})


def check_binding(fleet: Propagation, case: Case) -> None:
    binding = fleet.binding(case.kind, case.name)
    assert binding is not None
    assert labels(binding) == {POLICY_ID: "<id>", BINDING_ID: "<id>"}
    notes = annotations(binding)
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
        assert annotations(work) == {**reference, CONFLICT: "abort"}
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
            assert annotations(copy, uid) == notes
            assert copy["metadata"]["annotations"][uid] == template["metadata"]["uid"]
            assert copy["metadata"]["labels"][BINDING_ID] == binding["metadata"]["labels"][BINDING_ID]
            assert copy["metadata"]["labels"][WORK_ID] == work["metadata"]["labels"][WORK_ID]
            content = {key: value for key, value in copy.items() if key not in ("metadata", "status")}
            wanted = {key: value for key, value in template.items() if key not in ("metadata", "status")}
            if case.gvr == DEPLOYMENTS:
                wanted["spec"] = {**template["spec"], "replicas": case.shares[cluster]}
            assert content == wanted


def check_events(fleet: Propagation, case: Case) -> None:
    binding = f"{case.name}-{case.kind.lower()}"
    by_binding = "resource-binding-status-controller"
    both = {
        ("Normal", "SyncWorkSucceed", "binding-controller", f"Sync work of ResourceBinding(default/{binding}) successful."),
    }  # fmt: skip
    told = {
        ("Normal", "ApplyPolicySucceed", "resource-detector", f"Apply policy(default/{case.name}) succeed"),
        *(
            ("Normal", "SyncSucceed", "execution-controller", f"Successfully applied resource(default/{case.name}) to cluster {name}")
            for name in case.shares
        ),
    }  # fmt: skip
    if case.gvr == DEPLOYMENTS:
        told |= {
            ("Normal", "GetReplicasSucceed", "resource-detector", "Get replicas of resource template successfully."),
            ("Normal", "AggregateStatusSucceed", by_binding, "Update Resource with AggregatedStatus successfully."),
        }
    of_binding = {
        ("Normal", "AggregateStatusSucceed", by_binding, f"Update ResourceBinding(default/{binding}) with AggregatedStatus successfully."),
    }  # fmt: skip
    start = "Binding has been scheduled successfully. Result: "

    def settled(name: str, wanted: set[tuple[str, str, str, str]]) -> bool:
        """Which cluster the scheduler names first is left to chance."""
        found = fleet.events(name)
        decisions = {each for each in found if each[1] == "ScheduleBindingSucceed"}
        assert found - decisions == wanted
        ((_, _, component, message),) = decisions
        shares = {f"{cluster}:{count}" for cluster, count in case.shares.items()}
        assert component == "default-scheduler"
        assert set(message.removeprefix(start).strip("{}").split(", ")) == shares
        return True

    eventually(lambda: settled(case.name, told | both))
    eventually(lambda: settled(binding, of_binding | both))


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_propagated_resource_looks_as_it_should(three_members: Propagation, case: Case) -> None:
    fleet = three_members
    told = fleet.apply(case.template, policy(case.name, [selector(case.template)], placement=case.placement)).lines
    assert told[1] == f"propagationpolicy.policy.karmada.io/{case.name} created"
    binding = f"{case.name}-{case.kind.lower()}"
    fleet.until_bound(case.kind, case.name, *case.shares)
    if case.status:
        fleet.here.until(case.gvr, case.name, lambda found: (found.get("status") or {}).get("readyReplicas") == case.status["readyReplicas"])
        healthy = lambda found: all(item["health"] == "Healthy" and item["status"]["availableReplicas"] == case.shares[item["clusterName"]] for item in found["status"]["aggregatedStatus"])  # noqa: E731
        fleet.here.until(*_binding(binding), healthy)
    check_template(fleet, case)
    check_binding(fleet, case)
    check_copies(fleet, case)
    check_events(fleet, case)
    fleet.delete(case.template, policy(case.name, []))
    for name in case.shares:
        fleet.members[name].until_gone(case.gvr, case.name)


def _binding(name: str) -> tuple[GVR, str]:
    from propagating import BINDINGS

    return BINDINGS, name
