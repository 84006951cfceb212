"""From Works to objects in members."""

from __future__ import annotations

import orjson
import pytest

from karmada.api.well_known import EXECUTION_FINALIZER, MANAGED, TRUE, WORK_NAME, WORK_NAMESPACE
from karmada.api.work import ClusterResourceBinding, Work
from karmada.kube.objects import meta
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import CLUSTER_ROLES, CONFIG_MAPS, DEPLOYMENTS, NAMESPACES, SERVICES
from karmada.kube.objects.types import Obj
from karmada.kube.server.watchcache.cache import encode_value, storage_key
from tests.support.eventually import eventually
from tests.support.fleet import (
    Fleet,
    TestMember,
    brief,
    condition,
    config_map,
    deployment,
    is_applied,
    until,
    until_none,
)
from tests.support.objects import kube_object

QUOTAS = GVR("", "v1", "resourcequotas")
ADMISSION_POLICIES = GVR("admissionregistration.k8s.io", "v1", "validatingadmissionpolicies")
ADMISSION_POLICY_BINDINGS = GVR("admissionregistration.k8s.io", "v1", "validatingadmissionpolicybindings")

DISPATCHED = ("True", "Dispatching", "Work is being dispatched to member clusters.")
SUSPENDED = ("False", "SuspendDispatching", "Work dispatching is in a suspended state.")
APPLIED = ("True", "AppliedSuccessful", "Manifest has been successfully applied")
NOT_OURS = (
    "resource(kind=ConfigMap, default/settings) already exists in the cluster m1 and the "
    "work.karmada.io/conflict-resolution strategy value is empty, Karmada will not manage this resource"
)

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_work_becomes_an_object_and_says_so(two: Fleet) -> None:
    template = await two.propagate(CONFIG_MAPS, config_map(), ["m1"])
    work = await two.until_work("m1", template, is_applied)
    obj = await two.members["m1"].get(CONFIG_MAPS, "settings")
    assert obj is not None
    assert obj["data"] == {"a": "1"}
    assert meta.labels(obj)["karmada.io/managed"] == "true"
    assert meta.annotations(obj)["work.karmada.io/name"] == meta.name(work)
    assert [c["type"] for c in work["status"]["conditions"]] == ["Dispatching", "Applied"]
    assert brief(work, "Dispatching") == DISPATCHED
    assert brief(work, "Applied") == APPLIED
    name = f"karmada-es-m1/{meta.name(work)}"
    assert {
        ("Normal", "WorkDispatching", DISPATCHED[2]),
        ("Normal", "SyncSucceed", f"Sync work({name}) to cluster(m1) successful."),
    } <= await two.events(meta.name(work), "karmada-es-m1")
    applied = ("Normal", "SyncSucceed", "Successfully applied resource(default/settings) to cluster m1")
    assert applied in await two.events("settings")


async def test_one_object_costs_each_member_one_request(two: Fleet) -> None:
    await two.propagate(CONFIG_MAPS, config_map("first"), ["m1", "m2"])
    await two.until_applied("first-configmap")
    await two.rest()
    before = {name: len(member.gate.paths) for name, member in two.members.items()}
    template = await two.propagate(CONFIG_MAPS, config_map("second"), ["m1", "m2"])
    await two.until_applied("second-configmap")
    await two.rest()
    for name, member in two.members.items():
        requested = member.gate.paths[before[name] :]
        assert requested == [("POST", "/api/v1/namespaces/default/configmaps")]
    before = {name: len(member.gate.paths) for name, member in two.members.items()}
    await two.touch(CONFIG_MAPS, {**copy_json(template), "data": {"a": "2"}})
    await two.members["m1"].until(CONFIG_MAPS, "second", lambda c: c["data"] == {"a": "2"})
    await two.rest()
    for name, member in two.members.items():
        assert member.gate.paths[before[name] :] == [("PUT", "/api/v1/namespaces/default/configmaps/second")]


async def test_a_work_is_written_once_for_its_creation_and_once_for_all_of_its_status(two: Fleet) -> None:
    await two.propagate(CONFIG_MAPS, config_map("first"), ["m1"])
    await two.until_applied("first-configmap")
    await two.rest()
    versions: list[str] = []
    works = two.plane.context.informers.of(Work.gvr)
    remove = works.add_handler(lambda _old, new: versions.append(meta.name(new or {})))
    versions.clear()
    await two.propagate(CONFIG_MAPS, config_map("second"), ["m1"])
    await two.until_applied("second-configmap")
    await two.rest()
    remove()
    assert len(versions) == 2


async def test_an_object_of_another_owner_is_left_alone(two: Fleet) -> None:
    member = two.members["m1"]
    await member.client.create(CONFIG_MAPS, config_map(data={"own": "yes"}))
    template = await two.propagate(CONFIG_MAPS, config_map(), ["m1"])
    work = await two.until_work("m1", template, lambda w: condition(w, "Applied") == "False")
    message = f"Failed to apply all manifests (0/1): {NOT_OURS}"
    assert brief(work, "Applied") == ("False", "AppliedFailed", message)
    assert "manifestStatuses" not in work["status"]
    obj = await member.get(CONFIG_MAPS, "settings")
    assert obj is not None
    assert obj["data"] == {"own": "yes"}
    assert not meta.labels(obj)
    failed = f"Failed to create or update resource(default/settings) in member cluster(m1): {NOT_OURS}"
    await two.until_event("settings", ("Warning", "SyncFailed", failed))
    name = f"karmada-es-m1/{meta.name(work)}"
    event = ("Warning", "SyncFailed", f"Failed to sync work({name}) to cluster(m1), err: {NOT_OURS}")
    await two.until_event(meta.name(work), event, "karmada-es-m1")
    binding = await two.until_binding("settings-configmap", lambda b: condition(b, "FullyApplied") == "False")
    assert binding["status"]["aggregatedStatus"] == [
        {"clusterName": "m1", "health": "Unknown", "appliedMessage": message}
    ]
    await two.client.delete(CONFIG_MAPS, "settings", "default")
    await two.until_work_gone("m1", template)
    assert await member.get(CONFIG_MAPS, "settings") is not None


async def test_an_object_of_another_owner_is_taken_over_when_that_is_wanted(two: Fleet) -> None:
    member = two.members["m1"]
    await member.client.create(CONFIG_MAPS, config_map(data={"own": "yes"}, labels={"theirs": "stays"}))
    template = await two.propagate(CONFIG_MAPS, config_map(), ["m1"], conflictResolution="Overwrite")
    await two.until_work("m1", template, is_applied)
    obj = await member.get(CONFIG_MAPS, "settings")
    assert obj is not None
    assert obj["data"] == {"a": "1"}
    assert {"theirs": "stays", "karmada.io/managed": "true"}.items() <= meta.labels(obj).items()


async def test_labels_and_annotations_of_the_member_stay_and_ours_go_when_they_went_here(two: Fleet) -> None:
    member = two.members["m1"]
    made = config_map(labels={"ours": "1", "old": "1"}, annotations={"ours": "1", "old": "1"})
    template = await two.propagate(CONFIG_MAPS, made, ["m1"])
    await two.until_work("m1", template, is_applied)
    theirs = {"labels": {"theirs": "1"}, "annotations": {"theirs": "1"}, "finalizers": ["example.com/theirs"]}
    await member.client.patch(CONFIG_MAPS, "settings", "default", {"metadata": theirs})
    await two.rest()
    template = (await two.plane.get(CONFIG_MAPS, "settings", "default")) or {}
    changed = copy_json(template)
    changed["metadata"]["labels"] = {"ours": "2"}
    changed["metadata"]["annotations"] = {"ours": "2"}
    await two.touch(CONFIG_MAPS, changed)
    obj = await member.until(CONFIG_MAPS, "settings", lambda c: meta.labels(c)["ours"] == "2")
    assert "old" not in meta.labels(obj)
    assert "old" not in meta.annotations(obj)
    assert meta.labels(obj)["theirs"] == meta.annotations(obj)["theirs"] == "1"
    assert meta.annotations(obj)["ours"] == "2"
    assert meta.finalizers(obj) == ["example.com/theirs"]
    await member.client.patch(CONFIG_MAPS, "settings", "default", {"metadata": {"finalizers": None}})


async def test_what_a_member_decides_is_retained(two: Fleet) -> None:
    member = two.members["m1"]
    service = kube_object("v1", "Service", "web", "default", spec={"ports": [{"port": 80}], "selector": {"app": "web"}})
    template = await two.propagate(SERVICES, service, ["m1"])
    await two.until_work("m1", template, is_applied)
    before = await member.get(SERVICES, "web")
    assert before is not None
    template = (await two.plane.get(SERVICES, "web", "default")) or {}
    changed = copy_json(template)
    changed["spec"]["ports"][0]["port"] = 81
    await two.touch(SERVICES, changed)
    after = await member.until(SERVICES, "web", lambda s: s["spec"]["ports"][0]["port"] == 81)
    assert after["spec"]["clusterIP"] == before["spec"]["clusterIP"]


async def test_replicas_that_a_member_scales_stay_its_own(two: Fleet) -> None:
    member = two.members["m1"]
    label = {"resourcetemplate.karmada.io/retain-replicas": "true"}
    made = deployment()
    made["metadata"]["labels"] = {**made["metadata"]["labels"], **label}
    template = await two.propagate(DEPLOYMENTS, made, {"m1": 2})
    await two.until_work("m1", template, is_applied)
    await two.rest()
    await member.client.patch(DEPLOYMENTS, "web", "default", {"spec": {"replicas": 7}})
    await two.rest()
    obj = await member.get(DEPLOYMENTS, "web")
    assert obj is not None
    assert obj["spec"]["replicas"] == 7


async def test_suspended_works_are_not_sent_until_they_are_released(two: Fleet) -> None:
    member = two.members["m1"]
    template = await two.propagate(CONFIG_MAPS, config_map(), ["m1"], suspension={"dispatching": True})
    work = await two.until_work("m1", template, lambda w: condition(w, "Dispatching"))
    assert brief(work, "Dispatching") == SUSPENDED
    await two.until_event(meta.name(work), ("Normal", "WorkDispatching", SUSPENDED[2]), "karmada-es-m1")
    await two.rest()
    assert await member.get(CONFIG_MAPS, "settings") is None
    await two.set_binding("settings-configmap", {"suspension": None})
    work = await two.until_work("m1", template, is_applied)
    assert brief(work, "Dispatching") == DISPATCHED


async def test_a_suspended_work_leaves_the_object_as_it_is(two: Fleet) -> None:
    member = two.members["m1"]
    template = await two.propagate(CONFIG_MAPS, config_map(), ["m1"])
    await two.until_work("m1", template, is_applied)
    await two.set_binding("settings-configmap", {"suspension": {"dispatching": True}})
    await two.until_work("m1", template, lambda w: brief(w, "Dispatching") == SUSPENDED)
    await member.client.patch(CONFIG_MAPS, "settings", "default", {"data": {"a": "theirs"}})
    await two.touch(CONFIG_MAPS, {**copy_json(template), "data": {"a": "2"}})
    await two.rest()
    obj = await member.get(CONFIG_MAPS, "settings")
    assert obj is not None
    assert obj["data"] == {"a": "theirs"}
    await member.client.delete(CONFIG_MAPS, "settings", "default")
    await two.rest()
    assert await member.get(CONFIG_MAPS, "settings") is None
    await two.set_binding("settings-configmap", {"suspension": None})
    await member.until(CONFIG_MAPS, "settings", lambda c: c["data"] == {"a": "2"})


async def test_a_missing_namespace_is_reported_and_retried(two: Fleet) -> None:

    space = kube_object("v1", "Namespace", "shop")
    await two.client.create(NAMESPACES, space)
    template = await two.propagate(CONFIG_MAPS, config_map(namespace="shop"), ["m1"])
    work = await two.until_work("m1", template, lambda w: condition(w, "Applied") == "False")
    assert brief(work, "Applied")[2] == 'Failed to apply all manifests (0/1): namespaces "shop" not found'
    await two.members["m1"].client.create(NAMESPACES, space)
    await two.members["m1"].until(CONFIG_MAPS, "settings", namespace="shop")
    await two.until_work("m1", template, is_applied)


async def test_a_work_with_several_manifests_counts_them(two: Fleet) -> None:
    member = two.members["m1"]
    manifests = [config_map("one"), config_map("two", namespace="nowhere")]
    work = kube_object(
        Work.gvk.api_version, "Work", "by-hand", "karmada-es-m1", finalizers=["karmada.io/execution-controller"]
    ) | {"spec": {"workload": {"manifests": manifests}}}
    await two.client.create(Work.gvr, work)

    async def look() -> Obj | None:
        return await two.plane.get(Work.gvr, "by-hand", "karmada-es-m1")

    found = await until(look, lambda w: condition(w, "Applied"))
    message = 'Failed to apply all manifests (1/2): namespaces "nowhere" not found'
    assert brief(found, "Applied") == ("False", "AppliedFailed", message)
    assert await member.get(CONFIG_MAPS, "one") is not None


async def test_a_store_that_went_back_counts_the_same_generations_again_for_other_content(two: Fleet) -> None:
    marks = {
        "labels": {MANAGED: TRUE},
        "annotations": {WORK_NAMESPACE: "karmada-es-m1", WORK_NAME: "by-hand"},
    }
    work = kube_object(Work.gvk.api_version, "Work", "by-hand", "karmada-es-m1", finalizers=[EXECUTION_FINALIZER]) | {
        "spec": {"workload": {"manifests": [config_map("again", {"a": "1"}, **marks)]}}
    }
    await two.client.create(Work.gvr, work)

    async def look() -> Obj | None:
        return await two.plane.get(Work.gvr, "by-hand", "karmada-es-m1")

    await until(look, is_applied)
    await two.rest()
    store, key = two.plane.server.store, storage_key(Work.gvr.group_resource, "karmada-es-m1", "by-hand")
    stored = await store.get(key)
    assert stored is not None
    other = orjson.loads(stored.value)
    other["spec"]["workload"]["manifests"][0]["data"] = {"a": "2"}
    await store.write(key, encode_value(other), expected=stored.revision)
    await two.members["m1"].until(CONFIG_MAPS, "again", lambda c: c["data"] == {"a": "2"})
    found = await look()
    assert found is not None
    assert found["metadata"]["generation"] == 1


# the end of a Work


async def test_a_deleted_work_takes_its_object_along(two: Fleet) -> None:
    member = two.members["m1"]
    template = await two.propagate(CONFIG_MAPS, config_map(), ["m1"])
    work = await two.until_work("m1", template, is_applied)
    await two.client.delete(Work.gvr, meta.name(work), "karmada-es-m1")
    await two.until_work_gone("m1", template)
    await member.until_gone(CONFIG_MAPS, "settings")


async def test_an_object_that_bears_the_marks_of_another_clusters_work_concerns_nobody(
    two: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    template = await two.propagate(CONFIG_MAPS, config_map(), ["m1", "m2"])
    works = {name: await two.until_work(name, template, is_applied) for name in ("m1", "m2")}
    queue, seen = two.plane.manager.controllers["execution-controller"].queue, list[tuple[str, str]]()
    monkeypatch.setattr(queue, "add_after", lambda key, *_: seen.append((key.namespace, key.name)))
    marks = {"work.karmada.io/namespace": "karmada-es-m2", "work.karmada.io/name": meta.name(works["m2"])}
    stray = {**config_map(), "metadata": {"name": "stray", "annotations": marks}}
    stray["metadata"]["labels"] = {"karmada.io/managed": "true"}
    await two.members["m1"].client.create(CONFIG_MAPS, stray, "default")
    await two.members["m1"].client.patch(CONFIG_MAPS, "settings", "default", {"data": {"a": "drift"}})
    await eventually(lambda: seen)
    assert seen == [("karmada-es-m1", meta.name(works["m1"]))]


async def test_deleting_what_is_gone_already_is_fine(two: Fleet) -> None:
    member = two.members["m1"]
    template = await two.propagate(CONFIG_MAPS, config_map(), ["m1"], suspension={"dispatching": True})
    work = await two.until_work("m1", template)
    assert await member.get(CONFIG_MAPS, "settings") is None
    await two.client.delete(Work.gvr, meta.name(work), "karmada-es-m1")
    await two.until_work_gone("m1", template)


async def test_preserved_objects_stay_without_our_marks(two: Fleet) -> None:
    member = two.members["m1"]
    marks = {"propagationpolicy.karmada.io/namespace": "default", "propagationpolicy.karmada.io/name": "p", "own": "1"}
    made = config_map(annotations=marks, labels={"propagationpolicy.karmada.io/permanent-id": "x", "own": "1"})
    template = await two.propagate(CONFIG_MAPS, made, ["m1"], preserveResourcesOnDeletion=True)
    work = await two.until_work("m1", template, is_applied)
    assert work["spec"]["preserveResourcesOnDeletion"] is True
    await two.client.delete(CONFIG_MAPS, "settings", "default")
    await two.until_work_gone("m1", template)
    obj = await member.get(CONFIG_MAPS, "settings")
    assert obj is not None
    assert meta.labels(obj) == {"own": "1"}
    assert meta.annotations(obj) == {"own": "1", "work.karmada.io/conflict-resolution": "abort"}
    assert obj["data"] == {"a": "1"}


async def test_preserving_what_is_gone_or_not_ours_holds_nothing_up(two: Fleet) -> None:
    member = two.members["m1"]
    theirs = await member.client.create(CONFIG_MAPS, config_map("theirs"))
    lost = await two.propagate(
        CONFIG_MAPS, config_map("lost"), ["m1"], suspension={"dispatching": True}, preserveResourcesOnDeletion=True
    )
    kept = await two.propagate(CONFIG_MAPS, config_map("theirs"), ["m1"], preserveResourcesOnDeletion=True)
    await two.until_work("m1", lost)
    await two.until_work("m1", kept, lambda w: condition(w, "Applied") == "False")
    for name in ("lost", "theirs"):
        await two.client.delete(CONFIG_MAPS, name, "default")
    await two.until_work_gone("m1", lost)
    await two.until_work_gone("m1", kept)
    assert await member.get(CONFIG_MAPS, "theirs") == theirs


@pytest.mark.parametrize("taken_over", [False, True])
async def test_deleting_spares_objects_that_lost_their_mark(two: Fleet, taken_over: bool) -> None:
    member = two.members["m1"]
    template = await two.propagate(CONFIG_MAPS, config_map(), ["m1"])
    await two.until_work("m1", template, is_applied)
    await two.rest()
    await two.set_binding("settings-configmap", {"suspension": {"dispatching": True}})
    await two.until_work("m1", template, lambda w: brief(w, "Dispatching") == SUSPENDED)
    if taken_over:
        await member.client.patch(
            CONFIG_MAPS, "settings", "default", {"metadata": {"labels": {"karmada.io/managed": None}}}
        )
        await two.rest()
    await two.client.delete(CONFIG_MAPS, "settings", "default")
    await two.until_work_gone("m1", template)
    assert (await member.get(CONFIG_MAPS, "settings") is not None) is taken_over


@pytest.mark.parametrize("overwrite", [True, False])
async def test_an_object_whose_create_is_refused_for_another_reason_is_still_found(two: Fleet, overwrite: bool) -> None:
    member = two.members["m1"]
    await member.client.create(NAMESPACES, kube_object("v1", "Namespace", "full"))
    await two.client.create(NAMESPACES, kube_object("v1", "Namespace", "full"))
    try:
        await member.client.create(CONFIG_MAPS, config_map(data={"own": "yes"}, namespace="full"))
        quota = kube_object("v1", "ResourceQuota", "none", "full", spec={"hard": {"count/configmaps": "0"}})
        await member.client.create(QUOTAS, quota)
        await member.client.patch(
            QUOTAS, "none", "full", {"status": {"hard": quota["spec"]["hard"]}}, subresource="status"
        )
        resolution = {"conflictResolution": "Overwrite"} if overwrite else {}
        template = await two.propagate(CONFIG_MAPS, config_map(namespace="full"), ["m1"], **resolution)
        work = await two.until_work("m1", template, lambda w: condition(w, "Applied"))
        taken = await member.get(CONFIG_MAPS, "settings", "full")
        assert taken is not None
        if overwrite:
            assert is_applied(work)
            assert taken["data"] == {"a": "1"}
        else:
            assert "Karmada will not manage this resource" in brief(work, "Applied")[2]
            assert taken["data"] == {"own": "yes"}
    finally:
        await two.client.delete(CONFIG_MAPS, "settings", "full")
        await two.client.delete(NAMESPACES, "full")
        await member.client.delete(NAMESPACES, "full")
        await member.until_gone(NAMESPACES, "full", namespace="")
        await until_none(lambda: two.plane.get(NAMESPACES, "full"))


async def test_a_refused_create_of_an_object_that_does_not_exist_reports_the_refusal(two: Fleet) -> None:
    bad = {**config_map("bad"), "immutable": True}
    member = two.members["m1"]
    policy = _refuse_creates_of("bad")
    for gvr, obj in policy:
        await member.client.create(gvr, obj)
    try:
        await eventually_refused(member)
        template = await two.propagate(CONFIG_MAPS, bad, ["m1"])
        work = await two.until_work("m1", template, lambda w: condition(w, "Applied") == "False")
        assert "no creates here" in brief(work, "Applied")[2]
    finally:
        for gvr, obj in policy:
            await member.client.delete(gvr, meta.name(obj))


def _refuse_creates_of(name: str) -> list[tuple[GVR, Obj]]:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    api = "admissionregistration.k8s.io/v1"
    policy = kube_object(api, "ValidatingAdmissionPolicy", "no-creates") | {
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": f"object.metadata.name != '{name}'", "message": "no creates here"}],
        },
    }
    binding = kube_object(api, "ValidatingAdmissionPolicyBinding", "no-creates") | {
        "spec": {"policyName": "no-creates", "validationActions": ["Deny"]}
    }
    return [(ADMISSION_POLICIES, policy), (ADMISSION_POLICY_BINDINGS, binding)]


async def eventually_refused(member: TestMember) -> None:
    async def refused() -> Obj | None:
        try:
            await member.client.create(CONFIG_MAPS, config_map("bad"), dry_run=True)
        except ApiError as error:
            return {"message": error.message}
        return None

    await until(refused)


async def test_a_work_of_an_older_name_is_replaced_without_touching_the_object(two: Fleet) -> None:
    member = two.members["m1"]
    role = kube_object("rbac.authorization.k8s.io/v1", "ClusterRole", "team:Readers", rules=[])
    template = await two.propagate(CLUSTER_ROLES, role, ["m1"])
    work = await two.until_work("m1", template, is_applied)
    before = await member.get(CLUSTER_ROLES, "team:Readers", "")
    assert before is not None
    older = {**copy_json(work), "metadata": {**copy_json(work["metadata"]), "name": "team.readers-older"}}
    for field in ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"):
        older["metadata"].pop(field, None)
    await two.client.create(Work.gvr, {field: older[field] for field in ("apiVersion", "kind", "metadata", "spec")})
    try:
        await until(lambda: two.plane.get(Work.gvr, "team.readers-older", "karmada-es-m1"), is_applied)
        await two.client.patch(
            ClusterResourceBinding.gvr, "team.readers-clusterrole", "", {"spec": {"preserveResourcesOnDeletion": True}}
        )
        await until_none(lambda: two.plane.get(Work.gvr, "team.readers-older", "karmada-es-m1"))
        await two.rest()
        after = await member.get(CLUSTER_ROLES, "team:Readers", "")
        assert after is not None
        assert meta.uid(after) == meta.uid(before)
        assert await two.work("m1", template) is not None
    finally:
        await two.client.delete(CLUSTER_ROLES, "team:Readers")
