"""Works, as controllers make them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karmada.api.work import Work
from karmada.controllers.works import (
    WantedWork,
    WorkBeingDeleted,
    WorkOfAnother,
    Works,
    longer_name,
    manifest_of,
    names_of_work,
)
from karmada.kube.objects import meta
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.gvrs import NAMESPACES
from karmada.kube.objects.names import dns1123_subdomain
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key
from tests.support.cases import cases
from tests.support.control_plane import ControlPlane, running
from tests.support.eventually import eventually

SPACE = "karmada-es-m1"
KEY = Key(SPACE, "web-5c7d7fbb87")
EXECUTION = "karmada.io/execution-controller"


def deployment(**metadata: Any) -> Obj:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"namespace": "default", "name": "nginx", "uid": "u1", "resourceVersion": "7", **metadata},
        "spec": {"replicas": 2, "template": {"metadata": {"labels": {"app": "nginx"}}}},
        "status": {"replicas": 2},
    }


@pytest.fixture
async def plane(folder: Path) -> AsyncIterator[ControlPlane]:
    async with running(folder, lambda context: _touch(Works(context))) as plane:
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}
        await plane.client.create(NAMESPACES, namespace)
        yield plane


def _touch(_works: Works) -> list[Any]:
    return []


@pytest.fixture
def works(plane: ControlPlane) -> Works:
    return Works(plane.context)


async def seen(works: Works, written: Obj) -> None:
    key = Key(SPACE, written["metadata"]["name"])
    version = written["metadata"]["resourceVersion"]
    await eventually(
        lambda: (works.informer.get(key) or {"metadata": {}})["metadata"].get("resourceVersion") == version
    )


async def test_a_work_is_made_whole(works: Works) -> None:
    outcome, work = await works.ensure(
        "m1",
        deployment(labels={"app": "nginx"}),
        labels={"resourcebinding.karmada.io/permanent-id": "u2"},
        annotations={"work.karmada.io/conflict-resolution": "abort"},
        suspend_dispatching=False,
        preserve_resources_on_deletion=True,
    )
    assert outcome == "created"
    metadata, spec = work["metadata"], work["spec"]
    work_id = metadata["labels"]["work.karmada.io/permanent-id"]
    assert (metadata["namespace"], metadata["name"]) == (SPACE, "nginx-687f7fb96f")
    assert metadata["finalizers"] == [EXECUTION]
    assert metadata["labels"]["resourcebinding.karmada.io/permanent-id"] == "u2"
    assert metadata["annotations"] == {"work.karmada.io/conflict-resolution": "abort"}
    assert (spec["suspendDispatching"], spec["preserveResourcesOnDeletion"]) == (False, True)
    assert spec["workload"]["manifests"] == [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {
                "namespace": "default",
                "name": "nginx",
                "labels": {"app": "nginx", "karmada.io/managed": "true", "work.karmada.io/permanent-id": work_id},
                "annotations": {
                    "resourcetemplate.karmada.io/uid": "u1",
                    "work.karmada.io/conflict-resolution": "abort",
                    "work.karmada.io/name": "nginx-687f7fb96f",
                    "work.karmada.io/namespace": SPACE,
                    "resourcetemplate.karmada.io/managed-annotations": (
                        "resourcetemplate.karmada.io/managed-annotations,resourcetemplate.karmada.io/managed-labels,"
                        "resourcetemplate.karmada.io/uid,work.karmada.io/conflict-resolution,work.karmada.io/name,"
                        "work.karmada.io/namespace"
                    ),
                    "resourcetemplate.karmada.io/managed-labels": (
                        "app,karmada.io/managed,work.karmada.io/permanent-id"
                    ),
                },
            },
            "spec": deployment()["spec"],
        }
    ]


async def test_what_is_not_requested_is_left_out(works: Works) -> None:
    _, work = await works.ensure("m1", deployment())
    assert set(work["spec"]) == {"workload"}
    assert not work["metadata"].get("ownerReferences")
    assert not work["metadata"].get("annotations")


async def test_the_same_again_writes_nothing(works: Works) -> None:
    _, work = await works.ensure("m1", deployment(), annotations={"a": "b"}, suspend_dispatching=False)
    await seen(works, work)
    outcome, again = await works.ensure("m1", deployment(), annotations={"a": "b"}, suspend_dispatching=False)
    assert outcome == "unchanged"
    assert again["metadata"]["resourceVersion"] == work["metadata"]["resourceVersion"]


async def test_only_a_work_that_is_as_wanted_and_stays_is_known_to_be_there(plane: ControlPlane, works: Works) -> None:
    assert works.missing(WantedWork("m1", deployment())) is not None
    _, work = await works.ensure("m1", deployment())
    assert works.missing(WantedWork("m1", deployment())) is None
    assert works.missing(WantedWork("m1", deployment(labels={"new": "yes"}))) is not None
    assert works.missing(WantedWork("m1", deployment(), labels={"new": "yes"})) is not None
    assert works.missing(WantedWork("m1", deployment(), suspend_dispatching=True)) is not None
    await plane.client.delete(Work.gvr, work["metadata"]["name"], SPACE)
    await eventually(lambda: works.missing(WantedWork("m1", deployment())) is not None)


@cases(
    {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/service-account-token",
        "data": {"token": "eA=="},
    },
    {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "rules": None},
    {"apiVersion": "v1", "kind": "Service", "spec": {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"]}},
    {"apiVersion": "batch/v1", "kind": "Job", "spec": {"ttlSecondsAfterFinished": 5, "parallelism": 1}},
    ids=lambda resource: resource["kind"],
)
async def test_what_is_pruned_stays_equal_and_the_original_untouched(resource: Obj, works: Works) -> None:
    obj = {**resource, "metadata": {"name": "x", "uid": "u", "annotations": {"a": "b"}, "labels": {"c": "d"}}}
    before = copy_json(obj)
    _, work = await works.ensure("m1", obj)
    assert obj == before
    await seen(works, work)
    assert (await works.ensure("m1", obj)).outcome == "unchanged"


async def test_a_change_replaces_the_spec_and_keeps_what_others_added(plane: ControlPlane, works: Works) -> None:
    _, work = await works.ensure("m1", deployment(), labels={"a": "1"}, annotations={"x": "1"})
    name = work["metadata"]["name"]
    theirs = {"finalizers": [EXECUTION, "example.com/mine"], "labels": {"b": "2"}, "annotations": {"y": "2"}}
    patched = await plane.client.patch(
        Work.gvr, name, SPACE, {"metadata": theirs, "spec": {"suspendDispatching": True}}
    )
    await seen(works, patched)
    changed = deployment()
    changed["spec"]["replicas"] = 3
    outcome, after = await works.ensure("m1", changed, labels={"a": "3"}, annotations={"x": "3"})
    assert outcome == "updated"
    metadata = after["metadata"]
    assert metadata["labels"] == {**work["metadata"]["labels"], "a": "3", "b": "2"}
    assert metadata["annotations"] == {"x": "3", "y": "2"}
    assert metadata["finalizers"] == [EXECUTION, "example.com/mine"]
    assert "suspendDispatching" not in after["spec"]
    assert after["spec"]["workload"]["manifests"][0]["spec"]["replicas"] == 3


async def test_a_lost_finalizer_comes_back_in_order(plane: ControlPlane, works: Works) -> None:
    _, work = await works.ensure("m1", deployment())
    name = work["metadata"]["name"]
    patched = await plane.client.patch(Work.gvr, name, SPACE, {"metadata": {"finalizers": ["z.example.com/mine"]}})
    await seen(works, patched)
    _, after = await works.ensure("m1", deployment())
    assert after["metadata"]["finalizers"] == [EXECUTION, "z.example.com/mine"]


async def test_the_owner_is_set_once(plane: ControlPlane, works: Works) -> None:
    cluster = await plane.add_cluster("m1")
    _, work = await works.ensure("m1", deployment(), owner=cluster)
    assert work["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "cluster.karmada.io/v1alpha1",
            "kind": "Cluster",
            "name": "m1",
            "uid": cluster["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    await plane.client.patch(Work.gvr, work["metadata"]["name"], SPACE, {"metadata": {"ownerReferences": None}})
    changed = deployment(labels={"new": "yes"})
    _, after = await works.ensure("m1", changed, owner=cluster)
    assert not after["metadata"].get("ownerReferences")


async def test_a_work_on_its_way_out_is_an_error(plane: ControlPlane, works: Works) -> None:
    _, work = await works.ensure("m1", deployment())
    await plane.client.delete(Work.gvr, work["metadata"]["name"], SPACE)
    await eventually(lambda: (works.informer.list() or [{"metadata": {}}])[0]["metadata"].get("deletionTimestamp"))
    with pytest.raises(WorkBeingDeleted) as caught:
        await works.ensure("m1", deployment())
    assert str(caught.value) == f"work {SPACE}/nginx-687f7fb96f is being deleted"


class Blind:
    """An informer that has received no event since."""

    def __init__(self, obj: Obj | None = None) -> None:
        self._obj = obj

    def get(self, _key: Key) -> Obj | None:
        return self._obj


async def test_a_cache_that_is_behind_does_no_harm(plane: ControlPlane, works: Works) -> None:
    _, work = await works.ensure("m1", deployment())
    works.informer = Blind()  # type: ignore[assignment]
    assert (await works.ensure("m1", deployment())).outcome == "unchanged"
    changed = await plane.client.patch(Work.gvr, work["metadata"]["name"], SPACE, {"metadata": {"labels": {"a": "1"}}})
    works.informer = Blind(work)  # type: ignore[assignment]
    written = await works.ensure("m1", deployment(labels={"new": "yes"}))
    assert written.outcome == "updated"
    assert written.object["metadata"]["labels"] == changed["metadata"]["labels"]
    gone = {"metadata": {"finalizers": None}}
    await plane.client.patch(Work.gvr, work["metadata"]["name"], SPACE, gone)
    await plane.client.delete(Work.gvr, work["metadata"]["name"], SPACE)
    works.informer = Blind(work)  # type: ignore[assignment]
    assert (await works.ensure("m1", deployment(labels={"newer": "yes"}))).outcome == "created"


async def test_a_missing_execution_namespace_is_reported_as_such(works: Works) -> None:
    with pytest.raises(NotFound) as caught:
        await works.ensure("m9", deployment())
    assert 'namespaces "karmada-es-m9" not found' in caught.value.message


def test_a_manifest_leads_back_to_its_work_and_says_what_to_do_with_conflicts() -> None:
    manifest = manifest_of({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}, KEY, "overwrite")
    assert manifest["metadata"]["annotations"] == {
        "resourcetemplate.karmada.io/uid": "",
        "work.karmada.io/namespace": SPACE,
        "work.karmada.io/name": KEY.name,
        "work.karmada.io/conflict-resolution": "overwrite",
    }


COLLIDING = ("team-agcf", "tgf44x")
"""Names of namespaces whose hash of 32 bits is the same: so are those of all Works of equal kind and name."""


@cases(True, False, ids=["known", "not yet seen"])
async def test_an_object_whose_name_collides_with_that_of_another_gets_a_work_of_its_own(
    first_known: bool, works: Works
) -> None:
    one, other = (deployment(namespace=namespace) for namespace in COLLIDING)
    ids = [{"resourcebinding.karmada.io/permanent-id": f"id-{number}"} for number in range(2)]
    _, first = await works.ensure("m1", one, labels=ids[0])
    if first_known:
        await seen(works, first)
    outcome, second = await works.ensure("m1", other, labels=ids[1])
    assert outcome == "created"
    name = second["metadata"]["name"]
    assert first["metadata"]["name"] == "nginx-7854bf8449"
    assert name.startswith("nginx-7854bf8449-")
    assert second["spec"]["workload"]["manifests"][0]["metadata"]["annotations"]["work.karmada.io/name"] == name
    await seen(works, first)
    await seen(works, second)
    for cluster_work, obj, marks in ((first, one, ids[0]), (second, other, ids[1])):
        assert works.missing(WantedWork("m1", obj, labels=marks)) is None
        outcome, again = await works.ensure("m1", obj, labels=marks)
        assert outcome == "unchanged"
        assert meta.key(again) == meta.key(cluster_work)


async def test_a_work_keeps_its_longer_name_when_the_other_one_is_gone(plane: ControlPlane, works: Works) -> None:
    one, other = (deployment(namespace=namespace) for namespace in COLLIDING)
    _, first = await works.ensure("m1", one, finalizers=())
    _, second = await works.ensure("m1", other)
    await plane.client.delete(Work.gvr, first["metadata"]["name"], SPACE)
    await eventually(lambda: works.informer.get(Key(SPACE, first["metadata"]["name"])) is None)
    outcome, again = await works.ensure("m1", deployment(namespace=COLLIDING[1], labels={"new": "yes"}))
    assert (outcome, again["metadata"]["name"]) == ("updated", second["metadata"]["name"])


async def test_a_work_of_another_object_under_the_longer_name_too_is_an_error(works: Works) -> None:
    usual, longer = names_of_work(deployment())
    for name in (usual, longer):
        await seen(works, (await works.ensure("m1", deployment(namespace="elsewhere"), name=name)).object)
    with pytest.raises(WorkOfAnother):
        await works.ensure("m1", deployment())


@settings(max_examples=50, deadline=None)
@given(
    name=st.from_regex(r"[a-z0-9]([a-z0-9.-]{0,250}[a-z0-9])?", fullmatch=True).filter(
        lambda n: not dns1123_subdomain(n)
    )
)
def test_a_longer_name_is_a_valid_one(name: str) -> None:
    longer = longer_name(name, ("apps", "Deployment", "default", name))
    assert not dns1123_subdomain(longer)
    assert longer != longer_name(name, ("apps", "Deployment", "other", name))
