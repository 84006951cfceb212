"""`karmadactl local-up --pull-members`: members with agents that run as processes, also when these are killed."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator

import pytest

from karmada.kube.client.client import Client
from karmada.kube.client.http_transport import HttpTransport
from karmada.kube.client.kubeconfig import load_config
from karmada.kube.objects.gvrs import CONFIG_MAPS
from karmada.kube.objects.types import Obj
from karmada.kube.sim.admin_client import AdminClient
from tests.e2e.local_environment import PORT, LocalEnvironment, listed
from tests.support.eventually import eventually_blocking
from tests.support.programs import ServerProcess

pytestmark = pytest.mark.e2e
MANY = 500
POLICY = """
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: settings, namespace: default}
spec:
  resourceSelectors: [{apiVersion: v1, kind: ConfigMap, labelSelector: {matchLabels: {app: settings}}}]
  placement: {clusterAffinity: {clusterNames: [member2]}}
"""
QUICK = ("--", "--cluster-monitor-grace-period=12s")


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory, kubectl_path: str) -> Iterator[LocalEnvironment]:
    """With one member in each mode."""
    with LocalEnvironment(tmp_path_factory.mktemp("pull"), kubectl_path) as local:
        local.up(*PORT, "--members", "2", "--pull-members", "1", *QUICK)
        yield local


def create(local: LocalEnvironment, first: int, last: int) -> None:
    """ConfigMaps, many at a time: kubectl sends one after the other."""

    async def send() -> None:
        client = Client(HttpTransport(load_config(local.control_kubeconfig)))
        try:
            await asyncio.gather(*(client.create(CONFIG_MAPS, config_map(number)) for number in range(first, last)))
        finally:
            await client.close()

    asyncio.run(send())


def config_map(number: int) -> Obj:
    metadata = {"name": f"settings-{number}", "namespace": "default", "labels": {"app": "settings"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"number": str(number)}}


def arrived(local: LocalEnvironment) -> list[Obj]:
    return listed(local.members_kubeconfig, CONFIG_MAPS, context="member2", namespace="default", labels="app=settings")


def ready(local: LocalEnvironment, name: str) -> str:
    conditions = local.clusters()[name]["status"]["conditions"]
    return str(next(one["status"] for one in conditions if one["type"] == "Ready"))


def agent_pid(local: LocalEnvironment) -> int:
    """Of the process that runs as the agent's pod."""
    shown = AdminClient(local.folder / "sim").request("GET", "/clusters")
    [member] = [one for one in shown if one["name"] == "member2"]
    [process] = [one for one in member["processes"] if "karmada-agent" in one["pod"]]
    return int(process["pid"])


def test_a_cluster_whose_agent_is_gone_becomes_unknown_and_comes_back(local: LocalEnvironment) -> None:
    member = local.member("member2")
    member("-n", "karmada-system", "scale", "deployment", "karmada-agent", "--replicas=0")
    eventually_blocking(lambda: ready(local, "member2") == "Unknown")
    taints = local.clusters()["member2"]["spec"]["taints"]
    assert "cluster.karmada.io/unreachable" in [taint["key"] for taint in taints]
    eventually_blocking(lambda: ready(local, "member1") == "True")
    member("-n", "karmada-system", "scale", "deployment", "karmada-agent", "--replicas=1")
    eventually_blocking(lambda: ready(local, "member2") == "True")
    eventually_blocking(lambda: not local.clusters()["member2"]["spec"].get("taints"))


def test_many_objects_arrive_once_though_agent_and_control_plane_are_killed(local: LocalEnvironment) -> None:
    modes = {name: cluster["spec"]["syncMode"] for name, cluster in local.clusters().items()}
    assert modes == {"member1": "Push", "member2": "Pull"}
    local.kubectl("apply", "-f", "-", stdin=POLICY)
    create(local, 0, 200)
    os.kill(agent_pid(local), signal.SIGKILL)
    create(local, 200, 350)
    eventually_blocking(lambda: len(arrived(local)) == 350)
    first = {item["metadata"]["name"]: item["metadata"]["uid"] for item in arrived(local)}

    create(local, 350, MANY)
    url = load_config(local.control_kubeconfig).server
    os.kill(local.pids()["karmada"], signal.SIGKILL)
    agent = agent_pid(local)
    local.member("member2")("delete", "configmap", "settings-0")
    corrected = ("configmap/settings-0", "--for=create", "--timeout=100s")
    local.member("member2")("wait", *corrected)
    plane = ServerProcess(
        local.folder,
        list(QUICK[1:]),
        port=int(url.rpartition(":")[2]),
        module="karmada.components.karmada",
        greeting="Control plane at",
    )
    plane.start()
    try:
        eventually_blocking(lambda: len(arrived(local)) == MANY)
        assert agent_pid(local) == agent
    finally:
        plane.stop()
    first.pop("settings-0")
    after = {item["metadata"]["name"]: item["metadata"]["uid"] for item in arrived(local)}
    assert {name: after[name] for name in first} == first
    assert {item["data"]["number"] for item in arrived(local)} == {str(number) for number in range(MANY)}
