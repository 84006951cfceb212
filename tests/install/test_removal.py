"""Removing an installation."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from karmada.install.options import InstallError
from karmada.install.removal import Removal, kept_claims, remove
from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.gvrs import DEPLOYMENTS, NAMESPACES, NODES, PODS
from karmada.kube.objects.types import Obj
from tests.install.installing import KINDS, NAMESPACE, Host, host_cluster
from tests.support.cases import cases
from tests.support.objects import kube_object
from tests.support.rights import grant, user


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Host]:
    async with host_cluster(tmp_path) as found:
        yield found


def addon(name: str) -> Obj:
    pod = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    return kube_object(
        "apps/v1", "Deployment", name, NAMESPACE, spec={"selector": {"matchLabels": {"app": name}}, "template": pod}
    )


async def test_everything_but_the_state_goes_and_the_node_loses_its_label(host: Host) -> None:
    await host.install({"store-volume": "hostPath"})
    await host.client.create(KINDS["secrets"], _own_secret())
    labelled = (await host.client.list_all(NODES, label_selector="karmada.io/etcd")).items
    assert len(labelled) == 1
    lines: list[str] = []
    await remove(host.client, Removal(namespace=NAMESPACE), lines.append)
    assert list(await host.objects()) == ["secrets/mine"]
    assert (await host.client.list_all(NODES, label_selector="karmada.io/etcd")).items == []
    assert lines[0] == 'delete deployment "karmada-apiserver"'
    assert 'delete Service "karmada-apiserver"' in lines
    assert 'delete Secrets "karmada-cert"' in lines
    assert lines[-1] == f'remove node "{labelled[0]["metadata"]["name"]}" labels "karmada.io/etcd"'
    assert (await host.client.list_all(PODS, NAMESPACE)).items == []


def _own_secret(name: str = "mine") -> Obj:
    return kube_object("v1", "Secret", name, NAMESPACE)


async def test_claims_stay_and_an_installation_after_it_uses_them(host: Host) -> None:
    await host.install()
    claim = (await host.objects())["persistentvolumeclaims/karmada-apiserver-state"]
    lines: list[str] = []
    await remove(host.client, Removal(namespace=NAMESPACE), lines.append)
    assert lines[-1] == "node not found by label karmada.io/etcd"
    assert await kept_claims(host.client, NAMESPACE) == ["karmada-apiserver-state"]
    await host.install()
    again = (await host.objects())["persistentvolumeclaims/karmada-apiserver-state"]
    assert again["metadata"]["uid"] == claim["metadata"]["uid"]


async def test_a_purged_namespace_is_gone_when_it_returns(host: Host) -> None:
    await host.install()
    lines: list[str] = []
    await remove(host.client, Removal(namespace=NAMESPACE, purge_namespace=True), lines.append)
    assert f'delete Namespace "{NAMESPACE}"' in lines
    with pytest.raises(NotFound):
        await host.client.get(NAMESPACES, NAMESPACE)


async def test_a_dry_run_says_the_same_and_changes_nothing(host: Host) -> None:
    await host.install({"store-volume": "hostPath"})
    before = await host.specs()
    said: list[str] = []
    done: list[str] = []
    await remove(host.client, Removal(namespace=NAMESPACE, purge_namespace=True, dry_run=True), said.append)
    assert await host.specs() == before
    await remove(host.client, Removal(namespace=NAMESPACE, purge_namespace=True), done.append)
    assert said == done


async def test_addons_go_when_they_are_asked_for(host: Host) -> None:
    await host.install()
    for name in ("karmada-search", "karmada-scheduler-estimator-m1", "mine"):
        await host.client.create(DEPLOYMENTS, addon(name))
    for name in ("m1-kubeconfig", "m2-kubeconfig"):
        await host.client.create(KINDS["secrets"], _own_secret(name))
    await remove(host.client, Removal(namespace=NAMESPACE), lambda _line: None)
    assert {name for name in await host.objects() if name.startswith("deployments")} == {
        "deployments/karmada-search",
        "deployments/karmada-scheduler-estimator-m1",
        "deployments/mine",
    }
    await remove(host.client, Removal(namespace=NAMESPACE, addons=True), lambda _line: None)
    claims = {"persistentvolumeclaims/karmada-apiserver-state"}
    assert set(await host.objects()) == {"deployments/mine", "secrets/m2-kubeconfig"} | claims


async def test_a_namespace_that_is_not_there_is_not_found(host: Host) -> None:
    with pytest.raises(NotFound):
        await remove(host.client, Removal(namespace="nowhere"), lambda _line: None)


async def test_it_says_whether_anything_was_there(host: Host) -> None:
    await host.install({}, "host")
    removal = Removal(namespace=NAMESPACE)
    assert await remove(host.client, removal, lambda _line: None)
    assert not await remove(host.client, removal, lambda _line: None)


@cases(
    (
        [{"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]}],
        f"delete secrets in namespace {NAMESPACE}",
    ),
    ([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "delete"]}], "patch nodes in the whole"),
)
async def test_missing_rights_are_listed_and_nothing_is_removed(granted: list[Obj], lacking: str, host: Host) -> None:
    await host.install({"store-volume": "hostPath"}, "host")
    before = await host.specs()
    jane = host.as_user("jane")
    await grant(host.client, "look", granted, user("jane"))
    with pytest.raises(InstallError, match=lacking):
        await remove(jane, Removal(namespace=NAMESPACE), lambda _line: None)
    assert await host.specs() == before
