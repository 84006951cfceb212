"""Namespaces go to every cluster by themselves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from karmada.api.cluster import Cluster
from karmada.api.policy import ClusterOverridePolicy
from karmada.api.work import Work
from karmada.controllers.cluster.controller import Clusters
from karmada.controllers.namespace_sync import (
    NamespaceSync,
    Skipped,
    named_namespaces,
    propagates_itself,
)
from karmada.kube.objects.errors import Forbidden
from karmada.kube.objects.gvrs import NAMESPACES
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key
from karmada.overrides.hook import Overridden
from tests.support.cases import cases
from tests.support.control_plane import ControlPlane, running
from tests.support.eventually import eventually
from tests.support.objects import kube_object

SKIP = "namespace.karmada.io/skip-auto-propagation"
TEST_WORK = "test-69fd499b4c"


@cases(
    ("default", True),
    ("kube-system", True),
    ("kube-public", True),
    ("karmada-system", True),
    ("karmada-cluster", True),
    ("karmada-es-m1", True),
    ("mine", False),
    ("my-kube-system", False),
    ("defaults", False),
    ("team-a", True),
    ("team-ab", False),
)
def test_some_namespaces_are_never_brought_anywhere(name: str, skipped: bool) -> None:
    assert Skipped(("kube-.*", "team-.")).__call__(name) is skipped


@cases(
    ({}, True),
    ({"labels": {SKIP: "true"}}, False),
    ({"labels": {SKIP: "TRUE"}}, False),
    ({"labels": {SKIP: "false"}}, True),
    ({"labels": {SKIP: "yes"}}, True),
    ({"deletionTimestamp": "2023-11-14T22:13:20Z"}, False),
)
def test_a_namespace_may_be_marked_to_stay(metadata: Obj, goes: bool) -> None:
    assert propagates_itself({"metadata": {"name": "test", **metadata}}) is goes


@cases(
    (None, set()),
    ([{"apiVersion": "v1", "kind": "Namespace"}], None),
    ([{"apiVersion": "v1", "kind": "Namespace", "name": "a"}, {"apiVersion": "v1", "kind": "Pod"}], {"a"}),
    ([{"apiVersion": "v2", "kind": "Namespace"}], set()),
    ([{"apiVersion": "v1", "kind": "Namespace", "name": "a"}, {"apiVersion": "v1", "kind": "Namespace"}], None),
)
def test_a_policy_selects_namespaces_by_name_or_all(selectors: list[Obj] | None, names: set[str] | None) -> None:
    assert named_namespaces({"spec": {"resourceSelectors": selectors}}) == names


# in a control plane


def override(obj: Obj, cluster: str) -> Overridden:
    """As policies would: a label with the name of the cluster, for namespaces that opt in."""
    labels = obj["metadata"].get("labels") or {}
    if "stamp" not in labels:
        return Overridden(obj, {})
    changed = {**obj, "metadata": {**obj["metadata"], "labels": {**labels, "stamp": cluster}}}
    return Overridden(changed, {"policy.karmada.io/applied-cluster-overrides": "[]"})


@pytest.fixture
async def plane(folder: Path) -> AsyncIterator[ControlPlane]:
    async with running(folder, lambda context: [Clusters(context), NamespaceSync(context, override)]) as plane:
        yield plane


async def make(plane: ControlPlane, name: str, **metadata: object) -> Obj:
    return await plane.client.create(
        NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, **metadata}}
    )


def works(plane: ControlPlane) -> set[tuple[str, str]]:
    """(cluster, namespace) of every Work that carries a namespace."""
    return {
        (
            work["metadata"]["namespace"].removeprefix("karmada-es-"),
            work["spec"]["workload"]["manifests"][0]["metadata"]["name"],
        )
        for work in plane.context.informers.of(Work.gvr).list()
    }


def cached(plane: ControlPlane, cluster: str = "m1", name: str = TEST_WORK) -> Obj | None:
    return plane.context.informers.of(Work.gvr).get(Key(f"karmada-es-{cluster}", name))


def labels(plane: ControlPlane, cluster: str = "m1") -> dict[str, str]:
    work = cached(plane, cluster)
    return {} if work is None else work["spec"]["workload"]["manifests"][0]["metadata"]["labels"]


async def quiet(plane: ControlPlane) -> None:
    controllers = plane.manager.controllers.values()
    await eventually(lambda: all(controller.queue.idle for controller in controllers))


async def test_a_namespace_goes_to_every_cluster_and_a_cluster_gets_every_namespace(plane: ControlPlane) -> None:
    await make(plane, "early")
    await plane.add_cluster("m1")
    await eventually(lambda: works(plane) == {("m1", "early")})
    await plane.add_cluster("m2")
    await make(plane, "test")
    await eventually(lambda: works(plane) == {(c, n) for c in ("m1", "m2") for n in ("early", "test")})


async def test_the_work_of_a_namespace(plane: ControlPlane) -> None:
    namespace = await make(plane, "test", labels={"team": "a"})
    await plane.add_cluster("m1")
    work = await eventually(lambda: cached(plane))
    assert work["metadata"]["finalizers"] == ["karmada.io/execution-controller"]
    assert set(work["metadata"]["labels"]) == {"work.karmada.io/permanent-id"}
    assert not work["metadata"].get("annotations")
    (owner,) = work["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("Namespace", namespace["metadata"]["uid"], True)
    assert set(work["spec"]) == {"workload"}
    (manifest,) = work["spec"]["workload"]["manifests"]
    assert (manifest["apiVersion"], manifest["kind"]) == ("v1", "Namespace")
    assert manifest["metadata"]["labels"]["team"] == "a"
    assert "uid" not in manifest["metadata"]
    assert "status" not in manifest


async def test_a_change_of_the_namespace_arrives(plane: ControlPlane) -> None:
    await plane.add_cluster("m1")
    await make(plane, "test")
    await eventually(lambda: cached(plane))
    await plane.client.patch(NAMESPACES, "test", "", {"metadata": {"labels": {"team": "b"}}})
    await eventually(lambda: labels(plane).get("team") == "b")


async def test_a_namespace_with_the_mark_stays_and_what_was_made_before_is_kept(plane: ControlPlane) -> None:
    await plane.add_cluster("m1")
    await make(plane, "kept")
    await make(plane, "test", labels={SKIP: "True"})
    await eventually(lambda: works(plane) == {("m1", "kept")})
    await plane.client.patch(NAMESPACES, "kept", "", {"metadata": {"labels": {SKIP: "true"}}})
    await plane.add_cluster("m2")
    await make(plane, "another")
    await eventually(lambda: works(plane) == {("m1", "kept"), ("m1", "another"), ("m2", "another")})
    await quiet(plane)
    assert works(plane) == {("m1", "kept"), ("m1", "another"), ("m2", "another")}


async def test_the_works_of_a_deleted_namespace_go(plane: ControlPlane) -> None:
    await plane.add_cluster("m1")
    await make(plane, "test")
    await eventually(lambda: cached(plane))
    await plane.client.delete(NAMESPACES, "test")
    deleted = await plane.until(lambda: (cached(plane) or {"metadata": {}})["metadata"].get("deletionTimestamp"))
    assert deleted


async def test_a_cluster_on_its_way_out_gets_nothing_more(plane: ControlPlane) -> None:
    await plane.add_cluster("m1")
    await make(plane, "early")
    await eventually(lambda: works(plane))
    await plane.client.delete(Cluster.gvr, "m1")
    clusters = plane.context.informers.of(Cluster.gvr)
    await eventually(lambda: (clusters.get(Key("", "m1")) or {"metadata": {}})["metadata"].get("deletionTimestamp"))
    await make(plane, "test")
    await eventually(lambda: plane.context.informers.of(NAMESPACES).get(Key("", "test")))
    await quiet(plane)
    assert works(plane) == {("m1", "early")}
    assert plane.manager.controllers["namespace-sync-controller"].queue.retries(Key("", "test")) == 0


async def test_overrides_are_applied_for_each_cluster_and_noted(plane: ControlPlane) -> None:
    for name in ("m1", "m2"):
        await plane.add_cluster(name)
    await make(plane, "test", labels={"stamp": ""})
    await eventually(lambda: labels(plane, "m1").get("stamp") == "m1" and labels(plane, "m2").get("stamp") == "m2")
    work = cached(plane)
    assert work is not None
    assert work["metadata"]["annotations"] == {"policy.karmada.io/applied-cluster-overrides": "[]"}


@cases(
    ([{"apiVersion": "v1", "kind": "Namespace", "name": "test"}], {"test"}),
    ([{"apiVersion": "v1", "kind": "Namespace"}], {"test", "other"}),
)
async def test_a_policy_requeues_the_namespaces_that_it_selects(
    selectors: list[Obj], again: set[str], plane: ControlPlane
) -> None:
    namespaces = plane.context.informers.of(NAMESPACES)
    for name in ("test", "other"):
        await make(plane, name)
        await eventually(lambda name=name: namespaces.get(Key("", name)))
    await quiet(plane)
    controller = plane.manager.controllers["namespace-sync-controller"]
    looked_at: set[str] = set()
    reconcile = controller.reconciler.reconcile

    async def note(key: Key) -> object:
        looked_at.add(key.name)
        return await reconcile(key)

    controller.reconciler.reconcile = note  # type: ignore[method-assign, assignment]
    policy = kube_object(ClusterOverridePolicy.gvk.api_version, "ClusterOverridePolicy", "p") | {
        "spec": {"resourceSelectors": selectors, "overrideRules": [{"overriders": {"plaintext": []}}]}
    }
    await plane.client.create(ClusterOverridePolicy.gvr, policy)
    await eventually(lambda: looked_at >= again)
    assert looked_at & {"test", "other"} == again


async def test_one_cluster_that_refuses_does_not_hold_up_the_others(
    plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("m1", "m2"):
        await plane.add_cluster(name)
    await quiet(plane)
    client = plane.context.client
    create = client.create

    async def refuse(kind: object, obj: Obj, *args: object, **kwargs: object) -> Obj:
        if kind == Work.gvr and obj["metadata"]["namespace"] == "karmada-es-m1":
            raise Forbidden("not today")
        return await create(kind, obj, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(client, "create", refuse)
    controller = plane.manager.controllers["namespace-sync-controller"]
    failures: list[str] = []
    reconcile = controller.reconciler.reconcile

    async def note(key: Key) -> object:
        try:
            return await reconcile(key)
        except Exception as error:
            failures.append(str(error))
            raise

    controller.reconciler.reconcile = note  # type: ignore[method-assign, assignment]
    await make(plane, "test")
    await eventually(lambda: failures and works(plane) == {("m2", "test")})
    assert failures[0] == "sync namespace(test) to cluster(m1) failed due to: not today"
    monkeypatch.setattr(client, "create", create)
    await plane.until(lambda: works(plane) == {("m1", "test"), ("m2", "test")})


async def test_looking_again_writes_nothing(plane: ControlPlane) -> None:
    await plane.add_cluster("m1")
    await make(plane, "test")
    before = await eventually(lambda: cached(plane))
    controller = plane.manager.controllers["namespace-sync-controller"]
    controller.add(Key("", "test"))
    controller.add(Key("m1", ""))
    await quiet(plane)
    after = await plane.client.get(Work.gvr, TEST_WORK, "karmada-es-m1")
    assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
