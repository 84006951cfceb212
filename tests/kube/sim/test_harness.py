from __future__ import annotations

from pathlib import Path

from karmada.kube.objects.gvrs import PODS
from tests.kube.sim.harness import running


async def test_a_bare_cluster_takes_a_pod_and_leaves_it_pending(tmp_path: Path) -> None:
    async with running(tmp_path, lambda _: []) as cluster:
        pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}
        made = await cluster.client.create(PODS, {"apiVersion": "v1", "kind": "Pod", **pod}, "default")
        assert made["status"]["phase"] == "Pending"
        ready = await cluster.make_ready(made)
        assert ready["status"]["phase"] == "Running"
