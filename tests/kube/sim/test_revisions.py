from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from karmada.kube.objects.gvrs import DAEMON_SETS
from karmada.kube.objects.selectors import labels_from
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Reconciler
from karmada.kube.sim.context import Context
from karmada.kube.sim.controllers.podcontrol import PodControl
from karmada.kube.sim.controllers.revisions import (
    CONTROLLER_REVISIONS,
    Revisions,
    expendable,
    hash_of,
    in_order,
    patch_of,
    template_of,
)
from tests.kube.sim.harness import Harness, running

SELECTOR = labels_from({"matchLabels": {"app": "a"}})


class Keeper(Reconciler):
    """Holds the revisions under test, so that their informer runs."""

    name = "keeper"
    watches = ()

    def __init__(self, context: Context) -> None:
        control = PodControl(context, "keeper")
        self.revisions = Revisions(context, control, lambda name, hash_: {"is": name, "hash": hash_})

    async def reconcile(self, key: object) -> None: ...


@asynccontextmanager
async def kept(folder: Path) -> AsyncIterator[tuple[Harness, Revisions, Obj]]:
    """A cluster, revisions, and a DaemonSet to have them."""
    keepers: list[Keeper] = []

    def parts(context: Context) -> list[Keeper]:
        keepers.append(Keeper(context))
        return keepers

    async with running(folder, parts) as cluster:
        workload = await cluster.client.create(DAEMON_SETS, daemon_set(), "default")
        yield cluster, keepers[0].revisions, workload


def daemon_set(image: str = "nginx:1") -> Obj:
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": image}]}}
    spec = {"selector": {"matchLabels": {"app": "a"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "d"}, "spec": spec}


def with_image(workload: Obj, image: str) -> Obj:
    template = {**workload["spec"]["template"], "spec": {"containers": [{"name": "c", "image": image}]}}
    return {**workload, "spec": {**workload["spec"], "template": template}}


async def test_a_template_is_kept_as_the_patch_that_brings_it_back(tmp_path: Path) -> None:
    async with kept(tmp_path) as (cluster, revisions, workload):
        made, collisions = await revisions.latest(workload, [], 0)
        (stored,) = (await cluster.client.list_all(CONTROLLER_REVISIONS, "default")).items
        metadata = stored["metadata"]
        assert (made, collisions) == (stored, 0)
        assert metadata["name"] == f"d-{hash_of(patch_of(workload), 0)}"
        assert metadata["labels"] == {"app": "a", "is": metadata["name"], "hash": metadata["name"].removeprefix("d-")}
        assert metadata["ownerReferences"][0]["uid"] == workload["metadata"]["uid"]
        assert metadata["ownerReferences"][0]["controller"] is True
        assert metadata["annotations"] == workload["metadata"]["annotations"]
        assert stored["revision"] == 1
        assert stored["data"] == {"spec": {"template": {**workload["spec"]["template"], "$patch": "replace"}}}
        assert template_of(stored) == workload["spec"]["template"]


async def test_an_old_template_takes_its_revision_again_and_makes_it_the_newest(tmp_path: Path) -> None:
    async with kept(tmp_path) as (_, revisions, workload):
        first, _ = await revisions.latest(workload, [], 0)
        second, _ = await revisions.latest(with_image(workload, "nginx:2"), [first], 0)
        again, _ = await revisions.latest(workload, [first, second], 0)
        assert [r["revision"] for r in (first, second, again)] == [1, 2, 3]
        assert again["metadata"]["uid"] == first["metadata"]["uid"]
        assert await revisions.of(workload, SELECTOR) == [second, again]
        assert (await revisions.latest(workload, [second, again], 0)).revision is again


async def test_a_name_that_is_taken_raises_the_collision_count(tmp_path: Path) -> None:
    async with kept(tmp_path) as (cluster, revisions, workload):
        data = patch_of(workload)
        foreign = {"metadata": {"name": f"d-{hash_of(data, 0)}"}, "data": {"other": 1}, "revision": 1}
        base = {"apiVersion": "apps/v1", "kind": "ControllerRevision"}
        await cluster.client.create(CONTROLLER_REVISIONS, {**base, **foreign}, "default")
        made, collisions = await revisions.latest(workload, [], 0)
        assert collisions == 1
        assert made["metadata"]["name"] == f"d-{hash_of(data, 1)}" != f"d-{hash_of(data, 0)}"


async def test_a_revision_made_before_a_restart_is_found_again(tmp_path: Path) -> None:
    async with kept(tmp_path) as (_, revisions, workload):
        first = await revisions.latest(workload, [], 0)
        assert await revisions.latest(workload, [], 0) == first


async def test_matching_revisions_without_a_controller_are_adopted(tmp_path: Path) -> None:
    async with kept(tmp_path) as (cluster, revisions, workload):
        made, _ = await revisions.latest(workload, [], 0)
        name = made["metadata"]["name"]
        orphan = await cluster.client.patch(
            CONTROLLER_REVISIONS, name, "default", {"metadata": {"ownerReferences": None}}
        )
        await cluster.context.until_seen(cluster.context.informers.of(CONTROLLER_REVISIONS), [orphan])
        (adopted,) = await revisions.of(workload, SELECTOR)
        assert adopted["metadata"]["ownerReferences"][0]["uid"] == workload["metadata"]["uid"]


async def test_history_beyond_the_limit_is_removed_oldest_first(tmp_path: Path) -> None:
    async with kept(tmp_path) as (_, revisions, workload):
        known: list[Obj] = []
        for number in range(1, 6):
            known.append((await revisions.latest(with_image(workload, f"nginx:{number}"), known, 0)).revision)
        limited = {**workload, "spec": {**workload["spec"], "revisionHistoryLimit": 2}}
        await revisions.trim(limited, known, {known[0]["metadata"]["name"], known[-1]["metadata"]["name"]})
        assert [r["revision"] for r in await revisions.of(workload, SELECTOR)] == [1, 3, 4, 5]


def revision(number: int) -> Obj:
    return {"metadata": {"name": f"r{number}"}, "revision": number}


@given(st.lists(st.integers(1, 50), unique=True), st.integers(0, 10), st.sets(st.integers(1, 50)))
def test_what_is_expendable_is_unused_older_than_what_stays_and_no_more_than_needed(
    numbers: list[int], limit: int, used: set[int]
) -> None:
    live = {f"r{number}" for number in used}
    gone = [r["revision"] for r in expendable([revision(n) for n in numbers], live, limit)]
    unused = [number for number in numbers if number not in used]
    stay = [number for number in unused if number not in gone]
    assert not set(gone) & used
    assert len(stay) == min(limit, len(unused))
    assert gone == sorted(gone)
    assert all(old < kept_one for old in gone for kept_one in stay)


def test_revisions_are_ordered_by_number() -> None:
    assert [r["revision"] for r in in_order([revision(3), revision(1), revision(2)])] == [1, 2, 3]


def test_the_hash_depends_on_the_data_and_on_collisions_not_on_the_order_of_keys() -> None:
    assert hash_of({"a": 1, "b": 2}, 0) == hash_of({"b": 2, "a": 1}, 0)
    assert len({hash_of({"a": 1}, 0), hash_of({"a": 2}, 0), hash_of({"a": 1}, 1), hash_of({"a": 1}, 2)}) == 4
