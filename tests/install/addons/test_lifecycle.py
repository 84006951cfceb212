"""Addons of an installed control plane: enabled, listed, repaired, disabled; and what is missing is named first."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from karmada.install.addons.catalog import ADDONS, chosen
from karmada.install.addons.lifecycle import Addons
from karmada.install.addons.settings import Settings
from karmada.install.options import InstallError
from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.gvrs import APISERVICES, DEPLOYMENTS
from karmada.local.board import Board
from tests.install.installing import KINDS, NAMESPACE, Host, host_cluster
from tests.support.eventually import LIMIT

SEPARATE = {"all-in-one": False, "etcd-storage-mode": "emptyDir", "etcd-replicas": 1}
STATELESS = ("preflight", "certs", "host")
MEMBER = Settings(cluster="member1", member_kubeconfig=b"kubeconfig")


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Host]:
    async with host_cluster(tmp_path) as host:
        yield host


def addons(host: Host, settings: Settings = MEMBER) -> Addons:
    return Addons(host=host.client, karmada=host.plane.client(), settings=settings, pod_seconds=LIMIT, api_seconds=0.1)


def board() -> Board:
    return Board(io.StringIO(), live=False)


async def states(host: Host, settings: Settings = MEMBER) -> dict[str, str]:
    found: dict[str, str] = {}
    await addons(host, settings).look(found.__setitem__)
    return found


async def test_an_addon_is_enabled_listed_repaired_and_disabled(host: Host) -> None:
    await host.install(SEPARATE, *STATELESS, "karmada-apiserver")
    before = await host.objects()
    disabled = dict.fromkeys(ADDONS, "disabled")
    assert await states(host) == disabled
    three = ["karmada-descheduler", "karmada-scheduler-estimator", "karmada-dashboard"]
    several, _ = chosen(three, "member1")
    await addons(host).enable(several, board())
    enabled = dict.fromkeys(three, "enabled")
    assert await states(host) == {**disabled, **enabled}
    assert (await states(host, Settings()))["karmada-scheduler-estimator"] == "unknown"
    await host.client.delete(DEPLOYMENTS, "karmada-descheduler", NAMESPACE)
    await addons(host).enable(several, board())
    assert (await states(host))["karmada-descheduler"] == "enabled"
    lines: list[str] = []
    await addons(host).disable(several, lines.append)
    assert lines == [
        f"{name} is disabled"
        for name in ("karmada-descheduler", "karmada-scheduler-estimator-member1", "karmada-dashboard")
    ]
    assert (await host.objects()).keys() == before.keys()
    await addons(host).disable(several, lines.append)


async def test_an_addon_that_serves_an_api_is_unhealthy_until_the_control_plane_reaches_it(host: Host) -> None:
    await host.install(SEPARATE, *STATELESS, "karmada-apiserver")
    found, _ = chosen(["karmada-metrics-adapter"], "")
    with pytest.raises(InstallError, match=r"APIService/v1beta1\.metrics\.k8s\.io is not available after"):
        await addons(host).enable(found, board())
    assert (await states(host))["karmada-metrics-adapter"] == "unhealthy"
    await addons(host).disable(found, lambda _line: None)
    assert (await states(host))["karmada-metrics-adapter"] == "disabled"
    for name in found[0].apis:
        with pytest.raises(NotFound):
            await host.plane.client().get(APISERVICES, name)


async def test_a_control_plane_in_one_deployment_has_some_built_in(host: Host) -> None:
    await host.install({"store-volume": "emptyDir"}, *STATELESS, "karmada-apiserver")
    before = await host.objects()
    served, _ = chosen(["karmada-metrics-adapter", "karmada-search"], "")
    await addons(host).enable(served, board())
    lines: list[str] = []
    await addons(host).disable(served, lines.append)
    assert lines[0] == "karmada-metrics-adapter is part of the control plane in one Deployment, and stays"
    assert (await host.objects()).keys() == before.keys()


async def test_what_is_missing_is_named_before_anything_is_changed(host: Host) -> None:
    everything, _ = chosen(["all"], "")
    with pytest.raises(InstallError, match="there is no control plane in namespace karmada-system of this cluster"):
        await addons(host).enable(everything, board())
    await host.install(SEPARATE, *STATELESS, "karmada-apiserver")
    await host.client.delete(KINDS["secrets"], "karmada-search-config", NAMESPACE)
    with pytest.raises(InstallError, match=r'secret "karmada-search-config" is not found .* run \'karmadactl init\''):
        await addons(host).enable(everything, board())
    assert await states(host) == dict.fromkeys(ADDONS, "disabled")
