from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.gvrs import DEPLOYMENTS, PODS, REPLICA_SETS
from karmada.kube.objects.meta import controller_of, make_owner
from karmada.kube.runtime.keys import Key
from karmada.kube.sim.controllers.deployment import Deployments
from tests.kube.sim.deployment_cluster import cluster_of
from tests.kube.sim.workload_pods import REVISION
from tests.support.eventually import eventually

# --- deletion and adoption


async def test_deleting_in_the_background_removes_the_deployment_at_once_and_then_the_rest(tmp_path: Path) -> None:
    async with cluster_of(tmp_path) as cluster:
        await cluster.run(2)
        await cluster.cluster.client.delete(DEPLOYMENTS, "web", "default", propagation="Background")
        await eventually(lambda: not cluster.deployment() and not cluster.sets() and not cluster.pods())
        await eventually(lambda: not cluster.pods(going=True))


async def test_deleting_in_the_foreground_keeps_the_deployment_until_all_pods_are_gone(tmp_path: Path) -> None:
    async with cluster_of(tmp_path) as cluster:
        await cluster.run(2)
        cluster.kubelet.holds_on = True
        await cluster.cluster.client.delete(DEPLOYMENTS, "web", "default", propagation="Foreground")
        await eventually(lambda: len(cluster.pods(going=True)) == 2)
        await eventually(lambda: "replicas" not in cluster.deployment()["status"])
        assert cluster.deployment()["metadata"]["finalizers"] == ["foregroundDeletion"]
        for pod in cluster.pods(going=True):
            await cluster.cluster.client.delete(PODS, pod["metadata"]["name"], "default", grace_period=0)
        await eventually(lambda: not cluster.deployment() and not cluster.sets())


async def test_orphaned_replicasets_are_adopted_by_the_next_deployment(tmp_path: Path) -> None:
    async with cluster_of(tmp_path) as cluster:
        await cluster.run(2)
        await cluster.update("nginx:2")
        pods = {pod["metadata"]["uid"] for pod in cluster.pods()}
        await cluster.cluster.client.delete(DEPLOYMENTS, "web", "default", propagation="Orphan")
        await eventually(lambda: not cluster.deployment())
        assert len(cluster.sets()) == 2
        assert all(controller_of(rs) is None for rs in cluster.sets())
        deployment = await cluster.run(2, image="nginx:2")
        assert {pod["metadata"]["uid"] for pod in cluster.pods()} == pods
        assert all(controller_of(rs) == make_owner(deployment) for rs in cluster.sets())
        assert deployment["metadata"]["annotations"][REVISION] == "2"
        assert cluster.condition("Progressing")[1] == "NewReplicaSetAvailable"


async def test_a_replicaset_with_other_labels_is_released(tmp_path: Path) -> None:
    async with cluster_of(tmp_path) as cluster:
        await cluster.run(1)
        name = cluster.sets()[0]["metadata"]["name"]
        await cluster.cluster.client.patch(REPLICA_SETS, name, "default", {"metadata": {"labels": {"app": "x"}}})
        informer = cluster.cluster.context.informers.of(REPLICA_SETS)
        await eventually(lambda: controller_of(informer.get(Key("default", name)) or {}) is None)


async def test_a_controller_that_starts_late_finds_everything_as_it_left_it(tmp_path: Path) -> None:
    async with cluster_of(tmp_path) as cluster:
        await cluster.run(2)
        version = cluster.deployment()["metadata"]["resourceVersion"]
        again = Deployments(cluster.cluster.context)
        await again.reconcile(Key("default", "web"))
        assert cluster.deployment()["metadata"]["resourceVersion"] == version
        assert len(cluster.sets()) == 1


# --- kubectl


@pytest.mark.e2e
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="there is no kubectl")
async def test_kubectl_rolls_out_looks_back_and_undoes(tmp_path: Path) -> None:
    environment = {**os.environ, "HOME": str(tmp_path), "KUBECONFIG": str(tmp_path / "admin.kubeconfig")}

    async def kubectl(*arguments: str) -> str:
        process = await asyncio.create_subprocess_exec(
            "kubectl", *arguments, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        out, _ = await process.communicate()
        assert process.returncode == 0, out.decode()
        return out.decode()

    async with cluster_of(tmp_path, clock=FakeClock(time.time())) as cluster:
        finished = 'deployment "web" successfully rolled out'
        await kubectl("create", "deployment", "web", "--image=nginx:1", "--replicas=3")
        assert finished in await kubectl("rollout", "status", "deployment/web", "--timeout=100s")
        await kubectl("set", "image", "deployment/web", "nginx=nginx:2")
        await kubectl("annotate", "deployment/web", "kubernetes.io/change-cause=second")
        assert finished in await kubectl("rollout", "status", "deployment/web", "--timeout=100s")
        history = await kubectl("rollout", "history", "deployment/web")
        assert [line.split() for line in history.splitlines()[2:4]] == [["1", "<none>"], ["2", "second"]]
        await kubectl("rollout", "undo", "deployment/web")
        assert finished in await kubectl("rollout", "status", "deployment/web", "--timeout=100s")
        assert cluster.sizes() == {"nginx:1": 3, "nginx:2": 0}
        await kubectl("rollout", "restart", "deployment/web")
        assert finished in await kubectl("rollout", "status", "deployment/web", "--timeout=100s")
        assert len(cluster.sets()) == 3
