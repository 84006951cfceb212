from __future__ import annotations

from typing import Any

from karmada.dashboard.pages.pods import containers_of
from tests.support.cases import cases
from tests.support.dashboard_client import DashboardPlane


@cases(
    ({}, "warn", "Waiting"),
    ({"ready": True, "state": {"running": {}}}, "good", "Running"),
    ({"state": {"running": {}}}, "warn", "Running, not ready"),
    ({"state": {"waiting": {"reason": "ContainerCreating"}}}, "warn", "ContainerCreating"),
    ({"state": {"waiting": {"reason": "ImagePullBackOff"}}}, "bad", "ImagePullBackOff"),
    ({"state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}, "idle", "Completed (0)"),
    ({"state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}, "bad", "OOMKilled (137)"),
)
def test_a_container_has_the_state_that_its_node_reports(status: Any, state: str, text: str) -> None:
    pod = {
        "spec": {"containers": [{"name": "web", "image": "nginx"}], "initContainers": [{"name": "wait"}]},
        "status": {"containerStatuses": [{"name": "web", "restartCount": 2, **status}]},
    }
    web, wait = containers_of(pod)
    assert (web.name, web.image, web.restarts, web.state, web.text) == ("web", "nginx", 2, state, text)
    assert (wait.name, wait.text) == ("wait", "Waiting")


async def test_logs_and_terminals_are_refused_with_a_reason(plane: DashboardPlane) -> None:
    await plane.browser.log_in()
    base = "/pods/moon/default/web"
    assert (await plane.browser.get(base)).status == 404
    assert "at most 5,000" in (await plane.browser.get(f"{base}/logs?tail=99999")).text
    assert (await plane.browser.get(f"{base}/terminal")).status == 403, "this dashboard only reads"
