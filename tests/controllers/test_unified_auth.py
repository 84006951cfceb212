"""Who may use the proxy may be impersonated behind it."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from karmada.api.cluster import Cluster
from karmada.api.work import Work
from karmada.controllers import unified_auth
from karmada.controllers.cluster.controller import Clusters
from karmada.controllers.unified_auth import Subject, UnifiedAuth, impersonation_rules, proxied_clusters
from karmada.joining.join import JoinError
from karmada.kube.objects.errors import Forbidden
from karmada.kube.objects.gvrs import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, EVENTS, SECRETS
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key
from tests.support.cases import cases
from tests.support.control_plane import ControlPlane, running
from tests.support.eventually import eventually
from tests.support.member_server import MemberServer, member_server
from tests.support.rights import grant, user

ROLE_WORK, BINDING_WORK = "karmada-impersonator-7cbb6bd5c9", "karmada-impersonator-84f8c8f8c6"
SUCCEED = ("Normal", "SyncImpersonationConfigSucceed", "Sync impersonation config succeed.")
SECRET = {"namespace": "karmada-cluster", "name": "m-impersonator"}


def rule(group: str, resource: str, *names: str) -> Obj:
    made: Obj = {"apiGroups": [group], "resources": [resource], "verbs": ["get"]}
    return {**made, "resourceNames": list(names)} if names else made


@cases(
    ([], set()),
    ([rule("cluster.karmada.io", "clusters/proxy")], {"*"}),
    ([rule("*", "*")], {"*"}),
    ([rule("cluster.karmada.io", "*")], {"*"}),
    ([rule("cluster.karmada.io", "clusters")], set()),
    ([rule("apps", "clusters/proxy")], set()),
    ([rule("search.karmada.io", "proxying/proxy")], {"*"}),
    ([rule("search.karmada.io", "proxying/proxy", "m1")], {"*"}),
    (
        [
            rule("cluster.karmada.io", "clusters/proxy", "m1", "m2"),
            rule("cluster.karmada.io", "clusters/proxy", "m3"),
        ],
        {"m1", "m2", "m3"},
    ),
    ([rule("cluster.karmada.io", "clusters/proxy", "m1"), rule("cluster.karmada.io", "clusters/proxy")], {"*"}),
)
def test_a_role_grants_the_proxy_of_some_clusters_or_all(rules: list[Obj], clusters: set[str]) -> None:
    assert proxied_clusters({"rules": rules}) == clusters


def test_a_role_without_rules_grants_nothing() -> None:
    assert proxied_clusters({"rules": None}) == set()


def test_rules_come_in_order_with_sorted_names_that_are_there_once() -> None:
    subjects = [Subject("Group", "g"), Subject("User", "b"), Subject("User", "a"), Subject("User", "b")]
    assert impersonation_rules([*subjects, Subject("ServiceAccount", "s")]) == [
        {"verbs": ["impersonate"], "apiGroups": [""], "resources": ["users"], "resourceNames": ["a", "b"]},
        {"verbs": ["impersonate"], "apiGroups": [""], "resources": ["serviceaccounts"], "resourceNames": ["s"]},
        {"verbs": ["impersonate"], "apiGroups": [""], "resources": ["groups"], "resourceNames": ["g"]},
    ]


def test_nobody_means_no_rules() -> None:
    assert impersonation_rules([]) is None


@pytest.fixture
async def plane(folder: Path) -> AsyncIterator[ControlPlane]:
    async with running(folder, lambda context: [Clusters(context), UnifiedAuth(context)]) as plane:
        yield plane


def cached(plane: ControlPlane, cluster: str, name: str = ROLE_WORK) -> Obj | None:
    return plane.context.informers.of(Work.gvr).get(Key(f"karmada-es-{cluster}", name))


def allowed(plane: ControlPlane, cluster: str, kind: str = "users") -> list[str] | None:
    """Who may be impersonated there, but for the system's own users; None while there is no Work."""
    work = cached(plane, cluster)
    if work is None:
        return None
    rules = work["spec"]["workload"]["manifests"][0].get("rules") or ()
    names: list[str] = next((r["resourceNames"] for r in rules if r["resources"] == [kind]), [])
    return [name for name in names if kind != "users" or not name.startswith("system:")]


async def let_through(plane: ControlPlane, name: str, users: list[str], *clusters: str) -> None:
    rules = [rule("cluster.karmada.io", "clusters/proxy", *clusters)]
    await grant(plane.client, name, rules, *map(user, users))


async def test_a_cluster_gets_a_role_and_a_binding(plane: ControlPlane) -> None:
    cluster = await plane.add_cluster("m1", impersonatorSecretRef=SECRET)
    await eventually(lambda: cached(plane, "m1") and cached(plane, "m1", BINDING_WORK))
    for name in (ROLE_WORK, BINDING_WORK):
        work = await plane.client.get(Work.gvr, name, "karmada-es-m1")
        assert work["metadata"]["finalizers"] == ["karmada.io/execution-controller"]
        assert [(o["kind"], o["uid"]) for o in work["metadata"]["ownerReferences"]] == [
            ("Cluster", cluster["metadata"]["uid"])
        ]
        manifest = work["spec"]["workload"]["manifests"][0]
        assert manifest["metadata"]["name"] == "karmada-impersonator"
        assert manifest["metadata"]["labels"]["karmada.io/system"] == "true"
    assert manifest["kind"] == "ClusterRoleBinding"
    assert manifest["subjects"] == [
        {"kind": "ServiceAccount", "name": "karmada-impersonator", "namespace": "karmada-cluster"}
    ]
    assert manifest["roleRef"] == {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "ClusterRole",
        "name": "karmada-impersonator",
    }
    assert allowed(plane, "m1", "groups") == ["system:masters"]  # bound to cluster-admin, who may do everything
    assert SUCCEED in await plane.events("m1")


async def test_a_cluster_without_a_token_to_impersonate_with_gets_nothing_until_it_has_one(
    plane: ControlPlane,
) -> None:
    await plane.add_cluster("m1")
    namespaces = plane.context.informers.of(Cluster.gvr)
    await eventually(lambda: (namespaces.get(Key("", "m1")) or {"metadata": {}})["metadata"].get("finalizers"))
    queue = plane.manager.controllers["unified-auth-controller"].queue
    await eventually(lambda: queue.idle)
    assert cached(plane, "m1") is None
    await plane.client.patch(Cluster.gvr, "m1", "", {"spec": {"impersonatorSecretRef": SECRET}})
    await eventually(lambda: cached(plane, "m1", BINDING_WORK))


async def test_who_is_granted_the_proxy_reaches_the_clusters_it_was_granted_for(plane: ControlPlane) -> None:
    for name in ("m1", "m2"):
        await plane.add_cluster(name, impersonatorSecretRef=SECRET)
    await let_through(plane, "everywhere", ["tom", "ann"])
    await let_through(plane, "one", ["bob"], "m2")
    await eventually(lambda: allowed(plane, "m1") == ["ann", "tom"] and allowed(plane, "m2") == ["ann", "bob", "tom"])
    await plane.client.delete(CLUSTER_ROLE_BINDINGS, "everywhere")
    await eventually(lambda: allowed(plane, "m1") == [] and allowed(plane, "m2") == ["bob"])
    await plane.client.delete(CLUSTER_ROLES, "one")
    await eventually(lambda: allowed(plane, "m2") == [])


async def test_a_role_that_changes_moves_its_grant(plane: ControlPlane) -> None:
    for name in ("m1", "m2"):
        await plane.add_cluster(name, impersonatorSecretRef=SECRET)
    await let_through(plane, "one", ["bob"], "m1")
    await eventually(lambda: allowed(plane, "m1") == ["bob"] and allowed(plane, "m2") == [])
    moved = {"rules": [rule("cluster.karmada.io", "clusters/proxy", "m2")]}
    await plane.client.patch(CLUSTER_ROLES, "one", "", moved)
    await eventually(lambda: allowed(plane, "m1") == [] and allowed(plane, "m2") == ["bob"])


async def test_only_the_clusters_that_a_grant_concerns_are_reconciled(plane: ControlPlane) -> None:
    for name in ("m1", "m2"):
        await plane.add_cluster(name, impersonatorSecretRef=SECRET)
    await eventually(lambda: cached(plane, "m1", BINDING_WORK) and cached(plane, "m2", BINDING_WORK))
    controller = plane.manager.controllers["unified-auth-controller"]
    await eventually(lambda: controller.queue.idle)
    looked_at: list[str] = []
    reconcile = controller.reconciler.reconcile

    async def note(key: Key) -> Any:
        looked_at.append(key.name)
        return await reconcile(key)

    controller.reconciler.reconcile = note  # type: ignore[method-assign]
    await let_through(plane, "unrelated", ["eve"], "m9")
    await let_through(plane, "one", ["bob"], "m2")
    await eventually(lambda: allowed(plane, "m2") == ["bob"])
    assert set(looked_at) - {""} == {"m2"}


async def test_a_failure_is_reported_and_retried(plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    client = plane.context.client
    create = client.create

    async def refuse(kind: object, obj: Obj, *args: object, **kwargs: object) -> Obj:
        if kind == Work.gvr:
            raise Forbidden("not today")
        return await create(kind, obj, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(client, "create", refuse)
    await plane.add_cluster("m1", impersonatorSecretRef=SECRET)
    queue = plane.manager.controllers["unified-auth-controller"].queue
    await eventually(lambda: queue.retries(Key("", "m1")))
    assert ("Warning", "SyncImpersonationConfigFailed", "not today") in await plane.events("m1")
    monkeypatch.setattr(client, "create", create)
    await plane.until(lambda: cached(plane, "m1", BINDING_WORK))
    emitted = (await plane.client.list_all(EVENTS, "default")).items
    sources = {e["source"]["component"] for e in emitted if e["reason"].startswith("SyncImpersonation")}
    assert sources == {"unified-auth-controller"}


async def test_the_works_go_with_the_cluster(plane: ControlPlane) -> None:
    await plane.add_cluster("m1", impersonatorSecretRef=SECRET)
    await eventually(lambda: cached(plane, "m1", BINDING_WORK))
    await plane.client.delete(Cluster.gvr, "m1")
    work = await plane.until(lambda: (cached(plane, "m1") or {"metadata": {}})["metadata"].get("deletionTimestamp"))
    assert work
    await let_through(plane, "everywhere", ["tom"])
    queue = plane.manager.controllers["unified-auth-controller"].queue
    await eventually(lambda: queue.idle)
    assert allowed(plane, "m1") == []


# clusters that were registered without an impersonator


async def registered(plane: ControlPlane, member: MemberServer) -> None:
    """By a manifest: a Secret with a kubeconfig, and a Cluster that refers to it."""
    text = base64.b64encode(member.kubeconfig.read_bytes()).decode()
    metadata = {"name": "manifest", "namespace": "default"}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"kubeconfig": text}}
    await plane.client.create(SECRETS, secret)
    ref = {"namespace": "default", "name": "manifest"}
    await plane.add_cluster("m1", apiEndpoint=member.config.server, secretRef=ref)


async def test_a_cluster_without_an_impersonator_gets_one_when_it_is_ready(plane: ControlPlane, tmp_path: Path) -> None:
    clusters = plane.context.informers.of(Cluster.gvr)
    async with member_server(tmp_path / "member") as member:
        await registered(plane, member)
        await plane.set_ready("m1", "True")
        spec = await eventually(
            lambda: (clusters.get(Key("", "m1")) or {"spec": {}})["spec"].get("impersonatorSecretRef")
        )
        assert spec == {"namespace": "karmada-cluster", "name": "m1-impersonator"}
        token = (await plane.client.get(SECRETS, "m1-impersonator", "karmada-cluster"))["data"]["token"]
        theirs = await member.client.get(SECRETS, "karmada-impersonator", "karmada-cluster")
        assert token == theirs["data"]["token"]
        await eventually(lambda: cached(plane, "m1", BINDING_WORK))


async def test_credentials_that_do_not_allow_an_impersonator_are_reported_and_left(
    plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = 0

    async def refused(*_: object, **__: object) -> None:
        nonlocal tried
        tried += 1
        raise JoinError("may not create accounts") from Forbidden("no")

    monkeypatch.setattr(unified_auth, "provide_impersonator", refused)
    async with member_server(tmp_path / "member") as member:
        await registered(plane, member)
        await plane.set_ready("m1", "True")
        await eventually(lambda: tried)
        queue = plane.manager.controllers["unified-auth-controller"].queue
        await eventually(lambda: queue.idle)
        assert ("Warning", "ProvideImpersonatorFailed", "may not create accounts") in await plane.events("m1")
        assert queue.retries(Key("", "m1")) == 0
