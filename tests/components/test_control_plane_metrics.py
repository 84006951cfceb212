"""What the parts of the control plane count is on the server's page."""

from __future__ import annotations

from pathlib import Path

from karmada.components.controlplane import ControlPlane
from karmada.kube.client.http_transport import HttpTransport
from karmada.kube.client.kubeconfig import load_config
from karmada.kube.client.transport import Call
from karmada.kube.server.config import ServerConfig


async def test_the_schedulers_and_the_clusters_figures_and_estimates_are_served(tmp_path: Path) -> None:
    plane = ControlPlane(ServerConfig(data_dir=tmp_path, storage="memory://", port=0))
    await plane.start()
    transport = HttpTransport(load_config(plane.server.kubeconfig))
    try:
        answer = await transport.answer(Call("GET", "/metrics", accept="text/plain"))
        estimates = await transport.answer(Call("GET", "/debug/estimates"))
    finally:
        await transport.close()
        await plane.stop()
    assert estimates.body == b'{"estimators":[]}'
    page = answer.body.decode()
    assert "# TYPE karmada_scheduler_schedule_attempts_total counter" in page
    assert "# TYPE karmada_scheduler_queue_incoming_bindings_total counter" in page
    assert 'workqueue_depth{name="scheduler-queue"} 0.0' in page
    assert 'scheduler_pending_bindings{queue="active"} 0.0' in page
    assert page.count("\nkarmada_build_info{") == 1
