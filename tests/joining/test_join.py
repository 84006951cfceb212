"""Clusters join: two real servers, one over HTTPS."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from karmada.api.cluster import Cluster
from karmada.joining.join import JoinError, Joining, check_unique, cluster_id_of, join
from karmada.joining.waiting import wait_for
from karmada.kube.client.client import Client, Listing
from karmada.kube.client.http_transport import HttpTransport
from karmada.kube.objects.clock import FakeClock, RealClock
from karmada.kube.objects.errors import AlreadyExists, BadRequest, Forbidden
from karmada.kube.objects.gvk import GVR, GroupResource
from karmada.kube.objects.gvrs import ACCOUNTS, CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, NAMESPACES, SECRETS
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key
from karmada.members.access import access_of
from tests.support.cases import cases
from tests.support.control_plane import ControlPlane, running
from tests.support.eventually import LIMIT, eventually
from tests.support.member_server import MemberServer, member_server
from tests.support.objects import kube_object

ROLE = "karmada-controller-manager:karmada-m1"
SYSTEM = {"karmada.io/system": "true"}


@pytest.fixture
async def plane(folder: Path) -> AsyncIterator[ControlPlane]:
    async with running(folder / "control-plane", clock=RealClock()) as plane:
        yield plane


@pytest.fixture
async def member(folder: Path) -> AsyncIterator[MemberServer]:
    async with member_server(folder / "member") as member:
        yield member


def joining(member: MemberServer, name: str = "m1", **others: object) -> Joining:
    return Joining.to(member.config, name, **others)


async def test_a_member_gets_accounts_rights_and_tokens(plane: ControlPlane, member: MemberServer) -> None:
    await join(plane.client, member.client, joining(member))
    namespace = await member.client.get(NAMESPACES, "karmada-cluster")
    assert namespace["metadata"]["labels"].items() >= SYSTEM.items()
    for account in ("karmada-impersonator", "karmada-m1"):
        found = await member.client.get(ACCOUNTS, account, "karmada-cluster")
        assert found["metadata"]["labels"] == SYSTEM
        secret = await member.client.get(SECRETS, account, "karmada-cluster")
        assert secret["type"] == "kubernetes.io/service-account-token"
        assert secret["metadata"]["annotations"]["kubernetes.io/service-account.name"] == account
        assert not secret["metadata"].get("labels", {}).get("karmada.io/system")
    role = await member.client.get(CLUSTER_ROLES, ROLE)
    assert role["metadata"]["labels"] == SYSTEM
    assert role["rules"] == [
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
        {"nonResourceURLs": ["*"], "verbs": ["get"]},
    ]
    binding = await member.client.get(CLUSTER_ROLE_BINDINGS, ROLE)
    assert binding["metadata"]["labels"] == SYSTEM
    assert binding["roleRef"]["name"] == ROLE
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "karmada-m1", "namespace": "karmada-cluster"}]


async def test_the_control_plane_gets_the_cluster_and_its_secrets(plane: ControlPlane, member: MemberServer) -> None:
    cluster = await join(
        plane.client, member.client, joining(member, provider="sim", region="eu", zones=["eu-a", "eu-b"])
    )
    assert cluster is not None
    spec = cluster["spec"]
    assert spec["syncMode"] == "Push"
    assert spec["id"] == (await member.client.get(NAMESPACES, "kube-system"))["metadata"]["uid"]
    assert spec["apiEndpoint"] == member.config.server
    assert spec["secretRef"] == {"namespace": "karmada-cluster", "name": "m1"}
    assert spec["impersonatorSecretRef"] == {"namespace": "karmada-cluster", "name": "m1-impersonator"}
    assert (spec["provider"], spec["region"], spec["zones"]) == ("sim", "eu", ["eu-a", "eu-b"])
    assert "insecureSkipTLSVerification" not in spec
    owner = {
        "apiVersion": "cluster.karmada.io/v1alpha1",
        "kind": "Cluster",
        "name": "m1",
        "uid": cluster["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    for name, account in (("m1", "karmada-m1"), ("m1-impersonator", "karmada-impersonator")):
        secret = await plane.client.get(SECRETS, name, "karmada-cluster")
        there = await member.client.get(SECRETS, account, "karmada-cluster")
        assert secret["metadata"]["labels"] == SYSTEM
        assert secret["metadata"]["ownerReferences"] == [owner]
        assert secret["data"]["token"] == there["data"]["token"]
        assert secret["data"].get("caBundle") == (there["data"]["ca.crt"] if name == "m1" else None)


async def test_the_credentials_open_the_member(plane: ControlPlane, member: MemberServer) -> None:
    cluster = await join(plane.client, member.client, joining(member))
    assert cluster is not None
    secret = await plane.client.get(SECRETS, "m1", "karmada-cluster")
    client = Client(HttpTransport(access_of(cluster, secret)))
    try:
        assert (await client.get(NAMESPACES, "kube-system"))["metadata"]["uid"] == cluster["spec"]["id"]
        assert await client.raw("GET", "/readyz")
    finally:
        await client.close()


async def test_how_the_kubeconfig_reaches_the_member_is_kept(plane: ControlPlane, member: MemberServer) -> None:
    way = joining(member, namespace="elsewhere")
    way = Joining(
        name="m1", api_endpoint=way.api_endpoint, namespace="elsewhere", insecure=True, proxy_url="http://proxy:3128"
    )
    cluster = await join(plane.client, member.client, way)
    assert cluster is not None
    namespace = await plane.client.get(NAMESPACES, "elsewhere")
    assert namespace["metadata"]["labels"].items() >= SYSTEM.items()
    assert cluster["spec"]["insecureSkipTLSVerification"] is True
    assert cluster["spec"]["proxyURL"] == "http://proxy:3128"
    assert cluster["spec"]["secretRef"] == {"namespace": "elsewhere", "name": "m1"}
    assert await member.get(ACCOUNTS, "karmada-m1", "elsewhere")


async def test_joining_reports_how_far_it_is(plane: ControlPlane, member: MemberServer) -> None:
    steps: list[str] = []
    await join(plane.client, member.client, joining(member), progress=steps.append)
    assert len(steps) == 3
    assert steps[0].startswith("cluster m1 has the id ")


@cases(("m2", "A", False), ("m1", "B", False), ("m1", "A", False), ("m2", "B", True))
async def test_name_and_id_must_be_new(name: str, cluster_id: str, accepted: bool, plane: ControlPlane) -> None:
    await plane.add_cluster("m1", id="A")
    if accepted:
        await check_unique(plane.client, name, cluster_id)
        return
    with pytest.raises(JoinError) as caught:
        await check_unique(plane.client, name, cluster_id)
    assert str(caught.value) == f"the cluster ID {cluster_id} or the cluster name {name} has been registered"


async def test_name_and_id_must_be_new_for_a_server_that_cannot_select_by_the_id(
    plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    await plane.add_cluster("m1", id="A")
    list_all = Client.list_all

    async def refusing(client: Client, kind: GVR, *, field_selector: str = "") -> Listing:
        if "spec.id" in field_selector:
            raise BadRequest('"spec.id" is not a known field selector: only "metadata.name", "metadata.namespace"')
        return await list_all(client, kind, field_selector=field_selector)

    monkeypatch.setattr(Client, "list_all", refusing)
    await check_unique(plane.client, "m2", "B")
    await check_unique(plane.client, "m1", "A", restarting=True)
    for name, cluster_id in (("m2", "A"), ("m1", "B"), ("m1", "A")):
        with pytest.raises(JoinError, match="has been registered"):
            await check_unique(plane.client, name, cluster_id)


async def test_clusters_are_found_by_their_id(plane: ControlPlane) -> None:
    for name, cluster_id in (("m1", "A"), ("m2", "B")):
        await plane.add_cluster(name, id=cluster_id)
    for cluster_id, names in (("A", ["m1"]), ("B", ["m2"]), ("C", [])):
        found = await plane.client.list_all(Cluster.gvr, field_selector=f"spec.id={cluster_id}")
        assert [cluster["metadata"]["name"] for cluster in found.items] == names
    others = await plane.client.list_all(Cluster.gvr, field_selector="spec.id!=A")
    assert [cluster["metadata"]["name"] for cluster in others.items] == ["m2"]


async def test_a_member_does_not_join_twice_and_is_left_alone(plane: ControlPlane, member: MemberServer) -> None:
    await join(plane.client, member.client, joining(member))
    with pytest.raises(JoinError, match="has been registered"):
        await join(plane.client, member.client, joining(member, "m2"))
    assert await member.get(ACCOUNTS, "karmada-m2", "karmada-cluster") is None


async def test_a_dry_run_calls_webhooks_and_changes_nothing(plane: ControlPlane, member: MemberServer) -> None:
    assert await join(plane.client, member.client, joining(member), dry_run=True) is None
    assert await member.get(NAMESPACES, "karmada-cluster") is None
    assert not (await plane.client.list_all(SECRETS, "karmada-cluster")).items
    assert await plane.get(Cluster.gvr, "m1") is None
    await plane.add_cluster("m9", id=await cluster_id_of(member.client))
    with pytest.raises(JoinError, match="has been registered"):
        await join(plane.client, member.client, joining(member), dry_run=True)


async def test_what_is_there_is_used_as_it_is(plane: ControlPlane, member: MemberServer) -> None:
    namespace = kube_object("v1", "Namespace", "karmada-cluster")
    await member.client.create(NAMESPACES, namespace)
    role: Obj = kube_object("rbac.authorization.k8s.io/v1", "ClusterRole", ROLE)
    await member.client.create(CLUSTER_ROLES, {**role, "rules": []})
    await join(plane.client, member.client, joining(member))
    assert not (await member.client.get(CLUSTER_ROLES, ROLE)).get("rules")
    kept = await member.client.get(NAMESPACES, "karmada-cluster")
    assert "karmada.io/system" not in kept["metadata"]["labels"]


async def test_a_secret_that_an_earlier_attempt_left_gets_the_tokens_of_now(
    plane: ControlPlane, member: MemberServer
) -> None:
    for name in ("m1", "m1-impersonator"):
        old = kube_object("v1", "Secret", name, "karmada-cluster")
        await plane.client.create(SECRETS, {**old, "data": {"token": "b2xk", "kubeconfig": "b2xk"}})
    cluster = await join(plane.client, member.client, joining(member))
    assert cluster is not None
    for name, account in (("m1", "karmada-m1"), ("m1-impersonator", "karmada-impersonator")):
        secret = await plane.client.get(SECRETS, name, "karmada-cluster")
        there = await member.client.get(SECRETS, account, "karmada-cluster")
        assert secret["data"]["token"] == there["data"]["token"]
        assert "kubeconfig" not in secret["data"], "it would count more than the token"
        assert secret["metadata"]["ownerReferences"][0]["uid"] == cluster["metadata"]["uid"]


async def test_of_two_who_join_under_one_name_the_cluster_has_the_credentials_of_its_own(
    plane: ControlPlane, member: MemberServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = plane.client.create

    async def interrupted(kind: object, obj: Obj, *args: object, **kwargs: object) -> Obj:
        if kind == Cluster.gvr:
            other = {"data": {"token": "b3RoZXI="}}
            await plane.client.patch(SECRETS, "m1", "karmada-cluster", other)
        return await create(kind, obj, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(plane.client, "create", interrupted)
    await join(plane.client, member.client, joining(member))
    secret = await plane.client.get(SECRETS, "m1", "karmada-cluster")
    there = await member.client.get(SECRETS, "karmada-m1", "karmada-cluster")
    assert secret["data"]["token"] == there["data"]["token"]


async def test_a_cluster_that_appears_meanwhile_is_an_error(
    plane: ControlPlane, member: MemberServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = plane.client.create

    async def too_late(kind: object, obj: Obj, *args: object, **kwargs: object) -> Obj:
        if kind == Cluster.gvr:
            raise AlreadyExists.of(GroupResource("cluster.karmada.io", "clusters"), "m1")
        return await create(kind, obj, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(plane.client, "create", too_late)
    with pytest.raises(JoinError) as caught:
        await join(plane.client, member.client, joining(member))
    assert str(caught.value) == "cluster(m1) already exist"


async def test_a_token_that_never_comes_is_waited_for_half_a_minute(folder: Path, plane: ControlPlane) -> None:
    clock = FakeClock()
    async with member_server(folder / "no-tokens", controllers=False) as member:
        task = asyncio.create_task(join(plane.client, member.client, joining(member), clock=clock))
        for name in ("karmada-impersonator", "karmada-m1"):
            await wait_for(
                member.client, SECRETS, name, "karmada-cluster", lambda found: found, clock=RealClock(), seconds=LIMIT
            )
        await clock.advance(29)
        assert not task.done()
        await clock.advance(2)
        with pytest.raises(JoinError) as caught:
            await task
        assert "failed to get serviceAccount secret" in str(caught.value)
        assert "from cluster(m1), error: no response within 30s" in str(caught.value)
    assert await plane.get(Cluster.gvr, "m1") is None


@cases(
    ("karmada-impersonator", "failed to get serviceAccount secret for impersonation from cluster(m1), error: no"),
    ("karmada-m1", "failed to get serviceAccount secret from cluster(m1), error: no"),
)
async def test_a_secret_that_cannot_be_made_is_reported(
    account: str, message: str, plane: ControlPlane, member: MemberServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = member.client.create

    async def refuse(kind: object, obj: Obj, *args: object, **kwargs: object) -> Obj:
        if kind == SECRETS and obj["metadata"]["name"] == account:
            raise Forbidden("no")
        return await create(kind, obj, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(member.client, "create", refuse)
    with pytest.raises(JoinError) as caught:
        await join(plane.client, member.client, joining(member))
    assert str(caught.value) == message


async def test_a_joined_cluster_is_seen_at_once(plane: ControlPlane, member: MemberServer) -> None:
    await join(plane.client, member.client, joining(member))
    clusters, secrets = plane.context.informers.of(Cluster.gvr), plane.context.informers.of(SECRETS)
    await eventually(lambda: clusters.get(Key("", "m1")))
    await eventually(lambda: secrets.get(Key("karmada-cluster", "m1")))
    assert plane.context.members.get("m1").client is not None


async def test_a_secret_of_a_cluster_that_is_gone_is_made_anew(plane: ControlPlane, member: MemberServer) -> None:
    keeper = await plane.client.create(SECRETS, kube_object("v1", "Secret", "keeper", "karmada-cluster"))
    owner = {"apiVersion": "v1", "kind": "Secret", "name": "keeper", "uid": keeper["metadata"]["uid"]}
    old = kube_object("v1", "Secret", "m1", "karmada-cluster", ownerReferences=[owner], data={"token": "b2xk"})
    await plane.client.create(SECRETS, old)
    await join(plane.client, member.client, joining(member))
    secret = await plane.client.get(SECRETS, "m1", "karmada-cluster")
    assert secret["data"]["token"] != "b2xk"


async def test_the_token_of_an_account_that_was_replaced_is_not_taken(
    plane: ControlPlane, member: MemberServer
) -> None:
    await join(plane.client, member.client, joining(member))
    old = await member.client.get(SECRETS, "karmada-m1", "karmada-cluster")
    await plane.client.delete(Cluster.gvr, "m1")
    await member.client.delete(ACCOUNTS, "karmada-m1", "karmada-cluster")
    await join(plane.client, member.client, joining(member))
    account = await member.client.get(ACCOUNTS, "karmada-m1", "karmada-cluster")
    new = await member.client.get(SECRETS, "karmada-m1", "karmada-cluster")
    assert new["metadata"]["annotations"]["kubernetes.io/service-account.uid"] == account["metadata"]["uid"]
    assert new["data"]["token"] != old["data"]["token"]
    secret = await plane.client.get(SECRETS, "m1", "karmada-cluster")
    assert secret["data"]["token"] == new["data"]["token"]
