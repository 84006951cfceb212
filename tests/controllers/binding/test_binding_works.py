"""From bindings to Works."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from karmada.api.policy import ClusterOverridePolicy, OverridePolicy
from karmada.api.work import ClusterResourceBinding, ResourceBinding, Work
from karmada.controllers.binding import controller
from karmada.kube.objects import meta
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.gvrs import CLUSTER_ROLES, CONFIG_MAPS, DEPLOYMENTS, JOBS, NAMESPACES
from karmada.kube.objects.types import Obj
from karmada.overrides.hook import Overridden
from tests.support.cases import cases
from tests.support.eventually import eventually
from tests.support.fleet import Fleet, config_map, deployment, fleet, manifest, until
from tests.support.objects import kube_object

DIVIDED = {"replicaScheduling": {"replicaSchedulingType": "Divided"}}
DUPLICATED = {"replicaScheduling": {"replicaSchedulingType": "Duplicated"}}

pytestmark = pytest.mark.asyncio(loop_scope="module")


def job(name: str = "sum", completions: int | None = 7, **metadata: object) -> Obj:
    pod = {"containers": [{"name": "c", "image": "busybox"}], "restartPolicy": "Never"}
    spec: Obj = {"parallelism": 4, "template": {"spec": pod}, "ttlSecondsAfterFinished": 100}
    if completions is not None:
        spec["completions"] = completions
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"namespace": "default", "name": name, **metadata},
        "spec": spec,
    }


async def test_every_target_gets_one_work_with_all_its_marks(two: Fleet) -> None:
    template = await two.propagate(DEPLOYMENTS, deployment(annotations={"mine": "yes"}), {"m1": 1, "m2": 3})
    binding = await two.binding("web-deployment")
    assert binding is not None
    binding_id = meta.labels(binding)["resourcebinding.karmada.io/permanent-id"]
    for cluster, replicas in (("m1", 1), ("m2", 3)):
        work = await two.until_work(cluster, template)
        metadata, spec = work["metadata"], work["spec"]
        work_id = metadata["labels"]["work.karmada.io/permanent-id"]
        assert metadata["namespace"] == f"karmada-es-{cluster}"
        assert metadata["finalizers"] == ["karmada.io/execution-controller"]
        assert metadata["labels"] == {
            "resourcebinding.karmada.io/permanent-id": binding_id,
            "work.karmada.io/permanent-id": work_id,
        }
        assert metadata["annotations"] == {
            "resourcebinding.karmada.io/namespace": "default",
            "resourcebinding.karmada.io/name": "web-deployment",
            "work.karmada.io/conflict-resolution": "abort",
        }
        assert (spec["suspendDispatching"], spec["preserveResourcesOnDeletion"]) == (False, False)
        obj = manifest(work)
        assert obj["spec"] == {**template["spec"], "replicas": replicas}
        assert "status" not in obj
        assert obj["metadata"]["labels"] == {
            "app": "web",
            "karmada.io/managed": "true",
            "resourcebinding.karmada.io/permanent-id": binding_id,
            "work.karmada.io/permanent-id": work_id,
        }
        noted = obj["metadata"]["annotations"].pop("resourcetemplate.karmada.io/managed-annotations")
        assert obj["metadata"].keys() == {"name", "namespace", "labels", "annotations"}
        assert obj["metadata"]["annotations"] == {
            "mine": "yes",
            "resourcebinding.karmada.io/namespace": "default",
            "resourcebinding.karmada.io/name": "web-deployment",
            "resourcetemplate.karmada.io/generation": "1",
            "resourcetemplate.karmada.io/uid": meta.uid(template),
            "resourcetemplate.karmada.io/managed-labels": ",".join(sorted(obj["metadata"]["labels"])),
            "work.karmada.io/conflict-resolution": "abort",
            "work.karmada.io/name": metadata["name"],
            "work.karmada.io/namespace": metadata["namespace"],
        }
        expected = {*obj["metadata"]["annotations"], "resourcetemplate.karmada.io/managed-annotations"}
        assert noted == ",".join(sorted(expected))
    emitted = ("Normal", "SyncWorkSucceed", "Sync work of ResourceBinding(default/web-deployment) successful.")
    await two.until_applied("web-deployment")
    assert emitted in await two.events("web-deployment")
    assert emitted in await two.events("web")


async def test_bindings_without_a_namespace_work_the_same_way(two: Fleet) -> None:
    role = kube_object("rbac.authorization.k8s.io/v1", "ClusterRole", "sys:x", rules=[])
    template = await two.propagate(CLUSTER_ROLES, role, ["m1"])
    work = await two.until_work("m1", template)
    binding = await two.binding("sys.x-clusterrole", "")
    assert binding is not None
    mark = {
        "clusterresourcebinding.karmada.io/permanent-id": meta.labels(binding)[
            "clusterresourcebinding.karmada.io/permanent-id"
        ]
    }
    assert mark.items() <= meta.labels(work).items()
    assert mark.items() <= meta.labels(manifest(work)).items()
    assert meta.annotations(work) == {
        "clusterresourcebinding.karmada.io/name": "sys.x-clusterrole",
        "work.karmada.io/conflict-resolution": "abort",
    }
    await two.members["m1"].until(CLUSTER_ROLES, "sys:x", namespace="")
    await two.until_applied("sys.x-clusterrole", "")
    emitted = ("Normal", "SyncWorkSucceed", "Sync work of ClusterResourceBinding(sys.x-clusterrole) successful.")
    assert emitted in await two.events("sys.x-clusterrole")
    await two.client.delete(ClusterResourceBinding.gvr, "sys.x-clusterrole")
    await two.until_work_gone("m1", template)
    await two.members["m1"].until_gone(CLUSTER_ROLES, "sys:x", namespace="")


async def test_bindings_with_many_clusters_take_turns_and_all_get_their_works(
    two: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controller, "_WIDE", 1)
    names = [f"wide-{number}" for number in range(12)]
    for name in names:
        await two.propagate(CONFIG_MAPS, config_map(name), ["m1", "m2"])
    for name in names:
        for cluster in ("m1", "m2"):
            await two.until_work(cluster, config_map(name))


async def test_duplicated_replicas_are_set_too(two: Fleet) -> None:
    template = await two.propagate(DEPLOYMENTS, deployment(replicas=2), {"m1": 5}, placement=DUPLICATED)
    assert manifest(await two.until_work("m1", template))["spec"]["replicas"] == 5


async def test_what_is_no_workload_goes_as_it_is(two: Fleet) -> None:
    template = await two.client.create(DEPLOYMENTS, deployment(replicas=2))
    await two.bind(template, {"m1": 5})
    assert manifest(await two.until_work("m1", template))["spec"]["replicas"] == 2


async def test_completions_of_a_job_are_divided_like_its_replicas(two: Fleet) -> None:
    template = await two.client.create(JOBS, job())
    await two.bind(template, {"m1": 1, "m2": 3}, replicas=4, placement=DIVIDED)
    works = [await two.until_work(cluster, template) for cluster in ("m1", "m2")]
    assert [manifest(work)["spec"]["parallelism"] for work in works] == [1, 3]
    assert [manifest(work)["spec"]["completions"] for work in works] == [2, 5]
    assert all("ttlSecondsAfterFinished" not in manifest(work)["spec"] for work in works)


async def test_completions_stay_whole_unless_replicas_are_divided(two: Fleet) -> None:
    template = await two.client.create(JOBS, job())
    await two.bind(template, {"m1": 4, "m2": 4}, replicas=4, placement=DUPLICATED)
    for cluster in ("m1", "m2"):
        assert manifest(await two.until_work(cluster, template))["spec"]["completions"] == 7


async def test_a_binding_that_others_need_follows_them(two: Fleet) -> None:
    template = await two.client.create(CONFIG_MAPS, config_map())
    snapshots = [
        {"namespace": "default", "name": "a", "clusters": [{"name": "m1", "replicas": 2}]},
        {"namespace": "default", "name": "b", "clusters": [{"name": "m1"}, {"name": "m2"}]},
    ]
    await two.bind(template, [], requiredBy=snapshots)
    for member in two.members.values():
        await member.until(CONFIG_MAPS, "settings")
    await two.set_binding("settings-configmap", {"requiredBy": snapshots[:1]})
    await two.members["m2"].until_gone(CONFIG_MAPS, "settings")
    assert await two.members["m1"].get(CONFIG_MAPS, "settings") is not None


async def test_a_cluster_that_leaves_loses_its_work(two: Fleet) -> None:
    template = await two.propagate(DEPLOYMENTS, deployment(), {"m1": 1, "m2": 1})
    await two.until_applied("web-deployment")
    await two.set_binding("web-deployment", {"clusters": [{"name": "m2", "replicas": 2}]})
    await two.until_work_gone("m1", template)
    await two.members["m1"].until_gone(DEPLOYMENTS, "web")
    await two.members["m2"].until(DEPLOYMENTS, "web", lambda d: d["spec"]["replicas"] == 2)


async def test_a_cluster_that_comes_back_gets_a_new_work_once_the_old_one_is_gone(two: Fleet) -> None:
    template = await two.propagate(CONFIG_MAPS, config_map(), ["m1"])
    first = await two.until_work("m1", template, lambda w: w.get("status"))
    gate = two.members["m1"].gate
    gate.open.clear()
    await two.set_binding("settings-configmap", {"clusters": []})
    await two.until_work("m1", template, meta.is_deleting)
    await two.set_binding("settings-configmap", {"clusters": [{"name": "m1"}]})
    message = f"work karmada-es-m1/{meta.name(first)} is being deleted"
    await until(lambda: _reported(two, "settings-configmap", ("Warning", "SyncWorkFailed", message)))
    gate.open.set()
    await two.until_work("m1", template, lambda w: meta.uid(w) != meta.uid(first))
    await two.members["m1"].until(CONFIG_MAPS, "settings")


async def _reported(found: Fleet, name: str, event: tuple[str, str, str]) -> Obj | None:
    return {"emitted": True} if event in await found.events(name) else None


async def test_a_graceful_eviction_keeps_the_work_and_does_not_refresh_it(two: Fleet) -> None:
    template = await two.propagate(CONFIG_MAPS, config_map(), ["m1"])
    await two.until_applied("settings-configmap")
    task = {"fromCluster": "m1", "reason": "TaintUntolerated", "producer": "TaintManager", "purgeMode": "Gracefully"}
    await two.set_binding("settings-configmap", {"clusters": [{"name": "m2"}], "gracefulEvictionTasks": [task]})
    changed = {**copy_json(template), "data": {"a": "2"}}
    await two.touch(CONFIG_MAPS, changed)
    await two.members["m2"].until(CONFIG_MAPS, "settings", lambda c: c["data"] == {"a": "2"})
    kept = await two.members["m1"].get(CONFIG_MAPS, "settings")
    assert kept is not None
    assert kept["data"] == {"a": "1"}
    await two.set_binding("settings-configmap", {"gracefulEvictionTasks": []})
    await two.members["m1"].until_gone(CONFIG_MAPS, "settings")


async def test_nothing_is_dispatched_before_the_work_of_a_directly_purged_cluster_is_gone(two_alone: Fleet) -> None:
    template = await two_alone.propagate(CONFIG_MAPS, config_map(), ["m1"])
    await two_alone.until_applied("settings-configmap")
    gate = two_alone.members["m1"].gate
    gate.open.clear()
    task = {"fromCluster": "m1", "reason": "TaintUntolerated", "producer": "TaintManager", "purgeMode": "Directly"}
    await two_alone.set_binding("settings-configmap", {"clusters": [{"name": "m2"}], "gracefulEvictionTasks": [task]})
    await two_alone.until_work("m1", template, meta.is_deleting)
    controller = two_alone.plane.manager.controllers["binding-controller"]
    await eventually(lambda: controller.queue.idle and controller.queue.delayed == 1)
    assert await two_alone.work("m2", template) is None
    gate.open.set()
    await two_alone.until_work("m2", template)


async def test_suspension_is_written_into_the_works(two: Fleet) -> None:
    template = await two.propagate(
        CONFIG_MAPS, config_map(), ["m1", "m2"], suspension={"dispatchingOnClusters": {"clusterNames": ["m2"]}}
    )
    assert (await two.until_work("m1", template))["spec"]["suspendDispatching"] is False
    assert (await two.until_work("m2", template))["spec"]["suspendDispatching"] is True
    await two.set_binding("settings-configmap", {"suspension": {"dispatching": True, "dispatchingOnClusters": None}})
    await two.until_work("m1", template, lambda w: w["spec"]["suspendDispatching"])


@cases(
    (None, "Abort", "abort"),
    (None, "Overwrite", "overwrite"),
    ("overwrite", "Abort", "overwrite"),
    ("abort", "Overwrite", "abort"),
    ("OVERWRITE", "Abort", "abort"),
    ("whatever", "Overwrite", "overwrite"),
)
async def test_the_templates_word_on_conflicts_counts_before_the_policys(
    said: str | None, policy: str, expected: str, two: Fleet
) -> None:
    annotations = {"work.karmada.io/conflict-resolution": said} if said else {}
    template = await two.propagate(CONFIG_MAPS, config_map(annotations=annotations), ["m1"], conflictResolution=policy)
    work = await two.until_work("m1", template)
    assert meta.annotations(work)["work.karmada.io/conflict-resolution"] == expected
    assert meta.annotations(manifest(work))["work.karmada.io/conflict-resolution"] == expected


async def test_a_deleted_binding_takes_its_works_along_without_waiting_for_them(two: Fleet) -> None:
    template = await two.propagate(CONFIG_MAPS, config_map(), ["m1", "m2"])
    await two.until_applied("settings-configmap")
    gate = two.members["m1"].gate
    gate.open.clear()
    await two.client.delete(ResourceBinding.gvr, "settings-configmap", "default")
    await two.until_work_gone("m2", template)
    await until(lambda: _gone(two))
    assert meta.is_deleting(await two.until_work("m1", template))
    gate.open.set()
    await two.until_work_gone("m1", template)


async def _gone(found: Fleet) -> Obj | None:
    return {"gone": True} if await found.binding("settings-configmap") is None else None


async def test_a_template_that_goes_takes_everything_along(two: Fleet) -> None:
    await two.propagate(CONFIG_MAPS, config_map(), ["m1", "m2"])
    await two.until_applied("settings-configmap")
    await two.client.delete(CONFIG_MAPS, "settings", "default")
    for member in two.members.values():
        await member.until_gone(CONFIG_MAPS, "settings")


async def test_a_binding_without_a_template_is_left_in_peace(two: Fleet) -> None:
    template = await two.client.create(CONFIG_MAPS, config_map())
    gone = {**template, "metadata": {**template["metadata"], "name": "gone"}}
    await two.bind(gone, ["m1"])
    await two.rest()
    assert await two.work("m1", gone) is None
    assert two.plane.manager.controllers["binding-controller"].queue.delayed == 0


async def test_an_unchanged_binding_writes_no_work(two: Fleet) -> None:
    template = await two.propagate(DEPLOYMENTS, deployment(), {"m1": 1, "m2": 1})
    await two.until_applied("web-deployment")
    await two.rest()
    before = await two.until_work("m1", template)
    await two.set_binding("web-deployment", {"schedulerName": "another"})
    await two.rest()
    after = await two.until_work("m1", template)
    assert meta.resource_version(after) == meta.resource_version(before)


async def test_a_work_whose_cluster_has_no_space_yet_is_made_when_it_has(two_alone: Fleet) -> None:
    await two_alone.plane.add_cluster("m9")
    template = await two_alone.propagate(CONFIG_MAPS, config_map(), ["m1", "m9"])
    await two_alone.until_work("m1", template)
    event = ("Warning", "SyncWorkFailed", 'namespaces "karmada-es-m9" not found')
    await until(lambda: _reported(two_alone, "settings-configmap", event))
    assert event in await two_alone.events("settings")
    space = kube_object("v1", "Namespace", "karmada-es-m9")

    await two_alone.client.create(NAMESPACES, space)
    await two_alone.until_work("m9", template)


# overrides


class Painter:
    """Overrides everything with a colour of the test's."""

    def __init__(self) -> None:
        self.colour = "red"

    def __call__(self, obj: Obj, cluster: str) -> Overridden:
        painted = {**obj, "data": {**obj.get("data", {}), "colour": f"{self.colour} in {cluster}"}}
        return Overridden(painted, {"policy.karmada.io/applied-overrides": f'["{self.colour}"]'})


@pytest.fixture(scope="module")
def painter() -> Painter:
    return Painter()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_painted(fleet_folder: Path, painter: Painter) -> AsyncIterator[Fleet]:
    async with fleet(fleet_folder, "m1", "m2", override=painter) as found:
        yield found


@pytest_asyncio.fixture(loop_scope="module")
async def painted(shared_painted: Fleet, painter: Painter) -> AsyncIterator[Fleet]:
    painter.colour = "red"
    yield shared_painted
    await shared_painted.clear()


async def test_overrides_differ_by_cluster_and_are_noted_on_the_work(painted: Fleet) -> None:
    template = await painted.propagate(CONFIG_MAPS, config_map(), ["m1", "m2"])
    for cluster in ("m1", "m2"):
        work = await painted.until_work(cluster, template)
        assert manifest(work)["data"] == {"a": "1", "colour": f"red in {cluster}"}
        assert meta.annotations(work)["policy.karmada.io/applied-overrides"] == '["red"]'


@cases(
    (OverridePolicy, "default", None, {"one", "two"}),
    (ClusterOverridePolicy, "", None, {"one", "two"}),
    (OverridePolicy, "default", [{"apiVersion": "v1", "kind": "ConfigMap", "name": "two"}], {"two"}),
    (
        ClusterOverridePolicy,
        "",
        [{"apiVersion": "v1", "kind": "ConfigMap", "labelSelector": {"matchLabels": {"n": "1"}}}],
        {"one"},
    ),
    (OverridePolicy, "default", [{"apiVersion": "v1", "kind": "Secret"}], set()),
    (OverridePolicy, "kube-public", None, set()),
)
async def test_a_changed_override_policy_refreshes_the_bindings_it_concerns(
    kind: type[Work], namespace: str, selectors: list[Obj] | None, selected: set[str], painted: Fleet, painter: Painter
) -> None:
    await painted.propagate(CONFIG_MAPS, config_map("one", labels={"n": "1"}), ["m1"])
    await painted.propagate(CONFIG_MAPS, config_map("two", labels={"n": "2"}), ["m1"])
    for name in ("one", "two"):
        await painted.until_applied(f"{name}-configmap")
    # labels are matched once their informer has synced
    informers = painted.plane.context.informers
    from karmada.controllers.templates import light_of
    from karmada.kube.objects.gvk import GVK

    light = informers.of(CONFIG_MAPS, shape=light_of(GVK("", "v1", "ConfigMap")))
    await light.wait_synced()
    await painted.rest()
    painter.colour = "blue"
    policy: Obj = {
        "apiVersion": kind.gvk.api_version,
        "kind": kind.gvk.kind,
        "metadata": {"name": "paint", **({"namespace": namespace} if namespace else {})},
        "spec": {"overrideRules": [{"overriders": {}}]},
    }
    if selectors:
        policy["spec"]["resourceSelectors"] = selectors
    await painted.client.create(kind.gvr, policy)
    for name in selected:
        await painted.members["m1"].until(CONFIG_MAPS, name, lambda c: c["data"]["colour"] == "blue in m1")
    await painted.rest()
    for name in {"one", "two"} - selected:
        found = await painted.members["m1"].get(CONFIG_MAPS, name)
        assert found is not None
        assert found["data"]["colour"] == "red in m1"


async def test_a_work_of_another_identity_goes_with_its_object(two: Fleet) -> None:
    """Earlier versions let override policies move objects to other names and namespaces."""
    member = two.members["m1"]
    template = await two.propagate(CONFIG_MAPS, config_map("mine"), ["m1"])
    work = copy_json(await two.until_work("m1", template, lambda w: w.get("status")))
    [moved] = work["spec"]["workload"]["manifests"]
    moved["metadata"]["namespace"] = "kube-system"
    metadata = {**work["metadata"], "name": "mine-elsewhere"}
    for field in ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"):
        metadata.pop(field, None)
    await two.client.create(
        Work.gvr, {"apiVersion": work["apiVersion"], "kind": "Work", "metadata": metadata, "spec": work["spec"]}
    )
    await member.until(CONFIG_MAPS, "mine", namespace="kube-system")
    await two.set_binding("mine-configmap", {"conflictResolution": "Overwrite"})
    await member.until_gone(CONFIG_MAPS, "mine", namespace="kube-system")
    assert await member.get(CONFIG_MAPS, "mine") is not None
