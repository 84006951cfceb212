"""The control plane as processes: each component on its own, and components beside the all-in-one."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from karmada.components.election import CONTROLLERS, NAMESPACE, SCHEDULER
from karmada.kube.objects.gvrs import DEPLOYMENTS, EVENTS, LEASES
from karmada.kube.objects.types import Obj
from tests.e2e.fleets import QUICK
from tests.e2e.propagating import Propagation
from tests.support.eventually import LIMIT, eventually_blocking
from tests.support.objects import kube_object
from tests.support.ports import free_port
from tests.support.programs import ComponentProcess, ServerProcess
from tests.support.workloads import one_container, workload

pytestmark = pytest.mark.e2e

DEPLOYMENT = workload("Deployment", "web", 2, one_container("nginx"))
POLICY: Obj = kube_object("policy.karmada.io/v1alpha1", "PropagationPolicy", "web") | {
    "spec": {
        "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}],
        "placement": {"clusterAffinity": {"clusterNames": ["member1"]}},
    },
}


class Apart(Propagation):
    """A control plane whose API server, admission, controllers and scheduler are four processes."""

    def __init__(self, root: Path, kubectl: str) -> None:
        super().__init__(root, kubectl)
        self.root = root
        self.plane = ServerProcess(root / "plane")

    def __enter__(self) -> Apart:
        super().__enter__()
        with ExitStack() as stack:
            stack.callback(super().__exit__)
            self._install(stack.enter_context(self._webhook()))
            stack.enter_context(self.component("controller_manager", "Controllers", *QUICK))
            stack.enter_context(self.component("scheduler", "Scheduler default-scheduler"))
            self._parts = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._parts.close()

    def component(self, module: str, greeting: str, *flags: str) -> ComponentProcess:
        ends = ("--metrics-bind-address=0", "--health-probe-bind-address=0")
        return beside(self, module, greeting, *ends, *flags)

    def _webhook(self) -> ComponentProcess:
        where = ("--cert-dir", str(self.root / "certs"), "--bind-address=127.0.0.1", "--secure-port=0")
        return self.component("webhook", "Reviews at https://", *where)

    def _install(self, webhook: ComponentProcess) -> None:
        """The definitions and the webhook configurations, as a user puts them there."""
        url, authority = webhook.line.split()[-1], str(self.root / "certs" / "ca.crt")
        crds = self.ctl("crds", "--all", "--webhook-url", f"{url}/convert", "--webhook-ca", authority)
        self.kubectl("apply", "--server-side", "-f", "-", stdin=crds.out)
        self.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=100s")
        self.kubectl("create", "namespace", NAMESPACE)
        hooks = self.ctl("webhook-config", "--url", url, "--ca", authority)
        self.kubectl("create", "-f", "-", stdin=hooks.out)


def beside(fleet: Propagation, module: str, greeting: str, *flags: str) -> ComponentProcess:
    log = fleet.plane.data_dir.parent / f"{module}.log"
    return ComponentProcess(module, ["--kubeconfig", str(fleet.plane.kubeconfig), *flags], log, greeting)


def holder(fleet: Propagation, lease: str) -> str:
    found = fleet.here.get(LEASES, lease, NAMESPACE)
    return "" if found is None else str(found["spec"]["holderIdentity"])


def test_four_processes_propagate_a_deployment_and_report_its_status(tmp_path: Path, kubectl_path: str) -> None:
    with Apart(tmp_path, kubectl_path) as fleet:
        fleet.create("member1")
        fleet.open(["member1"])
        fleet.join("member1")
        fleet.until_ready("member1")
        refused = {**POLICY, "spec": {**POLICY["spec"], "resourceSelectors": []}}
        assert fleet.kubectl("create", "-f", "-", stdin=as_json(refused), check=False).code != 0
        fleet.apply(POLICY, DEPLOYMENT)
        fleet.members["member1"].until(DEPLOYMENTS, "web", lambda found: found["spec"]["replicas"] == 2)
        fleet.here.until(DEPLOYMENTS, "web", lambda found: found.get("status", {}).get("readyReplicas") == 2)
        holders = [holder(fleet, CONTROLLERS), holder(fleet, SCHEDULER)]
        assert all(holders)
        assert holders[0] != holders[1]


@pytest.fixture
def all_in_one(tmp_path: Path, kubectl_path: str) -> Iterator[Propagation]:
    with Propagation(tmp_path, kubectl_path) as fleet:
        fleet.create("member1")
        fleet.open(["member1"])
        fleet.join("member1")
        fleet.until_ready("member1")
        yield fleet


def scheduled(fleet: Propagation) -> list[Obj]:
    """The events about bindings that were scheduled."""
    return [
        event
        for event in fleet.here.list(EVENTS, "default")
        if event["reason"] == "ScheduleBindingSucceed" and event["involvedObject"]["kind"] == "ResourceBinding"
    ]


def test_beside_a_scheduler_of_its_own_process_only_one_schedules(all_in_one: Propagation) -> None:
    fleet, port = all_in_one, free_port()
    ends = ("--metrics-bind-address", f"127.0.0.1:{port}", "--health-probe-bind-address", f"127.0.0.1:{port}")
    before = holder(fleet, SCHEDULER)
    with beside(fleet, "scheduler", "Scheduler", *ends) as other:
        eventually_blocking(lambda: "Waiting for the lease" in other.log_file.read_text())
        fleet.apply(POLICY, DEPLOYMENT)
        fleet.members["member1"].until(DEPLOYMENTS, "web", lambda found: found["spec"]["replicas"] == 2)
        fleet.here.until(DEPLOYMENTS, "web", lambda found: found.get("status", {}).get("readyReplicas") == 2)
        eventually_blocking(lambda: scheduled(fleet))  # events are written behind
        assert [event.get("count", 1) for event in scheduled(fleet)] == [1]
        assert 'karmada_scheduler_schedule_attempts_total{result="scheduled"' not in page(port)
        assert holder(fleet, SCHEDULER) == before


def test_a_killed_control_plane_does_not_wait_for_its_own_leases(all_in_one: Propagation) -> None:
    fleet = all_in_one
    before = [holder(fleet, CONTROLLERS), holder(fleet, SCHEDULER)]
    fleet.plane.kill()
    logged = len(fleet.plane.log())
    fleet.plane.start()
    fleet.apply(POLICY, DEPLOYMENT)
    fleet.members["member1"].until(DEPLOYMENTS, "web", lambda found: found["spec"]["replicas"] == 2)
    assert "Waiting for the lease" not in fleet.plane.log()[logged:]
    assert [holder(fleet, CONTROLLERS), holder(fleet, SCHEDULER)] == before


def page(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=LIMIT) as answer:
        return str(answer.read().decode())


def as_json(obj: Obj) -> str:
    return json.dumps(obj)
