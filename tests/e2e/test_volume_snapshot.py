"""The volume of a control plane goes back to a snapshot, while an agent and the members live on."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from karmada.kube.client.kubeconfig import load_config
from karmada.kube.objects.gvrs import DEPLOYMENTS
from tests.e2e.local_environment import PORT, LocalEnvironment, listed
from tests.support.eventually import eventually_blocking
from tests.support.programs import ServerProcess

pytestmark = pytest.mark.e2e
MANIFESTS = """
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}, namespace: default}}
spec:
  replicas: 3
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec: {{containers: [{{name: web, image: "nginx:1.27"}}]}}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {{name: {name}, namespace: default}}
spec:
  resourceSelectors: [{{apiVersion: apps/v1, kind: Deployment, name: {name}}}]
  placement: {{clusterAffinity: {{clusterNames: [member1, member2]}}}}
"""


@pytest.fixture
def local(tmp_path: Path, kubectl_path: str) -> Iterator[LocalEnvironment]:
    """With one member in each mode."""
    with LocalEnvironment(tmp_path, kubectl_path) as local:
        local.up(*PORT, "--members", "2", "--pull-members", "1")
        yield local


def replicas(local: LocalEnvironment, name: str) -> list[int]:
    """Of a Deployment, as the members have it."""
    found = [
        listed(local.members_kubeconfig, DEPLOYMENTS, context=member, namespace="default")
        for member in ("member1", "member2")
    ]
    return [obj["spec"]["replicas"] for objects in found for obj in objects if obj["metadata"]["name"] == name]


def state_files(folder: Path) -> list[Path]:
    return [path for path in folder.glob("state.db*") if path.suffix != ".lock"]


def test_members_follow_the_restored_state_and_what_it_does_not_know_is_reported(
    local: LocalEnvironment, tmp_path: Path
) -> None:
    local.kubectl("apply", "-f", "-", stdin=MANIFESTS.format(name="old"))
    eventually_blocking(lambda: replicas(local, "old") == [3, 3])
    snapshot = tmp_path / "snapshot"
    snapshot.mkdir()
    for path in state_files(local.folder):
        shutil.copy2(path, snapshot)
    local.kubectl("scale", "deployment", "old", "--replicas=6")
    local.kubectl("apply", "-f", "-", stdin=MANIFESTS.format(name="new"))
    eventually_blocking(lambda: (replicas(local, "old"), replicas(local, "new")) == ([6, 6], [3, 3]))

    port = int(load_config(local.control_kubeconfig).server.rpartition(":")[2])
    os.kill(local.pids()["karmada"], signal.SIGKILL)
    eventually_blocking(lambda: "karmada" not in local.pids())
    for path in state_files(local.folder):
        path.unlink()
    for path in snapshot.iterdir():
        shutil.copy2(path, local.folder)
    plane = ServerProcess(local.folder, [], port=port, module="karmada.components.karmada", greeting="Control plane at")
    plane.start()
    try:
        eventually_blocking(lambda: replicas(local, "old") == [3, 3])
        local.kubectl("scale", "deployment", "old", "--replicas=4")
        eventually_blocking(lambda: replicas(local, "old") == [4, 4])
        assert replicas(local, "new") == [3, 3]
        rows = [line.split()[:3] for line in local.ctl("orphans", "member1").out.splitlines()]
        assert rows == [["CLUSTER", "NAMESPACE", "NAME"], ["member1", "default", "deployment.apps/new"]]
    finally:
        plane.stop()
