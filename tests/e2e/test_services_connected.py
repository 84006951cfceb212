"""A pod of one cluster really reaches a Service whose pods run in another: both are processes of this machine."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.e2e.fleets import QUICK, Fleet
from tests.support.eventually import eventually_blocking

pytestmark = pytest.mark.e2e
SERVER = Path(__file__).parents[1] / "kube/sim/processes/known_server.py"

OBJECTS = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME}
spec:
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec: {containers: [{name: main, image: "known/server:1"}]}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: NAME}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: NAME}]
  placement: {clusterAffinity: {clusterNames: [CLUSTER]}}
"""
SHARED = """
apiVersion: v1
kind: Service
metadata: {name: serve}
spec: {selector: {app: serve}, ports: [{port: 8000, targetPort: 8080}]}
---
apiVersion: networking.karmada.io/v1alpha1
kind: MultiClusterService
metadata: {name: serve}
spec: {types: [CrossCluster], providerClusters: [{name: member1}], consumerClusters: [{name: member2}]}
"""
REQUEST = "import sys, urllib.request as r; print(r.urlopen(sys.argv[1], timeout=120).read().decode())"


def test_a_pod_reaches_a_service_of_another_cluster(tmp_path: Path, kubectl_path: str) -> None:
    images = tmp_path / "images.yaml"
    images.write_text(
        f"known/server: {{command: [{sys.executable}, {SERVER}], commands: {{python: [{sys.executable}]}}}}"
    )
    with Fleet(tmp_path, kubectl_path, (*QUICK, "--feature-gates=MultiClusterService=true")) as fleet:
        running = ("--nodes", "1", "--run-processes", "--process-images", str(images))
        fleet.create("member1", "member2", *running)
        fleet.join_all("member1", "member2")
        for name, cluster in (("serve", "member1"), ("caller", "member2")):
            fleet.kubectl("apply", "-f", "-", stdin=OBJECTS.replace("NAME", name).replace("CLUSTER", cluster))
        fleet.kubectl("apply", "-f", "-", stdin=SHARED)
        there, here = fleet.sims.kubectl("member1"), fleet.sims.kubectl("member2")

        def served() -> str:
            where = here("get", "service", "serve", "-o", "jsonpath={.spec.clusterIP}", check=False).out
            call = ("exec", "deployment/caller", "--", "python", "-c", REQUEST, f"http://{where}:8000/")
            return here(*call, check=False).out.strip() if where else ""

        answer = eventually_blocking(served)
        [pod] = there("get", "pods", "-l", "app=serve", "-o", "jsonpath={.items[*].metadata.name}").out.split()
        assert answer == f"hello from {pod}"
        assert not here("get", "pods", "-l", "app=serve", "-o", "name").out
