"""Clusters leave: with what cleans up behind them, without it, and by force."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from karmada.api.cluster import Cluster
from karmada.api.work import Work
from karmada.controllers.cluster.controller import Clusters
from karmada.controllers.context import Context
from karmada.joining.join import JoinError, Joining, join
from karmada.joining.unjoin import clean_up_member, unjoin
from karmada.kube.client.client import Client
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects.clock import FakeClock, RealClock
from karmada.kube.objects.errors import Forbidden
from karmada.kube.objects.gvrs import ACCOUNTS, CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, NAMESPACES, SECRETS
from karmada.kube.objects.meta import is_owned_by
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Reconciler
from karmada.kube.runtime.keys import Key
from tests.support.control_plane import ControlPlane, running
from tests.support.eventually import eventually
from tests.support.member_server import MemberServer, member_server
from tests.support.objects import kube_object

ROLE = "karmada-controller-manager:karmada-m1"


def with_members(context: Context) -> list[Reconciler]:
    """The members follow their clusters although no controller here uses them."""
    assert context.members
    return [Clusters(context)]


@pytest.fixture
async def plane(folder: Path) -> AsyncIterator[ControlPlane]:
    async with running(folder / "control-plane", with_members, clock=RealClock()) as plane:
        yield plane


@pytest.fixture
async def member(folder: Path) -> AsyncIterator[MemberServer]:
    async with member_server(folder / "member") as member:
        yield member


async def joined(plane: ControlPlane, member: MemberServer) -> None:
    await join(plane.client, member.client, Joining.to(member.config, "m1"))
    clusters, secrets = plane.context.informers.of(Cluster.gvr), plane.context.informers.of(SECRETS)
    await eventually(lambda: (clusters.get(Key("", "m1")) or {"metadata": {}})["metadata"].get("finalizers"))
    cluster = clusters.get(Key("", "m1"))
    assert cluster is not None
    await eventually(lambda: is_owned_by(secrets.get(Key("karmada-cluster", "m1")) or {"metadata": {}}, cluster))


async def held(plane: ControlPlane, name: str = "w") -> None:
    """A Work that nobody lets go."""
    work = kube_object(
        "work.karmada.io/v1alpha1", "Work", name, "karmada-es-m1", finalizers=["karmada.io/execution-controller"]
    ) | {"spec": {"workload": {"manifests": []}}}
    await plane.client.create(Work.gvr, work)


async def test_a_cluster_leaves_nothing_behind(plane: ControlPlane, member: MemberServer) -> None:
    await joined(plane, member)
    steps: list[str] = []
    await unjoin(plane.client, "m1", member=member.client, progress=steps.append)
    assert await plane.get(Cluster.gvr, "m1") is None
    assert await plane.get(NAMESPACES, "karmada-es-m1") is None
    assert await member.get(CLUSTER_ROLE_BINDINGS, ROLE) is None
    assert await member.get(CLUSTER_ROLES, ROLE) is None
    assert await member.get(ACCOUNTS, "karmada-m1", "karmada-cluster") is None
    namespace = await member.get(NAMESPACES, "karmada-cluster")
    assert namespace is None or namespace["metadata"].get("deletionTimestamp")
    assert len(steps) == 2
    secrets = plane.context.informers.of(SECRETS)
    await eventually(lambda: not secrets.list("karmada-cluster"))  # they belonged to the Cluster


async def test_without_a_way_to_the_member_it_is_left_alone(plane: ControlPlane, member: MemberServer) -> None:
    await joined(plane, member)
    await unjoin(plane.client, "m1")
    assert await member.get(ACCOUNTS, "karmada-m1", "karmada-cluster")


async def test_a_cluster_may_join_again_at_once_and_is_reached_with_its_new_token(
    plane: ControlPlane, member: MemberServer
) -> None:
    members, secrets = plane.context.members, plane.context.informers.of(SECRETS)

    def token() -> str:
        secret = secrets.get(Key("karmada-cluster", "m1"))
        assert secret is not None
        return base64.b64decode(secret["data"]["token"]).decode()

    for _ in range(3):
        await joined(plane, member)
        await eventually(lambda: members.get("m1").transport.config.token == token())
        client = Client(members.get("m1").transport)
        assert (await client.get(NAMESPACES, "kube-system"))["kind"] == "Namespace"
        await unjoin(plane.client, "m1", member=member.client)
        await eventually(lambda: not len(plane.context.informers.of(Cluster.gvr)))


async def test_what_is_not_there_cannot_leave(plane: ControlPlane) -> None:
    with pytest.raises(JoinError) as caught:
        await unjoin(plane.client, "m1")
    assert str(caught.value) == "no cluster object m1 found in karmada control Plane"


async def test_a_pull_cluster_leaves_otherwise(plane: ControlPlane) -> None:
    await plane.add_cluster("m1", "Pull")
    with pytest.raises(JoinError) as caught:
        await unjoin(plane.client, "m1")
    assert str(caught.value) == (
        "cluster m1 is a Pull mode member cluster, please use command `unregister` "
        "if you want to continue unregistering the cluster"
    )
    assert not (await plane.client.get(Cluster.gvr, "m1"))["metadata"].get("deletionTimestamp")


async def test_a_dry_run_changes_nothing(plane: ControlPlane, member: MemberServer) -> None:
    await joined(plane, member)
    await unjoin(plane.client, "m1", member=member.client, dry_run=True)
    assert not (await plane.client.get(Cluster.gvr, "m1"))["metadata"].get("deletionTimestamp")
    assert await member.get(CLUSTER_ROLES, ROLE)


async def timed_out(plane: ControlPlane, member: MemberServer, *, force: bool, steps: list[str]) -> asyncio.Task[bool]:
    """An unjoin whose time is over while a Work holds the cluster."""
    clock = FakeClock()
    await joined(plane, member)
    await held(plane)
    leaving = unjoin(plane.client, "m1", member=member.client, force=force, clock=clock, progress=steps.append)
    task = asyncio.create_task(leaving)
    works = plane.context.informers.of(Work.gvr)
    await eventually(lambda: [work for work in works.list() if work["metadata"].get("deletionTimestamp")])
    await clock.advance(59)
    assert not task.done()
    await clock.advance(2)
    return task


async def test_a_cluster_that_is_held_is_waited_for_a_minute(plane: ControlPlane, member: MemberServer) -> None:
    task = await timed_out(plane, member, force=False, steps=[])
    with pytest.raises(JoinError, match="timed out waiting for cluster m1 to be deleted, after 60s"):
        await task
    assert await plane.get(Cluster.gvr, "m1")
    assert await member.get(CLUSTER_ROLES, ROLE)


async def test_force_releases_everything(plane: ControlPlane, member: MemberServer) -> None:
    steps: list[str] = []
    task = await timed_out(plane, member, force=True, steps=steps)
    await task
    assert await plane.get(Cluster.gvr, "m1") is None
    assert await plane.get(Work.gvr, "w", "karmada-es-m1") is None
    assert await member.get(CLUSTER_ROLES, ROLE) is None
    assert "forcing it" in steps[0]
    namespaces = plane.context.informers.of(NAMESPACES)
    await eventually(lambda: namespaces.get(Key("", "karmada-es-m1")) is None)


async def test_force_goes_on_when_something_cannot_be_let_go(
    plane: ControlPlane, member: MemberServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    patch = plane.client.patch

    async def refuse(kind: object, name: str, *args: object, **kwargs: object) -> Obj:
        if kind == Work.gvr:
            raise Forbidden("not this one")
        return await patch(kind, name, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(plane.client, "patch", refuse)
    steps: list[str] = []
    task = await timed_out(plane, member, force=True, steps=steps)
    await task
    assert "the finalizer of a work was not removed: not this one" in steps
    assert await plane.get(Cluster.gvr, "m1") is None


async def test_a_member_is_cleaned_up_in_order_and_without_what_is_gone(
    member: MemberServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    deleted: list[tuple[str, str, str]] = []
    delete = member.client.delete

    async def note(kind: Obj, name: str, namespace: str = "", **kwargs: object) -> Obj:
        deleted.append((kind.resource, name, namespace))  # type: ignore[attr-defined]
        return await delete(kind, name, namespace, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(member.client, "delete", note)
    await clean_up_member(member.client, "m1", "karmada-cluster")
    assert deleted == [
        ("clusterrolebindings", ROLE, ""),
        ("clusterroles", ROLE, ""),
        ("serviceaccounts", "karmada-m1", "karmada-cluster"),
        ("namespaces", "karmada-cluster", ""),
    ]


@pytest.mark.parametrize("force", [False, True])
async def test_a_member_that_refuses_stops_the_clean_up_unless_forced(
    plane: ControlPlane, member: MemberServer, monkeypatch: pytest.MonkeyPatch, force: bool
) -> None:
    await joined(plane, member)
    delete = member.client.delete

    async def refuse(kind: object, name: str, namespace: str = "", **kwargs: object) -> Obj:
        if kind == CLUSTER_ROLES:
            raise Forbidden("not this one")
        return await delete(kind, name, namespace, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(member.client, "delete", refuse)
    steps: list[str] = []
    cleaning = clean_up_member(member.client, "m1", "karmada-cluster", force=force, progress=steps.append)
    if force:
        await cleaning
        assert steps[0] == f"clusterroles {ROLE}: not deleted: not this one"
    else:
        with pytest.raises(Forbidden):
            await cleaning
    account = await member.get(ACCOUNTS, "karmada-m1", "karmada-cluster")
    assert (account is None) is force


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("error", [ConnectionFailed("https://m1: no response within 60s"), None])
async def test_a_member_that_does_not_respond_is_tried_once_and_not_for_ever(
    member: MemberServer, monkeypatch: pytest.MonkeyPatch, error: Exception | None, force: bool
) -> None:
    requested: list[object] = []

    async def silence(kind: object, *_args: object, **_kwargs: object) -> Obj:
        requested.append(kind)
        if error is not None:
            raise error
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr(member.client, "delete", silence)
    steps: list[str] = []
    cleaning = clean_up_member(member.client, "m1", "karmada-cluster", wait=0.05, force=force, progress=steps.append)
    why = str(error) if error is not None else "no response within 0.05s"
    if force:
        await cleaning
        assert steps == [f"what joining made in cluster m1 stays there: {why}"]
    else:
        with pytest.raises(JoinError, match=f"what joining made in cluster m1 could not be removed: {why}"):
            await cleaning
    assert requested == [CLUSTER_ROLE_BINDINGS]
