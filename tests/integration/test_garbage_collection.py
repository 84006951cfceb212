"""What becomes of objects whose owners go: the garbage collector in the real server, case by case and at random."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from karmada.kube.client.client import Client
from karmada.kube.objects.clock import RealClock
from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import (
    ACCOUNTS,
    CLUSTER_ROLES,
    CONFIG_MAPS,
    CRDS,
    DEPLOYMENTS,
    JOBS,
    NAMESPACES,
    PODS,
    REPLICA_SETS,
    SECRETS,
)
from karmada.kube.objects.types import Obj
from karmada.kube.server.app import ApiServer
from karmada.kube.server.config import ServerConfig
from karmada.kube.server.controllers.garbage_collector import GarbageCollector
from tests.support.custom_kinds import definition
from tests.support.eventually import eventually
from tests.support.objects import kube_object
from tests.support.running import run_server

WIDGETS = GVR("gc.example.com", "v1", "widgets")
KINDS = {CONFIG_MAPS: ("v1", "ConfigMap"), SECRETS: ("v1", "Secret"), ACCOUNTS: ("v1", "ServiceAccount")}
POD_SPEC = {"containers": [{"name": "c", "image": "i"}]}


class World:
    """Objects by resource and name in one namespace, and questions about them."""

    def __init__(self, server: ApiServer, client: Client, namespace: str = "default") -> None:
        self.server, self.client, self.namespace = server, client, namespace
        assert server.controllers is not None
        self.collector = server.controllers.garbage_collector

    def get(self, gvr: GVR, name: str, namespace: str | None = None) -> Obj | None:
        where = self.namespace if namespace is None else namespace
        return self.server.cache.get(gvr.group_resource, where, name)

    def gone(self, gvr: GVR, *names: str) -> bool:
        return all(self.get(gvr, name) is None for name in names)

    async def make(
        self, name: str, *owners: Obj, gvr: GVR = CONFIG_MAPS, namespace: str | None = None, **more: Any
    ) -> Obj:
        api_version, kind = KINDS[gvr]
        where = self.namespace if namespace is None else namespace
        meta = {"name": name, "namespace": where, "ownerReferences": list(owners), **more}
        return await self.client.create(gvr, {"apiVersion": api_version, "kind": kind, "metadata": meta})

    async def delete(self, name: str, policy: str = "Background", gvr: GVR = CONFIG_MAPS) -> Obj:
        return await self.client.delete(gvr, name, self.namespace, propagation=policy)

    async def settled(self) -> None:
        """The collector has seen all that was written until now, and has nothing to do."""
        for gvr in KINDS:
            owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": "nobody"}
            name = f"marker-{random.getrandbits(40):x}"
            await self.make(name, owner, gvr=gvr)
            await eventually(lambda gvr=gvr, name=name: self.gone(gvr, name))
        await eventually(lambda: self.collector.queue.idle)


async def test_it_begins_after_what_it_is_to_wait_for_and_its_start_does_not_wait(world: World) -> None:
    ready = asyncio.Event()
    collector = GarbageCollector(world.client, RealClock(), ready.wait)
    await collector.start()
    kept = await world.make("kept", owned_by(await world.make("owner")), gvr=SECRETS)
    await world.settled()
    assert not collector.graph.nodes
    ready.set()
    await eventually(lambda: kept["metadata"]["uid"] in collector.graph.nodes)
    await collector.stop()


async def test_of_objects_without_owners_nothing_is_kept_unless_their_deletion_waits(world: World) -> None:
    owner = await world.make("owner")
    child = await world.make("child", owned_by(owner, block=True), finalizers=["example.com/hold"])
    graph = world.collector.graph
    await world.settled()
    assert owner["metadata"]["uid"] not in graph.nodes
    assert [node.uid for node in graph.dependents(owner["metadata"]["uid"])] == [child["metadata"]["uid"]]
    await world.delete("owner", "Foreground")
    await eventually(lambda: owner["metadata"]["uid"] in graph.nodes)
    await world.client.patch(CONFIG_MAPS, "child", "default", {"metadata": {"finalizers": None}})
    await eventually(lambda: not {one["metadata"]["uid"] for one in (owner, child)} & graph.nodes.keys())
    assert world.gone(CONFIG_MAPS, "owner", "child")


async def test_an_object_whose_owner_is_seen_is_not_judged_before_that_goes(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.settled()
    judged: list[str] = []
    process = world.collector.process

    async def note(uid: str) -> None:
        judged.append(uid)
        await process(uid)

    monkeypatch.setattr(world.collector, "process", note)
    child = await world.make("child", owned_by(await world.make("owner")))
    await world.settled()
    assert child["metadata"]["uid"] not in judged
    await world.delete("owner")
    await eventually(lambda: world.gone(CONFIG_MAPS, "child"))
    assert child["metadata"]["uid"] in judged


async def test_an_object_that_drops_its_owners_is_kept_no_more(world: World) -> None:
    child = await world.make("child", owned_by(await world.make("owner")))
    graph = world.collector.graph
    await eventually(lambda: child["metadata"]["uid"] in graph.nodes)
    await world.client.patch(CONFIG_MAPS, "child", "default", {"metadata": {"ownerReferences": None}})
    await eventually(lambda: child["metadata"]["uid"] not in graph.nodes)
    assert world.get(CONFIG_MAPS, "child")


@pytest.fixture
def world(server: ApiServer, client: Client) -> World:
    return World(server, client)


def owned_by(owner: Obj, *, block: bool = False, **changes: Any) -> Obj:
    meta = owner["metadata"]
    reference = {
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": meta["name"], "uid": meta["uid"],
        "blockOwnerDeletion": block,
    }  # fmt: skip
    return {**reference, **changes}


async def serve(world: World, crd: Obj) -> None:
    await world.client.create(CRDS, crd)
    spec = crd["spec"]
    gvr = GVR(spec["group"], "v1", spec["names"]["plural"])
    await eventually(lambda: world.server.registry.get(gvr) is not None)


# one owner, one policy


async def test_background_the_owner_goes_at_once_and_its_dependents_after_it(world: World) -> None:
    owner = await world.make("owner")
    child = await world.make("child", owned_by(owner))
    await world.make("grandchild", owned_by(child))
    await world.make("stranger")
    answer = await world.delete("owner")
    assert answer["status"] == "Success"
    assert world.gone(CONFIG_MAPS, "owner")
    await eventually(lambda: world.gone(CONFIG_MAPS, "child", "grandchild"))
    assert world.get(CONFIG_MAPS, "stranger")


async def test_foreground_the_owner_stays_until_the_dependents_that_block_it_are_gone(world: World) -> None:
    owner = await world.make("owner")
    await world.make("blocking", owned_by(owner, block=True), finalizers=["example.com/hold"])
    await world.make("loose", owned_by(owner))
    answer = await world.delete("owner", "Foreground")
    assert answer["metadata"]["finalizers"] == ["foregroundDeletion"]
    assert "deletionTimestamp" in answer["metadata"]
    await eventually(lambda: "deletionTimestamp" in (world.get(CONFIG_MAPS, "blocking") or {})["metadata"])
    await eventually(lambda: world.gone(CONFIG_MAPS, "loose"))
    await world.settled()
    assert world.get(CONFIG_MAPS, "owner")
    await world.client.patch(CONFIG_MAPS, "blocking", "default", {"metadata": {"finalizers": None}})
    await eventually(lambda: world.gone(CONFIG_MAPS, "owner", "blocking"))


async def test_foreground_does_not_wait_for_dependents_that_do_not_block(world: World) -> None:
    owner = await world.make("owner")
    await world.make("loose", owned_by(owner), finalizers=["example.com/hold"])
    await world.delete("owner", "Foreground")
    await eventually(lambda: world.gone(CONFIG_MAPS, "owner"))
    await eventually(lambda: "deletionTimestamp" in (world.get(CONFIG_MAPS, "loose") or {})["metadata"])


async def test_foreground_goes_down_the_whole_tree_before_the_root_goes(world: World) -> None:
    root = await world.make("root")
    child = await world.make("child", owned_by(root, block=True))
    await world.make("leaf", owned_by(child, block=True), finalizers=["example.com/hold"])
    await world.delete("root", "Foreground")
    await eventually(lambda: "deletionTimestamp" in (world.get(CONFIG_MAPS, "leaf") or {})["metadata"])
    await world.settled()
    assert world.get(CONFIG_MAPS, "child")["metadata"]["finalizers"] == ["foregroundDeletion"]
    assert world.get(CONFIG_MAPS, "root")
    await world.client.patch(CONFIG_MAPS, "leaf", "default", {"metadata": {"finalizers": None}})
    await eventually(lambda: world.gone(CONFIG_MAPS, "root", "child", "leaf"))


async def test_foreground_ends_when_a_blocking_dependent_drops_its_owner_reference(world: World) -> None:
    owner = await world.make("owner")
    await world.make("blocking", owned_by(owner, block=True), finalizers=["example.com/hold"])
    await world.delete("owner", "Foreground")
    await eventually(lambda: "deletionTimestamp" in (world.get(CONFIG_MAPS, "blocking") or {})["metadata"])
    await world.settled()
    await world.client.patch(CONFIG_MAPS, "blocking", "default", {"metadata": {"ownerReferences": None}})
    await eventually(lambda: world.gone(CONFIG_MAPS, "owner"))
    assert world.get(CONFIG_MAPS, "blocking")


async def test_foreground_ends_when_the_dependent_has_another_owner_that_stays(world: World) -> None:
    going, staying = await world.make("going"), await world.make("staying")
    await world.make("shared", owned_by(going, block=True), owned_by(staying, block=True))
    await world.delete("going", "Foreground")
    await eventually(lambda: world.gone(CONFIG_MAPS, "going"))
    shared = world.get(CONFIG_MAPS, "shared")
    assert [o["name"] for o in shared["metadata"]["ownerReferences"]] == ["staying"]
    assert "deletionTimestamp" not in shared["metadata"]


async def test_foreground_of_objects_that_own_each_other_ends(world: World) -> None:
    first = await world.make("first")
    second = await world.make("second", owned_by(first, block=True))
    references = [owned_by(second, block=True)]
    await world.client.patch(CONFIG_MAPS, "first", "default", {"metadata": {"ownerReferences": references}})
    await world.settled()
    await world.delete("first", "Foreground")
    await eventually(lambda: world.gone(CONFIG_MAPS, "first", "second"))


async def test_orphan_the_dependents_forget_their_owner_and_stay(world: World) -> None:
    owner = await world.make("owner")
    await world.make("child", owned_by(owner, block=True))
    await world.make("secret", owned_by(owner), gvr=SECRETS)
    answer = await world.delete("owner", "Orphan")
    assert answer["metadata"]["finalizers"] == ["orphan"]
    await eventually(lambda: world.gone(CONFIG_MAPS, "owner"))
    await world.settled()
    assert "ownerReferences" not in world.get(CONFIG_MAPS, "child")["metadata"]
    assert "ownerReferences" not in world.get(SECRETS, "secret")["metadata"]


async def test_a_job_deleted_without_a_policy_leaves_its_pods_and_with_background_takes_them_along(
    world: World,
) -> None:
    for name, policy, stays in (("kept", "", True), ("taken", "Background", False)):
        spec = {"template": {"spec": {**POD_SPEC, "restartPolicy": "Never"}}}
        job = await world.client.create(
            JOBS,
            {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": "default"}, "spec": spec},
        )
        meta = {"name": f"{name}-pod", "namespace": "default", "ownerReferences": [owned_by(job)]}
        await world.client.create(PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": POD_SPEC})
        await eventually(lambda uid=job["metadata"]["uid"]: world.collector.graph.dependents(uid))
        await world.client.delete(JOBS, name, "default", propagation=policy)
        await eventually(lambda name=name: world.gone(JOBS, name))
        if stays:
            assert "ownerReferences" not in world.get(PODS, f"{name}-pod")["metadata"]
        else:
            await eventually(lambda name=name: world.gone(PODS, f"{name}-pod"))


async def test_a_deployment_takes_replica_sets_and_pods_along(world: World) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": POD_SPEC}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    meta: Obj = {"name": "web", "namespace": "default"}
    deployment = await world.client.create(
        DEPLOYMENTS, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}
    )
    meta = {
        "name": "web-1",
        "namespace": "default",
        "ownerReferences": [owned_by(deployment, controller=True, block=True)],
    }
    replica_set = await world.client.create(
        REPLICA_SETS, {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": meta, "spec": spec}
    )
    meta = {
        "name": "web-1-a",
        "namespace": "default",
        "ownerReferences": [owned_by(replica_set, controller=True, block=True)],
    }
    await world.client.create(PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": POD_SPEC})
    await world.client.delete(DEPLOYMENTS, "web", "default", propagation="Foreground")
    await eventually(lambda: world.gone(DEPLOYMENTS, "web") and world.gone(PODS, "web-1-a"))
    assert world.gone(REPLICA_SETS, "web-1")


# owners that are not what they seem


async def test_an_object_whose_owner_never_existed_is_deleted(world: World) -> None:
    await world.make("lost", {"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": "no-such-uid"})
    await eventually(lambda: world.gone(CONFIG_MAPS, "lost"))


async def test_an_owner_of_the_same_name_but_another_uid_does_not_count(world: World) -> None:
    owner = await world.make("owner")
    await world.make("lost", owned_by(owner, uid="the-uid-of-its-predecessor"))
    await eventually(lambda: world.gone(CONFIG_MAPS, "lost"))
    assert world.get(CONFIG_MAPS, "owner")


async def test_an_owner_that_came_back_under_its_name_is_not_the_owner_any_more(world: World) -> None:
    owner = await world.make("owner")
    await world.make("child", owned_by(owner))
    await world.settled()
    await world.delete("owner")
    await world.make("owner")
    await eventually(lambda: world.gone(CONFIG_MAPS, "child"))


async def test_a_right_uid_under_a_wrong_name_does_not_count(world: World) -> None:
    owner = await world.make("owner")
    await world.make("lost", owned_by(owner, name="somebody-else"))
    await eventually(lambda: world.gone(CONFIG_MAPS, "lost"))


async def test_an_owner_in_another_namespace_counts_as_absent(world: World) -> None:
    await world.client.create(NAMESPACES, kube_object("v1", "Namespace", "elsewhere"))
    owner = await world.make("owner", namespace="elsewhere")
    await world.make("lost", owned_by(owner))
    await eventually(lambda: world.gone(CONFIG_MAPS, "lost"))
    assert world.get(CONFIG_MAPS, "owner", "elsewhere")


async def test_a_cluster_scoped_owner_owns_in_every_namespace(world: World) -> None:
    role = await world.client.create(
        CLUSTER_ROLES,
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "owner"}},
    )
    await world.make("child", owned_by(role))
    await world.settled()
    assert world.get(CONFIG_MAPS, "child")
    await world.client.delete(CLUSTER_ROLES, "owner")
    await eventually(lambda: world.gone(CONFIG_MAPS, "child"))


async def test_a_cluster_scoped_object_with_a_namespaced_owner_is_left_alone(world: World) -> None:
    owner = await world.make("owner")
    for name, reference in (("of-existing", owned_by(owner)), ("of-missing", owned_by(owner, uid="missing"))):
        role = kube_object("rbac.authorization.k8s.io/v1", "ClusterRole", name, ownerReferences=[reference])
        made = await world.client.create(CLUSTER_ROLES, role)
        await eventually(lambda uid=made["metadata"]["uid"]: uid in world.collector.graph.nodes)
    await eventually(lambda: world.collector.queue.idle)
    assert world.get(CLUSTER_ROLES, "of-existing", "")
    assert world.get(CLUSTER_ROLES, "of-missing", "")


async def test_an_object_of_several_owners_lives_as_long_as_one_of_them(world: World) -> None:
    first, second = await world.make("first"), await world.make("second")
    await world.make("child", owned_by(first), owned_by(second))
    await world.settled()
    await world.delete("first")
    await eventually(lambda: len((world.get(CONFIG_MAPS, "child") or {})["metadata"]["ownerReferences"]) == 1)
    await world.delete("second")
    await eventually(lambda: world.gone(CONFIG_MAPS, "child"))


async def test_an_owner_of_an_unknown_kind_costs_nobody_anything(world: World) -> None:
    reference = {"apiVersion": "nowhere.example.com/v1", "kind": "Ghost", "name": "x", "uid": "y"}
    made = await world.make("kept", reference)
    await eventually(lambda: made["metadata"]["uid"] in world.collector.graph.nodes)
    await eventually(lambda: world.collector.queue.retries(made["metadata"]["uid"]) > 1)
    assert world.get(CONFIG_MAPS, "kept")


# custom resources


async def test_a_kind_added_at_run_time_owns_and_is_owned(world: World) -> None:
    await serve(world, definition(WIDGETS.group, "Widget"))
    meta: Obj = {"name": "big", "namespace": "default"}
    big = await world.client.create(WIDGETS, {"apiVersion": "gc.example.com/v1", "kind": "Widget", "metadata": meta})
    await world.make("of-widget", owned_by(big, block=True))
    await world.make("secret-of-widget", owned_by(big), gvr=SECRETS)
    meta = {"name": "small", "namespace": "default", "ownerReferences": [owned_by(big, block=True)]}
    await world.client.create(WIDGETS, {"apiVersion": "gc.example.com/v1", "kind": "Widget", "metadata": meta})
    await world.settled()
    assert world.get(CONFIG_MAPS, "of-widget")
    await world.client.delete(WIDGETS, "big", "default", propagation="Foreground")
    await eventually(lambda: world.gone(WIDGETS, "big", "small"))
    await eventually(lambda: world.gone(CONFIG_MAPS, "of-widget") and world.gone(SECRETS, "secret-of-widget"))


async def test_deleting_a_definition_takes_what_its_objects_own_along(world: World) -> None:
    await serve(world, definition(WIDGETS.group, "Widget"))
    widget = kube_object("gc.example.com/v1", "Widget", "w", "default")
    owner = await world.client.create(WIDGETS, widget)
    await world.make("child", owned_by(owner))
    await world.settled()
    await world.client.delete(CRDS, "widgets.gc.example.com")
    await eventually(lambda: world.get(CRDS, "widgets.gc.example.com", "") is None)
    await eventually(lambda: world.gone(CONFIG_MAPS, "child"))


async def test_a_definition_that_goes_and_comes_back_is_followed_again(world: World) -> None:
    for _ in range(2):
        await serve(world, definition(WIDGETS.group, "Widget"))
        widget = kube_object("gc.example.com/v1", "Widget", "w", "default")
        owner = await world.client.create(WIDGETS, widget)
        await world.make("child", owned_by(owner))
        await world.client.delete(WIDGETS, "w", "default")
        await eventually(lambda: world.gone(CONFIG_MAPS, "child"))
        await world.client.delete(CRDS, "widgets.gc.example.com")
        await eventually(lambda: world.get(CRDS, "widgets.gc.example.com", "") is None)
        await eventually(lambda: world.server.registry.get(WIDGETS) is None)


# random graphs against a model


@dataclass
class Model:
    """What should be left: each object's name → kind and the names of the owners it still refers to."""

    owners: dict[str, list[str]] = field(default_factory=dict)
    kinds: dict[str, GVR] = field(default_factory=dict)

    def delete(self, name: str, policy: str) -> None:
        if policy == "Orphan":
            for refs in self.owners.values():
                if name in refs:
                    refs.remove(name)
        del self.owners[name]
        self.collect()

    def collect(self) -> None:
        while True:
            lost = [n for n, refs in self.owners.items() if refs and not any(r in self.owners for r in refs)]
            if not lost:
                break
            for name in lost:
                del self.owners[name]
        for refs in self.owners.values():
            refs[:] = [r for r in refs if r in self.owners]


async def random_world(world: World, chance: random.Random, count: int) -> Model:
    model = Model()
    made: dict[str, Obj] = {}
    for number in range(count):
        name = f"o{number}"
        chosen = chance.sample(sorted(made), min(len(made), chance.choice((0, 1, 1, 1, 2, 3))))
        model.owners[name] = chosen
        model.kinds[name] = chance.choice(sorted(KINDS))
        references = [owned_by(made[owner], block=chance.random() < 0.7) for owner in chosen]
        made[name] = await world.make(name, *references, gvr=model.kinds[name])
    return model


def left(world: World, model: Model) -> dict[str, list[str]]:
    """What is there of the model's objects, and the owners each refers to."""
    found = {}
    for name, gvr in model.kinds.items():
        obj = world.get(gvr, name)
        if obj is not None:
            found[name] = [o["name"] for o in obj["metadata"].get("ownerReferences") or []]
    return found


async def agree(world: World, model: Model) -> None:
    await eventually(lambda: left(world, model) == model.owners, show=lambda: (left(world, model), model.owners))
    await world.settled()
    assert left(world, model) == model.owners


@pytest.mark.parametrize("seed", range(6))
async def test_random_graphs_deleted_piece_by_piece_end_as_the_model_says(world: World, seed: int) -> None:
    chance = random.Random(seed)
    model = await random_world(world, chance, 25)
    await world.settled()
    for _ in range(6):
        if not model.owners:
            break
        name = chance.choice(sorted(model.owners))
        policy = chance.choice(("Background", "Foreground", "Orphan"))
        await world.delete(name, policy, model.kinds[name])
        model.delete(name, policy)
        await agree(world, model)


@pytest.mark.parametrize("seed", range(100, 104))
async def test_random_graphs_deleted_in_one_go_end_as_the_model_says(world: World, seed: int) -> None:
    chance = random.Random(seed)
    model = await random_world(world, chance, 40)
    doomed = chance.sample(sorted(model.owners), 12)
    for name in doomed:
        try:
            await world.delete(name, chance.choice(("Background", "Foreground")), model.kinds[name])
        except NotFound:
            assert world.gone(model.kinds[name], name)  # collected before we got there
    for name in doomed:
        model.owners.pop(name, None)
    model.collect()
    await agree(world, model)


# restarts


async def test_what_a_stopped_server_left_undone_is_done_after_the_next_start(
    certificates: Path, tmp_path: Path
) -> None:
    """The first server runs no controllers, so that every deletion stops half-way, as in a crash."""
    storage = f"sqlite://{tmp_path}/state.db"
    config = ServerConfig(data_dir=certificates, storage=storage, port=0, controllers=False, accept_loss=True)
    first = ApiServer(config)
    await first.start()
    client = first.client(user_agent="tests")

    async def make(name: str, *owners: Obj) -> Obj:
        meta = {"name": name, "namespace": "default", "ownerReferences": list(owners)}
        return await client.create(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})

    for policy in ("Background", "Foreground", "Orphan"):
        owner = await make(f"{policy.lower()}-owner")
        await make(f"{policy.lower()}-child", owned_by(owner, block=True))
        await client.delete(CONFIG_MAPS, f"{policy.lower()}-owner", "default", propagation=policy)
    namespace = kube_object("v1", "Namespace", "going")
    await client.create(NAMESPACES, namespace)
    await client.create(CONFIG_MAPS, kube_object("v1", "ConfigMap", "c", "going"))
    await client.delete(NAMESPACES, "going")
    await first.stop()

    async with run_server(ApiServer(ServerConfig(data_dir=certificates, storage=storage, port=0))) as second:
        world = World(second, second.client(user_agent="tests"))
        await eventually(lambda: world.gone(CONFIG_MAPS, "background-child", "foreground-owner", "foreground-child"))
        await eventually(lambda: world.gone(CONFIG_MAPS, "orphan-owner"))
        assert "ownerReferences" not in world.get(CONFIG_MAPS, "orphan-child")["metadata"]
        await eventually(lambda: world.get(NAMESPACES, "going", "") is None)
